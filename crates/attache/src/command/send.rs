//! `attache send`: input for a session, with its receipt.

use attache_client::ClientError;
use attache_client::protocol::{Answer, Command, QueueRef};
use serde_json::json;

use super::{session, text_of};
use crate::cli::Send;
use crate::fail::Failure;
use crate::link;
use crate::output::Output;
use crate::tree_view::short;

/// The queue that held input waits in when none is named.
const HELD: &str = "held";

pub(crate) async fn send(send: Send, output: &Output) -> Result<u8, Failure> {
    let Send {
        id,
        text,
        immediate,
        queue,
        held,
    } = send;
    let text = text_of(&text)?;
    let queue = match (immediate, queue, held) {
        (true, _, _) => QueueRef::Immediate {},
        (_, Some(name), held) => QueueRef::Named { name, held },
        (_, None, true) => QueueRef::Named {
            name: HELD.to_owned(),
            held: true,
        },
        (_, None, false) => QueueRef::Default {},
    };
    let (link, found) = session(&id).await?;
    let ask = Command::Enqueue {
        session_id: found.session_id.clone(),
        queue,
        text,
        // What is held back starts nothing.
        start: !held,
        environment: link::environment(),
    };
    let Answer::Accepted { item_id, status } = link.client.ask(ask).await? else {
        return Err(ClientError::Unexpected.into());
    };
    let value = json!({
        "ok": true,
        "session_id": found.session_id,
        "item_id": item_id,
        "state": "accepted",
        "status": status.as_str(),
    });
    output.data(&value, || {
        format!(
            "accepted as {} by {}, which is {}\n",
            short(&item_id),
            short(&found.session_id),
            status.as_str()
        )
    });
    Ok(0)
}
