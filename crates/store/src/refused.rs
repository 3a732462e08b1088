//! Why a write was refused. Nothing of a refused write is stored.

use attache_session::{Epoch, Generation, Json, Position, SessionId};
use uuid::Uuid;

/// Why a write was refused.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Refused {
    /// Another owner has claimed the session. The caller must stop writing.
    #[error("the session has moved to ownership generation {}", .current.0)]
    Fenced {
        /// The generation in the store.
        current: Generation,
    },
    /// The log has grown since.
    #[error("the log is at position {}", .head.0)]
    Moved {
        /// The position in the store.
        head: Position,
    },
    /// A session that is named does not exist.
    #[error("session {session} does not exist")]
    Unknown {
        /// The session.
        session: SessionId,
    },
    /// A session that should be born exists.
    #[error("session {session} exists already")]
    Exists {
        /// The session.
        session: SessionId,
    },
    /// Mail lies unread that this append does not take.
    #[error("unread mail came in between")]
    MailWaiting,
    /// Mail that the append takes does not lie there.
    #[error("mail {mail} does not lie there any more")]
    MailGone {
        /// The store's number of the mail.
        mail: u64,
    },
    /// A mailbox is full; notices are never refused for this reason.
    #[error("the mailbox of session {session} is full")]
    MailboxFull {
        /// The receiver.
        session: SessionId,
    },
    /// A session is not in the epoch in which it was seen.
    #[error("session {session} is not in the epoch in which it was seen")]
    OtherEpoch {
        /// The session.
        session: SessionId,
        /// The epoch that it is in.
        current: Option<Epoch>,
    },
    /// A link would make a session its own ancestor.
    #[error("session {child} is an ancestor of the session that would hold it")]
    Circle {
        /// The session that was to be linked.
        child: SessionId,
    },
    /// An entity has another concurrency tag.
    #[error("entity {entity} has changed since")]
    EntityChanged {
        /// The entity.
        entity: Uuid,
        /// Its tag; none when it does not exist.
        current: Option<u64>,
    },
    /// A counter does not take the charge.
    #[error("limit {key} of session {session} is reached: {used} of {limit}")]
    LimitReached {
        /// Whose counter it is.
        session: SessionId,
        /// The counter.
        key: String,
        /// What is used.
        used: i64,
        /// What is allowed.
        limit: i64,
    },
    /// The command was carried out before.
    #[error("the command was carried out before")]
    CommandKnown {
        /// Where it ended.
        position: Position,
        /// What was answered.
        answer: Json,
    },
    /// The command id was used for something else.
    #[error("the command id was used for another command")]
    CommandReused,
    /// The times of the events do not strictly increase.
    #[error("event times must strictly increase")]
    TimeNotIncreasing,
    /// The disk is full. Writing works again once there is space.
    #[error("the disk is full")]
    StorageFull,
    /// Another process holds the store.
    #[error("another process holds the store")]
    Locked,
    /// What is stored cannot be understood.
    #[error("the store is damaged: {0}")]
    Corrupt(String),
    /// The store failed, or is closed.
    #[error("the store failed: {0}")]
    Failed(String),
}
