//! `attache wait`: until a session, or its whole tree, is quiet.

use attache_client::ClientError;
use attache_client::protocol::{Answer, Command, Reach};

use super::session;
use crate::clock;
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
    let (mut link, found) = session(id).await?;
    let began = clock::instant();
    let session = loop {
        let ask = Command::Wait {
            session_id: found.session_id.clone(),
            reach: if itself { Reach::Itself } else { Reach::Tree },
            timeout_seconds: timeout.map(|all| all.saturating_sub(began.elapsed().as_secs())),
        };
        match link.client.ask(ask).await {
            Ok(Answer::Session { session }) => break session,
            Ok(_) => return Err(ClientError::Unexpected.into()),
            Err(error) => link.again(error, output).await??,
        }
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
