//! `attache serve`: the daemon, in the foreground or started by a command.

use std::io::ErrorKind;
use std::time::Duration;

use attache_host::web::{Listen, Listener, Site, Tls, WebError, may_listen};
use attache_host::{ConfiguredListener, Daemon, Host, Idle, Settings};
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::Web;
use crate::fail::{Failure, NOT_FOUND};
use crate::link::{self, Serving, open_host};
use crate::mcp;
use crate::output::Output;
use crate::places::Places;

pub(crate) async fn serve(
    serving: Serving,
    web: Web,
    on_demand: bool,
    output: &Output,
) -> Result<u8, Failure> {
    if on_demand {
        // Out of the starter's terminal: what ends that one must not end the daemon. It fails only
        // for the leader of a group, which is out of it already.
        let _own_session = rustix::process::setsid();
    }
    // What is wrong on the command line or in the settings is told before anything is opened.
    let places = Places::find()?;
    let environment = attache_host::environment(link::environment(), &link::key_variables());
    let settings = Settings::load(Some(&places.settings_file()), None, &environment)
        .map_err(|error| Failure::usage(error.to_string()))?;
    let wanted = wanted(web, settings.listener);
    let tls = wanted.as_ref().and_then(|wanted| wanted.tls.as_ref());
    let tls = tls.map(|(certificate, key)| Tls::of_files(certificate, key));
    let tls = tls.transpose().map_err(refused)?;
    if let Some(wanted) = &wanted {
        may_listen(wanted.address, tls.is_some(), true).map_err(refused)?;
    }
    let host = if on_demand {
        open_soon(&places, serving).await?
    } else {
        open_host(&places, serving).await?
    };
    let listens = wanted.is_some();
    let http = match wanted {
        Some(wanted) => {
            let listen = Listen {
                address: wanted.address,
                tls,
                has_tokens: host.has_tokens(),
            };
            let bound = match on_demand {
                true => bind_soon(listen).await,
                false => Listener::bind(listen).await,
            };
            let listener = bound.map_err(refused)?;
            let site = site(&host, &places, &wanted)?;
            told(&listener, wanted.tls.is_some(), &places, output);
            Some((listener, site))
        }
        None => None,
    };
    let daemon = Daemon::bind(host, &places.socket, &places.beside).map_err(|error| {
        Failure::new(NOT_FOUND, "internal", format!("{error}: {}", error.fault))
    })?;
    if !on_demand {
        output.note(&format!("attache serves {}", places.socket.display()));
    }
    // Nobody could start it from elsewhere again.
    let idle = match on_demand && !listens {
        true => Idle::After(Duration::from_secs(settings.idle_seconds)),
        false => Idle::Stay,
    };
    let ended = ended()?;
    match http {
        None => daemon.run(ended, idle).await,
        Some((listener, site)) => {
            let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
            let http = listener.serve(site, async move {
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

/// The listener that is wanted: what the command line says goes before the settings.
fn wanted(web: Web, configured: Option<ConfiguredListener>) -> Option<ConfiguredListener> {
    let Web {
        listen,
        tls_cert,
        tls_key,
        allow_hosts,
    } = web;
    match listen {
        Some(address) => Some(ConfiguredListener {
            address,
            tls: tls_cert.zip(tls_key),
            allow_hosts,
        }),
        None => configured,
    }
}

/// What is served to those elsewhere.
fn site(host: &Host, places: &Places, wanted: &ConfiguredListener) -> Result<Site, Failure> {
    Ok(Site::new(&wanted.allow_hosts)
        .with("/attach", host.attach_route())
        .with("/mcp", mcp::route(host, places)?))
}

/// Says where it listens.
fn told(listener: &Listener, secured: bool, places: &Places, output: &Output) {
    let s = if secured { "s" } else { "" };
    let bound = listener.address();
    output.note(&format!(
        "attache serves http{s}://{bound}/mcp; clients bring the token in {}",
        places.state.join("mcp-token").display()
    ));
    output.note(&format!(
        "attache serves ws{s}://{bound}/attach; viewers bring a token of `attache token create`"
    ));
}

/// Opens the listener, and waits for a daemon that is just leaving and holds its address a little longer than the store.
async fn bind_soon(listen: Listen) -> Result<Listener, WebError> {
    let try_again = async {
        loop {
            match Listener::bind(listen.clone()).await {
                Err(WebError::Io { fault, .. }) if fault.kind() == ErrorKind::AddrInUse => {
                    tokio::time::sleep(LOOK).await;
                }
                bound => return bound,
            }
        }
    };
    match tokio::time::timeout(LEAVING, try_again).await {
        Ok(bound) => bound,
        Err(_over) => Listener::bind(listen).await,
    }
}

fn refused(error: WebError) -> Failure {
    let text = error.to_string();
    match error {
        WebError::NoTls(_) | WebError::NoToken(_) | WebError::Tls { .. } => Failure::usage(text),
        WebError::Io { .. } => Failure::new(NOT_FOUND, "internal", text),
    }
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
