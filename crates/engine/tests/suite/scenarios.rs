//! What the crashes are tried on: each scenario is a short life of a few sessions, and says what it was
//! told is safe.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use attache_session::{
    Answer, BudgetChange, Command, Event, Immediacy, ItemId, Origin, QueueId, SessionId, Setting,
    Status,
};
use attache_testkit::{Gate, World};
use serde_json::json;

use crate::truth::{self, TreeEnd};

/// What a scenario has of its world: and what it was told is safe.
pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) gate: Gate,
    /// Input that was acknowledged.
    pub(crate) accepted: Arc<Mutex<Vec<ItemId>>>,
    pub(crate) roots: Arc<Mutex<Vec<SessionId>>>,
    /// Trees whose runs were ended.
    pub(crate) ends: Arc<Mutex<Vec<TreeEnd>>>,
}

impl Stage {
    pub(crate) async fn root(&self, first: Option<&str>) -> SessionId {
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

    async fn done(&self, session: SessionId, command: Command) {
        let done = self.world.engine.command(session, command, None).await;
        assert_eq!(done, Ok(Answer::Done));
    }

    /// Makes a queue.
    async fn queue(&self, session: SessionId) -> QueueId {
        let make = Command::CreateQueue {
            name: None,
            immediacy: Immediacy::Queue,
        };
        match self.world.engine.command(session, make, None).await {
            Ok(Answer::QueueMade { queue }) => queue,
            other => panic!("{other:?}"),
        }
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

pub(crate) type Acting<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;
pub(crate) type Scenario = for<'a> fn(&'a Stage) -> Acting<'a>;

pub(crate) const SCENARIOS: &[(&str, Scenario)] = &[
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
            stage.done(root, edit).await;
            stage.done(root, moved).await;
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
    ("a model fails", |stage| {
        Box::pin(async {
            let root = stage.root(Some("fail")).await;
            stage.world.quiet(root).await;
        })
    }),
    ("a run is interrupted", |stage| {
        Box::pin(async {
            let root = stage.root(Some("slow")).await;
            stage.gate.reached().await;
            stage.enqueue(root, QueueId::Default, "later").await;
            let hit = stage.world.engine.interrupt(root, false).await;
            assert_eq!(hit, Ok(true), "a turn ran");
            stage.world.quiet(root).await;
        })
    }),
    ("a child is stopped and kept", |stage| {
        Box::pin(async {
            let root = stage.root(Some("slow-child")).await;
            stage.gate.reached().await;
            let child = stage.child(root);
            stage
                .ask(root, "agent_session_stop", child, json!({}))
                .await;
            stage.world.quiet(root).await;
            let text = json!({ "text": "more" });
            stage.ask(root, "agent_session_send", child, text).await;
            stage.world.quiet(root).await;
        })
    }),
    ("queues are made, held, released and deleted", |stage| {
        Box::pin(async {
            let root = stage.root(Some("slow")).await;
            stage.gate.reached().await;
            let queue = stage.queue(root).await;
            let set = |immediacy| Command::ConfigureQueue {
                queue,
                immediacy,
                expected: None,
            };
            stage.done(root, set(Some(Immediacy::Held))).await;
            stage.enqueue(root, queue, "held").await;
            stage.gate.open();
            stage.world.quiet(root).await;
            stage.done(root, set(None)).await;
            stage.world.quiet(root).await;
            let spare = stage.queue(root).await;
            let delete = Command::DeleteQueue {
                queue: spare,
                expected: 1,
            };
            stage.done(root, delete).await;
        })
    }),
    ("input is taken back", |stage| {
        Box::pin(async {
            let root = stage.root(Some("slow")).await;
            stage.gate.reached().await;
            let item = stage.enqueue(root, QueueId::Default, "no").await;
            stage
                .done(root, Command::Withdraw { item, expected: 0 })
                .await;
            stage.gate.open();
            stage.world.quiet(root).await;
        })
    }),
    ("a session is deleted beside another", |stage| {
        Box::pin(async {
            let root = stage.root(Some("hello")).await;
            stage.world.quiet(root).await;
            // Asked for is enough: it may be gone from here on.
            stage.accepted.lock().expect("no holder fails").clear();
            stage.roots.lock().expect("no holder fails").clear();
            let deleted = stage.world.engine.delete(root).await;
            deleted.expect("it is deleted");
            let other = stage.root(Some("hello")).await;
            stage.world.quiet(other).await;
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
    ("a conversation is cut and goes on", |stage| {
        Box::pin(async {
            let root = stage.root(Some("watch")).await;
            stage.world.quiet(root).await;
            // A crash may come first.
            let _cut = stage.world.engine.compact(root).await;
            stage.enqueue(root, QueueId::Default, "hello again").await;
            stage.world.quiet(root).await;
        })
    }),
    (
        "a tree is bound, and a child of it gives its place back",
        |stage| {
            Box::pin(async {
                let root = stage.root(None).await;
                let change =
                    BudgetChange::parse("agents=2,depth=2,concurrent=1").expect("a budget");
                // A crash may come first.
                let _set = stage.world.engine.set_budget(root, change, None).await;
                let made = json!({ "initial_message": "hello" });
                stage.world.call(root, "agent_session_create", made).await;
                stage.world.quiet(root).await;
                let _ended = stage.world.engine.terminate(root).await;
            })
        },
    ),
    ("a session is set, and ends with its last viewer", |stage| {
        Box::pin(async {
            let root = stage.root(Some("hello")).await;
            let engine = stage.world.engine.clone();
            stage.world.quiet(root).await;
            // A crash may come first, here and in what follows.
            let _set = engine.set(root, Setting::Name("set".into()), None).await;
            let mut feed = engine.tree_feed();
            engine.opened(root);
            drop(engine.view(root).await);
            while stage.world.row(root).status != Status::Stopped {
                feed.next().await;
            }
        })
    }),
    ("a session asks a person and is interrupted", |stage| {
        Box::pin(async {
            let root = stage.root(Some("ask")).await;
            let mut feed = stage.world.engine.tree_feed();
            while stage.world.engine.modals(root).is_empty() {
                feed.next().await;
            }
            stage.interrupt_tree(root).await;
            stage.world.quiet(root).await;
        })
    }),
    ("a session without turns is told and reads", |stage| {
        Box::pin(async {
            let root = stage.world.turnless_root("puppet/puppet").await;
            stage.roots.lock().expect("no holder fails").push(root);
            let child = stage.world.child(root, Some("hello")).await;
            stage
                .ask(root, "agent_session_on_complete", child, json!({}))
                .await;
            stage.world.quiet(root).await;
            let state = stage.world.engine.state(root).await;
            let state = state.expect("the session exists");
            let queue = state.queue(QueueId::Immediate).expect("it is built in");
            let items = queue.items.iter().map(|item| item.id).collect();
            stage.done(root, Command::Acknowledge { items }).await;
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
