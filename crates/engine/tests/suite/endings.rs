//! How work is ended from outside: by the end of the host, and with a whole tree.

use std::sync::Arc;
use std::time::Duration;

use attache_engine::Change;
use attache_session::{Command, EndReason, Event, Origin, QueueId, SessionId, Status, StopReason};
use attache_store::{MemoryStore, Store};
use attache_testkit::{Dice, FaultyStore, Gate, Piece, Puppet, World, call, text};
use serde_json::{Value, json};

use crate::truth;

/// How long turns may go on when a host ends.
const GRACE: Duration = Duration::from_secs(5);

async fn world(puppet: Puppet) -> World {
    let store = Arc::new(MemoryStore::new());
    let tools = attache_tools::built_in();
    World::with(store, puppet, tools, Vec::new()).await
}

/// What the models of a session have said, as its log has it.
fn said(world: &World, session: SessionId) -> String {
    let texts = world.events(session).into_iter();
    let texts = texts.filter_map(|stamped| match stamped.event {
        Event::Said { step, .. } => Some(step.text.to_string()),
        _ => None,
    });
    texts.collect()
}

/// The child that the newest result of a request tells of.
fn made(request: &attache_testkit::Request) -> Value {
    let result = Puppet::results(request).pop().unwrap_or_default();
    serde_json::from_str::<Value>(&result).unwrap_or_default()["session_id"].clone()
}

#[tokio::test(start_paused = true)]
async fn when_the_grace_is_over_nothing_asks_a_model_or_calls_a_tool() {
    const FAMILIES: usize = 8;
    let world = world(Puppet::new(|request| {
        if Puppet::task(request) != "boss" {
            return vec![
                Piece::Text("half a".to_owned()),
                Piece::Wait(Gate::default()),
            ];
        }
        match Puppet::rounds(request) {
            0 => call("agent_session_create", &json!({ "initial_message": "w" })),
            1 => {
                let child = made(request);
                let wait = json!({ "session_id": child, "wait_for_idle": true });
                call("agent_session_wait", &wait)
            }
            _ => text("went on"),
        }
    }))
    .await;
    for _ in 0..FAMILIES {
        world.root(Some("boss")).await;
    }
    attache_testkit::pass(Duration::from_secs(1)).await;
    world.engine.shutdown(GRACE).await;
    attache_testkit::pass(Duration::from_secs(60)).await;
    let asked = world.puppet.requests().len();
    assert_eq!(asked, 3 * FAMILIES, "two by each parent, one by each child");
    let all = truth::sessions(&world);
    assert_eq!(all.len(), 2 * FAMILIES);
    for session in all {
        let row = world.row(session);
        assert_eq!(row.status, Status::Stopped);
        assert_eq!(row.view.summary.stop, Some(StopReason::HostShutdown));
        assert_eq!(row.view.end_reason(), Some(EndReason::Interrupted));
        let child = row.spawner.is_some();
        assert_eq!(said(&world, session), if child { "half a" } else { "" });
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_streamed_when_the_host_ends_is_on_record_to_the_last_word() {
    let drip = || {
        let pieces = (0..20_000).map(|number| Piece::Text(format!("{number} ")));
        pieces.flat_map(|piece| [piece, Piece::Pause(Duration::from_millis(1))])
    };
    let store = FaultyStore::new(Arc::new(MemoryStore::new())).slow(Dice::new(1));
    let world = World::with(
        Arc::new(store) as Arc<dyn Store>,
        Puppet::new(move |_| drip().collect()),
        attache_tools::built_in(),
        Vec::new(),
    )
    .await;
    let root = world.root(Some("go")).await;
    let mut viewer = world.engine.attach(root).await.expect("it exists");
    let mut seen = viewer.snapshot.live.text.clone();
    let looks = async {
        loop {
            for change in viewer.observer.next().await {
                match change {
                    Change::Text { text, .. } => seen.push_str(&text),
                    Change::Record { item, .. } => {
                        if matches!(item.event.event, Event::Stopped { .. }) {
                            return;
                        }
                    }
                    Change::Note | Change::Modal { .. } => {}
                    Change::Lagged => panic!("nobody is slow here"),
                }
            }
        }
    };
    tokio::join!(world.engine.shutdown(GRACE), looks);
    let said = said(&world, root);
    assert!(seen.len() > 1_000, "{seen:?}");
    assert!(said.starts_with(&seen), "{said:?} is shorter than {seen:?}");
}

#[tokio::test(start_paused = true)]
async fn input_that_waits_when_the_host_ends_stays_in_its_queue() {
    let gate = Gate::default();
    let held = gate.clone();
    let world = world(Puppet::new(move |_| {
        vec![Piece::Wait(held.clone()), Piece::Text("done".to_owned())]
    }))
    .await;
    let root = world.root(Some("first")).await;
    gate.reached().await;
    let more = Command::Enqueue {
        item: None,
        queue: QueueId::Default,
        text: "and then this".into(),
        origin: Origin::Viewer,
    };
    world
        .engine
        .command(root, more, None)
        .await
        .expect("it is taken");
    tokio::join!(world.engine.shutdown(GRACE), async {
        attache_testkit::pass(Duration::from_secs(1)).await;
        gate.open();
    });
    assert_eq!(world.puppet.requests().len(), 1, "no new work");
    assert_eq!(world.consumed(root), ["first"]);
    assert_eq!(world.row(root).view.summary.queued, 1);
    assert_eq!(
        world.row(root).view.end_reason(),
        Some(EndReason::Completed)
    );
    // The next life begins with it.
    let world = world.restarted().await;
    world.engine.start(root, None).await.expect("it starts");
    world.quiet(root).await;
    assert_eq!(world.consumed(root), ["first", "and then this"]);
}

#[tokio::test(start_paused = true)]
async fn who_watches_a_session_whose_input_was_kept_back_is_told_after_a_restart() {
    let gate = Gate::default();
    let held = gate.clone();
    let world = world(Puppet::new(move |request| {
        match Puppet::last_user(request).as_str() {
            "wait" => vec![Piece::Wait(held.clone())],
            _ => text("done"),
        }
    }))
    .await;
    let root = world.root(None).await;
    let child = world.child(root, Some("wait")).await;
    gate.reached().await;
    let on = json!({ "session_id": child.to_string(), "message": "it has ended" });
    world.ask(root, "agent_session_on_complete", on).await;
    let more = json!({ "session_id": child.to_string(), "text": "more" });
    world.ask(root, "agent_session_send", more).await;
    attache_testkit::pass(Duration::from_secs(1)).await;
    tokio::join!(world.engine.shutdown(GRACE), async {
        attache_testkit::pass(Duration::from_secs(1)).await;
        gate.open();
    });
    assert_eq!(world.row(child).view.summary.queued, 1);
    let world = world.restarted().await;
    world.engine.start(root, None).await.expect("it starts");
    let settled = tokio::time::timeout(Duration::from_secs(60), world.quiet(root));
    settled.await.expect("it is told");
    assert_eq!(world.consumed(root), ["it has ended"]);
    assert_eq!(world.row(child).status, Status::Stopped);
    assert_eq!(world.row(child).view.summary.queued, 1);
}

/// Every session creates two children, and two more, for ever.
fn growing() -> Puppet {
    Puppet::new(|request| {
        let pause = Piece::Pause(Duration::from_millis(5));
        if Puppet::task(request).starts_with("stay") {
            return vec![Piece::Wait(Gate::default())];
        }
        let child = json!({ "initial_message": "grow" });
        let mut pieces = vec![pause];
        for _ in 0..2 {
            pieces.extend(call("agent_session_create", &child));
        }
        pieces
    })
}

/// A world in which a tree grows as fast as a slow store lets it.
async fn growing_world() -> World {
    let store = FaultyStore::new(Arc::new(MemoryStore::new())).slow(Dice::new(2));
    let store = Arc::new(store) as Arc<dyn Store>;
    let tools = attache_tools::built_in();
    World::with(store, growing(), tools, Vec::new()).await
}

/// Lets a tree grow.
async fn grown(world: &World, sessions: usize) {
    while truth::sessions(world).len() < sessions {
        attache_testkit::pass(Duration::from_millis(10)).await;
    }
}

/// Nothing is asked and nothing is created any more.
async fn at_rest(world: &World) {
    let count = || (truth::sessions(world).len(), world.puppet.requests().len());
    let before = count();
    attache_testkit::pass(Duration::from_secs(60)).await;
    assert_eq!(count(), before, "sessions, and requests");
    for session in truth::sessions(world) {
        let log: Vec<_> = world.events(session);
        assert_eq!(truth::read(&log).turn, None, "{session} is at work");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tree_that_grows_for_ever_is_interrupted_as_a_whole() {
    let world = growing_world().await;
    let root = world.root(Some("grow")).await;
    grown(&world, 300).await;
    let (any, took) = attache_testkit::timed(world.engine.interrupt(root, true)).await;
    assert_eq!(any, Ok(true));
    assert!(took < Duration::from_secs(1), "{took:?}");
    at_rest(&world).await;
    for session in truth::sessions(&world) {
        let row = world.row(session);
        assert_eq!(row.status, Status::Idle);
        assert_eq!(row.view.end_reason(), Some(EndReason::Interrupted));
    }
    // It is over: a new run creates again.
    let again = world.child(root, None).await;
    assert_eq!(world.row(again).status, Status::Idle);
}

#[tokio::test(start_paused = true)]
async fn a_child_that_grows_for_ever_is_stopped_and_given_up_by_the_tool() {
    let world = growing_world().await;
    let root = world.root(None).await;
    let child = world.child(root, Some("grow")).await;
    grown(&world, 200).await;
    let dispose = json!({ "session_id": child.to_string(), "dispose": true });
    let stopped = world.ask(root, "agent_session_stop", dispose).await;
    assert_eq!(stopped, json!({ "ok": true, "was_running": true }));
    at_rest(&world).await;
    for session in truth::sessions(&world) {
        let status = world.row(session).status;
        let own = session == root;
        assert_eq!(status, if own { Status::Idle } else { Status::Stopped });
    }
}

#[tokio::test(start_paused = true)]
async fn a_tree_that_grows_for_ever_is_terminated_as_a_whole() {
    for from_root in [true, false] {
        let world = growing_world().await;
        let root = world.root(from_root.then_some("grow")).await;
        let top = if from_root {
            root
        } else {
            world.child(root, Some("grow")).await
        };
        grown(&world, 300).await;
        let (lived, took) = attache_testkit::timed(world.engine.terminate(top)).await;
        assert_eq!(lived, Ok(true));
        assert!(took < Duration::from_secs(1), "{took:?}");
        let live = usize::from(!from_root);
        assert_eq!(world.engine.load().0, live, "it is all stopped by now");
        at_rest(&world).await;
        for session in truth::sessions(&world) {
            let row = world.row(session);
            if from_root || session != root {
                assert_eq!(row.status, Status::Stopped);
                assert_eq!(row.view.end_reason(), Some(EndReason::Cancelled));
            }
        }
        assert_eq!(world.engine.terminate(top).await, Ok(false));
    }
}

#[tokio::test(start_paused = true)]
async fn what_another_living_session_holds_goes_on_while_a_tree_is_terminated() {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
    let gate = Gate::default();
    let held = gate.clone();
    let puppet = Puppet::new(move |request| {
        let mut pieces = vec![Piece::Text("half a".to_owned())];
        if Puppet::task(request).starts_with("keep") {
            pieces.push(Piece::Wait(held.clone()));
            pieces.push(Piece::Text(" sentence".to_owned()));
        } else {
            pieces.push(Piece::Wait(Gate::default()));
        }
        pieces
    });
    let shared = Arc::clone(&store) as Arc<dyn Store>;
    let world = World::with(shared, puppet, attache_tools::built_in(), Vec::new()).await;
    let root = world.root(None).await;
    let top = world.child(root, Some("stay")).await;
    let own = world.child(top, Some("stay")).await;
    let kept = world.child(top, Some("keep")).await;
    let below = world.child(kept, Some("keep below")).await;
    let on = json!({ "session_id": kept.to_string() });
    world.ask(root, "agent_session_acquire", on).await;
    attache_testkit::pass(Duration::from_secs(1)).await;
    let hold = store.hold(move |append| {
        let stopped = |it: &attache_session::Stamped| matches!(it.event, Event::Stopped { .. });
        append.session == top && append.events.iter().any(stopped)
    });
    let (lived, (by_own, by_kept)) = tokio::join!(world.engine.terminate(top), async {
        hold.reached().await;
        let by_own = world.ask(own, "agent_session_create", json!({})).await;
        let by_kept = world.ask(kept, "agent_session_create", json!({})).await;
        hold.open();
        (by_own, by_kept)
    });
    assert_eq!(lived, Ok(true));
    assert!(by_own["error"]["code"].is_string(), "{by_own}");
    assert!(by_kept["session_id"].is_string(), "{by_kept}");
    for session in [top, own] {
        assert_eq!(world.row(session).status, Status::Stopped);
        assert_eq!(said(&world, session), "half a");
    }
    for session in [kept, below] {
        assert_eq!(world.row(session).status, Status::Running);
    }
    gate.open();
    world.quiet(root).await;
    for session in [kept, below] {
        let row = world.row(session);
        assert_eq!(row.view.end_reason(), Some(EndReason::Completed));
        assert_eq!(said(&world, session), "half a sentence");
    }
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_tree_keeps_its_queues_and_goes_on_with_them() {
    let gate = Gate::default();
    let held = gate.clone();
    let world = world(Puppet::new(move |request| {
        match Puppet::last_user(request).as_str() {
            "stay" => vec![Piece::Wait(held.clone())],
            _ => text("done"),
        }
    }))
    .await;
    let root = world.root(Some("stay")).await;
    let child = world.child(root, Some("stay")).await;
    let other = world.child(root, Some("stay")).await;
    let on = json!({ "session_id": other.to_string() });
    world
        .ask(child, "agent_session_on_complete", on.clone())
        .await;
    world.ask(root, "agent_session_on_complete", on).await;
    attache_testkit::pass(Duration::from_secs(1)).await;
    for session in [root, child] {
        let more = Command::Enqueue {
            item: None,
            queue: QueueId::Default,
            text: "and then this".into(),
            origin: Origin::Viewer,
        };
        let taken = world.engine.command(session, more, None).await;
        taken.expect("it is taken");
    }
    assert_eq!(world.engine.interrupt(root, true).await, Ok(true));
    world.quiet(root).await;
    for session in [root, child] {
        assert_eq!(world.consumed(session), ["stay", "and then this"]);
        let told = truth::read(&world.events(session));
        assert_eq!(told.ends, [EndReason::Interrupted, EndReason::Completed]);
    }
    assert_eq!(world.consumed(other), ["stay"]);
}
