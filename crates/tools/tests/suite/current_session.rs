//! `get_current_session`: what a session is told of itself and of its parents.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use attache_agent::{
    AskPerson, Asked, CallContext, Caller, Cancel, ChildCreated, CreateChild, EventPage,
    EventQuery, ListChildren, PortFuture, SessionContext, SessionDetail, SessionInfo, Sessions,
    Tool, WaitFor, Waited, Watching,
};
use attache_session::{ItemId, Ledger, SessionId, TurnId};
use attache_testkit::{World, json_of};
use serde_json::{Value, json};

use crate::kit::{has_members, ids, on};

const ASK: &str = "get_current_session";

const MEMBERS: [&str; 7] = [
    "agent_session",
    "is_subagent",
    "parent_agent_sessions",
    "user_computer_profile",
    "user",
    "computer",
    "agent_definition",
];

const ENTITY: [&str; 5] = [
    "entityId",
    "concurrencyTag",
    "modifiedTime",
    "changeId",
    "data",
];

async fn current(world: &World, session: SessionId) -> Value {
    let answer = world.ask(session, ASK, json!({})).await;
    has_members(&answer, &MEMBERS);
    answer
}

/// A host that knows of parents of its own.
struct Host(SessionContext);

/// What the tool does not ask for.
fn unasked<'a, T>() -> PortFuture<'a, T> {
    panic!("the tool asks for the context alone")
}

impl Sessions for Host {
    fn create<'a>(&'a self, _: &'a Caller, _: CreateChild) -> PortFuture<'a, ChildCreated> {
        unasked()
    }

    fn list<'a>(&'a self, _: &'a Caller, _: ListChildren) -> PortFuture<'a, Vec<SessionInfo>> {
        unasked()
    }

    fn get<'a>(&'a self, _: &'a Caller, _: SessionId) -> PortFuture<'a, SessionDetail> {
        unasked()
    }

    fn ledger<'a>(&'a self, _: &'a Caller, _: SessionId) -> PortFuture<'a, Option<Ledger>> {
        unasked()
    }

    fn send<'a>(
        &'a self,
        _: &'a Caller,
        _: SessionId,
        _: String,
        _: bool,
    ) -> PortFuture<'a, ItemId> {
        unasked()
    }

    fn stop<'a>(&'a self, _: &'a Caller, _: SessionId, _: bool) -> PortFuture<'a, bool> {
        unasked()
    }

    fn read_events<'a>(
        &'a self,
        _: &'a Caller,
        _: SessionId,
        _: EventQuery,
    ) -> PortFuture<'a, EventPage> {
        unasked()
    }

    fn wait<'a>(
        &'a self,
        _: &'a Caller,
        _: SessionId,
        _: WaitFor,
        _: Duration,
        _: usize,
    ) -> PortFuture<'a, Waited> {
        unasked()
    }

    fn read_result<'a>(
        &'a self,
        _: &'a Caller,
        _: String,
        _: u64,
    ) -> PortFuture<'a, Option<attache_agent::ResultPage>> {
        unasked()
    }

    fn on_complete<'a>(
        &'a self,
        _: &'a Caller,
        _: SessionId,
        _: Option<String>,
    ) -> PortFuture<'a, Watching> {
        unasked()
    }

    fn acquire<'a>(&'a self, _: &'a Caller, _: SessionId) -> PortFuture<'a, (bool, SessionDetail)> {
        unasked()
    }

    fn ask<'a>(&'a self, _: &'a Caller, _: AskPerson) -> PortFuture<'a, Asked> {
        unasked()
    }

    fn context<'a>(&'a self, _: &'a Caller) -> PortFuture<'a, SessionContext> {
        Box::pin(std::future::ready(Ok(self.0.clone())))
    }

    fn working_directory(&self, _: &Caller) -> Option<PathBuf> {
        None
    }
}

fn tool() -> Arc<dyn Tool> {
    let belt = attache_tools::built_in().belt(&[ASK.to_owned()]).unwrap();
    Arc::clone(belt.get(ASK).unwrap())
}

/// What the tool answers where the host gives the parents, or leaves them to the record.
async fn hosted(world: &World, session: SessionId, given: Option<&[SessionId]>) -> Value {
    let (_set, cancel) = Cancel::new();
    let context = CallContext {
        caller: Caller {
            session,
            turn: TurnId(1),
            call: "call".into(),
        },
        working_directory: PathBuf::from("/"),
        sessions: Arc::new(Host(world.engine.context(session, given).unwrap())),
        cancel,
    };
    let answer = json_of(&tool().call(context, json!({})).await);
    has_members(&answer, &MEMBERS);
    answer
}

/// Ids of the parents that a session's own entity has.
fn stored(answer: &Value) -> &Value {
    &answer["agent_session"]["data"]["parent-agent-session-ids"]
}

fn parents(answer: &Value) -> Vec<String> {
    let list = answer["parent_agent_sessions"].as_array().unwrap();
    let id = |entity: &Value| {
        entity["data"]["agent-session-id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    list.iter().map(id).collect()
}

fn unknown() -> SessionId {
    SessionId("01890000-0000-7000-8000-000000000007".parse().unwrap())
}

/// A root, two children, and a grandchild that both of them hold.
async fn family() -> (World, SessionId, SessionId, SessionId, SessionId) {
    let world = World::new().await;
    let root = world.root(None).await;
    let one = world.child(root, None).await;
    let two = world.child(root, None).await;
    let shared = world.child(one, None).await;
    // The second child reaches it through a hold of their common parent.
    let acquired = on(&world, root, "acquire", shared).await;
    assert_eq!(acquired["already_acquired"], false);
    on(&world, two, "acquire", shared).await;
    (world, root, one, two, shared)
}

#[tokio::test]
async fn get_current_session_root_session_reports_empty_parents_and_is_subagent_false() {
    let world = World::new().await;
    let root = world.root(None).await;
    let answer = current(&world, root).await;
    assert_eq!(answer["is_subagent"], false);
    assert_eq!(answer["parent_agent_sessions"], json!([]));
    let own = &answer["agent_session"];
    has_members(own, &ENTITY);
    assert_eq!(own["entityId"], root.to_string());
    assert_eq!(own["data"]["agent-session-id"], root.to_string());
    assert_eq!(own["data"]["parent-agent-session-ids"], json!([]));
    assert_eq!(answer["user"]["data"], json!({ "username": "ada" }));
    assert_eq!(answer["computer"]["data"], json!({ "hostname": "engine" }));
    assert_eq!(
        answer["user_computer_profile"]["data"],
        json!({
            "user-id": answer["user"]["entityId"], "computer-id": answer["computer"]["entityId"]
        })
    );
    assert_eq!(answer["agent_definition"]["data"]["name"], "attache");
}

#[tokio::test]
async fn get_current_session_single_parent_subagent_resolves_parent_agent_session() {
    let world = World::new().await;
    let root = world.root(None).await;
    let child = world.child(root, None).await;
    let answer = current(&world, child).await;
    assert_eq!(answer["is_subagent"], true);
    assert_eq!(parents(&answer), ids(&[root]));
    let data = &answer["agent_session"]["data"];
    assert_eq!(data["agent-session-id"], child.to_string());
    // The parent is shown whole, as it shows itself.
    let own = current(&world, root).await;
    assert_eq!(answer["parent_agent_sessions"][0], own["agent_session"]);
}

#[tokio::test]
async fn get_current_session_multi_parent_subagent_reports_all_parents_in_order() {
    let (world, root, one, two, shared) = family().await;
    let answer = current(&world, shared).await;
    assert_eq!(answer["is_subagent"], true);
    assert_eq!(parents(&answer), ids(&[one, root, two]));
    assert_eq!(
        answer["agent_session"]["data"]["parent-agent-session-ids"],
        json!(ids(&[one, root, two]))
    );
}

#[tokio::test]
async fn get_current_session_parent_agent_session_shape_matches_agent_session() {
    let world = World::new().await;
    let root = world.root(None).await;
    let child = world.child(root, None).await;
    let answer = current(&world, child).await;
    let (own, parent) = (
        &answer["agent_session"],
        &answer["parent_agent_sessions"][0],
    );
    has_members(own, &ENTITY);
    has_members(parent, &ENTITY);
    let members: Vec<&str> = own["data"]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    has_members(&parent["data"], &members);
    assert!(
        members.iter().all(|name| !name.contains('_')),
        "{members:?}"
    );
}

#[tokio::test]
async fn get_current_session_grandchild_session_reports_immediate_parent_and_is_subagent_true() {
    let world = World::new().await;
    let root = world.root(None).await;
    let child = world.child(root, None).await;
    let grandchild = world.child(child, None).await;
    let answer = current(&world, grandchild).await;
    assert_eq!(answer["is_subagent"], true);
    assert_eq!(parents(&answer), ids(&[child]));
    let data = &answer["parent_agent_sessions"][0]["data"];
    assert_eq!(data["parent-agent-session-ids"], json!(ids(&[root])));
}

#[tokio::test]
async fn get_current_session_context_parent_ids_override_entity_data() {
    let world = World::new().await;
    let root = world.root(None).await;
    let other = world.root(None).await;
    let child = world.child(root, None).await;
    let answer = hosted(&world, child, Some(&[other])).await;
    assert_eq!(answer["is_subagent"], true);
    assert_eq!(parents(&answer), ids(&[other]));
    let own = current(&world, other).await;
    assert_eq!(answer["parent_agent_sessions"][0], own["agent_session"]);
    // What is stored stays as it was.
    assert_eq!(stored(&answer), &json!(ids(&[root])));
}

#[tokio::test]
async fn get_current_session_context_parent_ids_multiple_resolved_in_order() {
    let world = World::new().await;
    let [a, b, nobody] = [world.root(None).await, world.root(None).await, unknown()];
    let alone = world.root(None).await;
    // The session itself has no parents; one that the host names and nobody knows is left out.
    for (given, found) in [
        (vec![b, a], vec![b, a]),
        (vec![a, b], vec![a, b]),
        (vec![b, nobody, a], vec![b, a]),
        (vec![nobody], vec![]),
    ] {
        let answer = hosted(&world, alone, Some(&given)).await;
        assert_eq!(answer["is_subagent"], true, "{given:?}");
        assert_eq!(parents(&answer), ids(&found));
        assert_eq!(stored(&answer), &json!([]));
    }
}

#[tokio::test]
async fn get_current_session_parent_reference_unresolvable_skipped_from_parents_but_is_subagent_true()
 {
    let world = World::new().await;
    let root = world.root(None).await;
    for with_root in [false, true] {
        let gone = world.root(None).await;
        let found = if with_root { vec![root] } else { vec![] };
        let stored: Vec<SessionId> = [gone].into_iter().chain(found.clone()).collect();
        let orphan = world.left_behind(stored.clone(), true).await;
        world.engine.terminate(gone).await.unwrap();
        world.engine.delete(gone).await.unwrap();
        let answer = current(&world, orphan).await;
        assert_eq!(answer["is_subagent"], true);
        assert_eq!(parents(&answer), ids(&found));
        let data = &answer["agent_session"]["data"];
        assert_eq!(data["parent-agent-session-ids"], json!(ids(&stored)));
    }
}

#[tokio::test]
async fn get_current_session_unknown_session_id_parents_empty_and_is_subagent_false() {
    let world = World::new().await;
    let answer = current(&world, unknown()).await;
    assert_eq!(answer["is_subagent"], false);
    assert_eq!(answer["parent_agent_sessions"], json!([]));
    assert_eq!(answer["agent_session"], Value::Null);
    assert_eq!(answer["agent_definition"], Value::Null);
    assert_eq!(answer["user"]["data"]["username"], "ada");
}

#[tokio::test]
async fn get_current_session_include_profile_false_still_includes_parent_agent_sessions() {
    let world = World::new().await;
    let root = world.root(None).await;
    let child = world.child(root, None).await;
    let whole = current(&world, child).await;
    let answer = world
        .ask(child, ASK, json!({ "include_profile": false }))
        .await;
    has_members(&answer, &MEMBERS);
    assert_eq!(answer["user_computer_profile"], Value::Null);
    assert_eq!(answer["user"], Value::Null);
    for same in [
        "parent_agent_sessions",
        "agent_session",
        "computer",
        "agent_definition",
    ] {
        assert_eq!(answer[same], whole[same]);
    }
    let answer = world
        .ask(child, ASK, json!({ "include_definition": false }))
        .await;
    has_members(&answer, &MEMBERS);
    assert_eq!(answer["agent_definition"], Value::Null);
    assert_eq!(answer["user"], whole["user"]);
}

#[tokio::test]
async fn current_session_context_keeps_absent_and_empty_parent_lists_apart() {
    let world = World::new().await;
    let root = world.root(None).await;
    let child = world.child(root, None).await;
    let absent = hosted(&world, child, None).await;
    assert_eq!(absent, current(&world, child).await);
    assert_eq!(absent["is_subagent"], true);
    assert_eq!(parents(&absent), ids(&[root]));
    let empty = hosted(&world, child, Some(&[])).await;
    assert_eq!(empty["is_subagent"], false);
    assert_eq!(empty["parent_agent_sessions"], json!([]));
    assert_eq!(stored(&empty), &json!(ids(&[root])));
}

#[test]
fn the_description_tells_of_parents_and_of_walking_upwards() {
    let description = tool().spec().description.to_string();
    for told in [
        "is_subagent",
        "parent_agent_sessions",
        "parent-agent-session-ids",
        "walk upwards",
    ] {
        assert!(description.contains(told), "{told}: {description}");
    }
}

#[tokio::test]
async fn login_and_machine_keep_their_ids_across_restarts() {
    let world = World::new().await;
    let root = world.root(None).await;
    let before = current(&world, root).await;
    let world = world.restarted().await;
    let after = current(&world, root).await;
    for same in [
        "user",
        "computer",
        "user_computer_profile",
        "agent_definition",
    ] {
        assert_eq!(before[same], after[same], "{same}");
    }
    assert_eq!(after["agent_session"]["data"]["status"], "stopped");
}
