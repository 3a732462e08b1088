//! How many durable events a second: one session alone, 64 sessions at work, and large batches.

#![expect(clippy::print_stdout, reason = "a benchmark says what it found")]

#[path = "shared/clock.rs"]
mod clock;

use attache_session::{Event, TurnId};
use attache_store::conformance::{Author, said};
use attache_store::{SqliteStore, Writes, sqlite};

use clock::{sync_time, time};

/// The text of one event.
const TEXT: &str = "The parser lives in src/parse.rs; the entry point is `parse_document`, which \
                    calls `next_token` until it meets the end of the input, and it keeps spans.";

fn pair() -> Vec<Event> {
    vec![said(TEXT), Event::TurnStarted { turn: TurnId(2) }]
}

fn run(name: &str, sessions: usize, batch: usize, rounds: usize) {
    // Beside the build, not in a folder that may lie in memory.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let sync = sync_time(folder.path());
    let path = folder.path().join("attache.db");
    let store = SqliteStore::open(&path, sqlite::Options::default()).expect("a store");
    let mut authors: Vec<Author> = (0..sessions)
        .map(|number| Author::root(&store, number as u128))
        .collect();
    // Each session has one append in flight, as its owner has.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let (appends, took) = time(|| {
        runtime.block_on(async {
            let mut tasks = tokio::task::JoinSet::new();
            let local = std::sync::Arc::new(store);
            for mut author in authors.drain(..) {
                let store = std::sync::Arc::clone(&local);
                tasks.spawn(async move {
                    for _ in 0..rounds {
                        let events = (0..batch / 2).flat_map(|_| pair()).collect();
                        let append = author.append(events);
                        store.commit(append).await.expect("an append");
                    }
                    rounds
                });
            }
            let mut appends = 0;
            while let Some(done) = tasks.join_next().await {
                appends += done.expect("an author");
            }
            appends
        })
    });
    let seconds = took.as_secs_f64();
    println!(
        "{name}: {:.0} durable events/s, {:.0} appends/s (fdatasync p50 {:.3} ms)",
        (appends * batch) as f64 / seconds,
        appends as f64 / seconds,
        sync.as_secs_f64() * 1e3,
    );
}

fn main() {
    run("one session, 2 events an append", 1, 2, 3_000);
    run("64 sessions, 2 events an append", 64, 2, 3_000);
    run("64 sessions, 4 events an append", 64, 4, 2_000);
    run("one session, 100 events an append", 1, 100, 1_000);
}
