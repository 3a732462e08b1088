//! Who may run now: places of turns under the limits of concurrency, given in order.
//!
//! A turn takes a place under every such limit that binds it, or none: it never holds one while it waits for another. A
//! turn that waits for other sessions gives its places back, and stands at the front of the line when it goes on.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use attache_session::{Limit, Payer, SessionId};
use tokio::sync::oneshot;

/// See the module.
#[derive(Default)]
pub(crate) struct Places(Mutex<Line>);

#[derive(Default)]
struct Line {
    /// Turns in flight that hold a place, by each of those whose limits would bind them: a limit that is set later finds
    /// them counted.
    taken: HashMap<SessionId, u64>,
    /// Those who wait, by the limits that they need a place under; each list in order.
    waiting: HashMap<Vec<SessionId>, VecDeque<Waiter>>,
    /// The limits as they were last set; one that was lifted is none.
    most: HashMap<SessionId, Option<u64>>,
    /// Numbers of those at the back count up, of those at the front down.
    back: i64,
    front: i64,
}

struct Waiter {
    number: i64,
    chain: Arc<[SessionId]>,
    given: oneshot::Sender<Place>,
}

/// A place under each limit that binds a turn. Dropping it gives them back.
pub(crate) struct Place {
    places: Arc<Places>,
    chain: Arc<[SessionId]>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.give_back(&self.chain);
    }
}

/// What a turn without a place waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoPlace {
    /// Where the limit stands.
    pub session: SessionId,
    /// How many turns it allows.
    pub most: u64,
}

impl fmt::Display for NoPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "waits for a place: {} turns run (limit concurrent of session {})",
            self.most, self.session
        )
    }
}

impl Places {
    fn lock(&self) -> MutexGuard<'_, Line> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Limits as they stand where a turn begins; what was set meanwhile is newer.
    fn learn(&self, chain: &[Payer]) {
        let mut line = self.lock();
        for payer in chain {
            if let Some(most) = payer.bounds.budget.get(Limit::Concurrent) {
                line.most.entry(payer.session).or_insert(Some(most));
            }
        }
    }

    /// Takes a place, or says which limit has none left.
    fn try_take(self: &Arc<Self>, chain: &Arc<[SessionId]>) -> Result<Place, NoPlace> {
        let mut line = self.lock();
        let under = line.under(chain);
        let waits = line
            .waiting
            .get(&under)
            .is_some_and(|waiting| !waiting.is_empty());
        let short = line
            .full(&under)
            .or(under.first().copied().filter(|_| waits));
        if let Some(session) = short {
            let most = line.most(session).unwrap_or(0);
            return Err(NoPlace { session, most });
        }
        line.take(chain);
        Ok(Place {
            places: Arc::clone(self),
            chain: Arc::clone(chain),
        })
    }

    /// Waits for a place; `first` before all others. A wait that is dropped leaves the line.
    fn take_in_turn(
        self: &Arc<Self>,
        chain: &Arc<[SessionId]>,
        first: bool,
    ) -> oneshot::Receiver<Place> {
        let (given, place) = oneshot::channel();
        {
            let mut line = self.lock();
            let number = if first {
                line.front -= 1;
                line.front
            } else {
                line.back += 1;
                line.back
            };
            let chain = Arc::clone(chain);
            line.put(Waiter {
                number,
                chain,
                given,
            });
        }
        self.give();
        place
    }

    /// How many places are taken under a limit.
    pub(crate) fn taken(&self, session: SessionId) -> u64 {
        self.lock().taken.get(&session).copied().unwrap_or(0)
    }

    /// A limit is another one now; none is no limit.
    pub(crate) fn set_most(self: &Arc<Self>, session: SessionId, most: Option<u64>) {
        {
            let mut line = self.lock();
            let before = line.most.insert(session, most).flatten();
            if before.is_some() != most.is_some() {
                // Those who wait need places under other limits than before.
                let waiting = std::mem::take(&mut line.waiting);
                let mut waiting: Vec<Waiter> = waiting.into_values().flatten().collect();
                waiting.sort_by_key(|waiter| waiter.number);
                waiting.into_iter().for_each(|waiter| line.put(waiter));
            }
        }
        self.give();
    }

    /// A session has ended: its limits bind nobody, and are learned anew.
    pub(crate) fn forget(&self, session: SessionId) {
        self.lock().most.remove(&session);
    }

    fn give_back(self: &Arc<Self>, chain: &[SessionId]) {
        {
            let mut line = self.lock();
            for session in chain {
                let left = line.taken.get(session).copied().unwrap_or(0);
                if left <= 1 {
                    line.taken.remove(session);
                } else {
                    line.taken.insert(*session, left - 1);
                }
            }
        }
        self.give();
    }

    /// Gives what is free to those who wait, in order.
    fn give(self: &Arc<Self>) {
        loop {
            let waiter = {
                let mut line = self.lock();
                let Some(waiter) = line.next() else {
                    return;
                };
                line.take(&waiter.chain);
                waiter
            };
            let place = Place {
                places: Arc::clone(self),
                chain: waiter.chain,
            };
            // One that has gone gives it back at once.
            let _taken = waiter.given.send(place);
        }
    }
}

impl Line {
    fn most(&self, session: SessionId) -> Option<u64> {
        self.most.get(&session).copied().flatten()
    }

    /// The limits that a turn needs a place under.
    fn under(&self, chain: &[SessionId]) -> Vec<SessionId> {
        let limited = chain.iter().filter(|it| self.most(**it).is_some());
        limited.copied().collect()
    }

    /// Puts one into its line, by its number.
    fn put(&mut self, waiter: Waiter) {
        let waiting = self.waiting.entry(self.under(&waiter.chain)).or_default();
        let place = waiting.partition_point(|other| other.number < waiter.number);
        waiting.insert(place, waiter);
    }

    /// The first of these limits under which no place is left.
    fn full(&self, under: &[SessionId]) -> Option<SessionId> {
        let is_full = |session: &&SessionId| {
            let taken = self.taken.get(*session).copied().unwrap_or(0);
            self.most(**session).is_some_and(|most| taken >= most)
        };
        under.iter().find(is_full).copied()
    }

    fn take(&mut self, chain: &[SessionId]) {
        for session in chain {
            *self.taken.entry(*session).or_default() += 1;
        }
    }

    /// The one that waits longest of those for whom there is a place.
    fn next(&mut self) -> Option<Waiter> {
        self.waiting.retain(|_, waiting| {
            while waiting
                .front()
                .is_some_and(|waiter| waiter.given.is_closed())
            {
                waiting.pop_front();
            }
            !waiting.is_empty()
        });
        let firsts = self
            .waiting
            .iter()
            .filter_map(|(under, waiting)| Some((waiting.front()?.number, under)));
        let free = firsts.filter(|(_, under)| self.full(under).is_none());
        let (_, under) = free.min_by_key(|(number, _)| *number)?;
        let under = under.clone();
        self.waiting.get_mut(&under)?.pop_front()
    }
}

/// Where a turn stands with its places.
pub(crate) struct Standing {
    chain: Arc<[SessionId]>,
    places: Arc<Places>,
    state: Stand,
}

enum Stand {
    /// It has none, and is in no line.
    Outside {
        /// It has had one before.
        resumes: bool,
    },
    InLine(oneshot::Receiver<Place>),
    /// Given back when it is dropped.
    Taken(Option<Place>),
}

impl Standing {
    /// A turn of the last of the chain begins: it has a place at once where there is one.
    pub(crate) fn new(places: &Arc<Places>, chain: &[Payer]) -> Self {
        places.learn(chain);
        let chain: Arc<[SessionId]> = chain.iter().map(|payer| payer.session).collect();
        let state = match places.try_take(&chain) {
            Ok(place) => Stand::Taken(Some(place)),
            Err(_) => Stand::Outside { resumes: false },
        };
        Self {
            chain,
            places: Arc::clone(places),
            state,
        }
    }

    pub(crate) fn is_taken(&self) -> bool {
        matches!(self.state, Stand::Taken(_))
    }

    /// Leaves its places to others.
    pub(crate) fn give_up(&mut self) {
        if matches!(self.state, Stand::Taken(Some(_))) {
            self.state = Stand::Outside { resumes: true };
        }
    }

    /// Waits for what comes next: a place, or word of what it waits for. The future may be dropped.
    pub(crate) async fn taken(&mut self) -> Option<NoPlace> {
        loop {
            match &mut self.state {
                Stand::Taken(_) => return None,
                Stand::Outside { resumes } => match self.places.try_take(&self.chain) {
                    Ok(place) => self.state = Stand::Taken(Some(place)),
                    Err(short) => {
                        let line = self.places.take_in_turn(&self.chain, *resumes);
                        self.state = Stand::InLine(line);
                        return Some(short);
                    }
                },
                Stand::InLine(line) => {
                    // The line lives as long as this does.
                    self.state = Stand::Taken(line.await.ok());
                }
            }
        }
    }
}
