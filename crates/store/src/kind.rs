//! What a stored event is to a reader of the history, and which of its text a search looks at.

use std::borrow::Cow;

use attache_session::{Event, Origin};

use crate::read::Kind;

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::Other,
        Self::User,
        Self::Assistant,
        Self::ToolCall,
        Self::ToolResult,
        Self::Diagnostic,
    ];

    /// The kind of an event.
    #[must_use]
    pub fn of(event: &Event) -> Self {
        match event {
            Event::Consumed { item, .. } | Event::Acknowledged { item, .. } => match &item.origin {
                Origin::Notice { .. } => Self::Diagnostic,
                Origin::Viewer | Origin::Session(_) => Self::User,
            },
            Event::Said { step, .. } if !step.text.trim().is_empty() => Self::Assistant,
            Event::CallStarted { .. } => Self::ToolCall,
            Event::CallEnded { .. } => Self::ToolResult,
            Event::Noted { .. } | Event::Compacted { .. } => Self::Diagnostic,
            _ => Self::Other,
        }
    }

    /// Its place in a set of kinds.
    pub(crate) fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of kinds, as a page asks for it: an empty list is all but [`Kind::Other`].
pub(crate) fn asked(kinds: &[Kind]) -> u8 {
    let set = kinds.iter().fold(0, |set, kind| set | kind.bit());
    if set == 0 { !Kind::Other.bit() } else { set }
}

/// The text of an event that a search looks at, whole; none when it has no such text. It is stored
/// in a column of its own and read back from there, so it holds all of what it is made of.
pub(crate) fn searchable(event: &Event) -> Option<Cow<'_, str>> {
    match event {
        Event::Consumed { item, .. } | Event::Acknowledged { item, .. } => {
            Some(Cow::Borrowed(&item.text))
        }
        Event::Said { step, .. } | Event::Compacted { step, .. } => Some(Cow::Borrowed(&step.text)),
        Event::CallStarted { call, .. } => {
            Some(Cow::Owned(format!("{}\n{}", call.name, call.arguments)))
        }
        Event::CallEnded { result, .. } => Some(Cow::Borrowed(&result.content)),
        Event::Noted { text, .. } => Some(Cow::Borrowed(text)),
        _ => None,
    }
}
