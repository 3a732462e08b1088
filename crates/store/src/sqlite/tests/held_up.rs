//! The store in a file beside other processes and other connections, and on a full disk: what is refused,
//! what waits, and what goes on afterwards.

use rusqlite::Connection;

use super::*;

#[test]
fn g57_a_second_process_is_refused_and_told_why() {
    let held = Held::new();
    let error = SqliteStore::open(&held.path(), Options::default()).unwrap_err();
    let folder = held.folder.path().to_owned();
    let holder = Some(std::process::id());
    assert_eq!(
        error,
        OpenError::Locked {
            folder: folder.clone(),
            holder
        }
    );
    let text = error.to_string();
    assert!(text.contains(folder.to_str().unwrap()), "{text}");
    assert!(text.contains(&std::process::id().to_string()), "{text}");
    Author::root(held.store(), 1);
}

#[test]
fn g57_four_writers_lose_nothing_and_write_nothing_twice() {
    let mut held = Held::new();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let store = held.store();
            scope.spawn(move || {
                let mut author = Author::root(store, writer);
                for number in 0..250 {
                    author.write(store, vec![said(&format!("{writer}/{number}"))]);
                }
            });
        }
    });
    held.restart();
    for writer in 0..4 {
        let expected: Vec<_> = (0..250)
            .map(|number| format!("{writer}/{number}"))
            .collect();
        assert_eq!(texts(held.store(), writer), expected);
    }
}

#[test]
fn g57_each_connection_waits_as_long_as_is_stated_and_no_longer() {
    let held = Held::new();
    let waits = |db: &Connection| {
        let millis: u32 = db
            .query_row("PRAGMA busy_timeout", [], |row| row.get(0))
            .unwrap();
        assert_eq!(u128::from(millis), schema::HELD_UP.as_millis());
    };
    hook(held.store(), move |_, db| waits(db));
    waits(&schema::reader(&held.path()).unwrap());
    waits(&schema::copier(&held.path()).unwrap());
}

#[test]
fn g57_a_write_that_another_connection_holds_up_for_a_moment_is_stored() {
    let held = Held::new();
    let store = held.store();
    let mut author = Author::root(store, 1);
    let intruder = Connection::open(held.path()).unwrap();
    intruder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let append = author.append(vec![said("held up")]);
    let asked = store.commit(append);
    intruder.execute_batch("ROLLBACK").unwrap();
    assert!(wait(asked).is_ok());
    assert_eq!(texts(store, 1), ["held up"]);
}

#[test]
fn g57_a_write_that_another_connection_holds_up_for_too_long_may_be_repeated() {
    let held = Held::new();
    let store = held.store();
    let mut author = Author::root(store, 1);
    hook(store, |_, db| {
        db.busy_timeout(std::time::Duration::ZERO).unwrap();
    });
    let intruder = Connection::open(held.path()).unwrap();
    intruder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let append = author.append(vec![said("held up")]);
    assert_eq!(author.commit(store, append), Err(Refused::Locked));
    intruder.execute_batch("ROLLBACK").unwrap();
    author.write(store, vec![said("again")]);
    assert_eq!(texts(store, 1), ["again"]);
}

#[test]
fn g58_a_full_disk_refuses_and_space_is_used_again_at_once() {
    let mut held = Held::new();
    let store = held.store();
    let mut author = Author::root(store, 1);
    let mut other = Author::root(store, 2);
    author.write(store, vec![said("before")]);
    hook(store, |_, db| {
        db.execute_batch("PRAGMA max_page_count = 1").unwrap();
    });
    for _ in 0..3 {
        let append = author.append(vec![said(&"x".repeat(50_000))]);
        assert_eq!(author.commit(store, append), Err(Refused::StorageFull));
    }
    assert_eq!(texts(store, 1), ["before"]);
    hook(store, |_, db| {
        db.execute_batch("PRAGMA max_page_count = 100000").unwrap();
    });
    author.write(store, vec![said("after")]);
    other.write(store, vec![said("other")]);
    held.restart();
    assert_eq!(texts(held.store(), 1), ["before", "after"]);
    assert_eq!(texts(held.store(), 2), ["other"]);
}
