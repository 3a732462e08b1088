//! The ledger of a run, with everything as in earnest: what tools say of their calls is recorded with the results, and a
//! restart, a compaction, an interrupt and a crash leave it true.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use attache_agent::Definition;
use attache_model::{ErrorKind, Message, ModelError, Request};
use attache_session::{CallOutcome, Event, Ledger, NestedCall, SessionId};
use attache_store::{MemoryStore, Store};
use attache_testkit::{Piece, Puppet, Teller, TestTime, World, call, text};
use serde_json::{Value, json};

async fn world(store: Arc<dyn Store>, puppet: Puppet) -> World {
    let tools = attache_tools::built_in().with(Arc::new(Teller));
    World::with(store, puppet, tools, Vec::new()).await
}

/// A root with the toolset, at work.
async fn root(world: &World) -> SessionId {
    let definition = Definition {
        name: "teller".to_owned(),
        tools: vec!["teller".to_owned(), "agent-session".to_owned()],
        ..Definition::default()
    };
    world.root_of(definition, Some("go")).await
}

/// A model that makes these calls in one step, and then is done.
fn makes(calls: Vec<(&'static str, Value)>) -> Puppet {
    Puppet::new(move |request| {
        if Puppet::after_tools(request) {
            return text("done");
        }
        let calls = calls.iter();
        calls
            .map(|(name, arguments)| Piece::Call((*name).to_owned(), arguments.to_string()))
            .collect()
    })
}

fn ledger(world: &World, session: SessionId) -> Ledger {
    let ledger = world.engine.ledger(session).expect("the store is read");
    ledger.expect("there has been a run")
}

/// Waits until a call of a session's run is under way.
async fn under_way(world: &World, session: SessionId) {
    let calls = || {
        world
            .engine
            .live(session)
            .map_or(0, |live| live.calls.len())
    };
    while calls() == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_tells_what_each_of_its_calls_was_also_after_a_restart() {
    let nested: Vec<Value> = (0..20)
        .map(|number| json!({ "name": format!("fetch {number}"), "failed": number == 3 }))
        .collect();
    let proxy = json!({ "target": "upload_file", "pause_ms": 7 });
    let batch =
        json!({ "detail": "1 of 20 failed", "failed": true, "nested": nested, "pause_ms": 4 });
    let puppet = makes(vec![
        ("invoke_tool", proxy.clone()),
        ("look_up", batch),
        ("look_up", json!({ "is_error": true })),
        ("look_upp", json!({})),
    ]);
    let world = world(Arc::new(MemoryStore::new()), puppet).await;
    let root = root(&world).await;
    world.quiet(root).await;
    let before = ledger(&world, root);
    assert_eq!(before.total, 4);
    let told: Vec<_> = before
        .calls
        .iter()
        .map(|call| {
            (
                &*call.name,
                call.outcome,
                call.changes_state,
                call.duration_micros,
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            (
                "invoke_tool -> upload_file",
                CallOutcome::Ok,
                true,
                Some(7_000)
            ),
            // What the model reads of it is no error.
            ("look_up", CallOutcome::Failed, false, Some(4_000)),
            ("look_up", CallOutcome::Failed, false, Some(0)),
            ("look_upp", CallOutcome::Failed, false, Some(0)),
        ]
    );
    let results: Vec<bool> = world
        .events(root)
        .iter()
        .filter_map(|stamped| match &stamped.event {
            Event::CallEnded { result, .. } => Some(result.is_error),
            _ => None,
        })
        .collect();
    assert_eq!(results.iter().filter(|is_error| **is_error).count(), 2);
    let [first, batch, ..] = &before.calls[..] else {
        panic!("two calls were expected, not {before:?}");
    };
    assert_eq!(*first.arguments, *proxy.to_string());
    // SHA-256 of `told`.
    let digest = first.result_digest.map(|digest| digest.to_string());
    assert_eq!(digest.as_deref(), Some(TOLD));
    assert_eq!(batch.detail.as_deref(), Some("1 of 20 failed"));
    assert_eq!((batch.nested.len(), batch.nested_total), (15, 20));
    let failed: Vec<&NestedCall> = batch.nested.iter().filter(|call| call.failed).collect();
    assert_eq!(failed.len(), 1);
    assert_eq!(&*failed[0].name, "fetch 3");

    let world = world.restarted().await;
    assert_eq!(ledger(&world, root), before);
    // As a model reads it, when it asks for it.
    let asked = json!({ "session_id": ".", "ledger": true });
    let shown = world.ask(root, "agent_session_get", asked).await;
    assert_eq!(shown["ledger"]["total"], 4);
    let call = &shown["ledger"]["calls"][0];
    assert_eq!(
        *call,
        json!({
            "name": "invoke_tool -> upload_file", "arguments": proxy.to_string(), "outcome": "ok",
            "changes_state": true, "duration_micros": 7_000,
        })
    );
    let batch = &shown["ledger"]["calls"][1];
    assert_eq!(batch["nested"][0]["outcome"], "failed");
    assert_eq!(
        (&batch["detail"], &batch["nested_total"]),
        (&json!("1 of 20 failed"), &json!(20))
    );
    let usual = world.ask(root, "agent_session_get", json!({})).await;
    assert_eq!(usual.get("ledger"), None);
}

const TOLD: &str = "1fcc08c7733965bce66a034f70cc3e226eeaa3ccd3a960cff226d786d055873a";

#[tokio::test]
async fn a_session_without_a_run_has_no_ledger_and_a_run_without_calls_an_empty_one() {
    let world = world(Arc::new(MemoryStore::new()), Puppet::default()).await;
    let turnless = world.turnless_root("").await;
    let parent = root(&world).await;
    world.quiet(parent).await;
    let idle = world.child(parent, None).await;
    for (session, total) in [(turnless, None), (idle, None), (parent, Some(0))] {
        let found = world.engine.ledger(session).expect("the store is read");
        assert_eq!(found.map(|ledger| ledger.total), total);
        let asked = json!({ "ledger": true });
        let shown = world.ask(session, "agent_session_get", asked).await;
        let expected = match total {
            None => Value::Null,
            Some(total) => json!({ "total": total, "calls": [] }),
        };
        assert_eq!(shown["ledger"], expected);
    }
    // Of another tree nobody is told, and not even that it is there.
    let stranger = root(&world).await;
    world.quiet(stranger).await;
    let asked = json!({ "session_id": stranger.to_string(), "ledger": true });
    let refused = world.ask(parent, "agent_session_get", asked).await;
    assert_eq!(refused["error"]["code"], "unknown-session");
}

#[tokio::test]
async fn a_compaction_in_the_middle_of_a_run_takes_nothing_out_of_its_ledger() {
    let made = AtomicUsize::new(0);
    let puppet = Puppet::new(move |request| {
        let length: usize = request.messages.iter().map(Message::text_len).sum();
        if Puppet::last_user(request).contains("Write a summary") {
            text("It looked twice.")
        } else if length > 5_000 {
            let why = "prompt is too long: 210000 > 200000";
            vec![Piece::Fail(ModelError::new(
                ErrorKind::ContextOverflow,
                why,
            ))]
        } else if made.load(Ordering::Relaxed) < 6 {
            let number = made.fetch_add(1, Ordering::Relaxed);
            call(
                "look_up",
                &json!({ "text": format!("{number}{}", "r".repeat(1_500)) }),
            )
        } else {
            text("done")
        }
    });
    let world = world(Arc::new(MemoryStore::new()), puppet).await;
    let root = root(&world).await;
    world.quiet(root).await;
    let cuts = world.events(root);
    let cuts = cuts
        .iter()
        .filter(|stamped| matches!(stamped.event, Event::Compacted { .. }));
    assert!(cuts.count() > 0, "the conversation was cut");
    let ledger = ledger(&world, root);
    assert_eq!((ledger.calls.len(), ledger.total), (6, 6));
    let last: &Request = &world.puppet.requests().pop().expect("it was asked");
    assert!(last.messages.len() < 12, "the model has lost sight of some");
    let numbers: Vec<&str> = ledger
        .calls
        .iter()
        .map(|call| &call.arguments[9..10])
        .collect();
    assert_eq!(numbers, ["0", "1", "2", "3", "4", "5"]);
}

#[tokio::test]
async fn a_call_that_runs_is_told_as_running_and_one_that_the_run_left_as_cut() {
    let puppet = makes(vec![
        ("look_up", json!({})),
        ("invoke_tool", json!({ "hang": true })),
    ]);
    let memory = Arc::new(MemoryStore::new());
    let store = Arc::clone(&memory) as Arc<dyn Store>;
    let world = world(store, puppet).await;
    let root = root(&world).await;
    under_way(&world, root).await;
    let told = |ledger: &Ledger| {
        let last = ledger.calls.last().expect("a call");
        assert_eq!((&*last.name, last.changes_state), ("invoke_tool", true));
        assert_eq!((last.result_digest, last.duration_micros), (None, None));
        last.outcome
    };
    assert_eq!(told(&ledger(&world, root)), CallOutcome::Running);

    // A crash, and what the next life makes of it.
    let left = Arc::new(memory.crash()) as Arc<dyn Store>;
    let time = Arc::new(TestTime::of_life(1));
    let tools = attache_tools::built_in().with(Arc::new(Teller));
    let second = World::at(time, left, Puppet::default(), tools, Vec::new()).await;
    assert_eq!(told(&ledger(&second, root)), CallOutcome::Cut);
    second.engine.start(root, None).await.expect("it starts");
    second.quiet(root).await;
    assert_eq!(told(&ledger(&second, root)), CallOutcome::Cut);
}

#[tokio::test]
async fn a_call_of_an_interrupted_run_is_told_as_cut() {
    let puppet = makes(vec![("invoke_tool", json!({ "hang": true }))]);
    let world = world(Arc::new(MemoryStore::new()), puppet).await;
    let root = root(&world).await;
    under_way(&world, root).await;
    let ended = world.engine.interrupt(root, false).await;
    assert_eq!(ended, Ok(true));
    world.quiet(root).await;
    let ledger = ledger(&world, root);
    assert_eq!(ledger.total, 1);
    assert_eq!(ledger.calls[0].outcome, CallOutcome::Cut);
    assert_eq!(ledger.calls[0].duration_micros, None);
}
