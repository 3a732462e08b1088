//! Single faults of the store, and what the engine makes of them.

use std::sync::Arc;
use std::time::Duration;

use attache_session::{Command, Event, Origin, QueueId, Status};
use attache_store::memory::{Fault, FaultPlan, MemoryStore};
use attache_store::{Refused, Rows as _, Store};
use attache_testkit::{Gate, Piece, Puppet, TestTime, World, text};
use serde_json::json;

async fn second_life(store: Arc<dyn Store>, puppet: Puppet) -> World {
    let time = Arc::new(TestTime::of_life(1));
    World::at(time, store, puppet, attache_tools::built_in(), Vec::new()).await
}

fn slow(gate: &Gate) -> Puppet {
    let gate = gate.clone();
    Puppet::new(move |_| {
        vec![
            Piece::Text("half a".to_owned()),
            Piece::Wait(gate.clone()),
            Piece::Text(" sentence".to_owned()),
        ]
    })
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_recovery_is_refused_is_recovered_at_the_next_look() {
    let gate = Gate::default();
    // A life that is cut while a turn runs.
    let memory = Arc::new(MemoryStore::new());
    let puppet = slow(&gate);
    let tools = attache_tools::built_in();
    let store = Arc::clone(&memory) as Arc<dyn Store>;
    let world = World::with(store, puppet, tools, Vec::new()).await;
    let root = world.root(Some("go")).await;
    gate.reached().await;
    let plan = FaultPlan::new().with(1, Fault::Refuse(Refused::StorageFull));
    let left = Arc::new(memory.crash_into(plan));
    let world = second_life(Arc::clone(&left) as Arc<dyn Store>, Puppet::default()).await;
    attache_testkit::pass(Duration::from_secs(5)).await;
    assert_eq!(world.row(root).status, Status::Stopped);
    // The disk has space again: the first start ends the old epoch and begins a new one.
    let _first = world.engine.start(root, None).await;
    world.engine.start(root, None).await.expect("it starts");
    let row = world.row(root);
    assert_ne!(row.status, Status::Stopped);
    assert_eq!(row.view.summary.turn, None, "the cut turn is on record");
}

#[tokio::test(start_paused = true)]
async fn a_storage_fault_during_a_run_ends_it_on_record() {
    for refused in [Refused::StorageFull, Refused::Failed("no".to_owned())] {
        // The first commit bears the root, the second ends its turn.
        let plan = FaultPlan::new().with(2, Fault::Refuse(refused));
        let memory = Arc::new(MemoryStore::with_faults(plan));
        let store = Arc::clone(&memory) as Arc<dyn Store>;
        let world = World::over(store).await;
        let root = world.root(Some("hello")).await;
        tokio::time::timeout(Duration::from_secs(600), world.quiet(root))
            .await
            .expect("it settles");
        let row = world.row(root);
        assert_eq!(row.status, Status::Error);
        let told = crate::truth::read(&world.events(root));
        assert_eq!(told.end, Some(attache_session::EndReason::StorageError));
        let again = Command::Enqueue {
            item: None,
            queue: QueueId::Default,
            text: "again".into(),
            origin: Origin::Viewer,
        };
        world
            .engine
            .command(root, again, None)
            .await
            .expect("it goes on");
        world.quiet(root).await;
        assert_eq!(world.row(root).status, Status::Idle);
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_follows_a_stop_at_once_streams_its_own_text() {
    let gate = Gate::default();
    let world = World::with(
        Arc::new(MemoryStore::new()),
        slow(&gate),
        attache_tools::built_in(),
        Vec::new(),
    )
    .await;
    let root = world.root(Some("one")).await;
    gate.reached().await;
    let wait = |text: &str| Command::Enqueue {
        item: None,
        queue: QueueId::Default,
        text: text.into(),
        origin: Origin::Viewer,
    };
    world.engine.command(root, wait("two"), None).await.unwrap();
    // Both are decided in one append: the first turn's task ends while the second one's runs.
    let (stopped, started) =
        tokio::join!(world.engine.terminate(root), world.engine.start(root, None));
    stopped.unwrap();
    started.unwrap();
    attache_testkit::pass(Duration::from_secs(1)).await;
    let live = world.engine.live(root).expect("it is at work");
    assert_eq!((live.turn, live.text.as_str()), (2, "half a"));
    gate.open();
    world.quiet(root).await;
    let told = crate::truth::read(&world.events(root));
    assert_eq!(told.consumed.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn text_that_is_on_record_is_not_said_again_after_a_crash() {
    // The model speaks for more than a second, and calls; the crash comes while the call runs.
    let gate = Gate::default();
    // The birth, the step with its call, and then what the call does.
    let plan = FaultPlan::new().with(3, Fault::CrashBefore);
    let memory = Arc::new(MemoryStore::with_faults(plan));
    let store = Arc::clone(&memory) as Arc<dyn Store>;
    let held = gate.clone();
    let puppet = Puppet::new(move |request| match Puppet::rounds(request) {
        0 => vec![
            Piece::Text("first".to_owned()),
            Piece::Wait(held.clone()),
            Piece::Text(" second".to_owned()),
            Piece::Call("agent_session_create".to_owned(), json!({}).to_string()),
        ],
        _ => text("done"),
    });
    let tools = attache_tools::built_in();
    let world = World::with(store, puppet, tools, Vec::new()).await;
    let root = world.root(Some("go")).await;
    gate.reached().await;
    world.time.wind(2_000_000);
    gate.open();
    let said = |events: &[attache_session::Stamped]| {
        let said = events
            .iter()
            .filter(|it| matches!(it.event, Event::Said { .. }));
        said.count()
    };
    memory.when_crashed().await;
    let left = Arc::new(memory.crash());
    let row = left.row(root).expect("it can be read").expect("it exists");
    assert!(row.summary.action.is_some(), "the call is under way");
    let world = second_life(left, Puppet::default()).await;
    attache_testkit::pass(Duration::from_secs(1)).await;
    let told = world.events(root);
    crate::truth::read(&told);
    assert_eq!(said(&told), 1, "{told:#?}");
}
