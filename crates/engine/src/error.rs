//! The engine's one error: a stable code and a text that is safe to show. Refusals of the rules
//! and of the store are sorted into codes here and nowhere else.

use attache_agent::PortError;
use attache_session::{ErrorCode, Limit, Rejected, SessionId};
use attache_store::{ReadError, Refused};

/// Why the engine did not do what it was asked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{code}: {message}")]
pub struct EngineError {
    /// The stable code.
    pub code: ErrorCode,
    /// What happened, to what.
    pub message: String,
    /// The revision that an item or a queue has, where a change was made against another one.
    pub current_revision: Option<u32>,
}

impl EngineError {
    /// An error.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            current_revision: None,
        }
    }

    /// The one answer for a session that does not exist and for one that may not be seen.
    #[must_use]
    pub fn unknown(session: SessionId) -> Self {
        Self::new(
            ErrorCode::UnknownSession,
            format!("there is no session {session}"),
        )
    }

    /// The host ends and takes no new work.
    #[must_use]
    pub(crate) fn closing() -> Self {
        Self::new(
            ErrorCode::HostIncompatible,
            "the host is shutting down and takes no new work",
        )
    }

    /// The session's tree is being ended.
    #[must_use]
    pub(crate) fn ending(session: SessionId) -> Self {
        Self::new(
            ErrorCode::NotPermitted,
            format!("session {session} is being ended and creates no child"),
        )
    }

    /// The epoch is just being ended because nobody looks on.
    #[must_use]
    pub(crate) fn unviewed(session: SessionId) -> Self {
        Self::new(
            ErrorCode::EpochFenced,
            format!("session {session} is being stopped since its last viewer has left"),
        )
    }

    /// Another owner has written to the session since it was read.
    pub(crate) fn fenced() -> Self {
        Self::new(ErrorCode::EpochFenced, "the session has another owner now")
    }

    /// An answer that never came: the actor ended first.
    #[must_use]
    pub(crate) fn lost() -> Self {
        Self::new(ErrorCode::Internal, "the session ended before it answered")
    }
}

impl From<EngineError> for PortError {
    fn from(error: EngineError) -> Self {
        Self::new(error.code, error.message)
    }
}

impl From<Rejected> for EngineError {
    fn from(rejected: Rejected) -> Self {
        let code = match &rejected {
            Rejected::EmptyText
            | Rejected::NulText
            | Rejected::QueueName { .. }
            | Rejected::UnknownQueue
            | Rejected::UnknownItem
            | Rejected::BuiltInQueue
            | Rejected::QueueNotEmpty
            | Rejected::SessionName { .. }
            | Rejected::ModelName
            | Rejected::NoQuestion { .. }
            | Rejected::NoAnswer { .. }
            | Rejected::NotHeld
            | Rejected::RunsTurns
            | Rejected::NotAChild => ErrorCode::InvalidArguments,
            Rejected::TooManySwitchedOff { .. } | Rejected::TooManyQuestions { .. } => {
                ErrorCode::LimitReached
            }
            Rejected::AlreadySettled => ErrorCode::AlreadySettled,
            Rejected::NoUserInput => ErrorCode::NoUserInput,
            Rejected::RevisionConflict { .. } | Rejected::BadCut => ErrorCode::RevisionConflict,
            Rejected::StaleTurn { .. } | Rejected::UnknownCall { .. } => ErrorCode::Internal,
            Rejected::Stopped => ErrorCode::SessionStopped,
            Rejected::Disposed => ErrorCode::SessionDisposed,
            Rejected::Circle => ErrorCode::NotPermitted,
        };
        let current_revision = match rejected {
            Rejected::RevisionConflict { current, .. } => Some(current),
            _ => None,
        };
        Self {
            current_revision,
            ..Self::new(code, rejected.to_string())
        }
    }
}

impl From<Refused> for EngineError {
    fn from(refused: Refused) -> Self {
        let code = match &refused {
            Refused::Fenced { .. } => ErrorCode::EpochFenced,
            Refused::Unknown { .. } => ErrorCode::UnknownSession,
            Refused::OtherEpoch { .. } => ErrorCode::SessionStopped,
            Refused::Circle { .. } => ErrorCode::NotPermitted,
            Refused::EntityChanged { .. } => ErrorCode::RevisionConflict,
            Refused::LimitReached { .. } | Refused::MailboxFull { .. } => ErrorCode::LimitReached,
            Refused::CommandReused => ErrorCode::CommandIdReused,
            Refused::StorageFull => ErrorCode::StorageFull,
            Refused::Locked => ErrorCode::StoreLocked,
            Refused::Corrupt(_) => ErrorCode::StorageCorrupt,
            Refused::Moved { .. }
            | Refused::Exists { .. }
            | Refused::MailWaiting
            | Refused::MailGone { .. }
            | Refused::CommandKnown { .. }
            | Refused::TimeNotIncreasing
            | Refused::Failed(_) => ErrorCode::Internal,
        };
        let mut text = refused.to_string();
        if matches!(&refused, Refused::LimitReached { key, .. } if key == Limit::Agents.as_str()) {
            text.push_str(
                " sub-agents live: look at them with agent_session_list, give the work to an idle one with \
                 agent_session_send, or end one with agent_session_stop and dispose",
            );
        }
        Self::new(code, text)
    }
}

impl From<ReadError> for EngineError {
    fn from(error: ReadError) -> Self {
        let code = match &error {
            ReadError::TooNew { .. } => ErrorCode::HostIncompatible,
            ReadError::Corrupt(_) => ErrorCode::StorageCorrupt,
            ReadError::Failed(_) => ErrorCode::Internal,
        };
        Self::new(code, error.to_string())
    }
}
