//! Moves what the log of the database holds into the database itself, beside the writer: a second
//! connection does the long part without stopping anybody, and the writer the small rest between
//! two groups. The file of the log keeps its size and is written again from its start.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use rusqlite::Connection;

use super::schema;

/// The thread with the second connection.
#[derive(Debug)]
pub(super) struct Checkpointer {
    ask: Option<SyncSender<()>>,
    busy: bool,
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    pub(super) fn start(path: PathBuf) -> std::io::Result<Self> {
        // One is asked for at a time.
        let (ask, asked) = sync_channel(1);
        let done = Arc::new(AtomicBool::new(false));
        let finished = Arc::clone(&done);
        let thread = std::thread::Builder::new()
            .name("store-checkpoint".to_owned())
            .spawn(move || {
                let mut db: Option<Connection> = None;
                while asked.recv().is_ok() {
                    if db.is_none() {
                        db = schema::copier(&path).ok();
                    }
                    // A copy that fails is made the next time, or by the writer.
                    if db.as_ref().is_none_or(|db| copy(db).is_err()) {
                        db = None;
                    }
                    finished.store(true, Ordering::Release);
                }
            })?;
        Ok(Self {
            ask: Some(ask),
            busy: false,
            done,
            thread: Some(thread),
        })
    }

    /// Called between two groups, with the length of the log.
    pub(super) fn between(&mut self, writer: &Connection, pages: u32, limit: u32) {
        if self.busy {
            if self.done.swap(false, Ordering::Acquire) {
                self.busy = false;
                // What it could not copy is copied the next time.
                drop(copy(writer));
            }
        } else if pages >= limit
            && let Some(ask) = &self.ask
        {
            self.busy = ask.try_send(()).is_ok();
        }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.ask = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn copy(db: &Connection) -> Result<(), rusqlite::Error> {
    db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}
