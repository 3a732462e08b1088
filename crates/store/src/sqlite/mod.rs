//! A store in one SQLite file. One thread writes, in groups; readers have connections of their own
//! and hold no transaction from one page to the next. One process owns the file.

mod checkpoint;
mod clock;
mod columns;
mod gather;
mod heads;
mod job;
mod lock;
mod lookup;
mod page;
mod read;
mod schema;
mod tables;
#[cfg(test)]
mod tests;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use attache_session::{Generation, Position, SessionId};
use tokio::sync::oneshot;

use crate::append::{Append, Pending, Writes};
use crate::entity::{Entity, EntityPut};
use crate::read::Partial;
use crate::refused::Refused;
use job::{Job, Ready, Reply};
use lock::Lock;
use read::Readers;
use writer::{Riders, Writer};

/// Why a store could not be opened.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process holds it.
    #[error("the state folder {} is in use by {}", .folder.display(), holder_text(*.holder))]
    Locked {
        /// The folder.
        folder: PathBuf,
        /// The process, as far as it is known.
        holder: Option<u32>,
    },
    /// A newer program has written it.
    #[error("the store has version {found}, and this program knows versions up to {known}")]
    TooNew {
        /// The version of the store.
        found: u32,
        /// The newest that this program knows.
        known: u32,
    },
    /// It is damaged, or no store.
    #[error("the store is damaged: {0}")]
    Corrupt(String),
    /// It cannot be opened.
    #[error("the store cannot be opened: {0}")]
    Failed(String),
}

fn holder_text(holder: Option<u32>) -> String {
    match holder {
        Some(process) => format!("process {process}"),
        None => "another process".to_owned(),
    }
}

/// How a store works. The defaults are for every use but tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Writes that may wait for the writer. When there are more, who asks waits, its thread
    /// included: the writer needs nothing of it.
    pub waiting: usize,
    /// Length of the database's log, in pages, from which it is copied into the database.
    pub checkpoint_pages: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            // Every session has one append in flight: more than are ever at work.
            waiting: 8_192,
            // 32 MiB of 4 KiB pages.
            checkpoint_pages: 8_000,
        }
    }
}

/// A store in one SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    readers: Readers,
    riders: Riders,
    jobs: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
    /// Last, so that nobody else comes in before the writer has ended.
    _lock: Lock,
}

impl SqliteStore {
    /// Opens a store, or makes one, and holds it until it is dropped.
    ///
    /// # Errors
    ///
    /// [`OpenError`] when it cannot be opened, or is not for this program.
    pub fn open(path: &Path, options: Options) -> Result<Self, OpenError> {
        let lock = Lock::take(path)?;
        let db = schema::writer(path)?;
        let riders = Riders::default();
        let writer = Writer::new(
            path.to_owned(),
            db,
            Riders::clone(&riders),
            options.checkpoint_pages,
        )?;
        let (jobs, asked) = sync_channel(options.waiting);
        let thread = std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || writer.run(&asked))
            .map_err(|error| OpenError::Failed(error.to_string()))?;
        Ok(Self {
            readers: Readers::new(path.to_owned()),
            riders,
            jobs: Some(jobs),
            thread: Some(thread),
            _lock: lock,
        })
    }

    fn ask<T: Send + 'static>(&self, job: impl FnOnce(Reply<T>) -> Job) -> Pending<T> {
        let (reply, answer) = oneshot::channel();
        // A failed send drops the reply, which answers below.
        if let Some(jobs) = &self.jobs {
            drop(jobs.send(job(reply)));
        }
        Box::pin(async move {
            answer
                .await
                .unwrap_or_else(|_| Err(Refused::Failed("the store is closed".to_owned())))
        })
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.jobs = None;
        // The writer closes last, and leaves one whole file.
        self.readers.close();
        if let Some(thread) = self.thread.take() {
            // A writer that panicked has answered nobody; there is nothing to add.
            drop(thread.join());
        }
    }
}

impl Writes for SqliteStore {
    fn commit(&self, append: Append) -> Pending<Position> {
        match Ready::of(append) {
            Ok(ready) => self.ask(|reply| Job::Append(Box::new(ready), reply)),
            Err(refused) => Box::pin(std::future::ready(Err(refused))),
        }
    }

    fn put_entity(&self, put: EntityPut) -> Pending<Entity> {
        self.ask(|reply| Job::Entity(put, reply))
    }

    fn claim(&self, session: SessionId, from: Generation) -> Pending<Generation> {
        self.ask(|reply| Job::Claim(session, from, reply))
    }

    fn checkpoint(&self, session: SessionId, partial: Partial) {
        writer::lock(&self.riders).insert(session, partial);
    }

    fn delete(&self, session: SessionId) -> Pending<()> {
        self.ask(|reply| Job::Delete(session, reply))
    }

    fn sweep_commands(&self, before: i64) -> Pending<u64> {
        self.ask(|reply| Job::Sweep(before, reply))
    }
}
