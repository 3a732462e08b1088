//! A store in memory that tells what is durable from what is not, and that can be made to crash at
//! any commit. It has no threads: a write is seen by readers at once, and is durable when its
//! future has answered or was dropped.

mod faults;
#[cfg(test)]
mod tests;
mod world;

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use attache_session::{Generation, Mail, Position, SessionId};
use tokio::sync::watch;
use uuid::Uuid;

use crate::append::{Append, Pending, Writes};
use crate::entity::{Entity, EntityKind, EntityPut};
use crate::read::{
    KnownCommand, Log, LogItem, Page, PageQuery, Partial, ReadError, Row, RowFilter, Rows, Search,
};
use crate::refused::Refused;

pub use faults::{AppendTrace, Fault, FaultPlan};
use world::World;

/// A store in memory.
#[derive(Debug)]
pub struct MemoryStore {
    inner: Arc<Mutex<Inner>>,
    crashed: watch::Receiver<bool>,
}

/// A write that was accepted; carried out twice, in the same order: for readers, and for good.
#[derive(Debug)]
enum Write {
    Append(Box<Append>),
    Entity(EntityPut),
    Claim(SessionId, Generation),
    Delete(SessionId),
    Sweep(i64),
}

#[derive(Debug)]
struct Inner {
    volatile: World,
    durable: World,
    /// Accepted writes that are not durable yet, and the number of the first.
    waiting: VecDeque<(Write, HashMap<SessionId, Partial>)>,
    settled: u64,
    /// Streamed text that rides with the next write.
    riders: HashMap<SessionId, Partial>,
    plan: FaultPlan,
    commits: u64,
    traces: Vec<AppendTrace>,
    crash: watch::Sender<bool>,
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::with_faults(FaultPlan::default())
    }

    /// An empty store in which things go wrong as planned.
    #[must_use]
    pub fn with_faults(plan: FaultPlan) -> Self {
        Self::of(World::default(), plan)
    }

    fn of(world: World, plan: FaultPlan) -> Self {
        let (crash, crashed) = watch::channel(false);
        let inner = Inner {
            volatile: world.clone(),
            durable: world,
            waiting: VecDeque::new(),
            settled: 0,
            riders: HashMap::new(),
            plan,
            commits: 0,
            traces: Vec::new(),
            crash,
        };
        Self {
            inner: Arc::new(Mutex::new(inner)),
            crashed,
        }
    }

    /// What a restart would find now: all that is durable, and nothing else. Nothing goes wrong in
    /// it.
    #[must_use]
    pub fn crash(&self) -> Self {
        self.crash_into(FaultPlan::default())
    }

    /// What a restart would find now, in which further things go wrong.
    #[must_use]
    pub fn crash_into(&self, plan: FaultPlan) -> Self {
        Self::of(self.lock().durable.clone(), plan)
    }

    /// How many appends were asked for, refused ones included. The first is number 1 of a plan.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.lock().commits
    }

    /// The appends that were asked for, in order.
    #[must_use]
    pub fn traces(&self) -> Vec<AppendTrace> {
        self.lock().traces.clone()
    }

    /// Whether the append that was asked for last was refused.
    #[must_use]
    pub fn has_refused(&self) -> bool {
        self.lock().traces.last().is_some_and(|trace| trace.refused)
    }

    /// Whether a planned crash has come. From then on no write is stored and none answers.
    #[must_use]
    pub fn crashed(&self) -> bool {
        *self.crashed.borrow()
    }

    /// Waits for a planned crash.
    pub fn when_crashed(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut crashed = self.crashed.clone();
        async move {
            // An error is a store that is gone: then no crash comes any more.
            if crashed.wait_for(|crashed| *crashed).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }

    fn write<T: Send + 'static>(
        &self,
        write: Write,
        carry_out: impl FnOnce(&mut World) -> Result<T, Refused>,
    ) -> Pending<T> {
        let mut inner = self.lock();
        if self.crashed() {
            return Box::pin(std::future::pending());
        }
        let riders = std::mem::take(&mut inner.riders);
        for (session, partial) in &riders {
            inner.volatile.put_partial(*session, partial.clone());
        }
        let answer = carry_out(&mut inner.volatile);
        if answer.is_err() {
            inner.riders = riders;
            return Box::pin(std::future::ready(answer));
        }
        inner.waiting.push_back((write, riders));
        let number = inner.settled + inner.waiting.len() as u64;
        Box::pin(Written {
            inner: Arc::clone(&self.inner),
            number,
            asked: false,
            answer: Some(answer),
        })
    }
}

fn lock(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    // A panic in a test does not make what is stored wrong.
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    /// Makes the writes up to a number durable.
    fn settle(&mut self, number: u64) {
        while self.settled < number
            && let Some((write, riders)) = self.waiting.pop_front()
        {
            self.settled += 1;
            for (session, partial) in riders {
                self.durable.put_partial(session, partial);
            }
            // They were carried out on the same world before: the answers are the same.
            match write {
                Write::Append(append) => drop(self.durable.append(&append)),
                Write::Entity(put) => drop(self.durable.put_entity(put)),
                Write::Claim(session, from) => drop(self.durable.claim(session, from)),
                Write::Delete(session) => drop(self.durable.delete(session)),
                Write::Sweep(before) => {
                    self.durable.sweep(before);
                }
            }
        }
    }

    fn die(&mut self) {
        self.waiting.clear();
        self.crash.send_replace(true);
    }
}

/// Answers at the second look, so that others can come in between.
struct Written<T> {
    inner: Arc<Mutex<Inner>>,
    number: u64,
    asked: bool,
    answer: Option<Result<T, Refused>>,
}

impl<T> Unpin for Written<T> {}

impl<T> Future for Written<T> {
    type Output = Result<T, Refused>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if !self.asked {
            self.asked = true;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let mut inner = lock(&self.inner);
        if *inner.crash.borrow() {
            return Poll::Pending;
        }
        inner.settle(self.number);
        drop(inner);
        match self.answer.take() {
            Some(answer) => Poll::Ready(answer),
            None => Poll::Pending,
        }
    }
}

impl<T> Drop for Written<T> {
    fn drop(&mut self) {
        if self.answer.is_some() {
            let mut inner = lock(&self.inner);
            if !*inner.crash.borrow() {
                inner.settle(self.number);
            }
        }
    }
}

impl Writes for MemoryStore {
    fn commit(&self, append: Append) -> Pending<Position> {
        let fault = {
            let mut inner = self.lock();
            if self.crashed() {
                return Box::pin(std::future::pending());
            }
            inner.commits += 1;
            let number = inner.commits;
            let kinds = append.events.iter();
            let trace = AppendTrace {
                session: append.session,
                kinds: kinds
                    .map(|stamped| stamped.event.kind().to_owned())
                    .collect(),
                births: append.births.len(),
                mail: append.mail.len(),
                refused: false,
            };
            inner.traces.push(trace);
            inner.plan.at(number)
        };
        match fault {
            Some(Fault::CrashBefore) => {
                self.lock().die();
                Box::pin(std::future::pending())
            }
            Some(Fault::CrashAfter) => {
                let mut inner = self.lock();
                let all = inner.settled + inner.waiting.len() as u64;
                inner.settle(all);
                let riders = std::mem::take(&mut inner.riders);
                for (session, partial) in riders {
                    inner.durable.put_partial(session, partial);
                }
                drop(inner.durable.append(&append));
                inner.die();
                Box::pin(std::future::pending())
            }
            Some(Fault::Refuse(refused)) => {
                self.refused_last();
                Box::pin(std::future::ready(Err(refused)))
            }
            None => {
                let boxed = Box::new(append);
                let mut refused = false;
                let copy = boxed.clone();
                let pending = self.write(Write::Append(copy), |world| {
                    let answer = world.append(&boxed);
                    refused = answer.is_err();
                    answer
                });
                if refused {
                    self.refused_last();
                }
                pending
            }
        }
    }

    fn put_entity(&self, put: EntityPut) -> Pending<Entity> {
        self.write(Write::Entity(put.clone()), |world| world.put_entity(put))
    }

    fn claim(&self, session: SessionId, from: Generation) -> Pending<Generation> {
        self.write(Write::Claim(session, from), |world| {
            world.claim(session, from)
        })
    }

    fn checkpoint(&self, session: SessionId, partial: Partial) {
        self.lock().riders.insert(session, partial);
    }

    fn delete(&self, session: SessionId) -> Pending<()> {
        self.write(Write::Delete(session), |world| world.delete(session))
    }

    fn sweep_commands(&self, before: i64) -> Pending<u64> {
        self.write(Write::Sweep(before), |world| Ok(world.sweep(before)))
    }
}

impl MemoryStore {
    fn refused_last(&self) {
        if let Some(trace) = self.lock().traces.last_mut() {
            trace.refused = true;
        }
    }
}

impl Log for MemoryStore {
    fn events(
        &self,
        session: SessionId,
        after: Position,
        limit: usize,
    ) -> Result<Vec<LogItem>, ReadError> {
        Ok(self.lock().volatile.events(session, after, limit))
    }

    fn partial(&self, session: SessionId) -> Result<Option<Partial>, ReadError> {
        Ok(self.lock().volatile.partial(session))
    }
}

impl Rows for MemoryStore {
    fn row(&self, session: SessionId) -> Result<Option<Row>, ReadError> {
        Ok(self.lock().volatile.row(session))
    }

    fn rows(
        &self,
        filter: RowFilter,
        after: Option<SessionId>,
        limit: usize,
    ) -> Result<Vec<Row>, ReadError> {
        Ok(self.lock().volatile.rows(filter, after, limit))
    }

    fn descends(&self, descendant: SessionId, ancestor: SessionId) -> Result<bool, ReadError> {
        Ok(self.lock().volatile.descends(descendant, ancestor))
    }

    fn mail(&self, session: SessionId, limit: usize) -> Result<Vec<Mail>, ReadError> {
        Ok(self.lock().volatile.mail(session, limit))
    }

    fn command(&self, session: SessionId, id: Uuid) -> Result<Option<KnownCommand>, ReadError> {
        Ok(self.lock().volatile.known_command(session, id))
    }

    fn quota(&self, session: SessionId, key: &str) -> Result<i64, ReadError> {
        Ok(self.lock().volatile.used(session, key))
    }

    fn entity(&self, id: Uuid) -> Result<Option<Entity>, ReadError> {
        Ok(self.lock().volatile.entity(id))
    }

    fn entity_named(&self, kind: EntityKind, name: &str) -> Result<Option<Entity>, ReadError> {
        let all = self.lock().volatile.entities(kind);
        Ok(all.into_iter().find(|entity| entity.name == name))
    }

    fn entities(&self, kind: EntityKind) -> Result<Vec<Entity>, ReadError> {
        Ok(self.lock().volatile.entities(kind))
    }
}

impl Search for MemoryStore {
    fn page(&self, session: SessionId, query: &PageQuery) -> Result<Page, ReadError> {
        Ok(self.lock().volatile.page(session, query))
    }

    fn ids_ending(&self, suffix: &str, limit: usize) -> Result<Vec<SessionId>, ReadError> {
        Ok(self.lock().volatile.ids_ending(suffix, limit))
    }
}
