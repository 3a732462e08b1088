//! What waits for one session's actor, and the few facts about its run that others may read
//! without asking it.
//!
//! A mailbox belongs to a slot of the registry, not to the actor: what comes in while an actor
//! leaves goes to the next one, so nothing is lost in that race. Interrupts do not wait in line:
//! they set the turn's token at once.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attache_session::{Answer, Command, EndReason, Timestamp, TurnId};
use tokio::sync::{Notify, oneshot, watch};
use uuid::Uuid;

use crate::error::EngineError;
use crate::live::Live;
use crate::observe::{Observation, Snapshot};

/// A message to an actor; boxed, because many may wait.
pub(crate) enum Message {
    /// Decide this and commit it.
    Command(Box<Ask>),
    /// Say where the session stands.
    Snapshot(oneshot::Sender<Result<Snapshot, EngineError>>),
    /// Answer once all mail that lies there now has been taken.
    Sync(oneshot::Sender<()>),
}

/// A command with its way back.
pub(crate) struct Ask {
    pub(crate) command: Command,
    /// The id and digest that a viewer gave it, so that a repeat gets the same answer.
    pub(crate) key: Option<(Uuid, [u8; 32])>,
    pub(crate) reply: oneshot::Sender<Result<Answer, EngineError>>,
}

/// Most messages that wait for one actor. A caller beyond that is refused and told so; turns, which
/// must not be refused, have a few in flight at most.
const CAPACITY: usize = 16_384;

/// See the module.
#[derive(Default)]
pub(crate) struct Mailbox {
    inner: Mutex<Inner>,
    /// Rung when something comes in.
    pub(crate) bell: Notify,
    /// What streams now.
    pub(crate) live: Live,
}

#[derive(Default)]
struct Inner {
    waiting: VecDeque<Message>,
    /// There may be mail in the store.
    mail: bool,
    /// An actor runs.
    running: bool,
    /// The actor is busy with what it has taken last.
    busy: bool,
    turn: Option<TurnControl>,
    steering: bool,
    viewers: usize,
    /// A viewer worked with it in this epoch: when the last one has left, it may have to end.
    opened: bool,
    /// Its epoch is being ended because nobody looks on: no viewer comes in between.
    fenced: bool,
    /// Somebody waits until it can be ended.
    keeper: Option<KeeperIs>,
    /// The window of what is published; exists only while a viewer is attached.
    observation: Option<Arc<Observation>>,
    /// An actor failed, and nobody has looked at what it left.
    failed: Option<Failed>,
    /// When an actor failed last, and how many have since the first of a row.
    failures: Option<(Timestamp, u32)>,
}

/// What whoever waits for a session's end knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum KeeperIs {
    /// All that has come.
    UpToDate,
    /// Something has come since it has looked.
    Due,
}

/// What is known of an actor that failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Failed {
    /// It was the first one for a while: the session goes on, its turn has failed.
    Once,
    /// Another one failed less than a minute before: the session is to be left stopped.
    Again,
}

/// Failures within this time of each other belong together: the second leaves the session stopped,
/// and after a third nobody looks again before somebody asks.
const FAILURES_APART_MICROS: i64 = 60_000_000;

/// How to end the turn that runs.
struct TurnControl {
    turn: TurnId,
    end: watch::Sender<Option<EndReason>>,
}

/// What an actor finds when it looks.
pub(crate) struct Taken {
    pub(crate) messages: Vec<Message>,
    pub(crate) mail: bool,
}

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a message in; true when an actor has to be started for it.
    pub(crate) fn put(&self, message: Message) -> Result<bool, EngineError> {
        let start = {
            let mut inner = self.lock();
            if inner.waiting.len() >= CAPACITY {
                return Err(EngineError::new(
                    attache_session::ErrorCode::LimitReached,
                    "too many requests wait for this session; try again later",
                ));
            }
            inner.waiting.push_back(message);
            !std::mem::replace(&mut inner.running, true)
        };
        self.bell.notify_one();
        Ok(start)
    }

    /// Says that there may be mail; true when an actor has to be started for it.
    pub(crate) fn wake(&self) -> bool {
        let start = {
            let mut inner = self.lock();
            inner.mail = true;
            !std::mem::replace(&mut inner.running, true)
        };
        self.bell.notify_one();
        start
    }

    /// Says the same, by the actor to itself: it rings no bell, which would end the actor's next rest at
    /// once.
    pub(crate) fn look_again(&self) {
        self.lock().mail = true;
    }

    /// Takes all that waits; none when there is nothing.
    pub(crate) fn take(&self) -> Option<Taken> {
        let mut inner = self.lock();
        inner.busy = !inner.waiting.is_empty() || inner.mail;
        if !inner.busy {
            return None;
        }
        let mail = std::mem::take(&mut inner.mail);
        Some(Taken {
            messages: inner.waiting.drain(..).collect(),
            mail,
        })
    }

    /// Ends the actor's run unless something has come in meanwhile or a viewer or a turn needs it.
    pub(crate) fn try_leave(&self) -> bool {
        let mut inner = self.lock();
        let idle =
            inner.waiting.is_empty() && !inner.mail && inner.turn.is_none() && inner.viewers == 0;
        if idle {
            inner.running = false;
        }
        idle
    }

    /// Marks the actor as gone after it failed: its turn is to end, and what waits goes to the next
    /// one. True when a next one has to be started.
    pub(crate) fn abandon(&self, now: Timestamp) -> bool {
        let mut inner = self.lock();
        if let Some(control) = inner.turn.take() {
            control.end.send_replace(Some(EndReason::Cancelled));
        }
        let count = match inner.failures {
            Some((before, count)) if now.0 - before.0 < FAILURES_APART_MICROS => count + 1,
            _ => 1,
        };
        inner.failures = Some((now, count));
        inner.failed = Some(if count == 1 {
            Failed::Once
        } else {
            Failed::Again
        });
        // The next one looks at what was left, unless looking is what fails: then whoever waits is
        // told by the loss of its reply.
        inner.running = count <= 2;
        inner.mail = inner.running;
        inner.busy = false;
        if !inner.running {
            inner.waiting.clear();
        }
        inner.running
    }

    /// What an actor that failed has left, told once.
    pub(crate) fn take_failed(&self) -> Option<Failed> {
        self.lock().failed.take()
    }

    /// Whether nothing is known here that the registry must keep.
    pub(crate) fn is_unused(&self) -> bool {
        let inner = self.lock();
        !inner.running
            && inner.waiting.is_empty()
            && !inner.mail
            && inner.viewers == 0
            && inner.keeper.is_none()
            && inner.failures.is_none()
    }

    /// A turn begins; the token says when and how it is to end.
    pub(crate) fn turn_begins(&self, turn: TurnId) -> watch::Receiver<Option<EndReason>> {
        let (end, token) = watch::channel(None);
        self.lock().turn = Some(TurnControl { turn, end });
        token
    }

    /// The turn's task has ended.
    pub(crate) fn turn_ends(&self, turn: TurnId) {
        {
            let mut inner = self.lock();
            if inner
                .turn
                .as_ref()
                .is_some_and(|control| control.turn == turn)
            {
                inner.turn = None;
            }
        }
        self.bell.notify_one();
    }

    /// The turn whose task runs.
    pub(crate) fn running_turn(&self) -> Option<TurnId> {
        self.lock().turn.as_ref().map(|control| control.turn)
    }

    /// Whether a turn runs, or an actor has something to do that may begin one.
    pub(crate) fn is_at_work(&self) -> bool {
        let inner = self.lock();
        inner.turn.is_some() || inner.busy || inner.mail || !inner.waiting.is_empty()
    }

    /// Makes the running turn end; false when none runs.
    pub(crate) fn cancel(&self, turn: Option<TurnId>, reason: EndReason) -> bool {
        let inner = self.lock();
        match &inner.turn {
            Some(control) if turn.is_none_or(|turn| turn == control.turn) => {
                // The first reason counts.
                control.end.send_if_modified(|end| {
                    let first = end.is_none();
                    if first {
                        *end = Some(reason);
                    }
                    first
                });
                true
            }
            _ => false,
        }
    }

    /// Remembers whether steering input waits for the running turn.
    pub(crate) fn set_steering(&self, steering: bool) {
        self.lock().steering = steering;
    }

    /// Whether steering input waits for the running turn.
    pub(crate) fn is_steered(&self) -> bool {
        self.lock().steering
    }

    /// A viewer came; false when the epoch is just being ended.
    pub(crate) fn viewer_came(&self) -> bool {
        let mut inner = self.lock();
        inner.viewers += usize::from(!inner.fenced);
        !inner.fenced
    }

    /// From now on what is published is kept in this window, while a viewer is attached.
    pub(crate) fn observe(&self) -> Arc<Observation> {
        let mut inner = self.lock();
        Arc::clone(
            inner
                .observation
                .get_or_insert_with(|| Arc::new(Observation::new())),
        )
    }

    /// The window, while a viewer is attached.
    pub(crate) fn observation(&self) -> Option<Arc<Observation>> {
        self.lock().observation.clone()
    }

    /// A viewer left. True when somebody has to wait until the session can be ended.
    pub(crate) fn viewer_left(&self) -> bool {
        let is_due = {
            let mut inner = self.lock();
            inner.viewers = inner.viewers.saturating_sub(1);
            if inner.viewers == 0 {
                inner.observation = None;
            }
            inner.needs_keeper()
        };
        self.bell.notify_one();
        is_due
    }

    /// A viewer works with it.
    pub(crate) fn opened(&self) {
        self.lock().opened = true;
    }

    /// Its epoch is over: nothing of it has to end any more.
    pub(crate) fn epoch_over(&self) {
        self.lock().opened = false;
    }

    /// Whether somebody has to wait until the session can be ended; whoever waits already is told.
    pub(crate) fn needs_keeper(&self) -> bool {
        self.lock().needs_keeper()
    }

    /// Whether whoever waits for the end need not any more: a viewer has come, or the epoch is over.
    pub(crate) fn keeper_leaves(&self) -> bool {
        let mut inner = self.lock();
        if inner.viewers == 0 && inner.opened {
            inner.keeper = Some(KeeperIs::UpToDate);
            return false;
        }
        inner.keeper = None;
        true
    }

    /// Whether whoever waits for the end is through; not when something has come since it has looked.
    pub(crate) fn keeper_ends(&self) -> bool {
        let mut inner = self.lock();
        let is_through = inner.keeper != Some(KeeperIs::Due);
        if is_through {
            inner.keeper = None;
        }
        is_through
    }

    /// From now on no viewer comes; false when one has.
    pub(crate) fn fence(&self) -> bool {
        let mut inner = self.lock();
        inner.fenced = inner.viewers == 0;
        inner.fenced
    }

    /// The end of the epoch is stored, or was refused.
    pub(crate) fn unfence(&self) {
        self.lock().fenced = false;
    }

    /// Whether the epoch is just being ended because nobody looks on.
    pub(crate) fn is_fenced(&self) -> bool {
        self.lock().fenced
    }

    /// Whether a viewer is attached.
    pub(crate) fn is_viewed(&self) -> bool {
        self.lock().viewers > 0
    }
}

impl Inner {
    fn needs_keeper(&mut self) -> bool {
        if self.viewers > 0 || !self.opened {
            return false;
        }
        let before = self.keeper.replace(KeeperIs::Due);
        before.is_none()
    }
}

/// A mailbox as it is shared.
pub(crate) type SharedMailbox = Arc<Mailbox>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_waits_is_small() {
        // Full, an inbox holds 16,384 of them; what is large in a message is boxed.
        assert!(size_of::<Message>() <= 64, "{}", size_of::<Message>());
    }
}
