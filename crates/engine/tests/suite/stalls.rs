//! Runs that make no progress: the parent is told once and the run goes on, unless its definition says otherwise.

use std::sync::Arc;
use std::time::Duration;

use attache_agent::{Definition, Limits, OnStall};
use attache_session::{EndReason, Event, Outcome, SessionId, Status};
use attache_store::MemoryStore;
use attache_testkit::{Gate, Piece, Puppet, World, call, pass, text};
use serde_json::json;

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Limits that a provider does not come before.
fn patient() -> attache_testkit::model::Terms {
    let days = s(1_000_000);
    attache_testkit::model::Terms {
        patience: attache_testkit::model::Patience {
            first_byte: days,
            silence: days,
            no_progress: days,
        },
        ..Default::default()
    }
}

async fn world(puppet: Puppet, definitions: Vec<Definition>) -> World {
    let store = Arc::new(MemoryStore::new());
    World::with(
        store,
        puppet.with_terms(patient()),
        attache_tools::built_in(),
        definitions,
    )
    .await
}

fn stalls(world: &World, session: SessionId) -> usize {
    let noted = |event: &Event| matches!(event, Event::Noted { code, .. } if &**code == "stalled");
    let events = world.events(session);
    events
        .iter()
        .filter(|stamped| noted(&stamped.event))
        .count()
}

#[tokio::test(start_paused = true)]
async fn a_parent_is_told_once_of_a_child_that_makes_no_progress_and_the_child_goes_on() {
    let gate = Gate::default();
    let stand = gate.clone();
    let world = world(
        Puppet::new(move |request| match Puppet::task(request).as_str() {
            "work" => vec![
                Piece::Text("so".to_owned()),
                Piece::Pause(s(400)),
                Piece::Text(" far".to_owned()),
                Piece::Wait(stand.clone()),
            ],
            _ => text("noted"),
        }),
        Vec::new(),
    )
    .await;
    let root = world.root(None).await;
    let child = world.child(root, Some("work")).await;
    // 400 seconds without a word, then 450 more: only the second is too long.
    pass(s(845)).await;
    assert!(world.consumed(root).is_empty());
    pass(s(10)).await;
    let told = world.consumed(root);
    assert_eq!(told.len(), 1, "{told:?}");
    let words = format!("Session {child} has made no progress for 450 s: it waits for its model.");
    assert!(told[0].starts_with(&words), "{told:?}");
    pass(s(5_000)).await;
    assert_eq!((world.consumed(root).len(), stalls(&world, child)), (1, 1));
    assert_eq!(world.row(child).status, Status::Running);
    gate.open();
    world.quiet(root).await;
    assert_eq!(world.row(child).view.outcome(), Some(Outcome::Succeeded));
    // A root has nobody to tell.
    assert_eq!(stalls(&world, root), 0);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_waits_for_another_has_not_stalled() {
    let gate = Gate::default();
    let stand = gate.clone();
    let world = world(
        Puppet::new(move |request| match (Puppet::task(request).as_str(), Puppet::rounds(request)) {
            ("middle", 0) => call("agent_session_create", &json!({ "initial_message": "leaf" })),
            ("middle", 1..=20) => {
                let made: serde_json::Value =
                    serde_json::from_str(&Puppet::results(request)[0]).expect("it was made");
                let wait = json!({ "session_id": made["session_id"], "wait_for_idle": true, "timeout_seconds": 300 });
                call("agent_session_wait", &wait)
            }
            ("leaf", _) => vec![Piece::Wait(stand.clone())],
            _ => text("noted"),
        }),
        Vec::new(),
    )
    .await;
    let root = world.root(None).await;
    let middle = world.child(root, Some("middle")).await;
    pass(s(2_000)).await;
    assert!(world.consumed(root).is_empty());
    assert_eq!(stalls(&world, middle), 0);
    // The middle was told of the leaf, as steering of its wait.
    let told = world.consumed(middle);
    assert!(
        told.iter()
            .any(|text| text.contains("has made no progress")),
        "{told:?}"
    );
    gate.open();
}

#[tokio::test(start_paused = true)]
async fn a_definition_may_have_its_own_times_and_end_what_stalls() {
    let strict = Definition {
        name: "strict".to_owned(),
        limits: Limits {
            stall_seconds: Some(30),
            on_stall: OnStall::Interrupt,
            ..Limits::default()
        },
        ..Definition::built_in()
    };
    let world = world(
        Puppet::new(|request| match Puppet::task(request).as_str() {
            "work" => vec![
                Piece::Text("so far".to_owned()),
                Piece::Wait(Gate::default()),
            ],
            _ => text("noted"),
        }),
        vec![strict],
    )
    .await;
    let root = world.root(None).await;
    let new = json!({ "definition": "strict", "initial_message": "work" });
    let made = world.ask(root, "agent_session_create", new).await;
    let child: SessionId = made["session_id"]
        .as_str()
        .and_then(|id| id.parse().ok())
        .expect("an id");
    pass(s(35)).await;
    world.quiet(root).await;
    let row = world.row(child);
    assert_eq!(row.view.end_reason(), Some(EndReason::Deadline));
    assert_eq!(row.view.outcome(), Some(Outcome::TimedOut));
    assert_eq!(
        row.view.summary.result.as_deref(),
        Some("so far"),
        "what was said stays"
    );
    let told = world.consumed(root);
    assert_eq!(told.len(), 1);
    assert!(
        told[0].contains("no progress for 30 s") && told[0].contains("ends such a run"),
        "{told:?}"
    );
}
