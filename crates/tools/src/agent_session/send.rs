//! `agent_session_send`: input for a child.

use attache_agent::{CallContext, ToolError, ToolOutcome};
use serde_json::{Value, json};

use super::{Answer, tool};
use crate::arguments::Arguments;
use crate::show;

tool!(
    /// The tool.
    Send,
    true,
    show::spec(
        "agent_session_send",
        "Send a message to one of your sub-agent sessions. It is taken when the child's current \
         run ends, or, with immediacy \"immediate\", at the child's next tool boundary, to steer \
         it. An idle child starts to work on it at once. \"accepted\" means that it cannot be lost.",
        &json!({
            "session_id": { "type": "string", "description": "The child's id." },
            "text": { "type": "string", "description": "The message, at most 1 MiB." },
            "immediacy": {
                "type": "string",
                "enum": ["immediate", "queue"],
                "description": "\"queue\" (default) waits for the end of the current run."
            }
        }),
        &["session_id", "text"]
    ),
    call
);

async fn call(context: CallContext, arguments: Value) -> Answer {
    let mut arguments = Arguments::new(arguments)?;
    let session = arguments.required_session(context.caller.session)?;
    let text = arguments
        .long_text("text")?
        .ok_or_else(|| ToolError::invalid("`text` is missing"))?;
    let immediacy = arguments.choice("immediacy", &["immediate", "queue"])?;
    arguments.done()?;
    let immediate = immediacy == Some("immediate");
    let item = context
        .sessions
        .send(&context.caller, session, text, immediate)
        .await?;
    Ok(ToolOutcome::json(&json!({
        "ok": true,
        "item_id": item.to_string(),
        "state": "accepted",
    })))
}
