//! What others see of a session: its row with its status, and its events as items of a history.

use std::sync::Arc;

use attache_agent::EventView;
use attache_session::{
    Event, Generation, Origin, Picture, Position, RowView, SessionId, Stamped, Status, Timestamp,
    status,
};
use attache_store::{Kind, Row};

use crate::live::Note;
use crate::registry::Registry;

/// A session's row as this life of the host sees it.
#[derive(Clone, PartialEq, Debug)]
pub struct SessionRow {
    /// The session.
    pub session: SessionId,
    /// The root of its tree.
    pub root: SessionId,
    /// Its spawner; none for a root.
    pub spawner: Option<SessionId>,
    /// Its ownership generation.
    pub generation: Generation,
    /// Position of its newest event.
    pub head: Position,
    /// Time of its newest event.
    pub last_at: Timestamp,
    /// What it does.
    pub status: Status,
    /// From which that was computed.
    pub view: RowView,
    /// What its running turn waits for: a retry, its turn at the provider; or why it cannot be loaded. Never stored.
    pub note: Option<Note>,
}

impl SessionRow {
    pub(crate) fn of(row: Row, registry: &Registry) -> Self {
        let Row {
            session,
            generation,
            head,
            last_at,
            root,
            spawner,
            summary,
            unread,
        } = row;
        let live = summary.epoch.is_some() && registry.epoch(session) == summary.epoch;
        let view = RowView {
            summary,
            live,
            unread,
        };
        Self {
            session,
            root,
            spawner,
            generation,
            head,
            last_at,
            status: status(&view),
            // Only what has a turn can wait for a provider.
            note: match view.turn() {
                Some(_) => registry.note(session),
                None => registry.fault(session).map(|why| {
                    let why = format!("cannot be loaded: {why}");
                    Note::Text(why.into())
                }),
            },
            view,
        }
    }
}

/// The name that tools and doors give a kind of event.
#[must_use]
pub(crate) fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Other => "other",
        Kind::User => "user",
        Kind::Assistant => "assistant",
        Kind::ToolCall => "tool_call",
        Kind::ToolResult => "tool_result",
        Kind::Diagnostic => "diagnostic",
    }
}

/// The kind of an event type's name.
#[must_use]
pub(crate) fn kind_of_name(name: &str) -> Option<Kind> {
    [
        Kind::User,
        Kind::Assistant,
        Kind::ToolCall,
        Kind::ToolResult,
        Kind::Diagnostic,
    ]
    .into_iter()
    .find(|kind| kind_name(*kind) == name)
}

/// A stable item of the history; none for an event that is no part of it. Reasoning is never in it.
#[must_use]
pub fn event_view(stamped: &Stamped) -> Option<EventView> {
    let (event_type, role, text, about) = match &stamped.event {
        Event::Consumed { item, .. } | Event::Acknowledged { item, .. } => match &item.origin {
            Origin::Notice { about, .. } => {
                ("diagnostic", "system", Arc::clone(&item.text), Some(*about))
            }
            Origin::Session(from) => ("user", "user", Arc::clone(&item.text), Some(*from)),
            Origin::Viewer => ("user", "user", Arc::clone(&item.text), None),
        },
        Event::Said { step, .. } if !step.text.trim().is_empty() => {
            ("assistant", "assistant", Arc::clone(&step.text), None)
        }
        Event::CallStarted { call, .. } => (
            "tool_call",
            "assistant",
            format!("{} {}", call.name, call.arguments).into(),
            None,
        ),
        Event::CallEnded { result, .. } => (
            "tool_result",
            "tool",
            Arc::clone(&result.content),
            result.spawned,
        ),
        Event::Noted { text, .. } => ("diagnostic", "system", Arc::clone(text), None),
        Event::Compacted { step, .. } => ("diagnostic", "system", Arc::clone(&step.text), None),
        _ => return None,
    };
    let pictures = match &stamped.event {
        Event::CallEnded { result, .. } => result.images.iter().map(Picture::told).collect(),
        _ => Vec::new(),
    };
    let told = match &stamped.event {
        Event::Consumed { item, .. } | Event::Acknowledged { item, .. } => match &item.origin {
            Origin::Notice { told, .. } => told.clone(),
            Origin::Viewer | Origin::Session(_) => None,
        },
        _ => None,
    };
    Some(EventView {
        at: stamped.at,
        event_type,
        role,
        text,
        about,
        told,
        pictures,
    })
}
