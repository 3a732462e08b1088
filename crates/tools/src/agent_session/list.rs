//! `agent_session_list`: the caller's children, oldest first.

use std::str::FromStr;

use attache_agent::session::{SessionId, Status};
use attache_agent::{CallContext, ListChildren, ToolError, ToolOutcome};
use serde_json::{Value, json};

use super::{Answer, tool};
use crate::arguments::Arguments;
use crate::show;

/// Sessions that are listed without a limit, and at most.
const LIMIT: u64 = 200;
const MOST: u64 = 1_000;

tool!(
    /// The tool.
    List(may_repeat, is_bookkeeping),
    false,
    show::spec(
        "agent_session_list",
        "List your sub-agent sessions, oldest first, with what each is doing. Use it to find \
         children again, for example after a restart, or to see which still run.",
        &json!({
            "status": {
                "type": "string",
                "enum": ["running", "idle", "stopped", "error"],
                "description": "Only sessions of this status."
            },
            "recursive": {
                "type": "boolean",
                "description": "Descendants of every depth, not only children. Default false."
            },
            "limit": { "type": "integer", "description": "At most this many: 200, at most 1000." },
            "after_session_id": {
                "type": "string",
                "description": "Only sessions that come after this one: the last of a full page."
            }
        }),
        &[]
    ),
    call
);

async fn call(context: CallContext, arguments: Value) -> Answer {
    let mut arguments = Arguments::new(arguments)?;
    let status = arguments.choice("status", &["running", "idle", "stopped", "error"])?;
    let after = match arguments.text("after_session_id")? {
        None => None,
        Some(text) => Some(SessionId::from_str(&text).map_err(|_no_id| {
            ToolError::new(
                attache_agent::session::ErrorCode::UnknownSession,
                "`after_session_id` names no session of yours",
            )
        })?),
    };
    let query = ListChildren {
        status: status.and_then(Status::parse),
        recursive: arguments.flag("recursive")?,
        limit: usize::try_from(arguments.number("limit", LIMIT, 1..=MOST)?).unwrap_or(1),
        after,
    };
    // A clamped limit shows in the length of the array itself, which has no place for a note.
    arguments.done()?;
    let sessions = context.sessions.list(&context.caller, query).await?;
    Ok(ToolOutcome::json(&Value::Array(
        sessions.iter().map(show::listed).collect(),
    )))
}
