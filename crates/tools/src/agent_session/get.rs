//! `agent_session_get`: what one session does now, and what came of it.

use attache_agent::{CallContext, ToolOutcome};
use serde_json::{Value, json};

use super::{Answer, tool};
use crate::arguments::Arguments;
use crate::show;

tool!(
    /// The tool.
    Get(may_repeat, is_bookkeeping),
    false,
    show::spec(
        "agent_session_get",
        "Show what a session is doing now, what came of its last run, and its result. Use it to \
         look at a child without waiting; \".\" or no id is yourself.",
        &json!({
            "session_id": {
                "type": "string",
                "description": "A child's or descendant's id, or \".\" for yourself."
            },
            "ledger": {
                "type": "boolean",
                "description": "Also the tool calls of its last or current run: what each came to and \
                                whether it changed something. Default false."
            }
        }),
        &[]
    ),
    call
);

async fn call(context: CallContext, arguments: Value) -> Answer {
    let mut arguments = Arguments::new(arguments)?;
    let me = context.caller.session;
    let session = arguments.session(me)?.unwrap_or(me);
    let with_ledger = arguments.flag("ledger")?;
    arguments.done()?;
    let detail = context.sessions.get(&context.caller, session).await?;
    let mut shown = show::detail(&detail);
    if with_ledger {
        let ledger = context.sessions.ledger(&context.caller, session).await?;
        shown["ledger"] = ledger.as_ref().map_or(Value::Null, show::ledger);
    }
    Ok(ToolOutcome::json(&shown))
}
