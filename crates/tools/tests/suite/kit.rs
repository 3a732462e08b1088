//! What the tests of the toolsets share: how answers are looked at, and what puppets say.

use std::collections::BTreeSet;
use std::sync::Arc;

use attache_model::Request;
use attache_session::{Event, SessionId};
use attache_store::Store;
use attache_store::memory::MemoryStore;
use attache_testkit::{FaultyStore, Gate, Piece, Puppet, World, json_of, text};
use serde_json::{Value, json};

/// Members of the shape of `agent_session_get`.
pub(crate) const DETAIL: [&str; 12] = [
    "session_id",
    "status",
    "is_busy",
    "running_items",
    "queued",
    "waiting_for",
    "outcome",
    "end_reason",
    "result_preview",
    "last_activity_at",
    "usage",
    "receipts",
];

/// Usage of a session whose models told no figures.
pub(crate) fn no_usage() -> Value {
    json!({
        "input_tokens": null, "output_tokens": null, "cache_read_tokens": null,
        "cache_write_tokens": null, "reasoning_tokens": null,
    })
}

/// The object has these members and no other.
pub(crate) fn has_members(object: &Value, members: &[&str]) {
    let object = object.as_object().unwrap_or_else(|| panic!("{object}"));
    let found: BTreeSet<&str> = object.keys().map(String::as_str).collect();
    assert_eq!(found, members.iter().copied().collect());
}

/// Calls a tool that must fail: the code and the message.
pub(crate) async fn refused(
    world: &World,
    caller: SessionId,
    tool: &str,
    arguments: Value,
) -> (String, String) {
    let outcome = world.call(caller, tool, arguments.clone()).await;
    let answer = json_of(&outcome);
    assert!(outcome.is_error, "{tool} {arguments}: {answer}");
    has_members(&answer, &["error"]);
    let error = &answer["error"];
    has_members(error, &["code", "message", "hint"]);
    assert!(!error["hint"].as_str().unwrap().is_empty());
    let text = |member: &str| error[member].as_str().unwrap().to_owned();
    (text("code"), text("message"))
}

/// The same; only the code.
pub(crate) async fn code(world: &World, caller: SessionId, tool: &str, arguments: Value) -> String {
    refused(world, caller, tool, arguments).await.0
}

/// A tool of the toolset, called on a session.
pub(crate) async fn on(world: &World, caller: SessionId, tool: &str, target: SessionId) -> Value {
    let arguments = json!({ "session_id": target.to_string() });
    world
        .ask(caller, &format!("agent_session_{tool}"), arguments)
        .await
}

/// Statuses of a list.
pub(crate) fn column(list: &Value, member: &str) -> Vec<String> {
    let text = |row: &Value| row[member].as_str().unwrap().to_owned();
    list.as_array().unwrap().iter().map(text).collect()
}

/// Ids as texts.
pub(crate) fn ids(sessions: &[SessionId]) -> Vec<String> {
    sessions.iter().map(ToString::to_string).collect()
}

/// A puppet that waits at the gate when its task begins with `held`, and then says `done: ` and the
/// last input.
pub(crate) fn held(gate: &Gate) -> impl Fn(&Request) -> Vec<Piece> + Send + Sync + use<> {
    let gate = gate.clone();
    move |request| {
        let mut pieces = text(&format!("done: {}", Puppet::last_user(request)));
        if Puppet::task(request).starts_with("held") {
            pieces.insert(0, Piece::Wait(gate.clone()));
        }
        pieces
    }
}

/// A puppet that makes a call behind the gate, so that there is a tool boundary, and then says
/// `done: ` and the last input.
pub(crate) fn stepping(gate: &Gate) -> impl Fn(&Request) -> Vec<Piece> + Send + Sync + use<> {
    let gate = gate.clone();
    move |request| {
        if Puppet::task(request).starts_with("held") && request_is_first(request) {
            let call = Piece::Call("agent_session_list".to_owned(), "{}".to_owned());
            return vec![Piece::Wait(gate.clone()), call];
        }
        text(&format!("done: {}", Puppet::last_user(request)))
    }
}

fn request_is_first(request: &Request) -> bool {
    Puppet::results(request).is_empty()
}

/// How many events of a session fit.
pub(crate) fn count(world: &World, session: SessionId, fits: impl Fn(&Event) -> bool) -> usize {
    let events = world.events(session);
    events.iter().filter(|stamped| fits(&stamped.event)).count()
}

/// A world with an idle root and one child that stands at the gate.
pub(crate) async fn busy_child() -> (World, SessionId, SessionId, Gate) {
    let world = World::new().await;
    let gate = Gate::default();
    world.puppet.teach(held(&gate));
    let root = world.root(None).await;
    let child = world.child(root, Some("held work")).await;
    gate.reached().await;
    (world, root, child, gate)
}

/// A world whose appends can be held.
pub(crate) async fn holding() -> (World, Arc<FaultyStore>) {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
    let world = World::over(Arc::clone(&store) as Arc<dyn Store>).await;
    (world, store)
}

/// A root and an idle child that was just sent a text and stands before reading it: the gate holds
/// the append that would take it, so that it lies unread.
pub(crate) async fn unread_child(sent: &str) -> (World, SessionId, SessionId, Gate) {
    let (world, store) = holding().await;
    let root = world.root(None).await;
    let child = world.child(root, None).await;
    let gate = store.hold(move |append| append.session == child && !append.taken.is_empty());
    let arguments = json!({ "session_id": child.to_string(), "text": sent });
    world.ask(root, "agent_session_send", arguments).await;
    gate.reached().await;
    assert_eq!(world.row(child).view.unread.inputs, 1);
    assert_eq!(world.consumed(child), Vec::<String>::new());
    (world, root, child, gate)
}
