//! Input that waits for a session: queues, their immediacy and priority, and what is deliverable
//! when. Which events change a queue is decided in `decide/input.rs`.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::id::{ItemId, QueueId, SessionId, TurnId, WatchId};
use crate::mail::Told;
use crate::outcome::named;

named! {
    /// When a queue's input may be taken.
    Immediacy {
        /// At a tool boundary of a running turn, and at a turn's start.
        Immediate = "immediate",
        /// At a turn's start only.
        Queue = "queue",
        /// Never, until it is released.
        Held = "held",
    }
}

/// Who wrote an item of input. Text of a child is never taken for a person's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    /// A person or a program outside, through a door.
    Viewer,
    /// Another session, by `agent_session_send` or as the first message of a child.
    Session(SessionId),
    /// A notice that the watched session has settled.
    Notice {
        /// The session that it tells of.
        about: SessionId,
        /// The registration that it answers: the notice's id, since each is answered once.
        watch: WatchId,
        /// What that session said; the text of the item is the host's or the watcher's own.
        told: Option<Told>,
    },
}

/// One accepted item of input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueuedItem {
    /// Its id for ever.
    pub id: ItemId,
    /// How often it was edited; a change must name the revision it was made against.
    pub revision: u32,
    /// The text.
    pub text: Arc<str>,
    /// Who wrote it.
    pub origin: Origin,
}

/// One queue of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Queue {
    /// Its id.
    pub id: QueueId,
    /// Its name; the two built-in queues are called by their kind.
    pub name: Arc<str>,
    /// When its input may be taken.
    pub immediacy: Immediacy,
    /// What the immediacy was before the queue was held, so that a release restores it.
    pub before_hold: Option<Immediacy>,
    /// Counts every change of the queue or of its items.
    pub revision: u32,
    /// First in, first out.
    pub items: VecDeque<Arc<QueuedItem>>,
}

/// First custom queue's priority; each later one is one higher, as in the systems that the seeds
/// come from. Both built-in queues stand above all custom ones.
const FIRST_CUSTOM_PRIORITY: u32 = 10;

impl Queue {
    /// A queue as it begins: one of the two that each session has, or a custom one before it gets its name.
    #[must_use]
    pub fn built_in(id: QueueId) -> Self {
        let (name, immediacy) = match id {
            QueueId::Immediate => ("immediate", Immediacy::Immediate),
            QueueId::Default | QueueId::Custom(_) => ("default", Immediacy::Queue),
        };
        Self {
            id,
            name: name.into(),
            immediacy,
            before_hold: None,
            revision: 0,
            items: VecDeque::new(),
        }
    }

    /// Higher is taken first.
    #[must_use]
    pub fn priority(&self) -> u32 {
        match self.id {
            QueueId::Immediate => u32::MAX,
            QueueId::Default => u32::MAX - 1,
            QueueId::Custom(number) => FIRST_CUSTOM_PRIORITY + number,
        }
    }

    /// Whether its input may start a turn.
    #[must_use]
    pub fn starts_turn(&self) -> bool {
        match self.immediacy {
            Immediacy::Immediate | Immediacy::Queue => true,
            Immediacy::Held => false,
        }
    }

    /// Whether its input may join a running turn at a tool boundary.
    #[must_use]
    pub fn steers(&self) -> bool {
        self.immediacy == Immediacy::Immediate
    }
}

/// The items that may be taken now, in the order in which they are taken: by priority of the
/// queue, first in first out within one.
pub(crate) fn takeable(
    queues: &[Queue],
    running: Option<TurnId>,
) -> Vec<(QueueId, Arc<QueuedItem>)> {
    let may = |queue: &&Queue| {
        if running.is_some() {
            queue.steers()
        } else {
            queue.starts_turn()
        }
    };
    let mut ready: Vec<&Queue> = queues.iter().filter(may).collect();
    ready.sort_by_key(|queue| std::cmp::Reverse(queue.priority()));
    ready
        .into_iter()
        .flat_map(|queue| queue.items.iter().map(|item| (queue.id, Arc::clone(item))))
        .collect()
}
