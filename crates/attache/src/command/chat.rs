//! `attache chat` and `attache attach`: a session line by line. `chat` makes a new one where none is named.

use attache_client::ClientError;
use attache_client::protocol::{Answer, Command, SessionView};

use super::new_session;
use crate::cli::{Attach, Chat, Choice};
use crate::fail::Failure;
use crate::find;
use crate::link::Link;
use crate::output::Output;
use crate::talk::{Manner, Talk};

pub(crate) async fn chat(chat: Chat, output: &Output) -> Result<u8, Failure> {
    let Chat { id, choice } = chat;
    let link = Link::daemon().await?;
    let is_new = id.is_none();
    let session = match id {
        Some(id) => find::session(&link.client, &id).await?,
        None => create(&link, &choice).await?,
    };
    let manner = Manner {
        read_only: false,
        is_new,
    };
    let talk = Talk::with(session, manner, output).await?;
    // It is attached to by now: what made it may go.
    drop(link);
    talk.go().await
}

async fn create(link: &Link, choice: &Choice) -> Result<SessionView, Failure> {
    let new = new_session(choice, None, false)?;
    let create = Command::CreateSession(Box::new(new));
    match link.client.ask(create).await? {
        Answer::Session { session } => Ok(*session),
        _ => Err(ClientError::Unexpected.into()),
    }
}

pub(crate) async fn attach(attach: Attach, output: &Output) -> Result<u8, Failure> {
    let Attach {
        id,
        // The only way there is.
        plain: _,
        read_only,
    } = attach;
    let session = {
        let link = Link::daemon().await?;
        find::session(&link.client, &id).await?
    };
    let manner = Manner {
        read_only,
        is_new: false,
    };
    Talk::with(session, manner, output).await?.go().await
}
