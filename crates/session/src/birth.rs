//! How a session begins: its first events, decided by the same rules as all later ones.

use std::sync::Arc;

use crate::command::{Command, Decision};
use crate::decide::decide;
use crate::event::{Created, Event, Stamped};
use crate::id::{Epoch, Ids, ItemId, QueueId, SessionId};
use crate::queue::Origin;
use crate::state::State;
use crate::time::{Clock, Timestamp};

/// What a new session is to be.
#[derive(Clone, PartialEq, Debug)]
pub struct NewSession {
    /// Its id.
    pub id: SessionId,
    /// Its first epoch.
    pub epoch: Epoch,
    /// What it is.
    pub created: Created,
    /// Its first input and who wrote it.
    pub first: Option<(ItemId, Arc<str>, Origin)>,
}

/// The first events of a session whose log is empty, and the state that they fold to.
#[derive(Clone, PartialEq, Debug)]
pub struct Birth {
    /// The session.
    pub session: SessionId,
    /// Its first events: created, started, and the first input up to the start of its turn.
    pub events: Vec<Stamped>,
    /// The state after them.
    pub state: State,
}

impl Birth {
    /// The birth of `new` at `now`.
    #[must_use]
    pub fn of(new: &NewSession, now: Timestamp, ids: &mut dyn Ids) -> Self {
        let mut state = State::empty(new.id);
        let mut clock = Clock::new(now, Timestamp::default());
        let mut events = Vec::with_capacity(5);
        for event in [
            Event::Created(Arc::new(new.created.clone())),
            Event::Started { epoch: new.epoch },
        ] {
            let (at, observed) = clock.stamp();
            let stamped = Stamped {
                at,
                observed,
                event,
            };
            state.apply(&stamped);
            events.push(stamped);
        }
        if let Some((item, text, origin)) = &new.first {
            let enqueue = Command::Enqueue {
                item: Some(*item),
                queue: QueueId::Default,
                text: Arc::clone(text),
                origin: origin.clone(),
            };
            // A live session with its two empty queues takes any non-empty text; an empty first
            // message is no message.
            if let Ok(Decision { events: more, .. }) = decide(&state, &enqueue, now, ids) {
                for stamped in more {
                    state.apply(&stamped);
                    events.push(stamped);
                }
            }
        }
        Self {
            session: new.id,
            events,
            state,
        }
    }
}
