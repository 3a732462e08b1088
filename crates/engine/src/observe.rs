//! Who watches: viewers of one session, and viewers of the whole tree.
//!
//! A session that is observed has one window of what was published; a viewer is a cursor into it.
//! A viewer that falls off the window takes a fresh snapshot. Of rows, the latest wins, so a slow
//! viewer of the tree costs one entry for each session and no more.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attache_session::{Epoch, ModalState, Position, SessionId, State};
use attache_store::LogItem;
use tokio::sync::{Notify, watch};

use crate::live::{LiveItem, Note};
use crate::modals::OpenModal;
use crate::unviewed::Viewing;

/// A session at one moment: everything before is in it, everything from there follows.
#[derive(Clone, PartialEq, Debug)]
pub struct Snapshot {
    /// The state; its history is read up to `state.position`.
    pub state: Arc<State>,
    /// The epoch; none when it is stopped.
    pub epoch: Option<Epoch>,
    /// What streams.
    pub live: LiveItem,
    /// Where the window of published changes stood.
    pub(crate) window_end: u64,
}

/// What changed.
#[derive(Clone, PartialEq, Debug)]
pub enum Change {
    /// A record that is durable, and the state after the commit that brought it.
    Record {
        /// The event.
        item: Arc<LogItem>,
        /// The state after the whole commit.
        state: Arc<State>,
    },
    /// Text that streams; a record will settle it.
    Text {
        /// The turn.
        turn: u32,
        /// The model request of the turn.
        step: u32,
        /// Where in the item's text this piece begins, in bytes.
        offset: usize,
        /// The piece.
        text: String,
    },
    /// A question to a person, asked by the session or by one below it, was raised or has ended.
    Modal {
        /// The question.
        open: OpenModal,
        /// How it stands.
        state: ModalState,
    },
    /// What the running turn waits for has changed: a retry, its turn at the provider.
    Note,
    /// The viewer was too slow: it needs a fresh snapshot.
    Lagged,
}

/// Records that one observed session's window keeps.
const WINDOW_RECORDS: usize = 8_192;

/// The window of one observed session.
pub(crate) struct Observation {
    window: Mutex<Window>,
    pulse: watch::Sender<u64>,
}

#[derive(Default)]
struct Window {
    /// Number of the first change that is kept.
    first: u64,
    changes: VecDeque<Change>,
}

impl Observation {
    pub(crate) fn new() -> Self {
        Self {
            window: Mutex::default(),
            pulse: watch::channel(0).0,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where a viewer that has the newest snapshot goes on.
    pub(crate) fn end(&self) -> u64 {
        let window = self.lock();
        window.first + window.changes.len() as u64
    }

    pub(crate) fn publish(&self, changes: impl IntoIterator<Item = Change>) {
        {
            let mut window = self.lock();
            for change in changes {
                if window.changes.len() == WINDOW_RECORDS {
                    window.changes.pop_front();
                    window.first += 1;
                }
                window.changes.push_back(change);
            }
        }
        self.ring();
    }

    /// Live text has grown.
    pub(crate) fn ring(&self) {
        self.pulse.send_modify(|count| *count += 1);
    }
}

/// What a viewer is given when it attaches: the session now, and what follows.
pub struct Observed {
    /// The session now.
    pub snapshot: Snapshot,
    /// What follows.
    pub observer: Observer,
}

/// A viewer's cursor. Dropping it detaches the viewer.
pub struct Observer {
    viewing: Viewing,
    observation: Arc<Observation>,
    pulse: watch::Receiver<u64>,
    next: u64,
    turn: u32,
    step: u32,
    offset: usize,
    note: Option<Note>,
}

impl Observer {
    pub(crate) fn new(
        viewing: Viewing,
        observation: Arc<Observation>,
        next: u64,
        live: &LiveItem,
    ) -> Self {
        let pulse = observation.pulse.subscribe();
        Self {
            viewing,
            observation,
            pulse,
            next,
            turn: live.turn,
            step: live.step,
            offset: live.text.len(),
            note: live.note.clone(),
        }
    }

    /// Waits for what comes next, as [`Observer::take`] gives it.
    pub async fn next(&mut self) -> Vec<Change> {
        loop {
            self.pulse.mark_unchanged();
            let changes = self.take();
            if !changes.is_empty() {
                return changes;
            }
            // The other end lives in the observation that is held here: it cannot be gone.
            let _rung = self.pulse.changed().await;
        }
    }

    /// Rings whenever there may be something to take. Several may listen.
    #[must_use]
    pub fn bell(&self) -> watch::Receiver<u64> {
        self.observation.pulse.subscribe()
    }

    /// Rings that bell for all who listen to it: something else has come that its listeners tell.
    pub fn ring(&self) {
        self.observation.ring();
    }

    /// How many records it has taken, counted from where all viewers of the session count.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.next
    }

    /// Whether it looks at the same life of the session in memory as another.
    #[must_use]
    pub fn is_beside(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.observation, &other.observation)
    }

    /// What there is: all records, else live text, in that order, so that a record never overtakes the text that it
    /// settles. Empty when there is nothing new.
    pub fn take(&mut self) -> Vec<Change> {
        {
            let window = self.observation.lock();
            if self.next < window.first {
                return vec![Change::Lagged];
            }
            let skip = usize::try_from(self.next - window.first).unwrap_or(usize::MAX);
            let changes: Vec<Change> = window.changes.iter().skip(skip).cloned().collect();
            self.next += changes.len() as u64;
            if !changes.is_empty() {
                return changes;
            }
        }
        let (turn, step, offset) = (&mut self.turn, &mut self.step, &mut self.offset);
        let known = &mut self.note;
        let (text, noted) = self.viewing.mailbox().live.read(|live| {
            let noted = live.note != *known;
            if noted {
                known.clone_from(&live.note);
            }
            if (live.turn, live.step) != (*turn, *step) {
                (*turn, *step, *offset) = (live.turn, live.step, 0);
            }
            if live.text.len() < *offset {
                // The record that settled it came first.
                *offset = live.text.len();
            }
            let piece = live.text[*offset..].to_owned();
            let change = Change::Text {
                turn: live.turn,
                step: live.step,
                offset: *offset,
                text: piece,
            };
            *offset = live.text.len();
            (change, noted)
        });
        let mut changes = match text {
            Change::Text { ref text, .. } if text.is_empty() => Vec::new(),
            change => vec![change],
        };
        if noted {
            changes.push(Change::Note);
        }
        changes
    }
}

/// Everybody who watches the tree.
#[derive(Default)]
pub(crate) struct TreeFeeds {
    feeds: Mutex<Vec<std::sync::Weak<Feed>>>,
}

#[derive(Default)]
struct Feed {
    changed: Mutex<HashSet<SessionId>>,
    bell: Notify,
}

/// A stream of sessions whose rows have changed; the latest wins for each.
pub struct TreeFeed(Arc<Feed>);

impl TreeFeeds {
    fn lock(&self) -> MutexGuard<'_, Vec<std::sync::Weak<Feed>>> {
        self.feeds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn subscribe(&self) -> TreeFeed {
        let feed = Arc::new(Feed::default());
        self.lock().push(Arc::downgrade(&feed));
        TreeFeed(feed)
    }

    pub(crate) fn changed(&self, session: SessionId) {
        self.lock().retain(|feed| {
            let Some(feed) = feed.upgrade() else {
                return false;
            };
            feed.changed
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(session);
            feed.bell.notify_one();
            true
        });
    }
}

impl TreeFeed {
    /// Waits until rows have changed, and says which.
    pub async fn next(&mut self) -> Vec<SessionId> {
        loop {
            let changed: Vec<SessionId> = self
                .0
                .changed
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .drain()
                .collect();
            if !changed.is_empty() {
                return changed;
            }
            self.0.bell.notified().await;
        }
    }
}

impl Snapshot {
    /// How many records are in it, counted as [`Observer::taken`] does.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.window_end
    }

    /// Position of the newest event that the snapshot holds.
    #[must_use]
    pub fn position(&self) -> Position {
        self.state.position
    }
}
