//! The protocol `attach-agent-session`, version 1: the frames that a host and its viewers exchange,
//! and how a frame becomes bytes.
//!
//! Frames are JSON in kebab-case, closed inside the negotiated version: an unknown member or an
//! unknown discriminator is refused. No domain type is known here, no task, and no field for a
//! sandbox policy exists.

mod answer;
mod codec;
mod command;
mod detail;
mod ends;
mod error;
mod frame;
mod history;
mod ledger;
mod modal;
mod schema;
mod session;
mod slash;
mod token;

pub use answer::{AgentView, Answer, HostView, LimitView, ReceiptView, Runtime};
pub use codec::{DEPTH_LIMIT, FRAME_LIMIT, InvalidMessage, decode, encode, encoded_len, json};
pub use command::{Command, NewSession, QueueRef, Reach, Resume, StreamPlace};
pub use detail::{
    AgentInformation, ChildView, OwnershipView, RetentionView, SessionDetail, ToolView,
    UsageTotals, ViewerView,
};
pub use ends::{
    Attachment, CHUNK_LIMIT, GRACE_MILLIS, Heard, HostStream, Mirror, NotificationKind,
    Notifications, Seen, Taken, TreeMirror, ViewerAttach, WINDOW_LIMIT,
};
pub use error::WireError;
pub use frame::{Delta, FromHost, FromViewer, OpenDoor, Patch, Snapshot, Stream, VERSION};
pub use history::{
    EventKind, HistoryItem, HistoryPage, HistoryQuery, PAGE_LIMIT, PictureView, RunningItem,
};
pub use ledger::{CallOutcome, LedgerCallView, LedgerView, NestedCallView};
pub use modal::{ModalAnswer, ModalEnd, ModalKind, ModalView, PathView};
pub use schema::schema;
pub use session::{
    Immediacy, InputOrigin, QueueItemView, QueueView, SessionView, Status, UsageView,
};
pub use slash::{SLASH_COMMANDS, Slash, Typed, slash_usage};
pub use token::{TokenScope, TokenView};
