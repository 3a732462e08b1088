//! The store in a file passes the suite, and keeps its promises when the file, the disk or another
//! process does not.

use std::fs;

use attache_session::{Event, Json, Position};
use rusqlite::Connection;
use tempfile::TempDir;

use super::writer::Writer;
use super::*;
use crate::conformance::{Author, Subject, at, said, session, suite, wait};
use crate::read::{Kind, Log, PageQuery, ReadError, Rows, Search, Store};

/// Something that the writer does between the writes of a group.
pub(super) type Hook = Box<dyn FnOnce(&mut Writer, &Connection) + Send>;

/// When the next commit fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Trip {
    Before,
    After,
}

/// What a disk says that lost a write.
pub(super) fn broken() -> rusqlite::Error {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR_FSYNC);
    rusqlite::Error::SqliteFailure(code, None)
}

struct Held {
    folder: TempDir,
    store: Option<SqliteStore>,
    options: Options,
}

impl Held {
    fn new() -> Self {
        Self::with(Options::default())
    }

    fn with(options: Options) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut held = Self {
            folder,
            store: None,
            options,
        };
        held.open();
        held
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("attache.db")
    }

    fn open(&mut self) {
        self.store = Some(SqliteStore::open(&self.path(), self.options).unwrap());
    }

    fn store(&self) -> &SqliteStore {
        self.store.as_ref().unwrap()
    }

    /// Writes to the tables behind the store's back, while it is closed.
    fn behind(&mut self, sql: &str) {
        self.store = None;
        Connection::open(self.path())
            .unwrap()
            .execute_batch(sql)
            .unwrap();
        self.open();
    }
}

impl Subject for Held {
    fn store(&self) -> &dyn Store {
        self.store.as_ref().unwrap()
    }

    fn restart(&mut self) {
        self.store = None;
        self.open();
    }
}

fn hook(store: &SqliteStore, hook: impl FnOnce(&mut Writer, &Connection) + Send + 'static) {
    wait(store.ask(|reply| Job::Hook(Box::new(hook), reply))).unwrap();
}

#[test]
fn sqlite_passes_the_suite() {
    suite(|_| Box::new(Held::new()));
}
