//! A program outside and the session that stands for it: calls with no turn around them, children
//! that hang on the id of their call, notices that wait, and what is said where a model is missing.

use std::sync::Arc;
use std::time::Duration;

use attache_agent::{Cancel, ToolOutcome};
use attache_engine::{EngineError, OutsideCall};
use attache_session::{ErrorCode, Event, SessionId, Status};
use attache_testkit::{Gate, Puppet, World, json_of};
use serde_json::{Value, json};

use crate::script::say;

async fn world(gate: &Gate) -> World {
    let gate = gate.clone();
    let puppet = Puppet::new(move |request| say(request, &gate));
    let store = Arc::new(attache_store::memory::MemoryStore::new());
    World::with(store, puppet, attache_tools::built_in(), Vec::new()).await
}

async fn call(
    world: &World,
    session: SessionId,
    id: &str,
    tool: &str,
    arguments: Value,
) -> Result<ToolOutcome, EngineError> {
    // The setter lives until the call has ended.
    let (_set, cancel) = Cancel::new();
    let call = OutsideCall {
        session,
        call: id.into(),
        tool: tool.to_owned(),
        arguments,
        cancel,
    };
    world.engine.call_tool(call).await
}

async fn ask(world: &World, session: SessionId, id: &str, tool: &str, arguments: Value) -> Value {
    json_of(
        &call(world, session, id, tool, arguments)
            .await
            .expect("it answers"),
    )
}

#[tokio::test(start_paused = true)]
async fn a_program_delegates_is_told_and_says_that_it_read() {
    let world = world(&Gate::default()).await;
    let root = world.turnless_root("puppet/puppet").await;
    assert_eq!(world.row(root).status, Status::Idle);
    let create = json!({ "initial_message": "hello" });
    let made = ask(&world, root, "a", "agent_session_create", create.clone()).await;
    let again = ask(&world, root, "a", "agent_session_create", create.clone()).await;
    assert_eq!(
        made["session_id"], again["session_id"],
        "one call, one child"
    );
    let other = ask(&world, root, "b", "agent_session_create", create).await;
    assert_ne!(made["session_id"], other["session_id"]);

    let id = json!({ "session_id": made["session_id"] });
    ask(&world, root, "c", "agent_session_on_complete", id).await;
    world.quiet(root).await;
    let told = world.engine.waiting_notices(root).await.expect("it exists");
    assert_eq!(told.len(), 1);
    assert_eq!(made["session_id"], told[0].about.to_string());
    assert_eq!(
        world.row(root).status,
        Status::Idle,
        "what waits is no work"
    );

    let items = vec![told[0].item];
    for _repeat in 0..2 {
        let read = world.engine.acknowledge(root, items.clone()).await;
        assert_eq!(read, Ok(()));
    }
    assert_eq!(world.engine.waiting_notices(root).await, Ok(Vec::new()));
    let events = world.events(root);
    let read = events
        .iter()
        .filter(|stamped| matches!(stamped.event, Event::Acknowledged { .. }));
    assert_eq!(read.count(), 1);
    let page = json!({ "session_id": "." });
    let page = ask(&world, root, "d", "agent_session_read_events", page).await;
    assert_eq!(page["events"][0]["event_type"], "diagnostic");
}

#[tokio::test(start_paused = true)]
async fn only_a_session_without_turns_is_called_from_outside() {
    let world = world(&Gate::default()).await;
    let usual = world.root(None).await;
    let list = call(&world, usual, "a", "agent_session_list", json!({})).await;
    let code = |refused: Result<ToolOutcome, EngineError>| refused.map_err(|error| error.code);
    assert_eq!(code(list), Err(ErrorCode::UnknownSession));
    let root = world.turnless_root("puppet/puppet").await;
    for tool in ["read_file", "get_current_session", "nothing"] {
        let refused = call(&world, root, "a", tool, json!({})).await;
        assert_eq!(code(refused), Err(ErrorCode::InvalidArguments), "{tool}");
    }
    assert_eq!(world.engine.outside_tools().map(|tools| tools.len()), Ok(9));
    // Another one's tree is answered like what does not exist.
    let theirs = world.turnless_root("puppet/puppet").await;
    let get = json!({ "session_id": theirs.to_string() });
    let refused = ask(&world, root, "b", "agent_session_get", get).await;
    assert_eq!(refused["error"]["code"], "unknown-session");
}

#[tokio::test(start_paused = true)]
async fn without_a_model_a_create_says_what_is_missing() {
    let world = world(&Gate::default()).await;
    let root = world.turnless_root("").await;
    let refused = ask(&world, root, "a", "agent_session_create", json!({})).await;
    assert_eq!(refused["error"]["code"], "model-unknown");
    let message = refused["error"]["message"].as_str().expect("a text");
    assert!(message.contains("ATTACHE_MODEL"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_call_can_be_given_up() {
    let gate = Gate::default();
    let world = world(&gate).await;
    let root = world.turnless_root("puppet/puppet").await;
    let create = json!({ "initial_message": "slow" });
    let made = ask(&world, root, "a", "agent_session_create", create).await;
    gate.reached().await;
    let (set, cancel) = Cancel::new();
    let wait = OutsideCall {
        session: root,
        call: "w".into(),
        tool: "agent_session_wait".to_owned(),
        arguments: json!({ "session_id": made["session_id"], "wait_for_idle": true }),
        cancel,
    };
    let engine = world.engine.clone();
    let wait = tokio::spawn(async move { engine.call_tool(wait).await });
    attache_testkit::pass(Duration::from_secs(1)).await;
    assert_eq!(world.engine.waiting_for(root).len(), 1);
    assert!(set.send(true).is_ok());
    let given_up = wait.await.expect("it ends in good order");
    assert!(given_up.is_err());
    assert!(world.engine.waiting_for(root).is_empty());
    gate.open();
    world.quiet(root).await;
}
