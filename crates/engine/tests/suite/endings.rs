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
