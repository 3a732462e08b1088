//! The reading side of a store. Reads are short and synchronous; a caller that must not block
//! puts the long ones elsewhere. No reader holds a transaction across two pages.

use attache_session::{
    Generation, Json, Mail, Position, SessionId, Stamped, StepText, Summary, Timestamp, TurnId,
    Unread,
};
use uuid::Uuid;

use crate::append::Writes;
use crate::entity::{Entity, EntityKind};

/// A store.
pub trait Store: Writes + Log + Rows + Search {}

impl<S: Writes + Log + Rows + Search> Store for S {}

/// Why nothing could be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReadError {
    /// A record of this session needs a newer reader.
    #[error("the session was written by a newer version: it needs reader version {needs}")]
    TooNew {
        /// The lowest reader version that may open it for writing.
        needs: u32,
    },
    /// What is stored cannot be understood.
    #[error("the store is damaged: {0}")]
    Corrupt(String),
    /// The store failed.
    #[error("the store failed: {0}")]
    Failed(String),
}

/// What an event is to a reader of the history. One stored event has one kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Kind {
    /// Not part of the history: queue edits, starts, watches and the like.
    Other = 0,
    /// Input that a turn took, written by a person or a session.
    User = 1,
    /// The model's visible text.
    Assistant = 2,
    /// A tool call.
    ToolCall = 3,
    /// A tool call's result.
    ToolResult = 4,
    /// Notices and notes.
    Diagnostic = 5,
}

/// A stored event.
#[derive(Clone, PartialEq, Debug)]
pub struct LogItem {
    /// Its position.
    pub position: Position,
    /// The event with its time.
    pub event: Stamped,
}

/// Which part of a history is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PageQuery {
    /// Only events later than this.
    pub after: Option<Timestamp>,
    /// Only events up to this position; none is all.
    pub up_to: Option<Position>,
    /// Only events of these kinds; empty is all but [`Kind::Other`].
    pub kinds: Vec<Kind>,
    /// Only events whose whole text, arguments or result contain this, without case.
    pub search: Option<String>,
    /// At most this many.
    pub limit: usize,
    /// The newest ones instead of the oldest; the page is oldest first all the same.
    pub newest: bool,
}

/// A page of a history, oldest first.
#[derive(Clone, PartialEq, Debug)]
pub struct Page {
    /// The events, for showing: their pictures have kind and size, and no base64.
    pub items: Vec<LogItem>,
    /// How many match altogether, `after` included, the limit not.
    pub total_matching: u64,
    /// Whether more match beyond the page.
    pub more: bool,
}

/// The logs.
pub trait Log: Send + Sync {
    /// Events of a session after a position, oldest first, at most `limit`. Reads leniently:
    /// unknown kinds come as `Event::Unknown`.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when the log cannot be read.
    fn events(
        &self,
        session: SessionId,
        after: Position,
        limit: usize,
    ) -> Result<Vec<LogItem>, ReadError>;

    /// The text that was checkpointed for the turn in flight.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when the log cannot be read.
    fn partial(&self, session: SessionId) -> Result<Option<Partial>, ReadError>;
}

/// Streamed text of a running item.
#[derive(Clone, PartialEq, Debug)]
pub struct Partial {
    /// The turn that streams it.
    pub turn: TurnId,
    /// What was streamed.
    pub step: StepText,
}

/// A session's row.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// The session.
    pub session: SessionId,
    /// Its ownership generation.
    pub generation: Generation,
    /// Position of its newest event.
    pub head: Position,
    /// Time of its newest event.
    pub last_at: Timestamp,
    /// The root of its tree.
    pub root: SessionId,
    /// Its spawner; none for a root.
    pub spawner: Option<SessionId>,
    /// From which its status is computed.
    pub summary: std::sync::Arc<Summary>,
    /// What lies unread for it.
    pub unread: Unread,
}

/// Which rows are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowFilter {
    /// Every session.
    All,
    /// Sessions without parents.
    Roots,
    /// Sessions whose tree has this root, the root included.
    Tree(SessionId),
    /// Children of this session, further ones included, in the order in which they joined.
    Children(SessionId),
}

/// A command that was carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KnownCommand {
    /// Digest of its content.
    pub digest: [u8; 32],
    /// Where it ended.
    pub position: Position,
    /// What was answered.
    pub answer: Json,
}

/// The rows.
pub trait Rows: Send + Sync {
    /// A session's row, with what lies unread for it, from one moment.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when it cannot be read.
    fn row(&self, session: SessionId) -> Result<Option<Row>, ReadError>;

    /// Rows in order of birth (`Children`: of joining), from one moment, after `after` (a session
    /// of the same listing), at most `limit`.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when they cannot be read.
    fn rows(
        &self,
        filter: RowFilter,
        after: Option<SessionId>,
        limit: usize,
    ) -> Result<Vec<Row>, ReadError>;

    /// Whether `descendant` is a child, grandchild and so on of `ancestor`, by any parent.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when it cannot be read.
    fn descends(&self, descendant: SessionId, ancestor: SessionId) -> Result<bool, ReadError>;

    /// Unread mail of a session, oldest first, at most `limit`.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when it cannot be read.
    fn mail(&self, session: SessionId, limit: usize) -> Result<Vec<Mail>, ReadError>;

    /// A command that a session has carried out.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when it cannot be read.
    fn command(&self, session: SessionId, id: Uuid) -> Result<Option<KnownCommand>, ReadError>;

    /// Used amount of a quota counter; 0 when it was never charged.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when it cannot be read.
    fn quota(&self, session: SessionId, key: &str) -> Result<i64, ReadError>;

    /// An entity by id.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when it cannot be read.
    fn entity(&self, id: Uuid) -> Result<Option<Entity>, ReadError>;

    /// An entity by kind and name.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when it cannot be read.
    fn entity_named(&self, kind: EntityKind, name: &str) -> Result<Option<Entity>, ReadError>;

    /// All entities of a kind, by name.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when they cannot be read.
    fn entities(&self, kind: EntityKind) -> Result<Vec<Entity>, ReadError>;
}

/// Searching.
pub trait Search: Send + Sync {
    /// A filtered page of one session's history.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when it cannot be read.
    fn page(&self, session: SessionId, query: &PageQuery) -> Result<Page, ReadError>;

    /// Sessions whose id, in its usual form, ends with `suffix` (lower case), at most `limit`.
    ///
    /// # Errors
    ///
    /// [`ReadError`] when they cannot be read.
    fn ids_ending(&self, suffix: &str, limit: usize) -> Result<Vec<SessionId>, ReadError>;
}
