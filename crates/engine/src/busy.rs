//! The time in which a tree is busy, for limits of time.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use attache_session::{Due, Limit, Payer, SessionId};
use tokio::time::Instant;

use crate::clock;

/// For each session with turns in flight in its tree: how many there are, and since when that time is not counted.
#[derive(Default)]
pub(crate) struct Busy(Mutex<HashMap<SessionId, (u32, Instant)>>);

impl Busy {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, (u32, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn limited(chain: &[Payer]) -> impl Iterator<Item = SessionId> + '_ {
        let limited = |payer: &&Payer| payer.bounds.budget.get(Limit::Wall).is_some();
        chain.iter().filter(limited).map(|payer| payer.session)
    }

    /// A turn begins, whose time each of the chain would be charged with.
    pub(crate) fn begins(&self, chain: &[Payer]) {
        let mut busy = self.lock();
        for payer in chain {
            let entry = busy.entry(payer.session);
            entry.or_insert_with(|| (0, clock::instant())).0 += 1;
        }
    }

    /// A limit is new: it counts from now on.
    pub(crate) fn count_from_now(&self, session: SessionId) {
        if let Some((_, since)) = self.lock().get_mut(&session) {
            *since = clock::instant();
        }
    }

    /// It has ended.
    pub(crate) fn ends(&self, chain: &[Payer]) {
        let mut busy = self.lock();
        for payer in chain {
            if let Some((count, _)) = busy.get_mut(&payer.session) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    busy.remove(&payer.session);
                }
            }
        }
    }

    /// The time that has passed and is not counted, as it is counted now.
    pub(crate) fn dues(&self, chain: &[Payer]) -> Vec<Due> {
        let now = clock::instant();
        let mut busy = self.lock();
        let mut dues = Vec::new();
        for session in Self::limited(chain) {
            let Some((_, since)) = busy.get_mut(&session) else {
                continue;
            };
            let passed = (now - *since).as_millis();
            let amount = i64::try_from(passed).unwrap_or(i64::MAX);
            if amount > 0 {
                // What is less than a millisecond is counted later.
                *since += Duration::from_millis(amount.unsigned_abs());
                dues.push(Due {
                    session,
                    limit: Limit::Wall,
                    amount,
                    most: None,
                });
            }
        }
        dues
    }

    /// What was to be counted was not stored.
    pub(crate) fn take_back(&self, dues: &[Due]) {
        let mut busy = self.lock();
        for due in dues.iter().filter(|due| due.limit == Limit::Wall) {
            if let Some((_, since)) = busy.get_mut(&due.session) {
                *since -= Duration::from_millis(due.amount.unsigned_abs());
            }
        }
    }
}
