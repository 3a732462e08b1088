//! The tables, how they came about, and how a connection to them is opened.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::OpenError;

/// Each step takes a store one version further; a store's version is how many steps it has taken.
const STEPS: &[&str] = &["
CREATE TABLE session (
    sid INTEGER PRIMARY KEY,
    uuid BLOB UNIQUE,
    generation INTEGER NOT NULL,
    head INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    root BLOB NOT NULL,
    spawner BLOB,
    epoch BLOB,
    min_reader INTEGER NOT NULL,
    counts BLOB NOT NULL,
    fixed TEXT NOT NULL,
    summary TEXT NOT NULL
);
CREATE INDEX session_tree ON session (root);
CREATE INDEX session_roots ON session (sid) WHERE spawner IS NULL;
CREATE TABLE event (
    pos INTEGER PRIMARY KEY,
    sid INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    nth INTEGER NOT NULL,
    text,
    body NOT NULL
);
CREATE UNIQUE INDEX event_place ON event (sid, seq, kind);
CREATE TABLE blob (
    digest BLOB PRIMARY KEY,
    refs INTEGER NOT NULL,
    data TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE link (
    parent INTEGER NOT NULL,
    ord INTEGER NOT NULL,
    child INTEGER NOT NULL,
    PRIMARY KEY (parent, ord)
) WITHOUT ROWID;
CREATE UNIQUE INDEX link_up ON link (child, parent);
CREATE TABLE mail (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    sid INTEGER NOT NULL,
    class INTEGER NOT NULL,
    sender BLOB NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX mail_box ON mail (sid, class);
CREATE TABLE quota (
    sid INTEGER NOT NULL,
    key TEXT NOT NULL,
    used INTEGER NOT NULL,
    PRIMARY KEY (sid, key)
) WITHOUT ROWID;
CREATE TABLE command (
    sid INTEGER NOT NULL,
    id BLOB NOT NULL,
    at INTEGER NOT NULL,
    digest BLOB NOT NULL,
    position INTEGER NOT NULL,
    answer TEXT NOT NULL,
    PRIMARY KEY (sid, id)
) WITHOUT ROWID;
CREATE TABLE partial (
    sid INTEGER PRIMARY KEY,
    body TEXT NOT NULL
);
CREATE TABLE entity (
    id BLOB PRIMARY KEY,
    kind INTEGER NOT NULL,
    name TEXT NOT NULL,
    tag INTEGER NOT NULL,
    modified_at INTEGER NOT NULL,
    change BLOB NOT NULL,
    data TEXT NOT NULL,
    UNIQUE (kind, name)
) WITHOUT ROWID;
CREATE TABLE mark (groups INTEGER NOT NULL);
INSERT INTO mark VALUES (0);
"];

/// Prepared statements that a connection keeps.
const STATEMENTS: usize = 64;

/// Memory for pages that a connection keeps, in KiB as SQLite counts it (negative).
const WRITER_CACHE_KIB: i64 = -16_384;
const READER_CACHE_KIB: i64 = -4_096;

/// How long a connection waits for one that holds the database up. The lock file keeps other hosts out, so
/// that it is a person's shell or a copy for a backup, and those are short. All sessions wait with the
/// writer, so that more than a few seconds would look like a hang; then the append is refused as one that
/// may be repeated.
pub(super) const HELD_UP: Duration = Duration::from_secs(5);

/// Opens the store for its one writer, and makes or raises it where needed.
pub(super) fn writer(path: &Path) -> Result<Connection, OpenError> {
    // The log and the index of the log get the mode of the file itself: nobody else reads them.
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| OpenError::Failed(error.to_string()))?;
    let db = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    db.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    db.pragma_update(None, "synchronous", "FULL")?;
    db.pragma_update(None, "wal_autocheckpoint", 0)?;
    db.pragma_update(None, "journal_size_limit", -1)?;
    db.pragma_update(None, "cache_size", WRITER_CACHE_KIB)?;
    raise(&db)?;
    Ok(db)
}

/// Opens the store for reading.
pub(super) fn reader(path: &Path) -> Result<Connection, rusqlite::Error> {
    let db = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    db.pragma_update(None, "query_only", true)?;
    db.pragma_update(None, "cache_size", READER_CACHE_KIB)?;
    Ok(db)
}

/// Opens the store for copying its log into it.
pub(super) fn copier(path: &Path) -> Result<Connection, rusqlite::Error> {
    let db = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    db.pragma_update(None, "synchronous", "FULL")?;
    db.pragma_update(None, "wal_autocheckpoint", 0)?;
    Ok(db)
}

fn open(path: &Path, flags: OpenFlags) -> Result<Connection, rusqlite::Error> {
    let db = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    db.set_prepared_statement_cache_capacity(STATEMENTS);
    // Otherwise each new value of a parameter makes the statement be prepared again, to look whether
    // another plan would suit it; our statements have one plan.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    db.busy_timeout(HELD_UP)?;
    Ok(db)
}

fn raise(db: &Connection) -> Result<(), OpenError> {
    let found: u32 = db.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let known = u32::try_from(STEPS.len()).unwrap_or(u32::MAX);
    let Some(missing) = STEPS.get(found as usize..) else {
        return Err(OpenError::TooNew { found, known });
    };
    if missing.is_empty() {
        return Ok(());
    }
    let foreign: i64 = db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if found == 0 && foreign > 0 {
        let text = "the file is a database of something else".to_owned();
        return Err(OpenError::Corrupt(text));
    }
    let steps = missing.concat();
    db.execute_batch(&format!(
        "BEGIN IMMEDIATE; {steps} PRAGMA user_version = {known}; COMMIT;"
    ))?;
    Ok(())
}

/// Whether an error says that what is stored is damaged.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt)
    )
}

impl From<rusqlite::Error> for OpenError {
    fn from(error: rusqlite::Error) -> Self {
        if is_damage(&error) {
            Self::Corrupt(error.to_string())
        } else {
            Self::Failed(error.to_string())
        }
    }
}
