//! Sub-agents from end to end, by what the models of a tree do themselves.

use attache_session::{Event, SessionId, Stamped, Status};
use attache_testkit::{Gate, Piece, Puppet, World, call, text};
use serde_json::{Value, json};

use crate::kit::{column, ids, on};

fn result(request: &attache_model::Request) -> Value {
    serde_json::from_str(&Puppet::results(request)[0]).unwrap()
}

#[tokio::test]
async fn create_sub_agent_send_message_sub_agent_receives() {
    let world = World::new().await;
    world.puppet.teach(|request| {
        let results = Puppet::results(request).len();
        match (Puppet::task(request).as_str(), results) {
            ("delegate", 0) => call("agent_session_create", &json!({ "name": "worker" })),
            ("delegate", _) if result(request)["created_at"].is_string() => {
                let target = result(request)["session_id"].clone();
                let arguments = json!({ "session_id": target, "text": "count the files" });
                call("agent_session_send", &arguments)
            }
            ("delegate", _) => text("sent"),
            (task, _) => text(&format!("counted for: {task}")),
        }
    });
    let root = world.root(Some("delegate")).await;
    world.quiet(root).await;
    let list = world.ask(root, "agent_session_list", json!({})).await;
    assert_eq!(column(&list, "name"), ["worker"]);
    let child = list[0]["session_id"].as_str().unwrap().parse().unwrap();
    assert_eq!(world.consumed(child), ["count the files"]);
    let shown = on(&world, root, "get", child).await;
    assert_eq!(shown["result_preview"], "counted for: count the files");
}

#[tokio::test]
async fn sub_agent_completes_on_complete_callback_parent_notified() {
    let world = World::new().await;
    let gate = Gate::default();
    let stand = gate.clone();
    world.puppet.teach(move |request| {
        let results = Puppet::results(request).len();
        match (Puppet::task(request).as_str(), results) {
            ("delegate", 0) => call(
                "agent_session_create",
                &json!({ "initial_message": "work" }),
            ),
            ("delegate", _) if Puppet::last_user(request) == "child is done" => text("thanks"),
            ("delegate", _) if result(request)["created_at"].is_string() => {
                let target = result(request)["session_id"].clone();
                let arguments = json!({ "session_id": target, "message": "child is done" });
                call("agent_session_on_complete", &arguments)
            }
            ("delegate", _) => text("I go on"),
            _ => vec![Piece::Wait(stand.clone()), Piece::Text("worked".to_owned())],
        }
    });
    let root = world.root(Some("delegate")).await;
    gate.reached().await;
    // The parent ends its turn without a wait, while the child is still at work.
    while world.row(root).status != Status::Idle {
        tokio::task::yield_now().await;
    }
    let child = world.row(root).view.summary.watching[0].to_string();
    let shown = world.ask(root, "agent_session_get", json!({})).await;
    assert_eq!(
        (&shown["result_preview"], &shown["waiting_for"]),
        (&json!("I go on"), &json!([child]))
    );
    assert_eq!(turns(&world, root), ["begin", "delegate", "end"]);
    gate.open();
    world.quiet(root).await;
    // The notice began a turn of its own, and was taken in it.
    assert_eq!(
        turns(&world, root),
        ["begin", "delegate", "end", "begin", "child is done", "end"]
    );
    let shown = world.ask(root, "agent_session_get", json!({})).await;
    assert_eq!(
        (
            &shown["status"],
            &shown["result_preview"],
            &shown["waiting_for"]
        ),
        (&json!("idle"), &json!("thanks"), &json!([]))
    );
}

/// The turns of a session, and between begin and end what each took.
fn turns(world: &World, session: SessionId) -> Vec<String> {
    let told = |stamped: Stamped| match stamped.event {
        Event::TurnStarted { .. } => Some("begin".to_owned()),
        Event::Consumed { item, .. } => Some(item.text.to_string()),
        Event::TurnEnded { .. } => Some("end".to_owned()),
        _ => None,
    };
    world.events(session).into_iter().filter_map(told).collect()
}

#[tokio::test]
async fn multiple_sub_agents_list_returns_all() {
    let world = World::new().await;
    world.puppet.teach(|request| {
        match (
            Puppet::task(request).as_str(),
            Puppet::results(request).len(),
        ) {
            ("delegate", 0) => (0..4)
                .flat_map(|n| {
                    let arguments = json!({ "name": format!("w{n}"), "initial_message": "work" });
                    call("agent_session_create", &arguments)
                })
                .collect(),
            ("delegate", 4) => call("agent_session_list", &json!({})),
            ("delegate", _) => text(&column(&result(request), "name").join(" ")),
            _ => text("worked"),
        }
    });
    let root = world.root(Some("delegate")).await;
    world.quiet(root).await;
    let shown = world.ask(root, "agent_session_get", json!({})).await;
    assert_eq!(shown["result_preview"], "w0 w1 w2 w3");
    let list = world.ask(root, "agent_session_list", json!({})).await;
    assert_eq!(column(&list, "status"), ["idle"; 4]);
    assert_eq!(column(&list, "outcome"), ["succeeded"; 4]);
}

#[tokio::test]
async fn sub_agent_stop_dispose_removed_from_factory() {
    let world = World::new().await;
    let root = world.root(None).await;
    let keep = world.child(root, Some("keep")).await;
    let drop = world.child(root, Some("drop")).await;
    let below = world.child(drop, None).await;
    world.quiet(root).await;
    assert_eq!(world.engine.load(), (4, 0));
    let dispose = json!({ "session_id": drop.to_string(), "dispose": true });
    let stopped = world.ask(root, "agent_session_stop", dispose).await;
    assert_eq!(stopped, json!({ "ok": true, "was_running": false }));
    world.quiet(root).await;
    let list = world
        .ask(root, "agent_session_list", json!({ "recursive": true }))
        .await;
    assert_eq!(column(&list, "session_id"), ids(&[keep, drop, below]));
    assert_eq!(column(&list, "status"), ["idle", "stopped", "stopped"]);
    assert_eq!(world.engine.load(), (2, 0));
}
