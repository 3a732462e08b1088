//! Questions of a viewer that change nothing: rows, pages, ids by their end, definitions. Each answer
//! stays below a frame's limit.

use attache_engine::parts::RowFilter;
use attache_engine::{EngineError, EngineHandle, SessionRow};
use attache_protocol::{
    AgentView, Answer, FRAME_LIMIT, HistoryItem, HistoryPage, LimitView, QueueRef, ReceiptView,
    Runtime, encoded_len,
};
use attache_session::{
    Answer as Decided, Command as Rule, ErrorCode, Immediacy, Position, QueueId, SessionId,
};

use crate::{from_wire, streams, to_wire};

/// Whether a session runs here. What is no id, is not there, or cannot be read is unavailable alike.
pub(crate) fn runtime(engine: &EngineHandle, session_id: &str) -> Answer {
    let session = from_wire::session(session_id);
    let row = session.and_then(|session| engine.row(session));
    let runtime = match row {
        Ok(row) if row.view.is_live() => Runtime::Running,
        Ok(_) => Runtime::NotRunning,
        Err(_) => Runtime::Unavailable,
    };
    Answer::Runtime { runtime }
}

/// Sessions that an ambiguous id is answered with.
const CANDIDATES: usize = 5;

/// Fewest characters of an id's end.
const SUFFIX: usize = 6;

/// A session's row.
pub(crate) fn session(engine: &EngineHandle, session: SessionId) -> Result<Answer, EngineError> {
    let row = engine.row(session)?;
    Ok(Answer::Session {
        session: Box::new(to_wire::session(engine, &row)),
    })
}

/// Rows of one reading of a long list.
const ROWS: usize = 256;

/// Rows in order of birth, as many as a frame holds; only those `within` a session's subtree, if one is given.
pub(crate) fn list(
    engine: &EngineHandle,
    root: Option<SessionId>,
    after: Option<SessionId>,
    within: Option<SessionId>,
) -> Result<Answer, EngineError> {
    let root = root.or(within);
    if let Some(after) = after {
        engine.row(after)?;
    }
    let mut sessions = Vec::new();
    let mut bytes = 0;
    let mut after = after;
    loop {
        let (rows, last) = match root {
            // A part of a tree is cut out of the whole of it.
            Some(root) => {
                let rows = streams::rows(engine, Some(root), within)?;
                let from = after.and_then(|after| rows.iter().position(|row| row.session == after));
                (
                    rows.into_iter()
                        .skip(from.map_or(0, |from| from + 1))
                        .collect(),
                    true,
                )
            }
            None => {
                let rows = engine.rows_after(RowFilter::All, after, ROWS)?;
                let last = rows.len() < ROWS;
                (rows, last)
            }
        };
        let rows: Vec<SessionRow> = rows;
        after = rows.last().map(|row| row.session).or(after);
        for row in &rows {
            let session = to_wire::session(engine, row);
            bytes += encoded_len(&session);
            if bytes > FRAME_LIMIT / 2 && !sessions.is_empty() {
                return Ok(Answer::Sessions {
                    sessions,
                    more: true,
                });
            }
            sessions.push(session);
        }
        if last {
            return Ok(Answer::Sessions {
                sessions,
                more: false,
            });
        }
    }
}

/// Sessions of a full id or of an id's end; only those `within` a session's subtree, if one is given.
pub(crate) fn resolve(
    engine: &EngineHandle,
    text: &str,
    within: Option<SessionId>,
) -> Result<Answer, EngineError> {
    let unknown = || {
        let (shown, _) = attache_session::preview(text, 60);
        EngineError::new(
            ErrorCode::UnknownSession,
            format!("there is no session {shown:?}"),
        )
    };
    let text = text.trim().to_ascii_lowercase();
    let whole = from_wire::session(&text).ok();
    let plain = |text: &str| {
        let mut bytes = text.bytes();
        text.len() >= SUFFIX && bytes.all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
    };
    let ids = match (within, whole) {
        (_, None) if !plain(&text) => return Err(unknown()),
        // Only what may be seen is looked through: others stand in nobody's place, and take no time of their own.
        (Some(top), whole) => {
            let end = whole.map_or(text, |id| id.to_string());
            let rows = streams::rows(engine, Some(top), within).map_err(|_gone| unknown())?;
            let ids = rows.into_iter().map(|row| row.session);
            let ids = ids.filter(|id| id.to_string().ends_with(&end));
            ids.take(CANDIDATES + 1).collect()
        }
        (None, Some(id)) => vec![id],
        (None, None) => engine.ids_ending(&text, CANDIDATES + 1)?,
    };
    let more = ids.len() > CANDIDATES;
    let mut sessions = Vec::new();
    for id in ids.into_iter().take(CANDIDATES) {
        let row = engine.row(id).map_err(|_gone| unknown())?;
        sessions.push(to_wire::session(engine, &row));
    }
    if sessions.is_empty() {
        return Err(unknown());
    }
    Ok(Answer::Sessions { sessions, more })
}

/// A page of a history, as many items as a frame holds.
pub(crate) fn page(
    engine: &EngineHandle,
    session: SessionId,
    query: attache_protocol::HistoryQuery,
) -> Result<HistoryPage, EngineError> {
    let query = from_wire::query(query)?;
    let page = engine.page(session, &query)?;
    let stored = page.items.iter();
    let shown = stored.filter_map(|stored| to_wire::item(stored.position, &stored.event));
    let (items, next_cursor) = if query.newest {
        // Behind the newest ones there is none.
        (streams::newest_of(shown.rev(), PAGE).0, None)
    } else {
        let (items, are_left) = first_of(shown, PAGE);
        let last = items.last().map(|item| item.at.clone());
        (items, last.filter(|_| are_left || page.more))
    };
    Ok(HistoryPage {
        items,
        total_matching: page.total_matching,
        next_cursor,
    })
}

/// As many of these items as have room, the first one always; and whether any is left.
fn first_of(items: impl Iterator<Item = HistoryItem>, mut room: usize) -> (Vec<HistoryItem>, bool) {
    let mut first: Vec<HistoryItem> = Vec::new();
    for item in items {
        let bytes = encoded_len(&item);
        if bytes > room && !first.is_empty() {
            return (first, true);
        }
        room = room.saturating_sub(bytes);
        first.push(item);
    }
    (first, false)
}

/// Bytes of the items of a page.
const PAGE: usize = FRAME_LIMIT / 2;

/// Bytes of one part of a text; escaped it may take six times as many.
const PART: usize = 64 * 1024;

/// A part of an item's whole text.
pub(crate) fn text(
    engine: &EngineHandle,
    session: SessionId,
    position: u64,
    offset: u64,
) -> Result<Answer, EngineError> {
    engine.row(session)?;
    let none = |what: &str| EngineError::new(ErrorCode::InvalidArguments, what);
    let before = position.checked_sub(1).map(Position);
    let found = match before {
        Some(before) => engine.log(session, before, 1)?.pop(),
        None => None,
    };
    let whole = found
        .as_ref()
        .and_then(|item| to_wire::text(&item.event.event));
    let whole = whole.ok_or_else(|| none("there is no item with a text at this position"))?;
    let rest = usize::try_from(offset)
        .ok()
        .and_then(|offset| whole.get(offset..));
    let rest = rest.ok_or_else(|| none("the offset is not within the text"))?;
    let mut end = rest.len().min(PART);
    while !rest.is_char_boundary(end) {
        end -= 1;
    }
    Ok(Answer::Text {
        text: rest[..end].to_owned(),
        more: end < rest.len(),
    })
}

/// The queue that is named, made when there is none.
pub(crate) async fn queue(
    engine: &EngineHandle,
    session: SessionId,
    queue: QueueRef,
) -> Result<QueueId, EngineError> {
    let (name, held) = match queue {
        QueueRef::Immediate {} => return Ok(QueueId::Immediate),
        QueueRef::Default {} => return Ok(QueueId::Default),
        QueueRef::Named { name, held } => (name, held),
    };
    let state = engine.state(session).await?;
    if let Some(known) = state.queues.iter().find(|queue| *queue.name == *name) {
        if held && known.immediacy != Immediacy::Held {
            return Err(EngineError::new(
                ErrorCode::InvalidArguments,
                format!("the queue {name:?} exists and is not held: what it gets is worked on"),
            ));
        }
        return Ok(known.id);
    }
    let immediacy = if held {
        Immediacy::Held
    } else {
        Immediacy::Queue
    };
    let make = Rule::CreateQueue {
        name: Some(name.into()),
        immediacy,
    };
    match engine.command(session, make, None).await? {
        Decided::QueueMade { queue } => Ok(queue),
        _ => Err(EngineError::new(
            ErrorCode::Internal,
            "a queue without an id",
        )),
    }
}

/// A definition as a list shows it.
pub(crate) fn agent(entry: attache_engine::CatalogEntry) -> AgentView {
    let attache_engine::CatalogEntry {
        name,
        source,
        definition,
    } = entry;
    match definition {
        Ok(definition) => AgentView {
            name,
            description: definition.description,
            model: definition.model,
            tools: definition.tools,
            parameters: definition.parameters.into_iter().map(|p| p.name).collect(),
            source,
            error: None,
        },
        Err(error) => AgentView {
            name,
            description: String::new(),
            model: None,
            tools: Vec::new(),
            parameters: Vec::new(),
            source,
            error: Some(error),
        },
    }
}

/// The limits that stand at a session.
pub(crate) fn budget(engine: &EngineHandle, id: &str) -> Result<Answer, EngineError> {
    let (limits, paused) = engine.budget(from_wire::session(id)?)?;
    let limits = limits.iter().map(|it| LimitView {
        limit: it.limit.as_str().to_owned(),
        used: it.used.map(|used| it.limit.in_units(used)),
        most: it.limit.in_units(it.most),
    });
    Ok(Answer::Budget {
        limits: limits.collect(),
        paused,
    })
}

/// Characters of an item's text that its receipt repeats.
const RECEIPT_PREVIEW: usize = 60;

/// Where the newest input of a session has got to.
pub(crate) fn receipts(engine: &EngineHandle, id: &str) -> Result<Answer, EngineError> {
    let receipts = engine.receipts(from_wire::session(id)?)?;
    let receipts = receipts.iter().map(|it| ReceiptView {
        item_id: it.item.to_string(),
        origin: to_wire::origin(&it.origin),
        preview: attache_session::preview(&it.text, RECEIPT_PREVIEW)
            .0
            .to_owned(),
        state: it.stage.as_str().to_owned(),
        reason: it.reason.map(|reason| reason.as_str().to_owned()),
        turn: it.turn.map(|turn| turn.0),
        position: it.position.map(|position| position.0),
    });
    Ok(Answer::Receipts {
        receipts: receipts.collect(),
    })
}

#[cfg(test)]
mod tests {
    use attache_protocol::EventKind;

    use super::*;

    fn item(position: u64, bytes: usize) -> HistoryItem {
        HistoryItem {
            position,
            at: format!("2026-12-01T00:00:00.{position:06}Z"),
            kind: EventKind::ToolResult,
            text: "x".repeat(bytes),
            cut: false,
            turn: Some(1),
            name: None,
            call_id: None,
            is_error: false,
            origin: None,
            incomplete: false,
            pictures: Vec::new(),
            spawned_session_id: None,
        }
    }

    #[test]
    fn a_page_that_is_too_large_keeps_the_end_that_was_asked_for() {
        let positions = |items: Vec<HistoryItem>| -> Vec<u64> {
            items.into_iter().map(|item| item.position).collect()
        };
        let room = encoded_len(&item(1, 100)) * 3;
        let items = || (1..=5).map(|position| item(position, 100));
        let (first, are_left) = first_of(items(), room);
        assert_eq!((positions(first), are_left), (vec![1, 2, 3], true));
        let (newest, are_left) = streams::newest_of(items().rev(), room);
        assert_eq!((positions(newest), are_left), (vec![3, 4, 5], true));
        for (count, bytes) in [(1, 10_000), (3, 100)] {
            let items = || (1..=count).map(|position| item(position, bytes));
            let all: Vec<u64> = (1..=count).collect();
            let (first, are_left) = first_of(items(), room);
            assert_eq!((positions(first), are_left), (all.clone(), false));
            let (newest, are_left) = streams::newest_of(items().rev(), room);
            assert_eq!((positions(newest), are_left), (all, false));
        }
    }
}
