//! `attache wait`: until a session, or its whole tree, is quiet.

use attache_client::ClientError;
use attache_client::protocol::{Answer, Command, Reach};

use super::session;
use crate::fail::Failure;
use crate::output::Output;
use crate::shape;
use crate::tree_view::short;

pub(crate) async fn wait(
    id: &str,
    itself: bool,
    timeout: Option<u64>,
    output: &Output,
) -> Result<u8, Failure> {
    let (link, found) = session(id).await?;
    let ask = Command::Wait {
        session_id: found.session_id,
        reach: if itself { Reach::Itself } else { Reach::Tree },
        timeout_seconds: timeout,
    };
    let Answer::Session { session } = link.client.ask(ask).await? else {
        return Err(ClientError::Unexpected.into());
    };
    output.data(&shape::session(&session), || {
        format!(
            "{} {}  {}\n",
            short(&session.session_id),
            session.status.as_str(),
            session.outcome.as_deref().unwrap_or("-")
        )
    });
    Ok(0)
}
