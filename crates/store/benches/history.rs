//! How long pages of a history of 100,000 events take, and opening and listing many sessions.

#![expect(clippy::print_stdout, reason = "a benchmark says what it found")]

#[path = "shared/clock.rs"]
mod clock;

use attache_session::{Event, Timestamp, TurnId};
use attache_store::conformance::{Author, said, session};
use attache_store::{Kind, Log, PageQuery, RowFilter, Rows, Search, SqliteStore, Writes, sqlite};

use clock::{middle, sync_time, time};

const EVENTS: usize = 100_000;

fn note(number: usize) -> Event {
    Event::Noted {
        code: "note".into(),
        text: format!("note {number}").into(),
    }
}

fn history(store: &SqliteStore) {
    let mut author = Author::root(store, 1);
    for round in 0..EVENTS / 1_000 {
        let events = (0..1_000)
            .map(|number| {
                let number = round * 1_000 + number;
                if number % 10_000 == 7 {
                    note(number)
                } else if number % 2 == 0 {
                    Event::TurnStarted { turn: TurnId(1) }
                } else {
                    said(&format!(
                        "Answer {number}: {}",
                        "the quick brown fox. ".repeat(8)
                    ))
                }
            })
            .collect();
        author.write(store, events);
    }
}

fn measure(store: &SqliteStore, name: &str, query: &PageQuery) {
    let mut found = None;
    let times = (0..15).map(|_| {
        let (page, took) = time(|| store.page(session(1), query).expect("a page"));
        found = Some((page.items.len(), page.total_matching));
        took
    });
    let took = middle(times.collect());
    println!(
        "{name}: {:.2} ms, found {found:?}",
        took.as_secs_f64() * 1e3
    );
}

fn main() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let path = folder.path().join("attache.db");
    let open = || SqliteStore::open(&path, sqlite::Options::default()).expect("a store");
    let store = open();
    history(&store);
    drop(store);
    let store = open();
    let row = store.row(session(1)).expect("a row").expect("a session");
    let start = store
        .events(session(1), attache_session::Position(EVENTS as u64 / 2), 1)
        .expect("a log")[0]
        .event
        .at;
    let plain = PageQuery {
        after: Some(start),
        up_to: None,
        kinds: vec![Kind::Assistant],
        search: None,
        limit: 200,
        newest: false,
    };
    measure(&store, "page of 200 after a cursor, common kind", &plain);
    let rare = PageQuery {
        kinds: vec![Kind::Diagnostic],
        after: None,
        ..plain.clone()
    };
    measure(&store, "page of 200, rare kind", &rare);
    let mixed = PageQuery {
        kinds: Vec::new(),
        ..plain.clone()
    };
    measure(&store, "page of 200 after a cursor, all kinds", &mixed);
    let newest = PageQuery {
        kinds: Vec::new(),
        after: Some(Timestamp(0)),
        newest: true,
        up_to: Some(attache_session::Position(row.head.0 - 5)),
        ..plain.clone()
    };
    measure(&store, "newest 200, all kinds", &newest);
    for (name, text) in [
        ("found once", "ANSWER 77777:"),
        ("found nowhere", "lazy dog"),
        ("not ASCII", "größe"),
    ] {
        let search = PageQuery {
            after: None,
            kinds: Vec::new(),
            search: Some(text.to_owned()),
            ..plain.clone()
        };
        measure(
            &store,
            &format!("search in {EVENTS} events, {name}"),
            &search,
        );
    }
    let (log, took) = time(|| store.events(session(1), attache_session::Position(0), usize::MAX));
    println!(
        "whole log of {} events: {:.0} ms",
        log.expect("a log").len(),
        took.as_secs_f64() * 1e3
    );
    drop(store);
    many_sessions();
    println!(
        "fdatasync p50 {:.3} ms",
        sync_time(folder.path()).as_secs_f64() * 1e3
    );
}

fn many_sessions() {
    for count in [1_000_u128, 10_000] {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let path = folder.path().join("attache.db");
        let open = || SqliteStore::open(&path, sqlite::Options::default()).expect("a store");
        let store = open();
        let mut births = Vec::new();
        for number in 0..count {
            let mut author = Author::new(number);
            let mut events = author.birth(None);
            events.extend((0..18).map(|_| said("A short answer of some twenty words, as a session of this kind has them, and no more than that.")));
            births.push(store.commit(author.append(events)));
        }
        for birth in births {
            attache_store::conformance::wait(birth).expect("a birth");
        }
        drop(store);
        let size = std::fs::metadata(&path).expect("a file").len();
        let times = (0..5).map(|_| {
            // Closing is not measured.
            let (_store, took) = time(|| {
                let store = open();
                let rows = store.rows(RowFilter::All, None, usize::MAX).expect("rows");
                assert_eq!(rows.len() as u128, count);
                store
            });
            took
        });
        let took = middle(times.collect());
        println!(
            "{count} sessions of 20 events: opened and listed in {:.1} ms, {:.1} KB each",
            took.as_secs_f64() * 1e3,
            size as f64 / count as f64 / 1e3
        );
    }
}
