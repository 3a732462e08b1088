//! `agent_session_on_complete`: be told once when a child has settled, without waiting for it.

use attache_agent::{CallContext, ToolOutcome};
use serde_json::{Value, json};

use super::{Answer, tool};
use crate::arguments::Arguments;
use crate::show;

tool!(
    /// The tool.
    OnComplete,
    true,
    show::spec(
        "agent_session_on_complete",
        "Ask to be told once when a sub-agent session has finished, failed or stopped. You can go \
         on with other work, or end your turn: the message reaches you then. A session that has \
         finished already tells you at once.",
        &json!({
            "session_id": {
                "type": "string",
                "description": "The child's id, or \".\" for the end of your own run."
            },
            "message": {
                "type": "string",
                "description": "What to be told; by default the id, the status and the outcome."
            }
        }),
        &["session_id"]
    ),
    call
);

async fn call(context: CallContext, arguments: Value) -> Answer {
    let mut arguments = Arguments::new(arguments)?;
    let session = arguments.required_session(context.caller.session)?;
    let message = arguments.long_text("message")?;
    arguments.done()?;
    let watching = context
        .sessions
        .on_complete(&context.caller, session, message)
        .await?;
    Ok(ToolOutcome::json(&json!({
        "ok": true,
        "fired_immediately": watching.fired_immediately,
    })))
}
