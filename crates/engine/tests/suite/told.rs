//! A child's end is told to its parent exactly once: whatever crashes between the child's last token and the turn that takes
//! the notice, and however many end at once.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use attache_session::{Event, Origin, SessionId, Timestamp};
use attache_store::MemoryStore;
use attache_testkit::{Piece, Puppet, World, call, text};
use serde_json::{Value, json};

use crate::crashes::{Walk, life, walk};
use crate::scenarios::Scenario;

/// What the parent does when the child says its last.
const ENDS: &[(&str, Scenario)] = &[
    ("the parent is busy", |stage| {
        Box::pin(async {
            let root = stage.root(Some("busy")).await;
            stage.world.quiet(root).await;
        })
    }),
    ("the parent is idle", |stage| {
        Box::pin(async {
            let root = stage.root(Some("idle")).await;
            let viewer = stage.world.engine.attach(root).await;
            attache_testkit::pass(Duration::from_millis(500)).await;
            assert!(stage.world.row(root).view.turn().is_none());
            assert!(stage.world.engine.live(root).is_some(), "it is in memory");
            stage.world.quiet(root).await;
            drop(viewer);
        })
    }),
    ("the parent is unloaded", |stage| {
        Box::pin(async {
            let root = stage.root(Some("idle")).await;
            attache_testkit::pass(Duration::from_millis(500)).await;
            assert!(stage.world.engine.live(root).is_none(), "it is unloaded");
            stage.world.quiet(root).await;
        })
    }),
    ("the parent waits", |stage| {
        Box::pin(async {
            let root = stage.root(Some("patient")).await;
            attache_testkit::pass(Duration::from_millis(500)).await;
            assert_eq!(stage.world.engine.waiting_for(root).len(), 1);
            stage.world.quiet(root).await;
        })
    }),
    ("three generations below, by watches alone", |stage| {
        Box::pin(async {
            let root = stage.root(Some("chain-3")).await;
            stage.world.quiet(root).await;
        })
    }),
];

#[test]
fn a_parent_is_told_once_wherever_a_crash_comes_after_a_childs_last_token() {
    for (name, scenario) in ENDS {
        let Walk {
            crashes,
            between,
            failed,
        } = walk(name, *scenario);
        println!(
            "{name}: {crashes} crashes, {between} of them between the last token and the turn that was told"
        );
        assert!(failed.is_empty(), "{failed:#?}");
        // The end and its notice are one append, and so are the taking and the turn: after the one, when it was answered,
        // and before the other, at least.
        assert!(between >= 3, "{name}: {between}");
    }
}

/// How many children end nearly at once.
const CHILDREN: usize = 19;

/// The results of a message, as objects.
fn results(request: &attache_testkit::Request) -> Vec<Value> {
    let results = Puppet::results(request).into_iter();
    let objects = results.map(|result| serde_json::from_str(&result).expect("an object"));
    objects.collect()
}

/// What a boss does when its children end.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Boss {
    /// It streams for three seconds.
    Busy,
    /// It has ended its run.
    Idle,
    /// It asks to be told when all have ended.
    Late,
    /// It has asked twice to be told of each, and streams.
    Twice,
}

/// A boss that makes its children and asks to be told of each; the children end within 50 milliseconds of each other, in
/// another order than that of their birth.
fn boss(how: Boss) -> Puppet {
    Puppet::new(move |request| {
        let task = Puppet::task(request);
        if let Some(number) = task.strip_prefix("child ") {
            let number: u64 = number.parse().expect("a number");
            let place = number * 7 % CHILDREN as u64;
            let micros = 1_000_000 + place * 2_600;
            return [
                vec![Piece::Pause(Duration::from_micros(micros))],
                text("done"),
            ]
            .concat();
        }
        match Puppet::rounds(request) {
            0 if Puppet::last_user(request) == "boss" => (0..CHILDREN)
                .flat_map(|number| {
                    let first = json!({ "initial_message": format!("child {number}") });
                    call("agent_session_create", &first)
                })
                .collect(),
            1 => {
                let watch = |made: &Value| {
                    let child = json!({ "session_id": made["session_id"] });
                    let times = if how == Boss::Twice { 2 } else { 1 };
                    (0..times).flat_map(move |_| call("agent_session_on_complete", &child))
                };
                let late = (how == Boss::Late).then_some(Piece::Pause(Duration::from_secs(3)));
                let watches = results(request);
                let watches = watches.iter().flat_map(watch);
                late.into_iter().chain(watches).collect()
            }
            2 if matches!(how, Boss::Busy | Boss::Twice) => (0..30)
                .flat_map(|_| {
                    let pause = Piece::Pause(Duration::from_millis(100));
                    [pause, Piece::Text("word ".to_owned())]
                })
                .collect(),
            _ => text("I have been told"),
        }
    })
}

#[test]
fn g17_nineteen_children_that_end_within_50_ms_are_told_once_each_in_order() {
    for how in [Boss::Busy, Boss::Idle, Boss::Late, Boss::Twice] {
        life(nineteen_are_told(how));
    }
}

async fn nineteen_are_told(how: Boss) {
    let store = Arc::new(MemoryStore::new());
    let world = World::with(store, boss(how), attache_tools::built_in(), Vec::new()).await;
    let root = world.root(Some("boss")).await;
    attache_testkit::pass(Duration::from_millis(900)).await;
    let streams = world.row(root).view.turn().is_some();
    assert_eq!(streams, how != Boss::Idle);
    world.quiet(root).await;
    let mut ends: Vec<(Timestamp, SessionId)> = Vec::new();
    let mut told: Vec<(Timestamp, SessionId)> = Vec::new();
    let mut watches = HashSet::new();
    for session in crate::truth::sessions(&world) {
        for stamped in world.events(session) {
            match stamped.event {
                Event::TurnEnded { .. } if session != root => ends.push((stamped.at, session)),
                Event::Consumed { item, .. } if session == root => {
                    if let Origin::Notice { about, watch, .. } = item.origin {
                        told.push((stamped.at, about));
                        assert!(watches.insert(watch), "{how:?}: each notice has an id");
                    }
                }
                _ => {}
            }
        }
    }
    ends.sort();
    told.sort();
    let mut ends: Vec<SessionId> = ends.into_iter().map(|(_, id)| id).collect();
    let mut told: Vec<SessionId> = told.into_iter().map(|(_, id)| id).collect();
    assert_eq!(ends.len(), CHILDREN);
    assert_eq!(ends.iter().collect::<HashSet<_>>().len(), CHILDREN);
    match how {
        // Who asks late is told in the order of the asking.
        Boss::Late => {
            told.sort_unstable();
            ends.sort_unstable();
        }
        Boss::Twice => ends = ends.into_iter().flat_map(|id| [id, id]).collect(),
        Boss::Busy | Boss::Idle => {}
    }
    assert_eq!(told, ends, "{how:?}: each once, in the order of their ends");
    // What the parent was told agrees with what a list would say.
    for id in ends {
        let outcome = world.row(id).view.outcome();
        assert_eq!(outcome, Some(attache_session::Outcome::Succeeded));
    }
    assert!(world.row(root).view.turn().is_none());
}
