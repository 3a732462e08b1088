//! Bugs that a store can be given, so that a test can show that its checks find them. Each is what some
//! mistake of the engine or of a store would come to.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use attache_session::{Event, Generation, Mail, MailId, Position, SessionId, Unread};
use attache_store::{Append, LogItem, Refused, Row};

/// A bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Planted {
    /// Mail comes, and whoever is woken for it does not look.
    WakeLost,
    /// What is sent is not written.
    SendLost,
    /// The answer to a watch is not written.
    AnswerLost,
    /// All mail is written twice.
    MailDoubled,
    /// Mail is taken and lies there still; once.
    MailStays,
    /// Mail that lies unread is not counted.
    UnreadUncounted,
    /// Input that may start a turn is not counted.
    DeliverableUncounted,
    /// A session that is loaded does not know its registrations.
    WatchesForgotten,
    /// A refused append is answered as if it were stored.
    RefusalSwallowed,
    /// What gives a place or an amount back is not written.
    GivesNothingBack,
    /// What is charged is charged twice.
    ChargedTwice,
    /// An append is taken from an owner that has lost its session, wherever it believes to stand.
    Unfenced,
    /// The end of a run does not reach the row, once.
    UntrueStatus,
}

impl Planted {
    /// Every one.
    pub const ALL: [Self; 13] = [
        Self::WakeLost,
        Self::SendLost,
        Self::AnswerLost,
        Self::MailDoubled,
        Self::MailStays,
        Self::UnreadUncounted,
        Self::DeliverableUncounted,
        Self::WatchesForgotten,
        Self::RefusalSwallowed,
        Self::GivesNothingBack,
        Self::ChargedTwice,
        Self::Unfenced,
        Self::UntrueStatus,
    ];
}

/// A bug at work, with what it remembers.
pub(crate) struct Bug {
    kind: Planted,
    came: AtomicBool,
    looked: Mutex<HashMap<SessionId, MailId>>,
}

impl Bug {
    pub(crate) fn new(kind: Planted) -> Self {
        Self {
            kind,
            came: AtomicBool::new(false),
            looked: Mutex::default(),
        }
    }

    /// Spoils an append of a session that stands there.
    pub(crate) fn append(&self, append: &mut Append, stands: Option<(Generation, Position)>) {
        match self.kind {
            Planted::GivesNothingBack => append.charges.retain(|charge| charge.amount >= 0),
            Planted::ChargedTwice => append.charges.extend(append.charges.clone()),
            Planted::Unfenced => {
                if let Some((generation, head)) = stands {
                    append.generation = generation;
                    append.expected = head;
                }
            }
            Planted::UntrueStatus => {
                let ended = append
                    .events
                    .iter()
                    .find_map(|stamped| match &stamped.event {
                        Event::TurnEnded { turn, .. } => Some(*turn),
                        _ => None,
                    });
                if ended.is_some() && !self.came.swap(true, Ordering::Relaxed) {
                    append.summary.turn = ended;
                }
            }
            Planted::SendLost => append.mail.retain(|mail| !mail.body.is_input()),
            Planted::AnswerLost => append.mail.retain(|mail| !mail.body.is_notice()),
            Planted::MailDoubled => append.mail.extend(append.mail.clone()),
            Planted::MailStays
                if !append.taken.is_empty() && !self.came.swap(true, Ordering::Relaxed) =>
            {
                append.taken.clear();
            }
            _ => {}
        }
    }

    pub(crate) fn answer(
        &self,
        answer: Result<Position, Refused>,
        end: Position,
    ) -> Result<Position, Refused> {
        match answer {
            Err(Refused::StorageFull) if self.kind == Planted::RefusalSwallowed => Ok(end),
            answer => answer,
        }
    }

    pub(crate) fn mail(&self, session: SessionId, mail: Vec<Mail>) -> Vec<Mail> {
        let Some(last) = mail.last().filter(|_| self.kind == Planted::WakeLost) else {
            return mail;
        };
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        let before = looked.insert(session, last.id);
        if before.is_some_and(|before| before >= last.id) {
            mail
        } else {
            Vec::new()
        }
    }

    pub(crate) fn row(&self, row: &mut Row) {
        match self.kind {
            Planted::UnreadUncounted => row.unread = Unread::default(),
            Planted::DeliverableUncounted => {
                let mut summary = (*row.summary).clone();
                summary.deliverable = 0;
                row.summary = Arc::new(summary);
            }
            _ => {}
        }
    }

    /// Events keep their number, so that positions stay true.
    pub(crate) fn events(&self, events: &mut [LogItem]) {
        if self.kind != Planted::WatchesForgotten {
            return;
        }
        for item in events {
            if matches!(item.event.event, Event::WatchSet { .. }) {
                item.event.event = Event::Noted {
                    code: "forgotten".into(),
                    text: "".into(),
                };
            }
        }
    }
}
