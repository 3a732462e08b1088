//! Toolset `current-session`: what a session can know of itself and of its parents.

use std::sync::Arc;

use attache_agent::{CallContext, SessionContext, SessionEntity, Tool, ToolOutcome, Toolset};
use serde_json::{Value, json};

use crate::agent_session::{Answer, tool};
use crate::arguments::Arguments;
use crate::show;

/// The toolset.
pub struct CurrentSession;

impl Toolset for CurrentSession {
    fn kind(&self) -> &'static str {
        "current-session"
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![Arc::new(GetCurrentSession::default())]
    }
}

tool!(
    /// The tool.
    GetCurrentSession(is_bookkeeping),
    false,
    show::spec(
        "get_current_session",
        "Show your own session: its id, whether you are a sub-agent (is_subagent), and your \
         immediate parents (parent_agent_sessions, empty for a top-level session; there can be \
         more than one). To walk upwards, read the parent-agent-session-ids of each parent in turn.",
        &json!({
            "include_profile": {
                "type": "boolean",
                "description": "Whether to show profile and user. Default true."
            },
            "include_definition": {
                "type": "boolean",
                "description": "Whether to show the agent definition. Default true."
            }
        }),
        &[]
    ),
    call
);

async fn call(context: CallContext, arguments: Value) -> Answer {
    let mut arguments = Arguments::new(arguments)?;
    let profile = arguments.flag_or("include_profile", true)?;
    let definition = arguments.flag_or("include_definition", true)?;
    arguments.done()?;
    let known = context.sessions.context(&context.caller).await?;
    Ok(ToolOutcome::json(&shown(&known, profile, definition)))
}

/// The whole answer; every member is always there. `is_subagent` follows the raw list, so a parent
/// that cannot be found does not make a sub-agent look like a root.
fn shown(known: &SessionContext, profile: bool, definition: bool) -> Value {
    let when = |wanted: bool, entity: &Option<SessionEntity>| {
        entity.as_ref().filter(|_| wanted).map(entity_value)
    };
    json!({
        "agent_session": when(true, &known.agent_session),
        "is_subagent": !known.parent_ids.is_empty(),
        "parent_agent_sessions": known.parents.iter().map(entity_value).collect::<Vec<_>>(),
        "user_computer_profile": when(profile, &known.profile),
        "user": when(profile, &known.user),
        "computer": when(true, &known.computer),
        "agent_definition": when(definition, &known.definition),
    })
}

fn entity_value(entity: &SessionEntity) -> Value {
    json!({
        "entityId": entity.entity_id,
        "concurrencyTag": entity.concurrency_tag,
        "modifiedTime": show::time(entity.modified_time),
        "changeId": entity.change_id,
        "data": entity.data,
    })
}
