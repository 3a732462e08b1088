//! States of long sessions that are not in memory now. A log only grows, so that a state stays true of its beginning: the next
//! load goes on from it and reads what has come since, not all that there ever was.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use attache_session::{Position, SessionId, State};

/// Events below which a load is as short.
const LONG: Position = Position(32);

/// States that are kept at most; the one that was kept first makes room.
const MOST: usize = 64;

/// See the module.
#[derive(Default)]
pub(crate) struct Folds(Mutex<VecDeque<State>>);

impl Folds {
    /// Keeps what an actor held that leaves.
    pub(crate) fn keep(&self, state: State) {
        if state.position < LONG {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|other| other.id != state.id);
        if kept.len() == MOST {
            kept.pop_front();
        }
        kept.push_back(state);
    }

    /// What was kept of a session; it is its caller's then.
    pub(crate) fn take(&self, session: SessionId) -> Option<State> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|state| state.id == session)?;
        kept.remove(at)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn state(session: u128, position: u64) -> State {
        State {
            position: Position(position),
            ..State::empty(SessionId(Uuid::from_u128(session)))
        }
    }

    #[test]
    fn the_newest_states_of_long_sessions_are_kept_and_each_is_given_once() {
        let folds = Folds::default();
        let take = |session: u128| {
            folds
                .take(SessionId(Uuid::from_u128(session)))
                .map(|state| state.position.0)
        };
        folds.keep(state(1, 31));
        assert_eq!(take(1), None, "it is short");
        folds.keep(state(1, 32));
        folds.keep(state(1, 300));
        assert_eq!(take(1), Some(300), "the newer one counts");
        assert_eq!(take(1), None, "it was given");
        for session in 0..=MOST as u128 {
            folds.keep(state(session, 1_000));
        }
        assert_eq!(take(0), None, "it made room");
        assert_eq!(take(1), Some(1_000));
    }
}
