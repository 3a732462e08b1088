//! The history as viewers see it: stable items, pages of them, and the item that still streams.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::session::InputOrigin;

/// Most items of a page.
pub const PAGE_LIMIT: u32 = 200;

/// What an item is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// Input that a turn took.
    User,
    /// The model's visible text.
    Assistant,
    /// A tool call.
    ToolCall,
    /// A tool call's result.
    ToolResult,
    /// Notices and notes.
    Diagnostic,
}

/// A stable item of a history.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HistoryItem {
    /// Its position in the session's log.
    pub position: u64,
    /// Its time, RFC 3339 with six fraction digits: the cursor.
    pub at: String,
    /// What it is.
    pub kind: EventKind,
    /// What was said, the arguments of a call, or a result; cut where it is very long.
    pub text: String,
    /// Whether the text was cut.
    pub cut: bool,
    /// The turn that it belongs to; none for notes outside of a turn.
    pub turn: Option<u32>,
    /// The call that is made or answered.
    pub call_id: Option<String>,
    /// The tool that is called; the code of a note.
    pub name: Option<String>,
    /// Whether a result tells of a failure.
    pub is_error: bool,
    /// Whether what the model said was cut off: by an interrupt, or by a fault of its provider.
    pub incomplete: bool,
    /// The child that a call created.
    pub spawned_session_id: Option<String>,
    /// Who wrote an item of input.
    pub origin: Option<InputOrigin>,
    /// Pictures that a result has beside its text; left out when there are none. Their bytes are never sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<PictureView>,
}

/// A picture, told of.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PictureView {
    /// What kind it is, such as `image/png`.
    pub media_type: String,
    /// How many bytes it has.
    pub bytes: u64,
}

/// The item that still streams.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RunningItem {
    /// The turn.
    pub turn: u32,
    /// The model request of the turn.
    pub step: u32,
    /// Text so far.
    pub text: String,
    /// Names of the tools that run: the calls of the turn that have no result in the history yet.
    pub calls: Vec<String>,
}

/// Which part of a history is asked for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HistoryQuery {
    /// Only items later than this time.
    pub after: Option<String>,
    /// Only items of these kinds; empty is all.
    pub kinds: Vec<EventKind>,
    /// Only items that contain this, without case.
    pub search: Option<String>,
    /// At most this many, 1 to 200.
    pub limit: u32,
    /// The newest instead of the oldest, as many of them as fit into a frame.
    pub newest: bool,
}

/// A page of a history, oldest first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HistoryPage {
    /// The items.
    pub items: Vec<HistoryItem>,
    /// How many match altogether.
    pub total_matching: u64,
    /// Where the next page begins; none at the end, at which the newest items always are.
    pub next_cursor: Option<String>,
}
