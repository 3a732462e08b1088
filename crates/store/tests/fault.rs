//! A process that kills itself at a named point leaves what the point says: nothing of the group
//! before its commit, all of it after.

use std::process::Command;

use attache_session::{Event, Position};
use attache_store::conformance::{Author, said, session};
use attache_store::{Log, SqliteStore, sqlite};

const FOLDER: &str = "ATTACHE_FAULT_FOLDER";

fn open(folder: &std::path::Path) -> SqliteStore {
    SqliteStore::open(&folder.join("attache.db"), sqlite::Options::default()).expect("a store")
}

#[test]
#[ignore = "the process that dies; the other test starts it"]
fn writer() {
    let folder = std::env::var_os(FOLDER).unwrap();
    let store = open(folder.as_ref());
    let mut author = Author::root(&store, 1);
    for number in 0..5 {
        author.write(&store, vec![said(&number.to_string())]);
    }
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the process that dies is this test itself"
)]
fn a_named_point_cuts_before_or_after_the_commit() {
    for (point, born, said) in [
        ("created:before:1", false, 0),
        ("created:after:1", true, 0),
        ("said:before:1", true, 0),
        ("said:before:3", true, 2),
        ("said:after:3", true, 3),
        ("said:after:5", true, 5),
        ("said:before:6", true, 5),
        ("turn-ended:before:1", true, 5),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let dies = !matches!(point, "said:before:6" | "turn-ended:before:1");
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["writer", "--exact", "--ignored"])
            .env("ATTACHE_FAULT", point)
            .env(FOLDER, folder.path())
            .output()
            .unwrap();
        assert_eq!(output.status.success(), !dies, "{point}: {output:?}");
        let log = open(folder.path())
            .events(session(1), Position(0), 99)
            .unwrap();
        let texts = log
            .iter()
            .filter(|item| matches!(item.event.event, Event::Said { .. }));
        assert_eq!((!log.is_empty(), texts.count()), (born, said), "{point}");
    }
}
