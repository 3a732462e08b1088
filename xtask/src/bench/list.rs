//! Target `list`: from the start of a daemon on a store with many sessions to the whole list of them and one page of a
//! history. The store is made by a daemon, once for each size.

use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::json;

use super::house::{Daemon, House, Program};
use super::process;
use super::report::{Figure, middle, millis};
use super::wire::Wire;
use crate::failure::Failure;
use crate::shell::Stopwatch;

/// Sessions that are stored, and the goal in milliseconds.
const SIZES: [(usize, f64); 2] = [(1_000, 30.0), (10_000, 60.0)];

const RUNS: usize = 7;

/// Measures it.
pub(super) fn run(program: &Program) -> Result<(), Failure> {
    for (sessions, goal) in SIZES {
        let house = House::new(program, "http://127.0.0.1:9/v1")?;
        let last = fill(&house, sessions)?;
        let mut times = Vec::new();
        let mut first = Vec::new();
        // The first start also writes down, beside its answers, that every session was cut; the others find that done.
        let (_, after_kill, daemon) = open(&house, sessions, &last)?;
        calm(&daemon)?;
        drop(daemon);
        for _ in 0..RUNS {
            let (one_page, whole, _daemon) = open(&house, sessions, &last)?;
            first.push(millis(one_page));
            times.push(millis(whole));
        }
        let beside = format!(
            "first page of the list and history {:.2} ms; whole list after a kill with all live {:.2} ms, n=1",
            middle(first),
            millis(after_kill)
        );
        Figure {
            name: &format!("daemon's start to the list of {sessions} sessions and a page of one"),
            value: middle(times),
            unit: "ms",
            goal: Some(goal),
            runs: RUNS,
            beside: &beside,
        }
        .print();
    }
    Ok(())
}

fn fill(house: &House, sessions: usize) -> Result<String, Failure> {
    let daemon = house.daemon()?;
    let mut wire = Wire::new(&daemon)?;
    let mut last = String::new();
    for number in 0..sessions {
        let text = format!("Say this back, number {number}.");
        last = wire.create("echo/any", &house.work(), &text)?;
    }
    wire.settled(&last)?;
    Ok(last)
}

/// Waits until a daemon has nothing to do.
fn calm(daemon: &Daemon) -> Result<(), Failure> {
    let mut before = process::cpu_of(daemon.process())?;
    loop {
        std::thread::park_timeout(Duration::from_millis(500));
        let now = process::cpu_of(daemon.process())?;
        if now <= before {
            return Ok(());
        }
        before = now;
    }
}

/// One start: the times to the first page of the list with a page of a history, and to the whole list with it.
fn open(
    house: &House,
    sessions: usize,
    one: &str,
) -> Result<(Duration, Duration, Daemon), Failure> {
    let watch = Stopwatch::start();
    let daemon = house.daemon_at_once()?;
    let socket = connected(&daemon)?;
    let mut wire = Wire::over(socket)?;
    wire.ask(&json!({
        "kind": "page-history", "session-id": one,
        "query": { "after": null, "kinds": [], "search": null, "limit": 200, "newest": true },
    }))?;
    let (mut found, mut after, mut first) = (0, json!(null), None);
    loop {
        let page = wire.ask(&json!({
            "kind": "list-sessions", "root-session-id": null, "after-session-id": after,
        }))?;
        first.get_or_insert_with(|| watch.elapsed());
        let rows = page["sessions"].as_array().map_or(&[][..], Vec::as_slice);
        found += rows.len();
        match rows.last() {
            Some(row) if page["more"] == true => after = row["session-id"].clone(),
            _ => break,
        }
    }
    let whole = watch.elapsed();
    if found != sessions {
        return Err(Failure::Answer {
            program: "the daemon".to_owned(),
            why: format!("{found} sessions, and not {sessions}"),
        });
    }
    Ok((first.unwrap_or(whole), whole, daemon))
}

fn connected(daemon: &Daemon) -> Result<UnixStream, Failure> {
    let watch = Stopwatch::start();
    loop {
        match daemon.connect() {
            Ok(socket) => return Ok(socket),
            Err(_) if watch.elapsed() < Duration::from_secs(60) => {
                // Short against what is measured.
                std::thread::park_timeout(Duration::from_micros(100));
            }
            Err(source) => {
                return Err(Failure::Start {
                    program: daemon.socket().display().to_string(),
                    source,
                });
            }
        }
    }
}
