//! `agent_session_acquire`: hold a session that exists, for example after a restart.

use attache_agent::{CallContext, ToolError, ToolOutcome};
use serde_json::{Value, json};

use super::{Answer, tool};
use crate::arguments::Arguments;
use crate::show;

tool!(
    /// The tool.
    Acquire,
    true,
    show::spec(
        "agent_session_acquire",
        "Take hold of an existing sub-agent session again: one that stopped with a restart, one \
         that you disposed, or one that an agent above you created. Afterwards it takes messages, \
         and what waited for it is worked on.",
        &json!({
            "session_id": { "type": "string", "description": "The session's id." }
        }),
        &["session_id"]
    ),
    call
);

async fn call(context: CallContext, arguments: Value) -> Answer {
    let mut arguments = Arguments::new(arguments)?;
    let me = context.caller.session;
    let session = arguments.required_session(me)?;
    arguments.done()?;
    if session == me {
        return Err(ToolError::invalid(
            "`session_id` must be the id of another session",
        ));
    }
    let (already, detail) = context.sessions.acquire(&context.caller, session).await?;
    let mut shown = show::detail(&detail);
    shown["already_acquired"] = json!(already);
    Ok(ToolOutcome::json(&shown))
}
