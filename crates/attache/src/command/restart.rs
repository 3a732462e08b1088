//! `attache restart`: ends the daemon in good order, and starts the program that this is.

use std::time::Duration;

use attache_client::ClientError;
use attache_client::protocol::{Answer, Command, HostView};
use serde_json::json;

use crate::fail::{Failure, TIMED_OUT};
use crate::link::Link;
use crate::output::Output;

/// How long work under way may take to end by itself.
const DRAIN: Duration = Duration::from_secs(30);

/// How long the daemon may take to end: the grace of its turns and some more.
const END: Duration = Duration::from_secs(30);

/// How often the ending daemon is looked at.
const LOOK: Duration = Duration::from_millis(20);

pub(crate) async fn restart(now: bool, output: &Output) -> Result<u8, Failure> {
    if let Some(link) = Link::running_daemon().await? {
        let host = status(&link).await?;
        if !now && host.busy_sessions > 0 {
            let busy = host.busy_sessions;
            output.note(&format!(
                "{busy} at work: they have {} s to end; `attache restart --now` does not wait",
                DRAIN.as_secs()
            ));
            let quiet = async {
                while status(&link).await?.busy_sessions > 0 {
                    tokio::time::sleep(LOOK).await;
                }
                Ok::<(), Failure>(())
            };
            // What is not ended by then is interrupted with the daemon.
            tokio::time::timeout(DRAIN, quiet).await.unwrap_or(Ok(()))?;
        }
        drop(link);
        let process = i32::try_from(host.process_id)
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        if let Some(process) = process {
            rustix::process::kill_process(process, rustix::process::Signal::TERM)
                .map_err(|fault| Failure::internal(format!("the daemon was not ended: {fault}")))?;
            let gone = async {
                while rustix::process::test_kill_process(process).is_ok() {
                    tokio::time::sleep(LOOK).await;
                }
            };
            tokio::time::timeout(END, gone).await.map_err(|_over| {
                Failure::new(TIMED_OUT, "timeout", "the daemon has not ended within 30 s")
            })?;
        }
    }
    let host = status(&Link::daemon().await?).await?;
    output.data(
        &json!({ "ok": true, "process_id": host.process_id }),
        || format!("{} runs as process {}\n", host.program, host.process_id),
    );
    Ok(0)
}

async fn status(link: &Link) -> Result<HostView, Failure> {
    match link.client.ask(Command::HostStatus {}).await? {
        Answer::Host { host } => Ok(host),
        _ => Err(ClientError::Unexpected.into()),
    }
}
