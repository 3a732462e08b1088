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

/// See the module.
pub struct FaultyStore {
    inner: Arc<MemoryStore>,
    held: Mutex<Vec<(Box<Fits>, Gate)>>,
    delays: Option<Mutex<Dice>>,
    stop_after: Option<u64>,
    commits: AtomicU64,
    stop: Arc<Stop>,
    bug: Option<Arc<Bug>>,
}

#[derive(Default)]
struct Stop {
    stopped: AtomicBool,
    bell: Notify,
}

/// Longest time that an append waits for its turn or its answer, in virtual milliseconds.
const SLOWEST_MS: u64 = 12;

impl FaultyStore {
    /// A store that behaves.
    #[must_use]
    pub fn new(inner: Arc<MemoryStore>) -> Self {
        Self {
            inner,
            held: Mutex::default(),
            delays: None,
            stop_after: None,
            commits: AtomicU64::new(0),
            stop: Arc::default(),
            bug: None,
        }
    }

    /// The store has a bug.
    #[must_use]
    pub fn with_bug(mut self, bug: Planted) -> Self {
        self.bug = Some(Arc::new(Bug::new(bug)));
        self
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
                let rung = self.stop.bell.notified();
                if self.stop.stopped.load(Ordering::Acquire) {
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
            return self.inner.commit(append);
        };
        let (gate, inner) = (gate.clone(), Arc::clone(&self.inner));
        Box::pin(async move {
            gate.passed().await;
            inner.commit(append).await
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
    fn commit(&self, mut append: Append) -> Pending<Position> {
        if self.stop.stopped.load(Ordering::Acquire) {
            return Box::pin(std::future::pending());
        }
        let number = self.commits.fetch_add(1, Ordering::Relaxed) + 1;
        let end = append.expected.plus(append.events.len());
        let bug = self.bug.clone();
        if let Some(bug) = &bug {
            bug.append(&mut append);
        }
        let (turn, answers) = self.delays();
        let inner = Arc::clone(&self.inner);
        // Without a wait it is stored as it is asked for, whether or not anybody waits for the answer.
        let early = turn.is_none().then(|| self.pass_on(append.clone()));
        let stop = (self.stop_after == Some(number)).then(|| Arc::clone(&self.stop));
        let stopped = Arc::clone(&self.stop);
        Box::pin(async move {
            let pending = match (turn, early) {
                (None, Some(pending)) => pending,
                (turn, _) => {
                    tokio::time::sleep(turn.unwrap_or_default()).await;
                    if stopped.stopped.load(Ordering::Acquire) {
                        return std::future::pending().await;
                    }
                    inner.commit(append)
                }
            };
            if let Some(delay) = answers {
                tokio::time::sleep(delay).await;
            }
            let mut answer = pending.await;
            if let Some(bug) = bug {
                answer = bug.answer(answer, end);
            }
            if let Some(stop) = stop {
                stop.stopped.store(true, Ordering::Release);
                stop.bell.notify_one();
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
        let mut events = self.inner.events(session, after, limit)?;
        if let Some(bug) = &self.bug {
            bug.events(&mut events);
        }
        Ok(events)
    }

    fn partial(&self, session: SessionId) -> Result<Option<Partial>, ReadError> {
        self.inner.partial(session)
    }
}

impl Rows for FaultyStore {
    fn row(&self, session: SessionId) -> Result<Option<Row>, ReadError> {
        let mut row = self.inner.row(session)?;
        if let (Some(bug), Some(row)) = (&self.bug, &mut row) {
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
        if let Some(bug) = &self.bug {
            rows.iter_mut().for_each(|row| bug.row(row));
        }
        Ok(rows)
    }

    fn descends(&self, descendant: SessionId, ancestor: SessionId) -> Result<bool, ReadError> {
        self.inner.descends(descendant, ancestor)
    }

    fn mail(&self, session: SessionId, limit: usize) -> Result<Vec<Mail>, ReadError> {
        let mail = self.inner.mail(session, limit)?;
        Ok(match &self.bug {
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
