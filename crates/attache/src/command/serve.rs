//! `attache serve`: the daemon, in the foreground or started by a command.

use std::net::SocketAddr;
use std::time::Duration;

use attache_host::{Daemon, Host, Idle, Settings};
use tokio::signal::unix::{SignalKind, signal};

use crate::fail::{Failure, NOT_FOUND};
use crate::link::{self, Serving, open_host};
use crate::mcp;
use crate::output::Output;
use crate::places::Places;

pub(crate) async fn serve(
    serving: Serving,
    listen: Option<SocketAddr>,
    on_demand: bool,
    output: &Output,
) -> Result<u8, Failure> {
    if on_demand {
        // Out of the starter's terminal: what ends that one must not end the daemon. It fails only
        // for the leader of a group, which is out of it already.
        let _own_session = rustix::process::setsid();
    }
    let places = Places::find()?;
    let host = if on_demand {
        open_soon(&places, serving).await?
    } else {
        open_host(&places, serving).await?
    };
    let http = match listen {
        Some(address) => Some(mcp::http(&host, &places, address, output).await?),
        None => None,
    };
    let daemon = Daemon::bind(host, &places.socket, &places.beside).map_err(|error| {
        Failure::new(NOT_FOUND, "internal", format!("{error}: {}", error.fault))
    })?;
    let idle = if on_demand {
        let environment = attache_host::environment(link::environment(), &link::key_variables());
        let settings = Settings::load(Some(&places.settings_file()), None, &environment)
            .map_err(|error| Failure::usage(error.to_string()))?;
        Idle::After(Duration::from_secs(settings.idle_seconds))
    } else {
        output.note(&format!("attache serves {}", places.socket.display()));
        Idle::Stay
    };
    let ended = ended()?;
    match http {
        None => daemon.run(ended, idle).await,
        Some((door, listener)) => {
            let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
            let http = door.serve(listener, async move {
                // Whether it is told or the teller is gone: it ends.
                let _told = stopped.await;
            });
            let daemon = async move {
                daemon.run(ended, idle).await;
                drop(stop);
            };
            tokio::join!(http, daemon);
        }
    }
    Ok(0)
}

/// How long a daemon that leaves may still hold the store after its socket's name is gone.
const LEAVING: Duration = Duration::from_secs(4);

/// How often the store is tried meanwhile.
const LOOK: Duration = Duration::from_millis(10);

/// Opens the host, and waits for a daemon that is just leaving.
async fn open_soon(places: &Places, serving: Serving) -> Result<Host, Failure> {
    let try_again = async {
        loop {
            match open_host(places, serving.clone()).await {
                Err(failure) if failure.code == "store-locked" => tokio::time::sleep(LOOK).await,
                opened => return opened,
            }
        }
    };
    match tokio::time::timeout(LEAVING, try_again).await {
        Ok(opened) => opened,
        Err(_over) => open_host(places, serving.clone()).await,
    }
}

/// Ends with the signal that asks the daemon to end.
fn ended() -> Result<impl Future<Output = String>, Failure> {
    let listen =
        |kind| signal(kind).map_err(|fault| Failure::internal(format!("no signals: {fault}")));
    let mut terminate = listen(SignalKind::terminate())?;
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut hang_up = listen(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => "it was asked to end".to_owned(),
            _ = interrupt.recv() => "it was interrupted".to_owned(),
            _ = hang_up.recv() => "its terminal is gone".to_owned(),
        }
    })
}
