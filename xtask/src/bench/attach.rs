//! Target `attach`: a viewer that comes back after 10,000 deltas, one that comes to a session of 100,000 items, and what a
//! viewer costs in memory.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::mpsc::{Receiver, sync_channel};

use serde_json::{Value, json};

use super::house::{Daemon, House, Program};
use super::report::{Figure, middle, millis};
use super::server::Reply;
use super::wire::Wire;
use super::{process, replies, server};
use crate::failure::Failure;
use crate::shell::Stopwatch;

/// Deltas that a viewer misses, and the bytes of each.
const MISSED: usize = 10_000;
const SIZE: usize = 64;

/// Deltas before it goes.
const BEFORE: usize = 10;

/// Times that it comes back.
const RETURNS: usize = 11;

/// Milliseconds: twice what the frames alone take over a socket.
const GOAL_RETURN: f64 = 16.0;

/// Items of the long session, and how many are put in at once.
const ITEMS: usize = 100_000;
const AT_ONCE: usize = 500;

/// Daemons whose first viewer is measured.
const STARTS: usize = 5;

/// Milliseconds from a connection to the snapshot of that session.
const GOAL_ITEMS: f64 = 10.0;

/// Viewers whose memory is looked at, and those that are there before.
const VIEWERS: usize = 100;
const BESIDE: usize = 100;

/// Kilobytes for each.
const GOAL_MEMORY: f64 = 64.0;

/// Measures it.
pub(super) fn run(program: &Program) -> Result<(), Failure> {
    returns(program)?;
    items(program)
}

/// A viewer's connection is lost, the model goes on, and the viewer comes back in the middle of the answer.
fn returns(program: &Program) -> Result<(), Failure> {
    let (go_on, told) = sync_channel(3);
    let model = Model(Mutex::new(told));
    let server = server::start_with(move |_request, reply| model.say(reply))?;
    let house = House::new(program, &server)?;
    let daemon = house.daemon()?;
    let mut control = Wire::new(&daemon)?;
    let mut times = Vec::new();
    let mut bytes = 0;
    for _ in 0..RETURNS {
        let session = control.create("openai/m", &house.work(), "speak")?;
        let mut viewer = Wire::new(&daemon)?;
        let attach = |resume: Value| json!({ "kind": "attach", "session-id": session, "resume": resume, "read-only": true });
        let attached = viewer.ask(&attach(Value::Null))?;
        let name = attached["attachment"].clone();
        // The model takes each word when it is asked.
        let _said = go_on.send(());
        let (place, _) = until(&mut viewer, BEFORE * SIZE)?;
        drop(viewer);
        let _said = go_on.send(());
        // All of it is in memory once somebody else has seen it.
        let mut other = Wire::new(&daemon)?;
        other.ask(&attach(Value::Null))?;
        until(&mut other, (BEFORE + MISSED) * SIZE)?;
        let watch = Stopwatch::start();
        let mut back = Wire::new(&daemon)?;
        let answer = back.ask(&attach(json!({ "attachment": name, "place": place })))?;
        let (_, read) = until(&mut back, (BEFORE + MISSED) * SIZE)?;
        times.push(millis(watch.elapsed()));
        if answer["replays"] != true {
            return Err(odd("a viewer that came back got a snapshot"));
        }
        bytes = read;
        let _said = go_on.send(());
        control.settled(&session)?;
    }
    Figure {
        name: &format!("a viewer comes back after {MISSED} deltas, until it has all"),
        value: middle(times),
        unit: "ms",
        goal: Some(GOAL_RETURN),
        runs: RETURNS,
        beside: &format!("{} KB", bytes / 1_000),
    }
    .print();
    Ok(())
}

/// A viewer attaches to a session with a long history; then many do.
fn items(program: &Program) -> Result<(), Failure> {
    let house = House::new(program, "http://127.0.0.1:9/v1")?;
    let daemon = house.daemon()?;
    let mut wire = Wire::new(&daemon)?;
    let session = wire.create("echo/any", &house.work(), "begin")?;
    wire.settled(&session)?;
    let mut put = 0;
    while put < ITEMS {
        hold(&mut wire, &session, true)?;
        for number in 0..AT_ONCE {
            wire.ask(&json!({
                "kind": "enqueue", "session-id": session, "queue": { "kind": "default" },
                "text": format!("item {}", put + number), "start": false, "environment": {},
            }))?;
        }
        hold(&mut wire, &session, false)?;
        wire.settled(&session)?;
        put += AT_ONCE;
    }
    drop(daemon);
    let attach = json!({ "kind": "attach", "session-id": session, "read-only": true });
    let comes = |daemon: &Daemon| {
        let watch = Stopwatch::start();
        let mut viewer = Wire::new(daemon)?;
        viewer.ask(&attach)?;
        let snapshot = viewer.hear()?;
        if snapshot["more-history"] != true {
            return Err(odd("the history is too short"));
        }
        Ok(millis(watch.elapsed()))
    };
    let mut first = Vec::new();
    for _ in 0..STARTS {
        let daemon = house.daemon()?;
        first.push(comes(&daemon)?);
    }
    let daemon = house.daemon()?;
    comes(&daemon)?;
    let times: Result<Vec<_>, _> = (0..RETURNS).map(|_| comes(&daemon)).collect();
    Figure {
        name: &format!("attach to a session of {ITEMS} items, until the snapshot is there"),
        value: middle(times?),
        unit: "ms",
        goal: Some(GOAL_ITEMS),
        runs: RETURNS,
        beside: &format!(
            "the first one of a daemon's life {:.1} ms, n={STARTS}",
            middle(first)
        ),
    }
    .print();
    let mut viewers = Vec::new();
    let mut join = |count: usize| {
        for _ in 0..count {
            let mut viewer = Wire::new(&daemon)?;
            viewer.ask(&attach)?;
            viewer.hear()?;
            viewers.push(viewer);
        }
        // Each is told who else looks on: one that does not read has its share of the window waiting for it.
        let all = viewers.len();
        for viewer in &mut viewers {
            let mut known = None;
            while known != Some(all) {
                let frame = viewer.hear()?;
                let told = [&frame["patch"], &frame["detail"]].map(|it| it["viewers"].as_array());
                known = told.into_iter().flatten().next().map(Vec::len);
            }
        }
        Ok(process::memory(daemon.process())?.now)
    };
    // The first ones fill the session's window, which all share.
    let before = join(BESIDE)?;
    let after = join(VIEWERS)?;
    Figure {
        name: &format!("memory of the daemon for a viewer beside {BESIDE} others"),
        value: (after - before) / VIEWERS as f64,
        unit: "KB",
        goal: Some(GOAL_MEMORY),
        runs: VIEWERS,
        beside: "",
    }
    .print();
    Ok(())
}

/// Holds the queue of a session, or releases it.
fn hold(wire: &mut Wire, session: &str, held: bool) -> Result<(), Failure> {
    // Its revision is in the snapshot.
    let attach = json!({ "kind": "attach", "session-id": session, "read-only": true });
    wire.ask(&attach)?;
    let snapshot = wire.hear_snapshot()?;
    wire.ask(&json!({ "kind": "detach", "session-id": session }))?;
    let queues = snapshot["queues"].as_array().into_iter().flatten();
    let queue = queues
        .into_iter()
        .find(|queue| queue["queue-id"] == "default");
    let revision = queue.map(|queue| queue["revision"].clone());
    wire.ask(&json!({
        "kind": "configure-queue", "session-id": session, "queue-id": "default",
        "immediacy": held.then_some("held"), "expected-revision": revision,
    }))
    .map(|_| ())
}

/// Reads on until the running text has this many bytes; where the viewer stands then, and how many bytes it has read.
fn until(viewer: &mut Wire, bytes: usize) -> Result<(Value, usize), Failure> {
    let mut read = 0;
    loop {
        let frame = viewer.hear()?;
        read += viewer.read();
        let at = match frame["type"].as_str() {
            Some("snapshot") => frame["running"]["text"].as_str().map_or(0, str::len),
            _ if frame["patch"]["topic"] == "item-text" => {
                let offset = frame["patch"]["offset"].as_u64().unwrap_or_default();
                let offset = usize::try_from(offset).unwrap_or_default();
                offset + frame["patch"]["text"].as_str().map_or(0, str::len)
            }
            _ => 0,
        };
        if at >= bytes {
            let next = match frame["type"].as_str() {
                Some("snapshot") => frame["sequence"].as_u64(),
                _ => frame["sequence"].as_u64().map(|sequence| sequence + 1),
            };
            let place = json!({ "epoch": frame["epoch"], "sequence": next });
            return Ok((place, read));
        }
    }
}

fn odd(why: &str) -> Failure {
    Failure::Answer {
        program: "the daemon".to_owned(),
        why: why.to_owned(),
    }
}

/// What answers: each part when it is told to.
struct Model(Mutex<Receiver<()>>);

impl Model {
    fn say(&self, reply: &mut Reply<'_>) -> std::io::Result<()> {
        let told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = |_gone| std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        let delta = format!("{:x<SIZE$}", "delta ");
        for deltas in [BEFORE, MISSED] {
            told.recv().map_err(gone)?;
            for _ in 0..deltas {
                reply.write(&replies::text(&delta))?;
            }
        }
        told.recv().map_err(gone)?;
        reply.end(&replies::end())
    }
}
