//! Who may run now: places of turns under the limits of concurrency, given in order, and the time in which a tree is busy.
//!
//! A turn takes a place under every such limit that binds it, or none: it never holds one while it waits for another. A
//! turn that waits for other sessions gives its places back, and stands at the front of the line when it goes on.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use attache_session::{Due, Limit, Payer, SessionId};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::clock;

/// The limits that a turn needs a place under: where they stand and what they are.
pub(crate) type Needed = Vec<(SessionId, u64)>;

/// See the module.
#[derive(Default)]
pub(crate) struct Places(Mutex<Line>);

#[derive(Default)]
struct Line {
    /// Places that are taken, by where the limit stands.
    taken: HashMap<SessionId, u64>,
    /// Those who wait, by the limits that they need a place under; each list in order.
    waiting: HashMap<Vec<SessionId>, VecDeque<Waiter>>,
    /// The limits as they were last heard of.
    most: HashMap<SessionId, u64>,
    /// Numbers of those at the back count up, of those at the front down.
    back: i64,
    front: i64,
}

struct Waiter {
    number: i64,
    given: oneshot::Sender<Place>,
}

/// A place under each limit that was needed. Dropping it gives them back.
pub(crate) struct Place {
    places: Arc<Places>,
    under: Vec<SessionId>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.give_back(&self.under);
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

/// The places that a turn of a session needs.
pub(crate) fn needed(chain: &[Payer]) -> Needed {
    let limit = |payer: &Payer| Some((payer.session, payer.bounds.budget.get(Limit::Concurrent)?));
    chain.iter().filter_map(limit).collect()
}

impl Places {
    fn lock(&self) -> MutexGuard<'_, Line> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place, or says which limit has none left.
    pub(crate) fn try_take(self: &Arc<Self>, needed: &Needed) -> Result<Place, NoPlace> {
        let mut line = self.lock();
        let under: Vec<SessionId> = needed.iter().map(|(session, _)| *session).collect();
        line.most.extend(needed.iter().copied());
        let waits = line
            .waiting
            .get(&under)
            .is_some_and(|waiting| !waiting.is_empty());
        let short = line
            .full(&under)
            .or(under.first().copied().filter(|_| waits));
        if let Some(session) = short {
            let most = line.most.get(&session).copied().unwrap_or(0);
            return Err(NoPlace { session, most });
        }
        line.take(&under);
        Ok(Place {
            places: Arc::clone(self),
            under,
        })
    }

    /// Waits for a place; `first` before all others. A wait that is dropped leaves the line.
    pub(crate) fn take_in_turn(
        self: &Arc<Self>,
        needed: &Needed,
        first: bool,
    ) -> oneshot::Receiver<Place> {
        let (given, place) = oneshot::channel();
        {
            let mut line = self.lock();
            let under: Vec<SessionId> = needed.iter().map(|(session, _)| *session).collect();
            line.most.extend(needed.iter().copied());
            let number = if first {
                line.front -= 1;
                line.front
            } else {
                line.back += 1;
                line.back
            };
            let waiting = line.waiting.entry(under).or_default();
            let waiter = Waiter { number, given };
            if first {
                waiting.push_front(waiter);
            } else {
                waiting.push_back(waiter);
            }
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
            if line.most.contains_key(&session) {
                line.most.insert(session, most.unwrap_or(u64::MAX));
            }
        }
        self.give();
    }

    fn give_back(self: &Arc<Self>, under: &[SessionId]) {
        {
            let mut line = self.lock();
            for session in under {
                let left = line
                    .taken
                    .get(session)
                    .copied()
                    .unwrap_or(0)
                    .saturating_sub(1);
                if left == 0 {
                    line.taken.remove(session);
                } else {
                    line.taken.insert(*session, left);
                }
            }
            line.tidy();
        }
        self.give();
    }

    /// Gives what is free to those who wait, in order.
    fn give(self: &Arc<Self>) {
        loop {
            let (given, under) = {
                let mut line = self.lock();
                let Some(next) = line.next() else {
                    return;
                };
                line.take(&next.1);
                next
            };
            let place = Place {
                places: Arc::clone(self),
                under,
            };
            // One that has gone gives it back at once.
            let _taken = given.send(place);
        }
    }
}

impl Line {
    /// The first of these limits under which no place is left.
    fn full(&self, under: &[SessionId]) -> Option<SessionId> {
        let is_full = |session: &&SessionId| {
            let taken = self.taken.get(*session).copied().unwrap_or(0);
            let most = self.most.get(*session).copied().unwrap_or(u64::MAX);
            taken >= most
        };
        under.iter().find(is_full).copied()
    }

    fn take(&mut self, under: &[SessionId]) {
        for session in under {
            *self.taken.entry(*session).or_default() += 1;
        }
    }

    /// The one that waits longest of those for whom there is a place.
    fn next(&mut self) -> Option<(oneshot::Sender<Place>, Vec<SessionId>)> {
        let mut best: Option<(i64, &Vec<SessionId>)> = None;
        let mut empty = Vec::new();
        for (under, waiting) in &mut self.waiting {
            while waiting
                .front()
                .is_some_and(|waiter| waiter.given.is_closed())
            {
                waiting.pop_front();
            }
            if waiting.is_empty() {
                empty.push(under.clone());
            }
        }
        for under in empty {
            self.waiting.remove(&under);
        }
        for (under, waiting) in &self.waiting {
            let Some(first) = waiting.front() else {
                continue;
            };
            if best.is_none_or(|(number, _)| first.number < number) && self.full(under).is_none() {
                best = Some((first.number, under));
            }
        }
        let under = best?.1.clone();
        let waiter = self.waiting.get_mut(&under)?.pop_front()?;
        Some((waiter.given, under))
    }

    /// Forgets limits that nobody holds a place under or waits for.
    fn tidy(&mut self) {
        if self.taken.is_empty() && self.waiting.is_empty() {
            self.most.clear();
        }
    }
}

/// Where a turn stands with its places.
pub(crate) struct Standing {
    needed: Needed,
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
    /// Given back when it is dropped; none where no limit asks for one.
    Taken(Option<Place>),
}

impl Standing {
    pub(crate) fn new(places: &Arc<Places>, needed: Needed) -> Self {
        let state = if needed.is_empty() {
            Stand::Taken(None)
        } else {
            Stand::Outside { resumes: false }
        };
        Self {
            needed,
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
                Stand::Outside { resumes } => match self.places.try_take(&self.needed) {
                    Ok(place) => self.state = Stand::Taken(Some(place)),
                    Err(short) => {
                        let line = self.places.take_in_turn(&self.needed, *resumes);
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

/// For each session with a limit of time: how many turns are in flight in its tree, and since when that is not counted.
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

    /// A turn begins.
    pub(crate) fn begins(&self, chain: &[Payer]) {
        let mut busy = self.lock();
        for session in Self::limited(chain) {
            busy.entry(session).or_insert((0, clock::instant())).0 += 1;
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
