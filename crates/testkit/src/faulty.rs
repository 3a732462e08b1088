//! A store in memory whose appends take their time or wait for the test, and behind which the world
//! can end right after an answer: what was answered is stored, and nothing that follows from it is.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use attache_session::{Generation, Mail, Position, SessionId};
use attache_store::memory::MemoryStore;
use attache_store::{
    Append, Entity, EntityKind, EntityPut, KnownCommand, Log, LogItem, Page, PageQuery, Partial,
    Pending, ReadError, Row, RowFilter, Rows, Search, Writes,
};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::dice::Dice;
use crate::planted::{Bug, Planted};
use crate::puppet::Gate;

/// Which appends are held.
type Fits = dyn Fn(&Append) -> bool + Send + Sync;

/// What looks at each append that is stored; the world ends when it says no.
type Look = dyn Fn(&Stored<'_>) -> bool + Send + Sync;

/// An append that was stored a moment ago.
pub struct Stored<'a> {
    /// As it was asked for.
    pub append: &'a Append,
    /// Whose its session was, and how far it had come; none if it was born by this.
    pub stood: Option<(Generation, Position)>,
    /// What there is now.
    pub store: &'a MemoryStore,
}

/// The store within, with all that looks at it or is wrong with it.
#[derive(Clone)]
struct Within {
    memory: Arc<MemoryStore>,
    bug: Option<Arc<Bug>>,
    look: Option<Arc<Look>>,
    stop: Arc<Stop>,
}

impl Within {
    fn stands(&self, session: SessionId) -> Option<(Generation, Position)> {
        let row = self.memory.row(session).ok()??;
        Some((row.generation, row.head))
    }

    /// It is stored as it is asked for, whether or not anybody waits for the answer.
    fn commit(&self, asked: Append) -> Pending<Position> {
        if self.bug.is_none() && self.look.is_none() {
            return self.memory.commit(asked);
        }
        let stood = self.stands(asked.session);
        let mut append = asked.clone();
        if let Some(bug) = &self.bug {
            bug.append(&mut append, stood);
        }
        let from = append.expected;
        let end = from.plus(append.events.len());
        let pending = self.memory.commit(append);
        let now = self.stands(asked.session).map(|(_, head)| head);
        // One without events leaves the position where it was, stored or refused.
        let stored = stood.map_or(Position(0), |(_, head)| head) == from
            && now == Some(end)
            && !self.memory.has_refused();
        if let Some(look) = self.look.as_ref().filter(|_| stored) {
            let stored = Stored {
                append: &asked,
                stood,
                store: &self.memory,
            };
            if !look(&stored) {
                self.stop.end();
            }
        }
        pending
    }
}

/// See the module.
pub struct FaultyStore {
    inner: Arc<MemoryStore>,
    within: Within,
    held: Mutex<Vec<(Box<Fits>, Gate)>>,
    delays: Option<Mutex<Dice>>,
    stop_after: Option<u64>,
    commits: AtomicU64,
    too_new: Mutex<Option<SessionId>>,
    read: AtomicU64,
}

#[derive(Default)]
struct Stop {
    stopped: AtomicBool,
    bell: Notify,
}

impl Stop {
    fn end(&self) {
        self.stopped.store(true, Ordering::Release);
        self.bell.notify_one();
    }
}

/// Longest time that an append waits for its turn or its answer, in virtual milliseconds.
const SLOWEST_MS: u64 = 12;

impl FaultyStore {
    /// A store that behaves.
    #[must_use]
    pub fn new(inner: Arc<MemoryStore>) -> Self {
        let within = Within {
            memory: Arc::clone(&inner),
            bug: None,
            look: None,
            stop: Arc::default(),
        };
        Self {
            inner,
            within,
            held: Mutex::default(),
            delays: None,
            stop_after: None,
            commits: AtomicU64::new(0),
            too_new: Mutex::default(),
            read: AtomicU64::new(0),
        }
    }

    /// The store has a bug.
    #[must_use]
    pub fn with_bug(mut self, bug: Planted) -> Self {
        self.within.bug = Some(Arc::new(Bug::new(bug)));
        self
    }

    /// Each append is looked at when it is stored, before anything follows from it. The world ends when the answer is
    /// false.
    #[must_use]
    pub fn watched(mut self, look: impl Fn(&Stored<'_>) -> bool + Send + Sync + 'static) -> Self {
        self.within.look = Some(Arc::new(look));
        self
    }

    /// Another owner writes: at once, as no owner here can.
    pub fn commit_elsewhere(&self, append: Append) -> Pending<Position> {
        self.within.commit(append)
    }

    /// Each append waits for its turn and for its answer as long as the dice say.
    #[must_use]
    pub fn slow(mut self, dice: Dice) -> Self {
        self.delays = Some(Mutex::new(dice));
        self
    }

    /// The world ends right after the answer to this commit, counted from 1.
    #[must_use]
    pub fn stopping_after(mut self, commit: u64) -> Self {
        self.stop_after = Some(commit);
        self
    }

    /// The log of this session needs a newer reader from now on; none: all can be read.
    pub fn needs_newer(&self, session: Option<SessionId>) {
        *self.too_new.lock().unwrap_or_else(PoisonError::into_inner) = session;
    }

    /// How many events were read from logs.
    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Appends that fit wait at the gate that this gives. Nothing of such an append is stored before
    /// it is open, so that a test can look at what lies between a decision and its record.
    pub fn hold(&self, fits: impl Fn(&Append) -> bool + Send + Sync + 'static) -> Gate {
        let gate = Gate::default();
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.push((Box::new(fits), gate.clone()));
        gate
    }

    /// Waits for the end of the world: this one, or a crash that was planned in the store within.
    pub async fn when_stopped(&self) {
        let here = async {
            loop {
                let rung = self.within.stop.bell.notified();
                if self.within.stop.stopped.load(Ordering::Acquire) {
                    return;
                }
                rung.await;
            }
        };
        tokio::select! {
            () = here => {}
            () = self.inner.when_crashed() => {}
        }
    }

    /// Gives an append to the store, at once or when its gate is open.
    fn pass_on(&self, append: Append) -> Pending<Position> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let gate = held.iter().find(|(fits, _)| fits(&append));
        let Some((_, gate)) = gate else {
            return self.within.commit(append);
        };
        let (gate, within) = (gate.clone(), self.within.clone());
        Box::pin(async move {
            gate.passed().await;
            within.commit(append).await
        })
    }

    /// How long an append waits for its turn, and then for its answer.
    fn delays(&self) -> (Option<Duration>, Option<Duration>) {
        let Some(dice) = &self.delays else {
            return (None, None);
        };
        let mut dice = dice.lock().unwrap_or_else(PoisonError::into_inner);
        // Every other one is quick, so that both orders of two sessions occur.
        let mut delay = || {
            let slow = dice.chance(2);
            slow.then(|| Duration::from_millis(dice.below(SLOWEST_MS)))
        };
        (delay(), delay())
    }
}

impl Writes for FaultyStore {
    fn commit(&self, append: Append) -> Pending<Position> {
        if self.within.stop.stopped.load(Ordering::Acquire) {
            return Box::pin(std::future::pending());
        }
        let number = self.commits.fetch_add(1, Ordering::Relaxed) + 1;
        let end = append.expected.plus(append.events.len());
        let (turn, answers) = self.delays();
        let within = self.within.clone();
        // Without a wait it is stored at once.
        let early = turn.is_none().then(|| self.pass_on(append.clone()));
        let stop = (self.stop_after == Some(number)).then(|| Arc::clone(&self.within.stop));
        let stopped = Arc::clone(&self.within.stop);
        Box::pin(async move {
            let pending = match (turn, early) {
                (None, Some(pending)) => pending,
                (turn, _) => {
                    tokio::time::sleep(turn.unwrap_or_default()).await;
                    if stopped.stopped.load(Ordering::Acquire) {
                        return std::future::pending().await;
                    }
                    within.commit(append)
                }
            };
            if let Some(delay) = answers {
                tokio::time::sleep(delay).await;
            }
            let mut answer = pending.await;
            if let Some(bug) = within.bug {
                answer = bug.answer(answer, end);
            }
            if let Some(stop) = stop {
                stop.end();
            }
            answer
        })
    }

    fn put_entity(&self, put: EntityPut) -> Pending<Entity> {
        self.inner.put_entity(put)
    }

    fn claim(&self, session: SessionId, from: Generation) -> Pending<Generation> {
        self.inner.claim(session, from)
    }

    fn checkpoint(&self, session: SessionId, partial: Partial) {
        self.inner.checkpoint(session, partial);
    }

    fn delete(&self, session: SessionId) -> Pending<()> {
        self.inner.delete(session)
    }

    fn sweep_commands(&self, before: i64) -> Pending<u64> {
        self.inner.sweep_commands(before)
    }
}

impl Log for FaultyStore {
    fn events(
        &self,
        session: SessionId,
        after: Position,
        limit: usize,
    ) -> Result<Vec<LogItem>, ReadError> {
        let too_new = self.too_new.lock().unwrap_or_else(PoisonError::into_inner);
        if *too_new == Some(session) {
            return Err(ReadError::TooNew { needs: 9 });
        }
        drop(too_new);
        let mut events = self.inner.events(session, after, limit)?;
        if let Some(bug) = &self.within.bug {
            bug.events(&mut events);
        }
        self.read.fetch_add(events.len() as u64, Ordering::Relaxed);
        Ok(events)
    }

    fn partial(&self, session: SessionId) -> Result<Option<Partial>, ReadError> {
        self.inner.partial(session)
    }
}

impl Rows for FaultyStore {
    fn row(&self, session: SessionId) -> Result<Option<Row>, ReadError> {
        let mut row = self.inner.row(session)?;
        if let (Some(bug), Some(row)) = (&self.within.bug, &mut row) {
            bug.row(row);
        }
        Ok(row)
    }

    fn rows(
        &self,
        filter: RowFilter,
        after: Option<SessionId>,
        limit: usize,
    ) -> Result<Vec<Row>, ReadError> {
        let mut rows = self.inner.rows(filter, after, limit)?;
        if let Some(bug) = &self.within.bug {
            rows.iter_mut().for_each(|row| bug.row(row));
        }
        Ok(rows)
    }

    fn descends(&self, descendant: SessionId, ancestor: SessionId) -> Result<bool, ReadError> {
        self.inner.descends(descendant, ancestor)
    }

    fn mail(&self, session: SessionId, limit: usize) -> Result<Vec<Mail>, ReadError> {
        let mail = self.inner.mail(session, limit)?;
        Ok(match &self.within.bug {
            Some(bug) => bug.mail(session, mail),
            None => mail,
        })
    }

    fn command(&self, session: SessionId, id: Uuid) -> Result<Option<KnownCommand>, ReadError> {
        self.inner.command(session, id)
    }

    fn quota(&self, session: SessionId, key: &str) -> Result<i64, ReadError> {
        self.inner.quota(session, key)
    }

    fn entity(&self, id: Uuid) -> Result<Option<Entity>, ReadError> {
        self.inner.entity(id)
    }

    fn entity_named(&self, kind: EntityKind, name: &str) -> Result<Option<Entity>, ReadError> {
        self.inner.entity_named(kind, name)
    }

    fn entities(&self, kind: EntityKind) -> Result<Vec<Entity>, ReadError> {
        self.inner.entities(kind)
    }
}

impl Search for FaultyStore {
    fn page(&self, session: SessionId, query: &PageQuery) -> Result<Page, ReadError> {
        self.inner.page(session, query)
    }

    fn ids_ending(&self, suffix: &str, limit: usize) -> Result<Vec<SessionId>, ReadError> {
        self.inner.ids_ending(suffix, limit)
    }
}
