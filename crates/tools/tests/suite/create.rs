//! `agent_session_create`: what a child is born with, and what it cannot get.

use attache_agent::{Definition, SubAgent};
use attache_session::{Event, Origin, QueueId};
use attache_store::memory::MemoryStore;
use attache_testkit::{Gate, Puppet, World, json_of};
use serde_json::{Value, json};

use crate::kit::{busy_child, code, column, has_members, held, ids, on, refused};

const CREATE: &str = "agent_session_create";

#[tokio::test]
async fn agent_session_create_valid_definition_returns_session_id() {
    let world = World::new().await;
    let root = world.root(None).await;
    let definition = json!({
        "name": "helper", "description": "helps", "instructions": "Help with words.",
        "tools": [{ "kind": "agent-session" }, "read_file"],
    });
    let outcome = world
        .call(
            root,
            CREATE,
            json!({ "definition": definition, "name": "h" }),
        )
        .await;
    let child = outcome.spawned.unwrap();
    let row = world.row(child);
    assert_eq!(
        json_of(&outcome),
        json!({
            "session_id": child.to_string(), "status": "idle",
            "created_at": json_of(&world.call(root, "agent_session_list", json!({})).await)[0]["created_at"],
        })
    );
    let created = world.engine.created(child).unwrap();
    assert_eq!(
        (&*created.agent, &*created.name, &*created.parents),
        ("helper", "h", &[root][..])
    );
    assert_eq!((row.root, row.spawner), (root, Some(root)));
    // The child works by that definition: its model gets these instructions and these tools.
    let send = json!({ "session_id": child.to_string(), "text": "work" });
    world.ask(root, "agent_session_send", send).await;
    world.quiet(child).await;
    let request = world.puppet.requests().pop().unwrap();
    assert_eq!(Puppet::task(&request), "work");
    let system = request.system.as_deref().unwrap();
    assert!(system.contains("Help with words."), "{system}");
    let offered: Vec<&str> = request.tools.specs().iter().map(|it| &*it.name).collect();
    let sets = attache_tools::built_in();
    let belt = sets
        .belt(&["agent-session".to_owned(), "read_file".to_owned()])
        .unwrap();
    let named: Vec<&str> = belt.offered().specs().iter().map(|it| &*it.name).collect();
    assert_eq!(offered, named);
    assert!(offered.contains(&"read_file") && !offered.contains(&"write_file"));
}

#[tokio::test]
async fn agent_session_create_with_initial_message_enqueues_message() {
    let (world, root, child, gate) = busy_child().await;
    let queued = world
        .events(child)
        .into_iter()
        .find_map(|stamped| match stamped.event {
            Event::Queued { queue, item } => {
                Some((queue, item.text.to_string(), item.origin.clone()))
            }
            _ => None,
        });
    let expected = (
        QueueId::Default,
        "held work".to_owned(),
        Origin::Session(root),
    );
    assert_eq!(queued, Some(expected));
    assert_eq!(on(&world, root, "get", child).await["status"], "running");
    let made = world
        .ask(root, CREATE, json!({ "initial_message": "held 2" }))
        .await;
    has_members(&made, &["session_id", "status", "created_at"]);
    assert_eq!(made["status"], "running");
    gate.open();
    world.quiet(root).await;
    assert_eq!(world.consumed(child), ["held work"]);
    assert_eq!(Puppet::last_user(&world.puppet.requests()[0]), "held work");
}

#[tokio::test]
async fn agent_session_create_no_definition_uses_parent_definition() {
    let world = World::new().await;
    let definition = Definition {
        name: "boss".to_owned(),
        instructions: "Lead.".to_owned(),
        tools: vec!["agent-session".to_owned()],
        ..Definition::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let root = world.root_at(folder.path(), definition, None).await;
    let child = world.child(root, None).await;
    let (own, parents) = (
        world.engine.created(child).unwrap(),
        world.engine.created(root).unwrap(),
    );
    assert_eq!(own.definition, parents.definition);
    assert_eq!(own.model, parents.model);
    assert_eq!(own.working_directory, parents.working_directory);
    assert_eq!(&*own.agent, "boss");
    assert_eq!(own.parents, [root]);
}

#[tokio::test]
async fn agent_session_create_stores_lease_in_toolset() {
    let world = World::new().await;
    let root = world.root(None).await;
    let child = world.child(root, None).await;
    let held = world
        .events(root)
        .into_iter()
        .find_map(|stamped| match stamped.event {
            Event::ChildHeld { child, .. } => Some(child),
            _ => None,
        });
    assert_eq!(held, Some(child));
    assert_eq!(world.engine.load().0, 2);
    assert_eq!(
        on(&world, root, "acquire", child).await["already_acquired"],
        true
    );
}

/// A parent with one toolset, a sub-agent of its own, and a known definition beside it.
async fn narrow() -> (World, attache_session::SessionId, tempfile::TempDir) {
    let known = Definition {
        name: "known".to_owned(),
        ..Definition::default()
    };
    let world = World::with(
        std::sync::Arc::new(MemoryStore::new()),
        Puppet::default(),
        attache_tools::built_in(),
        vec![known],
    )
    .await;
    let reader = Definition {
        name: "reader".to_owned(),
        tools: vec!["read_file".to_owned()],
        ..Definition::default()
    };
    let parent = Definition {
        name: "narrow".to_owned(),
        tools: vec!["agent-session".to_owned()],
        sub_agents: vec![SubAgent {
            name: "reader".to_owned(),
            definition: Box::new(reader),
        }],
        ..Definition::default()
    };
    let top = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(top.path().join("ws/sub")).unwrap();
    std::fs::create_dir(top.path().join("other")).unwrap();
    std::os::unix::fs::symlink(top.path().join("other"), top.path().join("ws/link")).unwrap();
    let root = world.root_at(&top.path().join("ws"), parent, None).await;
    (world, root, top)
}

#[tokio::test]
async fn a_child_never_gets_more_than_its_parent() {
    let (world, root, top) = narrow().await;
    let other = top.path().join("other").display().to_string();
    let nested = |inner: &Value| {
        let mut inner = inner.clone();
        inner["name"] = json!("inner");
        let middle = json!({
            "name": "middle", "sub-agents": [{ "name": "inner", "definition": inner }],
        });
        json!({ "definition": { "name": "x", "sub-agents": [
            { "name": "middle", "definition": middle }] } })
    };
    let rows = [
        (
            json!({ "definition": { "name": "x", "tools": [{ "kind": "filesystem" }] } }),
            "exceeds-parent",
        ),
        (
            json!({ "definition": { "name": "x", "tools": [{ "kind": "current-session" }] } }),
            "exceeds-parent",
        ),
        (
            json!({ "definition": { "name": "x", "model": "openai/gpt" } }),
            "exceeds-parent",
        ),
        (
            json!({ "definition": { "name": "x", "working-directory": ".." } }),
            "exceeds-parent",
        ),
        // What a child may not have, its own sub-agents may not have either.
        (
            nested(&json!({ "tools": [{ "kind": "filesystem" }] })),
            "exceeds-parent",
        ),
        (nested(&json!({ "model": "openai/gpt" })), "exceeds-parent"),
        (json!({ "working_directory": ".." }), "exceeds-parent"),
        (json!({ "working_directory": other }), "exceeds-parent"),
        (json!({ "working_directory": "link" }), "exceeds-parent"),
        (
            json!({ "working_directory": "missing" }),
            "invalid-arguments",
        ),
        (json!({ "definition": "nobody" }), "definition-unknown"),
        (
            json!({ "definition": { "name": "x", "unknown": 1 } }),
            "definition-invalid",
        ),
        (
            json!({ "definition": { "name": "x", "tools": [{ "kind": "no-such" }] } }),
            "definition-invalid",
        ),
        (json!({ "parameters": { "a": "b" } }), "invalid-arguments"),
    ];
    for (arguments, wanted) in rows {
        let (code, message) = refused(&world, root, CREATE, arguments.clone()).await;
        assert_eq!(code, wanted, "{arguments}: {message}");
    }
    assert_eq!(
        world.ask(root, "agent_session_list", json!({})).await,
        json!([])
    );
    assert_eq!(world.engine.load().0, 1);
}

#[tokio::test]
async fn a_child_gets_what_its_parent_may_give() {
    let (world, root, top) = narrow().await;
    let sub = top.path().join("ws/sub").canonicalize().unwrap();
    let rows: [(Value, &str); 4] = [
        (
            json!({ "definition": { "name": "a", "tools": [{ "kind": "agent-session" }] } }),
            "a",
        ),
        // A tool that a sub-agent of its own has may be given too.
        (
            json!({ "definition": { "name": "b", "tools": ["read_file"] } }),
            "b",
        ),
        (
            json!({ "definition": "reader", "working_directory": "sub" }),
            "reader",
        ),
        (json!({ "definition": "known" }), "known"),
    ];
    let mut agents = Vec::new();
    for (arguments, agent) in rows {
        let made = world.call(root, CREATE, arguments).await;
        let created = world.engine.created(made.spawned.unwrap()).unwrap();
        assert_eq!(&*created.agent, agent);
        agents.push(created);
    }
    assert_eq!(*agents[2].working_directory, *sub.display().to_string());
}

#[tokio::test]
async fn a_stopped_session_creates_nothing() {
    let world = World::new().await;
    let gate = Gate::default();
    world.puppet.teach(held(&gate));
    let root = world.root(None).await;
    let child = world.child(root, None).await;
    world.engine.terminate(child).await.unwrap();
    assert_eq!(
        code(&world, child, CREATE, json!({})).await,
        "session-stopped"
    );
    let list = world
        .ask(root, "agent_session_list", json!({ "recursive": true }))
        .await;
    assert_eq!(column(&list, "session_id"), ids(&[child]));
}
