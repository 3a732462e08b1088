//! Single faults of the store, and what the engine makes of them.

use std::sync::Arc;
use std::time::Duration;

use attache_engine::Change;
use attache_session::{
    Answer, Command, EndReason, ErrorCode, Event, Origin, QueueId, SessionId, Status, StopReason,
};
use attache_store::memory::{Fault, FaultPlan, MemoryStore};
use attache_store::{Refused, Rows as _, Store, Writes as _};
use attache_testkit::{Gate, Piece, Puppet, TestTime, World, call, text};
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

/// The disk is full at these appends.
fn full(at: impl IntoIterator<Item = u64>) -> FaultPlan {
    let full = || Fault::Refuse(Refused::StorageFull);
    at.into_iter()
        .fold(FaultPlan::new(), |plan, number| plan.with(number, full()))
}

#[tokio::test(start_paused = true)]
async fn a_recovery_that_a_full_disk_refuses_says_so_and_is_made_up_for() {
    let gate = Gate::default();
    // A life that is cut while a turn runs.
    let memory = Arc::new(MemoryStore::new());
    let puppet = slow(&gate);
    let tools = attache_tools::built_in();
    let store = Arc::clone(&memory) as Arc<dyn Store>;
    let world = World::with(store, puppet, tools, Vec::new()).await;
    let root = world.root(Some("go")).await;
    gate.reached().await;
    let left = Arc::new(memory.crash_into(full(1..=3)));
    let world = second_life(Arc::clone(&left) as Arc<dyn Store>, Puppet::default()).await;
    let refused = world.engine.start(root, None).await.expect_err("no space");
    assert_eq!(refused.code, ErrorCode::StorageFull);
    assert_eq!(world.row(root).status, Status::Stopped);
    // The disk has space again, and nobody asks.
    attache_testkit::pass(Duration::from_secs(10)).await;
    let told = crate::truth::read(&world.events(root));
    assert_eq!(told.turn, None, "the cut turn is on record");
    assert_eq!(told.end, Some(EndReason::HostRestart));
    assert_eq!(world.row(root).status, Status::Stopped);
    assert_eq!(world.engine.start(root, None).await, Ok(Answer::Done));
    assert_eq!(world.row(root).status, Status::Idle);
}

/// A root with a child that both have settled, over a store in which the disk is full at some appends
/// after that, counted from 1.
async fn family(full_at: &[u64]) -> (Arc<MemoryStore>, World, SessionId, SessionId) {
    let settle = async |plan| {
        let memory = Arc::new(MemoryStore::with_faults(plan));
        let world = World::over(Arc::clone(&memory) as Arc<dyn Store>).await;
        let root = world.root(Some("hello")).await;
        world.quiet(root).await;
        let child = world.child(root, Some("hello")).await;
        world.quiet(root).await;
        (memory, world, root, child)
    };
    // The same steps make the same appends: a first run says how many.
    let (memory, ..) = settle(FaultPlan::new()).await;
    let before = memory.commits();
    settle(full(full_at.iter().map(|number| before + number))).await
}

#[tokio::test(start_paused = true)]
async fn a_send_that_a_full_disk_refuses_leaves_nothing_and_can_be_repeated() {
    for by_tool in [true, false] {
        let (memory, world, root, child) = family(&[1]).await;
        let send = async |world: &World| {
            if by_tool {
                let arguments = json!({ "session_id": child.to_string(), "text": "more" });
                let said = world.ask(root, "agent_session_send", arguments).await;
                match said["error"]["code"].as_str() {
                    None => Ok(()),
                    Some(code) => Err(ErrorCode::parse(code).expect("a stable code")),
                }
            } else {
                let more = Command::Enqueue {
                    item: None,
                    queue: QueueId::Default,
                    text: "more".into(),
                    origin: Origin::Viewer,
                };
                let said = world.engine.command(child, more, None).await;
                said.map(drop).map_err(|error| error.code)
            }
        };
        let before = (world.events(root), world.events(child));
        assert_eq!(send(&world).await, Err(ErrorCode::StorageFull));
        assert!(ErrorCode::StorageFull.retryable());
        attache_testkit::pass(Duration::from_secs(10)).await;
        assert_eq!((world.events(root), world.events(child)), before);
        assert_eq!(memory.mail(child, 9), Ok(Vec::new()));
        // There is space again, and then a restart.
        assert_eq!(send(&world).await, Ok(()));
        world.quiet(root).await;
        assert_eq!(world.consumed(child), ["hello", "more"]);
        let left = Arc::new(memory.crash());
        let world = second_life(left, Puppet::default()).await;
        for session in [root, child] {
            world.engine.start(session, None).await.expect("it starts");
        }
        assert_eq!(world.consumed(child), ["hello", "more"]);
        assert_eq!(send(&world).await, Ok(()));
        world.quiet(root).await;
        assert_eq!(world.consumed(child), ["hello", "more", "more"]);
    }
}

#[tokio::test(start_paused = true)]
async fn mail_that_a_full_disk_keeps_from_being_taken_is_taken_later() {
    // The send is stored; taking it is refused for a while.
    let (_memory, world, root, child) = family(&[2, 3, 4]).await;
    let arguments = json!({ "session_id": child.to_string(), "text": "more" });
    let said = world.ask(root, "agent_session_send", arguments).await;
    assert_eq!(said["error"], serde_json::Value::Null, "{said}");
    tokio::time::timeout(Duration::from_secs(600), world.quiet(root))
        .await
        .expect("nobody sends again, and still it is read");
    assert_eq!(world.consumed(child), ["hello", "more"]);
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_of_a_tree_ends_its_runs_also_on_a_full_disk() {
    let gate = Gate::default();
    // The births, the registration, and then the one that gives it up.
    let memory = Arc::new(MemoryStore::with_faults(full([3])));
    let store = Arc::clone(&memory) as Arc<dyn Store>;
    let tools = attache_tools::built_in();
    let world = World::with(store, slow(&gate), tools, Vec::new()).await;
    let root = world.root(Some("go")).await;
    gate.reached().await;
    let itself = json!({ "session_id": "." });
    world.call(root, "agent_session_on_complete", itself).await;
    let refused = world.engine.interrupt(root, true).await;
    assert_eq!(
        refused.expect_err("the registration stands").code,
        ErrorCode::StorageFull
    );
    gate.open();
    world.quiet(root).await;
    let told = crate::truth::read(&world.events(root));
    assert_eq!(
        told.ends,
        [EndReason::Interrupted, EndReason::Interrupted],
        "the run ended, and what it was told of that has set nothing off"
    );
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
        assert_eq!(told.end, Some(EndReason::StorageError));
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
    let stop = Command::Stop {
        reason: StopReason::Terminated,
        partial: None,
    };
    let (stopped, started) = tokio::join!(
        world.engine.command(root, stop, None),
        world.engine.start(root, None)
    );
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

/// Another host takes a session, and goes away again.
async fn owned_elsewhere(memory: &MemoryStore, session: SessionId) {
    let row = memory.row(session).expect("rows can be read");
    let generation = row.expect("it exists").generation;
    let claimed = memory.claim(session, generation).await;
    claimed.expect("it was free");
}

#[tokio::test(start_paused = true)]
async fn a_turn_whose_step_another_owner_fenced_off_ends_and_the_session_goes_on() {
    // In the first step, and behind a call.
    for first in ["speak", "call"] {
        let memory = Arc::new(MemoryStore::new());
        let gate = Gate::default();
        let held = gate.clone();
        let puppet = Puppet::new(move |request| {
            if first == "call" && Puppet::rounds(request) == 0 {
                return call("agent_session_list", &json!({}));
            }
            vec![Piece::Wait(held.clone()), Piece::Text("done".to_owned())]
        });
        let store = Arc::clone(&memory) as Arc<dyn Store>;
        let world = World::with(store, puppet, attache_tools::built_in(), Vec::new()).await;
        let root = world.root(Some(first)).await;
        gate.reached().await;
        owned_elsewhere(&memory, root).await;
        gate.open();
        attache_testkit::pass(Duration::from_secs(10)).await;
        let told = crate::truth::read(&world.events(root));
        assert_eq!((told.turn, told.end), (None, Some(EndReason::StorageError)));
        assert_eq!(
            world.puppet.requests().len(),
            1 + usize::from(first == "call")
        );
        let again = Command::Enqueue {
            item: None,
            queue: QueueId::Default,
            text: "again".into(),
            origin: Origin::Viewer,
        };
        let taken = world.engine.command(root, again, None).await;
        assert!(matches!(taken, Ok(Answer::Accepted { .. })), "{taken:?}");
        world.quiet(root).await;
        let end = world.row(root).view.end_reason();
        assert_eq!(end, Some(EndReason::Completed));
    }
}

#[tokio::test]
async fn everybody_in_a_group_that_another_owner_fenced_off_is_told_so() {
    // The root is born by the first append; the next is the group, which is then tried one by one.
    let memory = Arc::new(MemoryStore::with_faults(full([2])));
    let world = World::over(Arc::clone(&memory) as Arc<dyn Store>).await;
    let root = world.root(None).await;
    let viewer = world.engine.attach(root).await.expect("it is seen");
    owned_elsewhere(&memory, root).await;
    let say = |text: &str| {
        let command = Command::Enqueue {
            item: None,
            queue: QueueId::Default,
            text: text.into(),
            origin: Origin::Viewer,
        };
        world.engine.command(root, command, None)
    };
    let (one, two) = tokio::join!(say("one"), say("two"));
    for answer in [one, two] {
        assert_eq!(answer.expect_err("fenced").code, ErrorCode::EpochFenced);
    }
    drop(viewer);
    say("three").await.expect("it is looked at anew");
    world.quiet(root).await;
    assert_eq!(world.consumed(root), ["three"]);
}

#[tokio::test(start_paused = true)]
async fn g37_who_lost_a_session_writes_nothing_more_and_its_viewers_hear_of_one_end() {
    let gate = Gate::default();
    let memory = Arc::new(MemoryStore::new());
    let store = || Arc::clone(&memory) as Arc<dyn Store>;
    let world = World::with(store(), slow(&gate), attache_tools::built_in(), Vec::new()).await;
    let root = world.root(Some("go")).await;
    let mut viewer = world.engine.attach(root).await.expect("it exists");
    gate.reached().await;
    // While the first owner is held up in its turn, another takes the session over and works with it.
    owned_elsewhere(&memory, root).await;
    let puppet = Puppet::new(|_| text("the other one's words"));
    let other = second_life(store(), puppet).await;
    let say = |text: &str| Command::Enqueue {
        item: None,
        queue: QueueId::Default,
        text: text.into(),
        origin: Origin::Viewer,
    };
    other
        .engine
        .start(root, None)
        .await
        .expect("it was stopped");
    let said = other.engine.command(root, say("from there"), None).await;
    said.expect("it is taken");
    other.quiet(root).await;
    let written = other.events(root);
    // The first owner goes on, and knows of nothing.
    gate.open();
    attache_testkit::pass(Duration::from_secs(10)).await;
    assert_eq!(world.events(root), written, "the other one's history only");
    let mut ends = Vec::new();
    let looks = async {
        loop {
            for change in viewer.observer.next().await {
                let Change::Record { item, .. } = change else {
                    continue;
                };
                assert_eq!(ends, [], "nothing follows the end: {item:?}");
                if let Event::Stopped { reason, .. } = item.event.event {
                    ends.push(reason);
                }
            }
        }
    };
    let over = tokio::time::timeout(Duration::from_secs(60), looks).await;
    assert!(over.is_err());
    assert_eq!(ends, [StopReason::HostRestart]);
    let refused = world.engine.command(root, say("from here"), None).await;
    assert_eq!(refused.expect_err("lost").code, ErrorCode::EpochFenced);
    attache_testkit::pass(Duration::from_secs(60)).await;
    assert_eq!(world.events(root), written);
    assert_eq!(other.row(root).status, Status::Idle);
}
