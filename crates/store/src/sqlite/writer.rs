//! The one thread that writes. It puts what waits into one transaction, syncs, and then answers.
//! When the database fails it opens it again and answers by what it finds there.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};

use attache_session::SessionId;
use rusqlite::{Connection, ErrorCode};

use super::checkpoint::Checkpointer;
use super::clock::moment;
use super::gather::Pace;
use super::job::{Job, Reply};
use super::schema;
use super::tables::{Failure, Tables};
#[cfg(feature = "fault")]
use crate::fault::{Place, reached};
use crate::read::Partial;
use crate::refused::Refused;

/// Streamed text that rides with the next group.
pub(super) type Riders = Arc<Mutex<HashMap<SessionId, Partial>>>;

/// Gives a caller its answer, or this one instead.
type Answer = Box<dyn FnOnce(Option<&Refused>)>;

pub(super) struct Writer {
    pub(super) path: PathBuf,
    /// None after a failure, until it opens again.
    tables: Option<Tables>,
    pub(super) riders: Riders,
    checkpointer: Checkpointer,
    checkpoint_pages: u32,
    log_pages: Arc<AtomicU32>,
    #[cfg(test)]
    pub(super) trip: Option<super::tests::Trip>,
}

/// A group that has been written but not committed.
#[derive(Default)]
struct Group {
    answers: Vec<Answer>,
    wrote: bool,
    #[cfg(feature = "fault")]
    kinds: Vec<String>,
}

impl Writer {
    pub(super) fn new(
        path: PathBuf,
        db: Connection,
        riders: Riders,
        checkpoint_pages: u32,
    ) -> Result<Self, super::OpenError> {
        let checkpointer = Checkpointer::start(path.clone())
            .map_err(|error| super::OpenError::Failed(error.to_string()))?;
        let mut writer = Self {
            path,
            tables: None,
            riders,
            checkpointer,
            checkpoint_pages,
            log_pages: Arc::default(),
            #[cfg(test)]
            trip: None,
        };
        writer.tables = Some(writer.tables_of(db)?);
        Ok(writer)
    }

    fn tables_of(&self, mut db: Connection) -> Result<Tables, rusqlite::Error> {
        let pages = Arc::clone(&self.log_pages);
        db.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, length| {
            pages.store(u32::try_from(length).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))?;
        Tables::new(db)
    }

    /// Writes until nobody can ask any more.
    pub(super) fn run(mut self, jobs: &Receiver<Job>) {
        let mut pace = Pace::default();
        loop {
            let first = if self.has_removals() {
                match jobs.try_recv() {
                    Ok(job) => Some(job),
                    Err(TryRecvError::Empty) => None,
                    Err(TryRecvError::Disconnected) => return,
                }
            } else {
                match jobs.recv() {
                    Ok(job) => Some(job),
                    Err(_) => return,
                }
            };
            let group = first.map_or_else(Vec::new, |first| pace.gather(first, jobs));
            pace.held = group.len();
            let start = moment();
            self.write(group);
            pace.took = start.elapsed();
            if let Some(tables) = &self.tables {
                let pages = self.log_pages.load(Ordering::Relaxed);
                self.checkpointer
                    .between(&tables.db, pages, self.checkpoint_pages);
            }
        }
    }

    fn has_removals(&self) -> bool {
        self.tables
            .as_ref()
            .is_some_and(|tables| !tables.removals.is_empty())
    }

    /// Writes a group and answers.
    fn write(&mut self, jobs: Vec<Job>) {
        let mut group = Group::default();
        let Some(mut tables) = self.tables.take().or_else(|| self.open().ok()) else {
            let refused = Refused::Failed("the database cannot be opened".to_owned());
            for job in jobs {
                refuse(job, &refused);
            }
            return;
        };
        let (last_pos, mark) = (tables.last_pos, tables.mark);
        let mut jobs = jobs.into_iter();
        let result = self.carry_out(&mut tables, &mut jobs, &mut group, last_pos);
        let written = (tables.last_pos, tables.mark);
        match result {
            Ok(()) => {
                self.tables = Some(tables);
                #[cfg(feature = "fault")]
                group
                    .kinds
                    .iter()
                    .for_each(|kind| reached(kind, Place::After));
                for answer in group.answers {
                    answer(None);
                }
            }
            Err(error) => {
                let verdict = self.recover(tables, &error, (last_pos, mark), written);
                for answer in group.answers {
                    answer(verdict.as_ref());
                }
                // Those that were not reached have certainly not been written.
                let rest = verdict.unwrap_or_else(|| Refused::Failed(error.to_string()));
                for job in jobs {
                    refuse(job, &rest);
                }
            }
        }
    }

    fn carry_out(
        &mut self,
        tables: &mut Tables,
        jobs: &mut dyn Iterator<Item = Job>,
        group: &mut Group,
        last_pos: i64,
    ) -> Result<(), rusqlite::Error> {
        #[cfg(test)]
        let trip = self.trip.take();
        tables.db.execute_batch("BEGIN IMMEDIATE")?;
        let riders = std::mem::take(&mut *lock(&self.riders));
        for (session, partial) in &riders {
            match tables.put_partial(*session, partial) {
                Ok(()) | Err(Failure::Refused(_)) => {}
                Err(Failure::Broken(error)) => return Err(error),
            }
        }
        for job in jobs {
            self.carry_out_one(tables, job, group)?;
        }
        if !tables.removals.is_empty() {
            tables.remove_some()?;
        }
        // Something in the tables must tell whether this group is stored.
        if group.wrote && tables.last_pos == last_pos {
            tables.mark += 1;
            let mark = tables.mark;
            tables.db.execute("UPDATE mark SET groups = ?1", [mark])?;
        }
        #[cfg(feature = "fault")]
        group
            .kinds
            .iter()
            .for_each(|kind| reached(kind, Place::Before));
        #[cfg(test)]
        if trip == Some(super::tests::Trip::Before) {
            return Err(super::tests::broken());
        }
        tables.db.execute_batch("COMMIT")?;
        #[cfg(test)]
        if trip == Some(super::tests::Trip::After) {
            return Err(super::tests::broken());
        }
        Ok(())
    }

    fn carry_out_one(
        &mut self,
        tables: &mut Tables,
        job: Job,
        group: &mut Group,
    ) -> Result<(), rusqlite::Error> {
        match job {
            Job::Append(ready, reply) => {
                let result = tables.append(&ready);
                #[cfg(feature = "fault")]
                if result.is_ok() {
                    group.kinds.extend(crate::fault::kinds(&ready.append));
                }
                group.note(result, reply)
            }
            Job::Entity(put, reply) => group.note(tables.put_entity(put), reply),
            Job::Claim(session, from, reply) => group.note(tables.claim(session, from), reply),
            Job::Delete(session, reply) => group.note(tables.delete(session), reply),
            Job::Sweep(before, reply) => group.note(tables.sweep(before), reply),
            #[cfg(test)]
            Job::Hook(hook, reply) => {
                hook(self, &tables.db);
                group.note(Ok(()), reply)
            }
        }
    }

    /// Finds out after a failure what is stored; none when the group is.
    fn recover(
        &mut self,
        mut tables: Tables,
        error: &rusqlite::Error,
        before: (i64, i64),
        written: (i64, i64),
    ) -> Option<Refused> {
        // Neither leaves a doubt about what is stored, and both pass.
        let passing = match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Some(Refused::StorageFull),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Some(Refused::Locked),
            _ => None,
        };
        if let Some(refused) = passing {
            let undone = tables.db.is_autocommit() || tables.db.execute_batch("ROLLBACK").is_ok();
            if undone && tables.look().is_ok() {
                self.tables = Some(tables);
                return Some(refused);
            }
        }
        drop(tables);
        match self.open() {
            Ok(tables) => {
                let found = (tables.last_pos, tables.mark);
                self.tables = Some(tables);
                if written != before && found == written {
                    return None;
                }
            }
            Err(again) => {
                return Some(Refused::Failed(format!("{error}; opening again: {again}")));
            }
        }
        if schema::is_damage(error) {
            return Some(Refused::Corrupt(error.to_string()));
        }
        Some(Refused::Failed(error.to_string()))
    }

    fn open(&self) -> Result<Tables, super::OpenError> {
        let db = schema::writer(&self.path)?;
        Ok(self.tables_of(db)?)
    }
}

impl Group {
    fn note<T: 'static>(
        &mut self,
        result: Result<T, Failure>,
        reply: Reply<T>,
    ) -> Result<(), rusqlite::Error> {
        let (result, broken) = match result {
            Ok(value) => {
                self.wrote = true;
                (Ok(value), None)
            }
            Err(Failure::Refused(refused)) => (Err(refused), None),
            // The answer is given by what is found afterwards.
            Err(Failure::Broken(error)) => (Err(Refused::Failed(error.to_string())), Some(error)),
        };
        self.answers.push(Box::new(move |instead| {
            let answer = match instead {
                Some(refused) => Err(refused.clone()),
                None => result,
            };
            // Who has stopped waiting has no need of the answer.
            drop(reply.send(answer));
        }));
        broken.map_or(Ok(()), Err)
    }
}

fn refuse(job: Job, refused: &Refused) {
    match job {
        Job::Append(_, reply) => drop(reply.send(Err(refused.clone()))),
        Job::Entity(_, reply) => drop(reply.send(Err(refused.clone()))),
        Job::Claim(_, _, reply) => drop(reply.send(Err(refused.clone()))),
        Job::Delete(_, reply) => drop(reply.send(Err(refused.clone()))),
        Job::Sweep(_, reply) => drop(reply.send(Err(refused.clone()))),
        #[cfg(test)]
        Job::Hook(_, reply) => drop(reply.send(Err(refused.clone()))),
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Nothing is left half done under these locks.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
