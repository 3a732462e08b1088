//! The only thing that crosses from one session to another. A mail is written under its sender's
//! fence and taken under its receiver's; it is never re-addressed.

use std::sync::Arc;

use crate::id::{ItemId, SessionId, WatchId};
use crate::outcome::{EndReason, Outcome, StopReason};

/// The store's number of an unread mail; later mail has a higher one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MailId(pub u64);

/// Mail as its sender writes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewMail {
    /// The receiver.
    pub to: SessionId,
    /// What it says.
    pub body: MailBody,
}

/// Mail as its receiver finds it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mail {
    /// The store's number.
    pub id: MailId,
    /// Who wrote it.
    pub from: SessionId,
    /// What it says.
    pub body: MailBody,
}

/// What a mail says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MailBody {
    /// Input for the receiver's queue.
    Input {
        /// The id that the sender was given.
        item: ItemId,
        /// The text.
        text: Arc<str>,
        /// For the `immediate` queue instead of the `default` one.
        immediate: bool,
    },
    /// "Tell me when you have settled."
    Watch {
        /// The registration.
        watch: WatchId,
        /// The text that the watcher chose.
        message: Option<Arc<str>>,
    },
    /// "I no longer want to be told", or "I have ended".
    Unwatch {
        /// The registration.
        watch: WatchId,
    },
    /// The answer to a watch.
    Notice(Notice),
    /// Word of the host about the sender, for a parent of it: that its run makes no progress.
    Report {
        /// The id of the notice that the receiver makes of it.
        watch: WatchId,
        /// What the host says.
        text: Arc<str>,
    },
    /// The sender became a further parent, or holds the receiver again.
    Hold,
    /// The sender gave its hold up; the reason tells why.
    Release {
        /// Why the hold ended.
        reason: StopReason,
    },
}

impl MailBody {
    /// Whether this mail is work for a live receiver: it would start a turn.
    #[must_use]
    pub fn is_input(&self) -> bool {
        matches!(self, Self::Input { .. })
    }

    /// Whether this mail is a notice.
    #[must_use]
    pub fn is_notice(&self) -> bool {
        matches!(self, Self::Notice(_) | Self::Report { .. })
    }

    /// Whether this mail only tells of an end: a receiver that is gone misses nothing by it.
    #[must_use]
    pub fn is_farewell(&self) -> bool {
        match self {
            Self::Unwatch { .. } | Self::Notice(_) | Self::Report { .. } | Self::Release { .. } => {
                true
            }
            Self::Input { .. } | Self::Watch { .. } | Self::Hold => false,
        }
    }
}

/// Tells a watcher what came of the session that it watched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notice {
    /// The registration that it answers.
    pub watch: WatchId,
    /// The text that the watcher chose; none is the default line.
    pub message: Option<Arc<str>>,
    /// What came of the watched session's last run.
    pub outcome: Option<Outcome>,
    /// How that run ended.
    pub end_reason: Option<EndReason>,
    /// Whether the watched session's epoch has ended.
    pub stopped: bool,
    /// What the watched session said last in that run; none when it said nothing.
    pub told: Option<Told>,
}

/// What another session said: its own words, never the host's or a person's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Told {
    /// Its last non-empty text, cut to a preview.
    pub text: Arc<str>,
    /// It said nothing in its last step: this is from an earlier one.
    pub earlier: bool,
}
