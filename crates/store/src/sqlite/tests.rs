//! The store in a file passes the suite, and keeps its promises when the file, the disk or another
//! process does not.

mod held_up;
mod plans;

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

/// Copies the database, with its log cut to a length, into a folder of its own.
fn cut_copy(from: &Path, length: Option<u64>) -> Held {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("attache.db");
    fs::copy(from, &to).unwrap();
    let log = log_of(&to);
    fs::copy(log_of(from), &log).unwrap();
    if let Some(length) = length {
        let file = fs::OpenOptions::new().write(true).open(&log).unwrap();
        file.set_len(length).unwrap();
    }
    let mut held = Held {
        folder,
        store: None,
        options: Options::default(),
    };
    held.open();
    held
}

fn log_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    PathBuf::from(name)
}

fn texts(store: &SqliteStore, number: u128) -> Vec<String> {
    let log = store
        .events(session(number), Position(0), usize::MAX)
        .unwrap();
    let texts = log.iter().filter_map(|item| match &item.event.event {
        Event::Said { step, .. } => Some(step.text.to_string()),
        _ => None,
    });
    texts.collect()
}

#[test]
fn g56_a_log_that_is_cut_anywhere_opens_with_what_its_syncs_covered() {
    let held = Held::new();
    let mut author = Author::root(held.store(), 1);
    let log = log_of(&held.path());
    // Bytes of the log when each text was acknowledged.
    let mut acknowledged = Vec::new();
    for number in 0..12 {
        author.write(held.store(), vec![said(&format!("text {number}"))]);
        acknowledged.push(fs::metadata(&log).unwrap().len());
    }
    let all = texts(held.store(), 1);
    let end = fs::metadata(&log).unwrap().len();
    let mut lengths: Vec<u64> = (0..24).map(|part| end * part / 24 + part % 3).collect();
    lengths.extend(acknowledged.iter().flat_map(|length| [length - 1, *length]));
    for length in lengths {
        let mut copy = cut_copy(&held.path(), Some(length.min(end)));
        let found = texts(copy.store(), 1);
        let covered = acknowledged.iter().filter(|end| **end <= length).count();
        assert!(found.len() >= covered, "{length}: {found:?}");
        assert_eq!(found, all[..found.len()], "{length}");
        if copy.store().row(session(1)).unwrap().is_none() {
            continue;
        }
        // What is appended next is not glued to the rest of what was cut.
        let mut next = author.clone();
        next.state.position = copy.store().row(session(1)).unwrap().unwrap().head;
        next.write(copy.store(), vec![said("after the cut")]);
        copy.restart();
        let again = texts(copy.store(), 1);
        assert_eq!(again[..found.len()], found[..]);
        assert_eq!(again[found.len()..], ["after the cut".to_owned()]);
    }
}

#[test]
fn g56_what_is_acknowledged_survives_while_the_log_is_copied_and_written_anew() {
    let held = Held::with(Options {
        checkpoint_pages: 12,
        ..Options::default()
    });
    let mut author = Author::root(held.store(), 1);
    let first_size = fs::metadata(held.path()).unwrap().len();
    let mut number = 0;
    // The copying thread comes when it comes.
    while number < 60 || fs::metadata(held.path()).unwrap().len() == first_size {
        author.write(held.store(), vec![said(&"x".repeat(3_000))]);
        number += 1;
        assert!(number < 20_000, "the log was never copied");
        if number <= 60 && number % 6 == 0 {
            let copy = cut_copy(&held.path(), None);
            assert_eq!(texts(copy.store(), 1).len(), number);
        }
    }
}

#[test]
fn g60_a_log_of_an_older_or_a_newer_version_resumes() {
    let mut held = Held::new();
    let mut author = Author::root(held.store(), 1);
    let row = |seq: u64, body: &str| {
        let at = author.state.last_at.0 + seq as i64;
        format!("INSERT INTO event VALUES (NULL, 1, {seq}, {at}, 2, {seq}, 'text', '{body}');")
    };
    let bodies = [
        r#"{"kind":"said","v":1,"min_reader":1,"f":{"step":{}}}"#,
        r#"{"kind":"of-tomorrow","v":1,"min_reader":1,"f":{"x":1}}"#,
        r#"{"kind":"said","v":1,"min_reader":1,"extra":true,"f":{"turn":1,"more":{},"step":{"model":"m"}}}"#,
        r#"{"kind":"said","v":1,"min_reader":1,"f":{"turn":-1,"step":{"usage":{"input":-5}}}}"#,
    ];
    let mut sql: String = (3..)
        .zip(bodies)
        .map(|(seq, body)| row(seq, body))
        .collect();
    let last = author.state.last_at.0 + 6;
    sql.push_str(&format!(
        "UPDATE session SET head = 6, last_at = {last}, \
         summary = replace(summary, '\"usage\":{{}}', '\"usage\":{{\"input\":-1}},\"queued\":-3');"
    ));
    held.behind(&sql);
    let log = held.store().events(session(1), Position(2), 9).unwrap();
    let kinds: Vec<_> = log
        .iter()
        .map(|item| item.event.event.kind().to_owned())
        .collect();
    assert_eq!(kinds, ["said", "of-tomorrow", "said", "said"]);
    assert_eq!(
        log[1].event.event,
        Event::Unknown {
            kind: "of-tomorrow".into(),
            body: Json::from_checked(bodies[1])
        }
    );
    let row = held.store().row(session(1)).unwrap().unwrap();
    assert_eq!((row.summary.queued, row.summary.usage.input), (0, Some(0)));
    for item in &log {
        author.state.apply(&item.event);
    }
    author.write(held.store(), vec![said("resumed")]);
    held.restart();
    assert_eq!(texts(held.store(), 1), ["text", "text", "text", "resumed"]);
}

#[test]
fn a_session_of_a_newer_version_is_for_reading_only_and_says_which() {
    let mut held = Held::new();
    let mut author = Author::root(held.store(), 1);
    author.write(held.store(), vec![said("a")]);
    held.behind(
        "UPDATE event SET body = replace(body, '\"min_reader\":1', '\"min_reader\":9') WHERE seq = 3; \
         UPDATE session SET min_reader = 9;",
    );
    let store = held.store();
    let log = store.events(session(1), Position(0), 9);
    assert_eq!(log, Err(ReadError::TooNew { needs: 9 }));
    assert_eq!(store.events(session(1), Position(0), 2).unwrap().len(), 2);
    assert!(store.row(session(1)).unwrap().is_some());
    let query = PageQuery {
        after: None,
        up_to: None,
        kinds: vec![],
        search: None,
        limit: 5,
        newest: false,
    };
    let page = store.page(session(1), &query).unwrap();
    assert!(matches!(page.items[0].event.event, Event::Unknown { .. }));
    let append = author.append(vec![said("b")]);
    let Err(Refused::Failed(text)) = wait(store.commit(append)) else {
        panic!("it was written to");
    };
    assert!(text.contains("version 9"), "{text}");
}

#[test]
fn a_store_that_is_newer_damaged_or_of_something_else_is_refused() {
    let mut held = Held::new();
    held.store = None;
    let sql = |sql: &str| {
        let db = Connection::open(held.path()).unwrap();
        db.execute_batch(sql).unwrap();
    };
    sql("PRAGMA user_version = 99");
    let open = || SqliteStore::open(&held.path(), Options::default()).unwrap_err();
    assert_eq!(
        open(),
        OpenError::TooNew {
            found: 99,
            known: 1
        }
    );
    sql("PRAGMA user_version = 0");
    assert!(matches!(open(), OpenError::Corrupt(_)), "{}", open());
    fs::write(
        held.path(),
        "not a database, but long enough to look like one".repeat(99),
    )
    .unwrap();
    assert!(matches!(open(), OpenError::Corrupt(_)), "{}", open());
    let nowhere = held.folder.path().join("no/such/folder/attache.db");
    let error = SqliteStore::open(&nowhere, Options::default()).unwrap_err();
    assert!(matches!(error, OpenError::Failed(_)), "{error}");
}

#[test]
fn after_an_error_of_the_disk_each_append_is_answered_by_what_is_stored() {
    let mut held = Held::new();
    let mut author = Author::root(held.store(), 1);
    let store = held.store();
    let trip = |trip| hook(store, move |writer, _| writer.trip = Some(trip));
    trip(Trip::Before);
    let append = author.append(vec![said("lost")]);
    let answer = author.commit(store, append);
    assert!(matches!(answer, Err(Refused::Failed(_))), "{answer:?}");
    author.write(store, vec![said("a")]);
    trip(Trip::After);
    author.write(store, vec![said("b")]);
    // A group without events leaves a mark.
    trip(Trip::Before);
    let answer = wait(store.claim(session(1), Generation(1)));
    assert!(matches!(answer, Err(Refused::Failed(_))), "{answer:?}");
    trip(Trip::After);
    let answer = wait(store.claim(session(1), Generation(1)));
    assert_eq!(answer, Ok(Generation(2)));
    author.generation = Generation(2);
    author.write(store, vec![said("c")]);
    held.restart();
    assert_eq!(texts(held.store(), 1), ["a", "b", "c"]);
}

#[test]
fn a_deleted_session_leaves_no_rows_behind_even_over_a_restart() {
    let mut held = Held::new();
    let mut author = Author::root(held.store(), 1);
    let mut other = Author::root(held.store(), 2);
    let big = "y".repeat(100_000);
    other.write(held.store(), vec![said(&big)]);
    for _ in 0..5 {
        let mut events: Vec<_> = (0..1_000).map(|number| said(&number.to_string())).collect();
        events.push(said(&big));
        author.write(held.store(), events);
    }
    let count = |store: &SqliteStore, sql: &'static str| {
        let (to, from) = std::sync::mpsc::sync_channel(1);
        hook(store, move |_, db| {
            to.send(db.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap())
                .unwrap();
        });
        from.recv().unwrap()
    };
    assert_eq!(count(held.store(), "SELECT count(*) FROM blob"), 1);
    assert_eq!(count(held.store(), "SELECT refs FROM blob"), 6);
    wait(held.store().delete(session(1))).unwrap();
    held.restart();
    let mut groups = 0;
    while count(held.store(), "SELECT count(*) FROM session") > 1 {
        groups += 1;
        assert!(groups < 20);
    }
    assert_eq!(count(held.store(), "SELECT count(*) FROM event"), 3);
    assert_eq!(count(held.store(), "SELECT refs FROM blob"), 1);
    assert_eq!(texts(held.store(), 2), [big]);
}

#[test]
fn a_closed_store_gives_its_lock_back_after_all_is_written() {
    let mut held = Held::new();
    let mut author = Author::root(held.store(), 1);
    let mut pending = Vec::new();
    for number in 0..50 {
        let append = author.append(vec![said(&number.to_string())]);
        pending.push(held.store().commit(append));
    }
    held.restart();
    assert_eq!(texts(held.store(), 1).len(), 50);
    for answer in pending {
        wait(answer).unwrap();
    }
}

#[test]
fn a_session_is_small_on_disk_and_a_write_is_small_in_the_queue() {
    let mut held = Held::new();
    for number in 0..200 {
        let mut author = Author::root(held.store(), number);
        let mut events = Vec::new();
        for _ in 0..18 {
            events.push(said("Some twenty words, as a session of this kind has them in most of its answers, and no more."));
        }
        author.write(held.store(), events);
    }
    held.store = None;
    let bytes = fs::metadata(held.path()).unwrap().len();
    assert!(bytes / 200 <= 10_000, "{bytes}");
    assert!(size_of::<Job>() <= 192, "{}", size_of::<Job>());
    assert!(
        size_of::<crate::Refused>() <= 96,
        "{}",
        size_of::<crate::Refused>()
    );
}

#[test]
fn readers_see_whole_appends_while_the_writer_writes() {
    let held = Held::new();
    let store = held.store();
    let mut author = Author::root(store, 1);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let query = PageQuery {
                after: Some(at(0)),
                up_to: None,
                kinds: vec![Kind::Assistant],
                search: None,
                limit: 5,
                newest: true,
            };
            loop {
                let row = store.row(session(1)).unwrap().unwrap();
                let page = store.page(session(1), &query).unwrap();
                assert_eq!(row.head.0 % 2, 0);
                assert_eq!(page.total_matching % 2, 0);
                if row.head.0 >= 400 {
                    break;
                }
            }
        });
        while !reader.is_finished() {
            author.write(store, vec![said("a"), said("b")]);
        }
    });
}

#[test]
fn the_total_of_a_page_far_from_the_end_counts_what_is_before_it() {
    let held = Held::new();
    let mut author = Author::root(held.store(), 1);
    for _ in 0..3 {
        let mut events = vec![Event::Noted {
            code: "c".into(),
            text: "once".into(),
        }];
        events.extend((0..999).map(|number| said(&number.to_string())));
        author.write(held.store(), events);
    }
    // Positions 3, 1003 and 2003 are notes; all but them and the birth are answers.
    for (kind, up_to, total) in [
        (Kind::Assistant, 1_500, 1_496),
        (Kind::Assistant, 3_000, 2_995),
        (Kind::Diagnostic, 1_500, 2),
        (Kind::Diagnostic, 2, 0),
        (Kind::User, 1_500, 0),
    ] {
        for newest in [false, true] {
            let query = PageQuery {
                after: None,
                up_to: Some(Position(up_to)),
                kinds: vec![kind],
                search: None,
                limit: 1,
                newest,
            };
            let page = held.store().page(session(1), &query).unwrap();
            assert_eq!(page.total_matching, total, "{query:?}");
        }
    }
}
