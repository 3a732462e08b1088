//! The end of a tree takes all of it, processes included, and gives every place back. G-18, G-20.

use std::process::{Child, Command as Process, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use attache_agent::{CallContext, Definition, Tool, ToolFuture, Toolset};
use attache_model::{ErrorKind, Json, ModelError, ToolSpec};
use attache_session::{Limit, Outcome, SessionId, Status};
use attache_store::MemoryStore;
use attache_testkit::{Gate, Piece, Puppet, World, call, json_of, pass, text};
use serde_json::{Value, json};

/// A process that ends with whoever holds it.
struct Held(Child);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.kill().expect("it can be killed");
        self.0.wait().expect("it ends");
    }
}

/// Toolset `process`: one tool that owns a process for as long as its call lasts.
#[derive(Clone, Default)]
struct OwnsProcess(Arc<Mutex<Vec<u32>>>);

impl OwnsProcess {
    fn started(&self) -> Vec<u32> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn begins(&self, id: u32) {
        let mut started = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        started.push(id);
    }

    /// Whether all processes that were started are gone.
    fn are_gone(&self) -> bool {
        let lives = |id: &u32| std::path::Path::new(&format!("/proc/{id}")).exists();
        !self.started().iter().any(lives)
    }
}

impl Toolset for OwnsProcess {
    fn kind(&self) -> &'static str {
        "process"
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let spec = ToolSpec {
            name: "hold_process".into(),
            description: "Runs a process until the call ends.".into(),
            input_schema: Json::from_value(&json!({ "type": "object" })),
        };
        vec![Arc::new(HoldProcess(spec, self.clone()))]
    }
}

struct HoldProcess(ToolSpec, OwnsProcess);

impl Tool for HoldProcess {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a tool of a test: what it starts is what the test looks for"
    )]
    fn call<'a>(&'a self, _context: CallContext, _arguments: Value) -> ToolFuture<'a> {
        Box::pin(async move {
            let child = Process::new("sleep")
                .arg("600")
                .stdin(Stdio::null())
                .spawn();
            let held = Held(child.expect("a process"));
            self.1.begins(held.0.id());
            std::future::pending::<()>().await;
            drop(held);
            unreachable!("the call ends with its run")
        })
    }
}

/// A parent, a child that owns a process, and a grandchild that speaks without an end.
struct Family {
    world: World,
    processes: OwnsProcess,
    ids: [SessionId; 3],
}

async fn family() -> Family {
    let gate = Gate::default();
    let puppet = Puppet::new(move |request| {
        match (Puppet::task(request).as_str(), Puppet::rounds(request)) {
            ("parent", 0) => call(
                "agent_session_create",
                &json!({ "initial_message": "child" }),
            ),
            ("parent", _) => vec![Piece::Text("I wait".to_owned()), Piece::Wait(gate.clone())],
            ("child", 0) => call(
                "agent_session_create",
                &json!({ "initial_message": "grandchild" }),
            ),
            ("child", _) => call("hold_process", &json!({})),
            _ => vec![Piece::Text("word".to_owned()), Piece::Wait(gate.clone())],
        }
    });
    let processes = OwnsProcess::default();
    let toolsets = attache_tools::built_in().with(Arc::new(processes.clone()));
    let store = Arc::new(MemoryStore::new());
    let world = World::with(store, puppet, toolsets, Vec::new()).await;
    let definition = Definition {
        tools: vec!["agent-session".to_owned(), "process".to_owned()],
        ..Definition::built_in()
    };
    let parent = world.root_of(definition, Some("parent")).await;
    while processes.started().is_empty() || world.puppet.requests().len() < 5 {
        tokio::task::yield_now().await;
    }
    let below = |of: SessionId| {
        let rows = world
            .engine
            .rows(attache_store::RowFilter::Children(of))
            .expect("rows");
        rows[0].session
    };
    let child = below(parent);
    let ids = [parent, child, below(child)];
    Family {
        world,
        processes,
        ids,
    }
}

impl Family {
    fn outcomes(&self) -> [Option<Outcome>; 3] {
        self.ids.map(|id| self.world.row(id).view.outcome())
    }
}

#[tokio::test]
async fn g18_what_is_terminated_ends_with_its_processes_and_asks_no_model_again() {
    let family = family().await;
    let asked = family.world.puppet.requests().len();
    family
        .world
        .engine
        .terminate(family.ids[0])
        .await
        .expect("it ends");
    for id in family.ids {
        assert_eq!(family.world.row(id).status, Status::Stopped);
    }
    while !family.processes.are_gone() {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        family.world.puppet.requests().len(),
        asked,
        "nothing was asked after it"
    );
}

#[tokio::test]
async fn g18_an_interrupt_of_the_parent_leaves_its_children_at_work() {
    let family = family().await;
    family
        .world
        .engine
        .interrupt(family.ids[0], false)
        .await
        .expect("it ends");
    while family.world.row(family.ids[0]).view.turn().is_some() {
        tokio::task::yield_now().await;
    }
    assert_eq!(family.outcomes(), [Some(Outcome::Interrupted), None, None]);
    assert!(!family.processes.are_gone());
    family
        .world
        .engine
        .terminate(family.ids[0])
        .await
        .expect("it ends");
}

#[tokio::test]
async fn g18_a_child_that_is_stopped_takes_those_below_it_and_leaves_its_parent() {
    let family = family().await;
    let [parent, child, _] = family.ids;
    let stop = json!({ "session_id": child.to_string() });
    family.world.ask(parent, "agent_session_stop", stop).await;
    while !family.processes.are_gone() {
        tokio::task::yield_now().await;
    }
    let cancelled = Some(Outcome::Cancelled);
    assert_eq!(family.outcomes(), [None, cancelled, cancelled]);
    // A process was under way: it may have done something.
    let shown = family
        .world
        .ask(
            parent,
            "agent_session_get",
            json!({ "session_id": child.to_string() }),
        )
        .await;
    assert_eq!(shown["side_effects"], "maybe");
    family
        .world
        .engine
        .terminate(parent)
        .await
        .expect("it ends");
}

fn used(world: &World, session: SessionId, limit: Limit) -> Option<u64> {
    let (limits, _) = world.engine.budget(session).expect("a session");
    limits.iter().find(|it| it.limit == limit)?.used
}

#[tokio::test(start_paused = true)]
async fn g20_places_come_back_whatever_ended_those_who_had_them() {
    let puppet = Puppet::new(|request| match Puppet::task(request).as_str() {
        "fail" => vec![Piece::Fail(
            ModelError::new(ErrorKind::Refused, "no").with_status(500),
        )],
        "hang" => vec![Piece::Wait(Gate::default())],
        "mute" => Vec::new(),
        _ => text("done"),
    });
    let store = Arc::new(MemoryStore::new());
    let world = World::with(store, puppet, attache_tools::built_in(), Vec::new()).await;
    let world = world.with_budget("agents=2,concurrent=2");
    let root = world.root(None).await;
    for task in [
        "finish", "fail", "hang", "mute", "finish", "hang", "fail", "mute", "hang", "finish",
    ] {
        let bad = json!({ "definition": { "name": "no name" }, "initial_message": "x" });
        assert!(
            world.call(root, "agent_session_create", bad).await.is_error,
            "it does not load"
        );
        let mut pair = Vec::new();
        for _ in 0..2 {
            pair.push(world.child(root, Some(task)).await);
        }
        pass(Duration::from_secs(1)).await;
        let third = world
            .call(
                root,
                "agent_session_create",
                json!({ "initial_message": "x" }),
            )
            .await;
        let error = &json_of(&third)["error"];
        assert_eq!(error["code"], "limit-reached");
        assert!(
            error["message"]
                .as_str()
                .is_some_and(|text| text.contains("limit agents")),
            "{error}"
        );
        for child in pair {
            let give_up = json!({ "session_id": child.to_string(), "dispose": true });
            world.ask(root, "agent_session_stop", give_up).await;
        }
        world.quiet(root).await;
        assert_eq!(used(&world, root, Limit::Agents), Some(0), "{task}");
        assert_eq!(used(&world, root, Limit::Concurrent), Some(0), "{task}");
    }
}
