//! Limits that are set, changed or used up while turns are in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use attache_model::Usage;
use attache_session::{EndReason, ErrorCode, Event, Limit, SessionId};
use attache_testkit::{Piece, Puppet, World, call, pass, text};
use serde_json::json;

use crate::budgets::{set, used, world};

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Each turn takes ten seconds.
fn slow() -> Puppet {
    Puppet::new(|_| [vec![Piece::Pause(s(10))], text("done")].concat())
}

fn waits(world: &World, session: SessionId) -> bool {
    world.row(session).note.is_some()
}

#[tokio::test(start_paused = true)]
async fn a_new_limit_of_turns_at_once_counts_those_that_run() {
    let world = world(slow(), "concurrent=none").await;
    let root = world.root(None).await;
    for name in ["a", "b", "c"] {
        world.child(root, Some(name)).await;
    }
    pass(s(1)).await;
    set(&world, root, "concurrent=2").await;
    assert_eq!(used(&world, root, Limit::Concurrent), 3);
    let fourth = world.child(root, Some("d")).await;
    let fifth = world.child(root, Some("e")).await;
    pass(s(1)).await;
    assert!(waits(&world, fourth) && waits(&world, fifth));
    // Lifted, it holds nobody.
    set(&world, root, "concurrent=none").await;
    pass(s(1)).await;
    assert!(!waits(&world, fourth) && !waits(&world, fifth));
    set(&world, root, "concurrent=2").await;
    assert_eq!(used(&world, root, Limit::Concurrent), 5);
    world.quiet(root).await;
    assert_eq!(used(&world, root, Limit::Concurrent), 0);
}

#[tokio::test(start_paused = true)]
async fn those_in_line_need_a_place_under_a_limit_that_is_set_meanwhile() {
    let world = world(slow(), "concurrent=1").await;
    let root = world.root(None).await;
    let middle = world.child(root, None).await;
    world.child(root, Some("first")).await;
    let below = world.child(middle, Some("below")).await;
    let other = world.child(root, Some("other")).await;
    pass(s(1)).await;
    assert!(waits(&world, below) && waits(&world, other));
    set(&world, middle, "concurrent=1").await;
    let behind = world.child(middle, Some("behind")).await;
    set(&world, root, "concurrent=9").await;
    pass(s(1)).await;
    assert!(!waits(&world, below) && !waits(&world, other));
    assert!(waits(&world, behind), "one at once below that child");
    world.quiet(root).await;
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_goes_on_after_a_wait_knows_the_limit_as_it_is_by_then() {
    let puppet = Puppet::new(|request| {
        if Puppet::task(request) != "boss" {
            return [vec![Piece::Pause(s(10))], text("done")].concat();
        }
        let made = |number: usize| json_id(&Puppet::results(request)[number]);
        match Puppet::rounds(request) {
            0 => call("agent_session_create", &json!({ "initial_message": "one" })),
            1 => {
                let wait = json!({ "session_id": made(0), "wait_for_idle": true });
                call("agent_session_wait", &wait)
            }
            2 => ["two", "three"]
                .into_iter()
                .flat_map(|task| call("agent_session_create", &json!({ "initial_message": task })))
                .collect(),
            _ => text("all at work"),
        }
    });
    let world = world(puppet, "concurrent=1").await;
    let boss = world.root(Some("boss")).await;
    pass(s(5)).await;
    set(&world, boss, "concurrent=8").await;
    pass(s(7)).await;
    assert_eq!(used(&world, boss, Limit::Concurrent), 2, "both at once");
    world.quiet(boss).await;
}

fn json_id(result: &str) -> serde_json::Value {
    let made: serde_json::Value = serde_json::from_str(result).expect("an object");
    made["session_id"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_new_limit_of_time_counts_a_turn_that_runs_from_then_on() {
    let puppet = Puppet::new(|request| {
        let mut pieces = vec![Piece::Pause(s(10))];
        pieces.extend(if Puppet::rounds(request) < 20 {
            call("agent_session_get", &json!({}))
        } else {
            text("done")
        });
        pieces
    });
    let world = world(puppet, "wall=none").await;
    let root = world.root(None).await;
    let first = world.child(root, Some("first")).await;
    let second = world.child(root, Some("second")).await;
    pass(s(25)).await;
    set(&world, root, "wall=30").await;
    // One of two ends: the time of the other counts on.
    let ended = world.engine.interrupt(first, false).await;
    ended.expect("it ends");
    pass(s(6)).await;
    assert_eq!(used(&world, root, Limit::Wall) / 1_000, 5);
    pass(s(40)).await;
    let row = world.row(second);
    assert_eq!(row.view.end_reason(), Some(EndReason::Budget));
    // Steps end at each tenth second; what is used then is 5, 15, 25 and 35 seconds.
    assert_eq!(used(&world, root, Limit::Wall) / 1_000, 35);
}

#[tokio::test]
async fn no_summary_is_asked_for_with_a_budget_that_is_used_up() {
    let asked = Arc::new(AtomicBool::new(false));
    let was_asked = Arc::clone(&asked);
    let puppet = Puppet::new(move |request| {
        if Puppet::last_user(request).contains("Write a summary") {
            was_asked.store(true, Ordering::SeqCst);
        }
        let usage = Usage {
            input: Some(100),
            ..Usage::default()
        };
        [text(&"words ".repeat(2_000)), vec![Piece::Usage(usage)]].concat()
    });
    let world = world(puppet, "tokens=none").await;
    let root = world.root(None).await;
    for _ in 0..4 {
        world.say(root, "go").await;
    }
    set(&world, root, "tokens=1").await;
    let refused = world.engine.compact(root).await;
    let refused = refused.expect_err("nothing is left for a summary");
    assert_eq!(refused.code, ErrorCode::LimitReached);
    assert!(!asked.load(Ordering::SeqCst));
    set(&world, root, "tokens=none").await;
    world.engine.compact(root).await.expect("it is cut");
    assert!(asked.load(Ordering::SeqCst));
    let cuts = world.events(root).into_iter();
    let cuts = cuts.filter(|it| matches!(it.event, Event::Compacted { .. }));
    assert_eq!(cuts.count(), 1);
}
