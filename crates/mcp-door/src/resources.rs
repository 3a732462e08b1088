//! Sessions as resources: one for each session of a client's tree, its root among them.

use attache_engine::parts::{Cancel, Kind, PageQuery, RowFilter};
use attache_engine::{EngineError, EngineHandle, OutsideCall};
use attache_session::{SessionId, Timestamp};
use rmcp::model::{ErrorData, ListResourcesResult, ReadResourceResult, Resource, ResourceContents};
use serde_json::{Map, Value, json};

use crate::answer::object;
use crate::notices;

/// What the address of a session begins with.
const SCHEME: &str = "attache://session/";

/// Sessions on a page of the list.
const PAGE: usize = 200;

/// Items of the history that a resource shows.
const HISTORY: usize = 50;

/// The address of a session.
pub(crate) fn address(session: SessionId) -> String {
    format!("{SCHEME}{session}")
}

/// The session of an address.
pub(crate) fn session_of(address: &str) -> Option<SessionId> {
    address.strip_prefix(SCHEME)?.parse().ok()
}

/// What is said of an address that names nothing that the client may see.
pub(crate) fn unknown(address: &str) -> ErrorData {
    ErrorData::resource_not_found(
        "there is no such session",
        Some(json!({ "uri": address, "code": "unknown-session" })),
    )
}

/// An error of the engine, where there is no result that could carry it.
pub(crate) fn failed(error: &EngineError) -> ErrorData {
    let data = json!({ "code": error.code.as_str() });
    ErrorData::internal_error(error.message.clone(), Some(data))
}

/// A page of the sessions of a tree, the root first.
pub(crate) fn list(
    engine: &EngineHandle,
    root: SessionId,
    cursor: Option<&str>,
) -> Result<ListResourcesResult, ErrorData> {
    let after = match cursor {
        None => None,
        Some(cursor) => Some(cursor.parse::<SessionId>().map_err(|_no_id| {
            ErrorData::invalid_params("the cursor is none of this list", None)
        })?),
    };
    let rows = engine
        .rows_after(RowFilter::Tree(root), after, PAGE)
        .map_err(|error| failed(&error))?;
    let next = (rows.len() == PAGE).then(|| rows.last().map(|row| row.session.to_string()));
    let resources = rows.iter().map(|row| {
        let name = &row.view.summary.name;
        let described = if row.session == root {
            "The notices of your sessions, those that wait and those that were read"
        } else {
            "A sub-agent session: what it does, and the end of its history"
        };
        Resource::new(address(row.session), name.to_string())
            .with_description(described)
            .with_mime_type("application/json")
    });
    let mut result = ListResourcesResult::with_all_items(resources.collect());
    result.next_cursor = next.flatten();
    Ok(result)
}

/// A session's resource.
pub(crate) async fn read(
    engine: &EngineHandle,
    root: SessionId,
    session: SessionId,
) -> Result<ReadResourceResult, EngineError> {
    let mut shown = if session == root {
        let waiting = engine.waiting_notices(root).await?;
        let notices = waiting.iter().map(|notice| notices::shown(engine, notice));
        let notices = notices.collect::<Result<Vec<_>, _>>()?;
        let row = engine.row(root)?;
        let mut shown = Map::new();
        shown.insert("session_id".to_owned(), root.to_string().into());
        shown.insert("status".to_owned(), row.status.as_str().into());
        shown.insert("notices".to_owned(), Value::Array(notices));
        shown
    } else {
        ask(engine, root, "agent_session_get", session, &json!({})).await?
    };
    if !shown.contains_key("error") {
        let history = history(engine, root, session).await?;
        shown.insert("history".to_owned(), history);
    }
    let text = Value::Object(shown).to_string();
    let contents =
        ResourceContents::text(text, address(session)).with_mime_type("application/json");
    Ok(ReadResourceResult::new(vec![contents]))
}

/// The end of a history, in the shape in which it is read by a tool.
async fn history(
    engine: &EngineHandle,
    root: SessionId,
    session: SessionId,
) -> Result<Value, EngineError> {
    let kinds = if session == root {
        vec![Kind::Diagnostic]
    } else {
        Vec::new()
    };
    let newest = PageQuery {
        after: None,
        up_to: None,
        kinds,
        search: None,
        limit: HISTORY,
        newest: true,
    };
    let page = engine.page(session, &newest)?;
    let Some(first) = page.items.first() else {
        return Ok(json!([]));
    };
    let after = time(Timestamp(first.event.at.0 - 1));
    let more = json!({ "after_timestamp": after, "limit": HISTORY });
    let mut read = ask(engine, root, "agent_session_read_events", session, &more).await?;
    Ok(read.remove("events").unwrap_or_else(|| json!([])))
}

/// Calls a tool that only looks.
async fn ask(
    engine: &EngineHandle,
    root: SessionId,
    tool: &str,
    session: SessionId,
    more: &Value,
) -> Result<Map<String, Value>, EngineError> {
    let mut arguments = more.clone();
    arguments["session_id"] = json!(session.to_string());
    let (_set, cancel) = Cancel::new();
    let outcome = engine.call_tool(OutsideCall {
        session: root,
        call: engine.fresh_call(),
        tool: tool.to_owned(),
        arguments,
        cancel,
    });
    Ok(object(&outcome.await?.content))
}

/// RFC 3339 with six digits: a cursor.
fn time(at: Timestamp) -> String {
    jiff::Timestamp::from_microsecond(at.0).map_or_else(|_| String::new(), |at| format!("{at:.6}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_session_and_nothing_else() {
        let session = SessionId(uuid::Uuid::from_u128(7));
        assert_eq!(session_of(&address(session)), Some(session));
        for other in [
            "",
            "attache://session/",
            "attache://session/x",
            "file:///etc/passwd",
        ] {
            assert_eq!(session_of(other), None, "{other}");
        }
    }
}
