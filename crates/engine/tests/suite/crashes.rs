//! Crash by commit: every scenario runs once for each of its commits, with a crash before it, after
//! it but before its answer, and after its answer but before anything that follows is stored. What
//! a restart finds must be whole, must read stopped, must stay so, and must go on when it is told.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache_session::{Answer, Command, Event, ItemId, Origin, QueueId, SessionId, Status};
use attache_store::memory::{Fault, FaultPlan, MemoryStore};
use attache_testkit::{FaultyStore, Gate, Puppet, TestTime, World};
use serde_json::json;

use crate::script::say;
use crate::truth::{self, TreeEnd};

/// What a scenario has of its world: and what it was told is safe.
struct Stage {
    world: World,
    gate: Gate,
    /// Input that was acknowledged.
    accepted: Arc<Mutex<Vec<ItemId>>>,
    roots: Arc<Mutex<Vec<SessionId>>>,
    /// Trees whose runs were ended.
    ends: Arc<Mutex<Vec<TreeEnd>>>,
}

impl Stage {
    async fn root(&self, first: Option<&str>) -> SessionId {
        let root = self.world.root(first).await;
        self.roots.lock().expect("no holder fails").push(root);
        // The first input is acknowledged with the root.
        let born = self.world.events(root);
        let first = born.iter().find_map(|stamped| match &stamped.event {
            Event::Queued { item, .. } => Some(item.id),
            _ => None,
        });
        self.accepted.lock().expect("no holder fails").extend(first);
        root
    }

    /// Ends the runs of a whole tree.
    async fn interrupt_tree(&self, top: SessionId) {
        let now = || attache_engine::Time::now(&*self.world.time);
        let end = TreeEnd {
            top,
            from: now(),
            to: None,
        };
        self.ends.lock().expect("no holder fails").push(end);
        let any = self.world.engine.interrupt(top, true).await;
        assert_eq!(any, Ok(true), "something ran");
        if let Some(end) = self.ends.lock().expect("no holder fails").last_mut() {
            end.to = Some(now());
        }
    }

    async fn enqueue(&self, session: SessionId, queue: QueueId, text: &str) -> ItemId {
        let command = Command::Enqueue {
            item: None,
            queue,
            text: text.into(),
            origin: Origin::Viewer,
        };
        match self.world.engine.command(session, command, None).await {
            Ok(Answer::Accepted { item }) => {
                self.accepted.lock().expect("no holder fails").push(item);
                item
            }
            other => panic!("{other:?}"),
        }
    }

    fn child(&self, of: SessionId) -> SessionId {
        let all = truth::sessions(&self.world);
        let is_child = |id: &&SessionId| self.world.row(**id).spawner == Some(of);
        *all.iter().find(is_child).expect("there is a child")
    }

    async fn ask(&self, caller: SessionId, tool: &str, target: SessionId, more: serde_json::Value) {
        let mut arguments = json!({ "session_id": target.to_string() });
        for (key, value) in more.as_object().expect("an object") {
            arguments[key] = value.clone();
        }
        self.world.call(caller, tool, arguments).await;
    }
}

type Acting<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;
type Scenario = for<'a> fn(&'a Stage) -> Acting<'a>;

const SCENARIOS: &[(&str, Scenario)] = &[
    ("hello", |stage| {
        Box::pin(async {
            let root = stage.root(Some("hello")).await;
            stage.world.quiet(root).await;
            stage.enqueue(root, QueueId::Default, "hello again").await;
            stage.world.quiet(root).await;
        })
    }),
    ("one tool call", |stage| {
        Box::pin(async {
            let root = stage.root(Some("list")).await;
            stage.world.quiet(root).await;
        })
    }),
    ("a parent waits for two children", |stage| {
        Box::pin(async {
            let root = stage.root(Some("two")).await;
            stage.world.quiet(root).await;
        })
    }),
    ("a child's end is told to its parent", |stage| {
        Box::pin(async {
            let root = stage.root(Some("watch")).await;
            stage.world.quiet(root).await;
        })
    }),
    ("three levels by watches alone", |stage| {
        Box::pin(async {
            let root = stage.root(Some("deep")).await;
            stage.world.quiet(root).await;
        })
    }),
    ("immediate input during a turn", |stage| {
        Box::pin(async {
            let root = stage.root(Some("slow")).await;
            stage.gate.reached().await;
            stage.enqueue(root, QueueId::Immediate, "steer").await;
            stage.enqueue(root, QueueId::Default, "later").await;
            stage.gate.open();
            stage.world.quiet(root).await;
        })
    }),
    ("a queue is edited during a turn", |stage| {
        Box::pin(async {
            let root = stage.root(Some("slow")).await;
            stage.gate.reached().await;
            let one = stage.enqueue(root, QueueId::Default, "one").await;
            let two = stage.enqueue(root, QueueId::Default, "two").await;
            let edit = Command::Edit {
                item: one,
                text: "one, edited".into(),
                expected: 0,
            };
            let moved = Command::Move {
                item: two,
                queue: QueueId::Default,
                before: Some(one),
                expected: 0,
            };
            for command in [edit, moved] {
                let done = stage.world.engine.command(root, command, None).await;
                done.expect("it waits");
            }
            stage.gate.open();
            stage.world.quiet(root).await;
        })
    }),
    ("a child is sent to", |stage| {
        Box::pin(async {
            let root = stage.root(Some("child")).await;
            stage.world.quiet(root).await;
            let child = stage.child(root);
            let text = json!({ "text": "more" });
            stage.ask(root, "agent_session_send", child, text).await;
            stage.world.quiet(root).await;
        })
    }),
    ("a child is disposed and acquired again", |stage| {
        Box::pin(async {
            let root = stage.root(Some("slow-child")).await;
            stage.gate.reached().await;
            let child = stage.child(root);
            let dispose = json!({ "dispose": true });
            stage.ask(root, "agent_session_stop", child, dispose).await;
            stage.world.quiet(root).await;
            stage.gate.open();
            stage
                .ask(root, "agent_session_acquire", child, json!({}))
                .await;
            let text = json!({ "text": "more" });
            stage.ask(root, "agent_session_send", child, text).await;
            stage.world.quiet(root).await;
        })
    }),
    ("a tree is terminated", |stage| {
        Box::pin(async {
            let root = stage.root(Some("tree")).await;
            stage.gate.reached().await;
            let _ran = stage.world.engine.terminate(root).await;
            stage.world.quiet(root).await;
        })
    }),
    ("a tree is interrupted with its watches", |stage| {
        Box::pin(async {
            let root = stage.root(Some("slow-child")).await;
            stage.gate.reached().await;
            let child = stage.child(root);
            stage
                .ask(root, "agent_session_on_complete", child, json!({}))
                .await;
            stage.interrupt_tree(root).await;
            stage.world.quiet(root).await;
        })
    }),
    ("a session watches its own end", |stage| {
        Box::pin(async {
            let root = stage.root(Some("slow")).await;
            stage.gate.reached().await;
            let watch = json!({ "session_id": "." });
            stage
                .world
                .call(root, "agent_session_on_complete", watch)
                .await;
            stage.gate.open();
            stage.world.quiet(root).await;
        })
    }),
];

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
fn life<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime")
        .block_on(work)
}

fn first_life(scenario: Scenario, plan: FaultPlan, place: Place) -> Left {
    let plan = match place {
        Place::Before(commit) => plan.with(commit, Fault::CrashBefore),
        Place::After(commit) => plan.with(commit, Fault::CrashAfter),
        Place::Never | Place::Answered(_) => plan,
    };
    act(scenario, Arc::new(MemoryStore::with_faults(plan)), place)
}

fn act(scenario: Scenario, memory: Arc<MemoryStore>, place: Place) -> Left {
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

fn after_restart(left: &Left) {
    let memory = Arc::new(left.store.crash());
    life(async {
        let gate = Gate::default();
        gate.open();
        let store = Arc::clone(&memory) as Arc<dyn attache_store::Store>;
        let world = world(store, &gate, 1).await;
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
        for id in &all {
            let hello = Command::Enqueue {
                item: None,
                queue: QueueId::Default,
                text: "hello after all".into(),
                origin: Origin::Viewer,
            };
            world
                .engine
                .command(*id, hello, None)
                .await
                .expect("it takes input");
        }
        attache_testkit::pass(Duration::from_secs(60)).await;
        let ended = truth::all(&memory, &all);
        truth::nothing_sent_is_lost(&memory, &ended);
        truth::rows_are_true(&world, &memory, &ended, true);
        truth::watches_are_accounted_for(&memory, &ended, &left.ends);
        for (id, log) in &ended {
            assert!(log.live && log.turn.is_none() && log.waiting.is_empty());
            assert!(log.watches.is_empty(), "no watch of {id} is open");
            let unread = world.row(*id).view.unread;
            assert_eq!(unread, attache_session::Unread::default(), "session {id}");
            let hellos = log
                .consumed
                .iter()
                .filter(|(_, text)| text == "hello after all");
            assert_eq!(hellos.count(), 1);
        }
    });
}

#[test]
fn a_crash_at_any_commit_leaves_a_whole_that_goes_on() {
    let mut runs = 0;
    let mut failed = Vec::new();
    for (name, scenario) in SCENARIOS {
        let whole = first_life(*scenario, FaultPlan::new(), Place::Never);
        let commits = whole.store.commits();
        after_restart(&whole);
        for commit in 1..=commits {
            for place in [
                Place::Before(commit),
                Place::After(commit),
                Place::Answered(commit),
            ] {
                let run = std::panic::catch_unwind(|| {
                    after_restart(&first_life(*scenario, FaultPlan::new(), place));
                });
                if run.is_err() {
                    failed.push(format!("{name}: {place:?} of {commits}"));
                }
                runs += 1;
            }
        }
        println!("{name}: {commits} commits");
    }
    println!("{runs} crashes");
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(runs > 200);
}
