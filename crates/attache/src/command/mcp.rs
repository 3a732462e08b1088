//! `attache mcp`: standard input and output of another agent, connected with the MCP door of the
//! daemon. Nothing but the protocol is printed on standard output.

use attache_client::protocol::{OpenDoor, VERSION};
use attache_client::{ClientError, ConnectError, HostPlace, open_door};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::from_here;
use crate::cli::Mcp;
use crate::fail::{Failure, NOT_FOUND};
use crate::places::{PROGRAM, Places};
use crate::{find, link, mcp as door};

pub(crate) async fn mcp(mcp: Mcp) -> Result<u8, Failure> {
    let Mcp { agent, model, root } = mcp;
    let place = Places::find()?.daemon()?;
    // This connection keeps the daemon while the door is being opened.
    let daemon = HostPlace::Here(Box::new(place.clone()));
    let (client, streams) = daemon.connect_or_start().await?;
    let root_session_id = match root {
        Some(root) => Some(find::session(&client, &root).await?.session_id),
        None => None,
    };
    let working_directory = link::working_directory()?;
    let open = OpenDoor {
        version: VERSION,
        program: PROGRAM.to_owned(),
        door: door::DOOR.to_owned(),
        agent,
        model: model.map(|model| from_here(&model, &working_directory)),
        root_session_id,
        working_directory: working_directory.display().to_string(),
        environment: link::environment(),
    };
    let (from_host, to_host) = open_door(&place, open).await.map_err(older)?;
    drop((client, streams));
    let out = pass(from_host, tokio::io::stdout());
    let input = pass(tokio::io::stdin(), to_host);
    tokio::pin!(input);
    tokio::pin!(out);
    tokio::select! {
        // The agent has closed its end: what is on its way to it still arrives, then the host closes.
        _closed = &mut input => {
            let _rest = out.await;
            Ok(0)
        }
        ended = &mut out => match ended {
            // The agent reads no longer.
            Err(_gone) => Ok(0),
            Ok(()) => Err(Failure::new(
                NOT_FOUND,
                "internal",
                "the daemon has ended; what was created there is kept",
            )
            .with_hint("Start the server again and pass the `root_session_id` of an earlier result.")),
        }
    }
}

/// A daemon from before there were doors takes the frame that opens one for a mistake.
fn older(error: ConnectError) -> Failure {
    match error {
        ConnectError::Refused(ClientError::Refused(refused))
            if refused.code == "invalid-message" =>
        {
            Failure::new(
                NOT_FOUND,
                "host-incompatible",
                "the daemon that runs is of an older version, which has no MCP server",
            )
            .with_hint("`attache restart` starts the newer one.")
        }
        other => other.into(),
    }
}

/// Passes on what comes until its end, then closes the other side.
async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
) -> std::io::Result<()> {
    tokio::io::copy(&mut from, &mut to).await?;
    to.shutdown().await
}
