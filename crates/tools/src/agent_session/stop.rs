//! `agent_session_stop`: ends the runs of a child and of all below it.

use attache_agent::{CallContext, ToolOutcome};
use serde_json::{Value, json};

use super::{Answer, tool};
use crate::arguments::Arguments;
use crate::show;

tool!(
    /// The tool.
    Stop,
    true,
    show::spec(
        "agent_session_stop",
        "End the current run of a sub-agent session and of all its descendants. What it said stays \
         readable, and it can be sent new work. With dispose you give the child up: it ends unless \
         somebody else holds it, and takes no more input until you acquire it again.",
        &json!({
            "session_id": { "type": "string", "description": "The child's id." },
            "dispose": { "type": "boolean", "description": "Give the child up too. Default false." }
        }),
        &["session_id"]
    ),
    call
);

async fn call(context: CallContext, arguments: Value) -> Answer {
    let mut arguments = Arguments::new(arguments)?;
    let session = arguments.required_session(context.caller.session)?;
    let dispose = arguments.flag("dispose")?;
    arguments.done()?;
    let was_running = context
        .sessions
        .stop(&context.caller, session, dispose)
        .await?;
    Ok(ToolOutcome::json(
        &json!({ "ok": true, "was_running": was_running }),
    ))
}
