//! `attache run`: one session, until it and all its sub-agents are quiet.

use attache_client::ClientError;
use attache_client::protocol::{Answer, Command};
use serde_json::json;

use super::follow::{self, Follow};
use super::{new_session, text_of};
use crate::cli::Run;
use crate::fail::Failure;
use crate::link::Link;
use crate::output::Output;

pub(crate) async fn run(run: Run, output: &Output) -> Result<u8, Failure> {
    let Run {
        prompt,
        choice,
        detach,
        in_process,
    } = run;
    let new = new_session(&choice, Some(text_of(&prompt)?), detach)?;
    let link = if in_process {
        Link::in_process().await?
    } else {
        Link::daemon().await?
    };
    if detach {
        let Answer::Session { session } = link
            .client
            .ask(Command::CreateSession(Box::new(new)))
            .await?
        else {
            return Err(ClientError::Unexpected.into());
        };
        output.data(&json!({ "session_id": session.session_id }), || {
            format!("{}\n", session.session_id)
        });
        return Ok(0);
    }
    follow::run(link, new, Follow { tree: false }, output).await
}
