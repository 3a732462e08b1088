//! `agent_session_read_events`: the stable history of a session, page by page.

use attache_agent::{CallContext, EventQuery, ToolOutcome};
use serde_json::{Value, json};

use super::{Answer, tool};
use crate::arguments::Arguments;
use crate::show;

/// Events of a page without a limit, and at most.
const LIMIT: u64 = 20;
const MOST: u64 = 200;

/// Events of a page that are shown with their whole text.
const FULL: u64 = 5;

const TYPES: [&str; 5] = [
    "user",
    "assistant",
    "tool_call",
    "tool_result",
    "diagnostic",
];

tool!(
    /// The tool.
    ReadEvents(may_repeat),
    false,
    show::spec(
        "agent_session_read_events",
        "Read the history of a session, oldest first: what it was told, said, called and got. Use \
         it to read a child's result or to see how it came about. Go on with next_cursor as \
         after_timestamp; \".\" or no id is yourself.",
        &json!({
            "session_id": {
                "type": "string",
                "description": "A child's or descendant's id, or \".\" for yourself."
            },
            "after_timestamp": {
                "type": "string",
                "description": "Only later events: a timestamp of an earlier page, RFC 3339."
            },
            "event_types": {
                "type": "array",
                "items": { "type": "string", "enum": TYPES },
                "description": "Only events of these types."
            },
            "search": {
                "type": "string",
                "description": "Only events whose whole text, arguments or result contain this."
            },
            "limit": { "type": "integer", "description": "At most this many: 20, at most 200." },
            "full": {
                "type": "boolean",
                "description": "Whole texts instead of previews, of at most 5 events."
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
    let after = arguments.time("after_timestamp")?;
    let event_types = arguments.choices("event_types", &TYPES)?;
    let search = arguments.text("search")?;
    let full = arguments.flag("full")?;
    let most = if full { FULL } else { MOST };
    let limit = arguments.number("limit", LIMIT.min(most), 1..=most)?;
    let adjusted = arguments.done()?;
    let query = EventQuery {
        after,
        event_types,
        search,
        limit: usize::try_from(limit).unwrap_or(1),
    };
    let page = context
        .sessions
        .read_events(&context.caller, session, query)
        .await?;
    let mut shown = json!({
        "events": show::events(&page, full),
        "total_matching": page.total_matching,
        "next_cursor": page.next_cursor.map(show::time),
    });
    if !adjusted.is_empty() {
        shown["adjusted"] = Value::Object(adjusted);
    }
    Ok(ToolOutcome::json(&shown))
}
