//! `agent_session_wait`: waits for a child's next output, or until it has settled.

use std::time::Duration;

use attache_agent::{CallContext, ToolOutcome, WaitEnd, WaitFor};
use serde_json::{Value, json};

use super::{Answer, tool};
use crate::arguments::Arguments;
use crate::show;

/// Seconds of a wait without a limit, and at most.
const SECONDS: u64 = 30;
const MOST: u64 = 300;

/// New events that come with the answer.
const EVENTS: usize = 20;

tool!(
    /// The tool.
    Wait(may_repeat, waits),
    false,
    show::spec(
        "agent_session_wait",
        "Wait for a sub-agent session: until it says something new, or, with wait_for_idle, until \
         it has finished. A wait that runs out is no failure: the child works on, and you can wait \
         again. Several waits in one step run side by side.",
        &json!({
            "session_id": { "type": "string", "description": "The child's id." },
            "timeout_seconds": {
                "type": "integer",
                "description": "How long at most: 30, at most 300; 0 looks once."
            },
            "wait_for_idle": {
                "type": "boolean",
                "description": "Wait until the child has finished. Default false."
            }
        }),
        &["session_id"]
    ),
    call
);

async fn call(context: CallContext, arguments: Value) -> Answer {
    let mut arguments = Arguments::new(arguments)?;
    let session = arguments.required_session(context.caller.session)?;
    let seconds = arguments.number("timeout_seconds", SECONDS, 0..=MOST)?;
    let idle = arguments.flag("wait_for_idle")?;
    let adjusted = arguments.done()?;
    let wait_for = if idle {
        WaitFor::Settled
    } else {
        WaitFor::Output
    };
    let timeout = Duration::from_secs(seconds);
    let waited = context
        .sessions
        .wait(&context.caller, session, wait_for, timeout, EVENTS)
        .await?;
    let mut shown = show::detail(&waited.detail);
    if waited.ended_by == WaitEnd::Timeout {
        shown["status"] = json!("timeout");
    }
    shown["ended_by"] = json!(waited.ended_by.as_str());
    shown["new_events"] = Value::Array(show::events(&waited.new_events, false));
    shown["has_more"] = json!(waited.new_events.next_cursor.is_some());
    if !adjusted.is_empty() {
        shown["adjusted"] = Value::Object(adjusted);
    }
    Ok(ToolOutcome::json(&shown))
}
