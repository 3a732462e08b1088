//! Crash by commit: every scenario runs once for each of its commits, with a crash before it, after
//! it but before its answer, and after its answer but before anything that follows is stored. What
//! a restart finds must be whole, must read stopped, must stay so, and must go on when it is told.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache_session::{Command, Event, ItemId, Origin, QueueId, SessionId, Status};
use attache_store::memory::{Fault, FaultPlan, MemoryStore};
use attache_testkit::{FaultyStore, Gate, Puppet, TestTime, World};

use crate::scenarios::{SCENARIOS, Scenario, Stage};
use crate::script::say;
use crate::truth::{self, TreeEnd};

/// Where in the life of a commit the world ends.
#[derive(Clone, Copy, Debug)]
enum Place {
    Never,
    Before(u64),
    After(u64),
    Answered(u64),
}

/// What a life of the host leaves behind.
struct Left {
    store: Arc<MemoryStore>,
    accepted: Vec<ItemId>,
    roots: Vec<SessionId>,
    ends: Vec<TreeEnd>,
}

/// A runtime of its own, so that with its end nothing of that life writes on.
pub(crate) fn life<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime")
        .block_on(work)
}

fn first_life(scenario: Scenario, place: Place) -> Left {
    let plan = FaultPlan::new();
    let plan = match place {
        Place::Before(commit) => plan.with(commit, Fault::CrashBefore),
        Place::After(commit) => plan.with(commit, Fault::CrashAfter),
        Place::Never | Place::Answered(_) => plan,
    };
    let memory = Arc::new(MemoryStore::with_faults(plan));
    let accepted = Arc::new(Mutex::new(Vec::new()));
    let roots = Arc::new(Mutex::new(Vec::new()));
    let ends = Arc::new(Mutex::new(Vec::new()));
    life(async {
        let mut store = FaultyStore::new(Arc::clone(&memory));
        if let Place::Answered(commit) = place {
            store = store.stopping_after(commit);
        }
        let store = Arc::new(store);
        let gate = Gate::default();
        let stage = Stage {
            world: world(
                Arc::clone(&store) as Arc<dyn attache_store::Store>,
                &gate,
                0,
            )
            .await,
            gate,
            accepted: Arc::clone(&accepted),
            roots: Arc::clone(&roots),
            ends: Arc::clone(&ends),
        };
        let acting = tokio::time::timeout(LONG, scenario(&stage));
        tokio::select! {
            biased;
            () = store.when_stopped() => {}
            done = acting => done.expect("the scenario comes to its end"),
        }
    });
    Left {
        store: memory,
        accepted: accepted.lock().expect("no holder fails").clone(),
        roots: roots.lock().expect("no holder fails").clone(),
        ends: ends.lock().expect("no holder fails").clone(),
    }
}

/// Longer than anything here takes, in virtual time.
const LONG: Duration = Duration::from_secs(3_600);

/// What a look at the clock takes: more than any append has events, so that stamps of several sessions
/// can be compared.
const LOOK_MICROS: i64 = 1_000;

async fn world(store: Arc<dyn attache_store::Store>, gate: &Gate, life: u32) -> World {
    let gate = gate.clone();
    let puppet = Puppet::new(move |request| say(request, &gate));
    let time = Arc::new(TestTime::of_life(life).stepping(LOOK_MICROS));
    World::at(time, store, puppet, attache_tools::built_in(), Vec::new()).await
}

/// Goes on after a crash. The answer is whether somebody was still to be told of a session that had said its last.
fn after_restart(left: &Left) -> bool {
    let memory = Arc::new(left.store.crash());
    life(async {
        let gate = Gate::default();
        gate.open();
        let world = world(
            Arc::clone(&memory) as Arc<dyn attache_store::Store>,
            &gate,
            1,
        )
        .await;
        let all = truth::sessions(&world);
        let found = truth::all(&memory, &all);
        // At once, before anything is written down.
        truth::rows_are_true(&world, &memory, &found, false);
        truth::nothing_sent_is_lost(&memory, &found);
        for root in &left.roots {
            assert!(all.contains(root), "a root that was acknowledged is there");
        }
        for item in &left.accepted {
            let there = found.values().flat_map(|log| &log.queued);
            let there = there.filter(|(id, _)| id == item).count();
            assert_eq!(there, 1, "accepted input is there once");
        }
        // Recovery runs, and nothing starts by itself.
        attache_testkit::pass(Duration::from_secs(60)).await;
        assert!(
            world.puppet.requests().is_empty(),
            "nothing starts by itself"
        );
        let recovered = truth::all(&memory, &all);
        for (id, log) in &recovered {
            assert!(
                log.turn.is_none(),
                "the end of the turn of {id} is on record"
            );
            assert_eq!(
                log.consumed, found[id].consumed,
                "nothing is taken meanwhile"
            );
            let row = world.row(*id);
            assert_eq!(row.status, Status::Stopped);
            assert_eq!(row.view.unread.other, 0, "{id} has read what needs no life");
        }
        truth::rows_are_true(&world, &memory, &recovered, false);
        // Told to, everything goes on to its end.
        for id in &all {
            world.engine.start(*id, None).await.expect("it starts");
            tokio::time::timeout(LONG, world.quiet(*id))
                .await
                .expect("it settles");
        }
        let turnless = |id: &SessionId| !world.row(*id).view.summary.runs_turns;
        for id in &all {
            let hello = Command::Enqueue {
                item: None,
                queue: QueueId::Default,
                text: "hello after all".into(),
                origin: Origin::Viewer,
            };
            let taken = world.engine.command(*id, hello, None).await;
            assert_eq!(taken.is_ok(), !turnless(id), "it takes input");
        }
        attache_testkit::pass(Duration::from_secs(60)).await;
        let ended = truth::all(&memory, &all);
        truth::nothing_sent_is_lost(&memory, &ended);
        truth::rows_are_true(&world, &memory, &ended, true);
        truth::watches_are_accounted_for(&memory, &ended, &left.ends);
        truth::everybody_is_told_once(&ended);
        for (id, log) in &ended {
            assert!(log.live && log.turn.is_none());
            assert_eq!(log.deliverable(), 0, "{id} has taken all but what is held");
            assert!(log.watches.is_empty(), "no watch of {id} is open");
            let unread = world.row(*id).view.unread;
            assert_eq!(unread, attache_session::Unread::default(), "session {id}");
            let hellos = log
                .consumed
                .iter()
                .filter(|(_, text)| text == "hello after all");
            assert_eq!(hellos.count(), usize::from(!log.turnless));
        }
        truth::somebody_is_still_to_be_told(&found)
    })
}

/// What came of all crashes of a scenario.
#[derive(Default)]
pub(crate) struct Walk {
    pub(crate) crashes: u64,
    /// Those between a session's last token and the turn in which who watched it was told.
    pub(crate) between: u64,
    /// Those after which something does not hold.
    pub(crate) failed: Vec<String>,
}

/// All crashes of a scenario.
pub(crate) fn walk(name: &str, scenario: Scenario) -> Walk {
    let mut walk = Walk::default();
    let whole = std::panic::catch_unwind(|| first_life(scenario, Place::Never));
    let Ok(commits) = whole.map(|left| left.store.commits()) else {
        walk.failed.push(format!("{name}: without a crash"));
        return walk;
    };
    walk.crashes = commits * 3;
    let places = (1..=commits).flat_map(|commit| {
        [
            Place::Before(commit),
            Place::After(commit),
            Place::Answered(commit),
        ]
    });
    for place in std::iter::once(Place::Never).chain(places) {
        let run = || after_restart(&first_life(scenario, place));
        match std::panic::catch_unwind(run) {
            Ok(between) => walk.between += u64::from(between),
            Err(_) => walk.failed.push(format!("{name}: {place:?} of {commits}")),
        }
    }
    walk
}

#[test]
fn a_crash_at_any_commit_leaves_a_whole_that_goes_on() {
    let mut runs = 0;
    let mut failed = Vec::new();
    let mut kinds = BTreeSet::new();
    for (name, scenario) in SCENARIOS {
        let whole = first_life(*scenario, Place::Never);
        kinds.extend(whole.store.traces().into_iter().flat_map(|it| it.kinds));
        let walk = walk(name, *scenario);
        runs += walk.crashes;
        println!("{name}: {} crashes", walk.crashes);
        failed.extend(walk.failed);
    }
    println!("{runs} crashes");
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(runs > 200);
    // A new kind needs a scenario that stores it.
    let never = Event::KINDS.iter().filter(|kind| !kinds.contains(**kind));
    let never: Vec<_> = never.collect();
    assert!(never.is_empty(), "no scenario stores {never:?}");
}
