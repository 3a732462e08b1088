//! `agent_session_get`: true status, what runs, and who may look.

use attache_testkit::{Gate, Piece, Puppet, World, call, text};
use serde_json::{Value, json};

use crate::kit::{DETAIL, busy_child, has_members, no_usage, on, refused};

const GET: &str = "agent_session_get";

#[tokio::test]
async fn agent_session_get_dot_session_id_returns_self_session() {
    let world = World::new().await;
    let root = world.root(None).await;
    let child = world.child(root, None).await;
    for caller in [root, child] {
        let dot = world.ask(caller, GET, json!({ "session_id": "." })).await;
        has_members(&dot, &DETAIL);
        assert_eq!(dot["session_id"], caller.to_string());
        assert_eq!(dot, world.ask(caller, GET, json!({})).await);
        assert_eq!(dot, on(&world, caller, "get", caller).await);
    }
}

#[tokio::test]
async fn agent_session_get_self_reference_returns_parent_session() {
    let world = World::new().await;
    world.puppet.teach(|request| {
        if Puppet::after_tools(request) {
            text("seen")
        } else {
            call(GET, &json!({ "session_id": "." }))
        }
    });
    let root = world.root(None).await;
    let child = world.child(root, None).await;
    let enqueue = json!({ "session_id": ".", "text": "look" });
    world.ask(root, "agent_session_send", enqueue).await;
    world.quiet(root).await;
    let results = Puppet::results(&world.puppet.requests()[1]);
    let seen: Value = serde_json::from_str(&results[0]).unwrap();
    assert_eq!(seen["session_id"], root.to_string());
    assert_ne!(seen["session_id"], child.to_string());
    assert_eq!(
        (&seen["status"], &seen["is_busy"]),
        (&json!("running"), &json!(true))
    );
    assert_eq!(
        seen["running_items"],
        json!([{ "role": "tool", "preview": GET }])
    );
}

#[tokio::test]
async fn agent_session_get_known_session_returns_status_and_running_items() {
    let world = World::new().await;
    let gate = Gate::default();
    let long = "🙏é".repeat(200);
    let (stand, said) = (gate.clone(), long.clone());
    world
        .puppet
        .teach(move |_| vec![Piece::Text(said.clone()), Piece::Wait(stand.clone())]);
    let root = world.root(None).await;
    let child = world.child(root, Some("go")).await;
    gate.reached().await;
    let shown = on(&world, root, "get", child).await;
    has_members(&shown, &DETAIL);
    assert_eq!(shown["status"], "running");
    assert_eq!(shown["is_busy"], true);
    // The preview is cut between characters.
    let cut: String = long.chars().take(200).collect();
    assert_eq!(
        shown["running_items"],
        json!([{ "role": "assistant", "preview": cut }])
    );
    assert_eq!(shown["outcome"], Value::Null);
    assert_eq!(shown["result_preview"], Value::Null);
    gate.open();
    world.quiet(child).await;
    let shown = on(&world, root, "get", child).await;
    assert_eq!(shown["running_items"], json!([]));
    assert_eq!(shown["result_preview"], long);
}

#[tokio::test]
async fn agent_session_get_valid_session_id_returns_status() {
    let world = World::new().await;
    let root = world.root(None).await;
    let child = world.child(root, Some("go")).await;
    world.quiet(child).await;
    let shown = on(&world, root, "get", child).await;
    assert_eq!(
        shown,
        json!({
            "session_id": child.to_string(), "status": "idle", "is_busy": false,
            "running_items": [], "queued": 0, "waiting_for": [], "outcome": "succeeded",
            "end_reason": "completed", "result_preview": "done",
            "last_activity_at": shown["last_activity_at"], "usage": no_usage(),
            "receipts": [{
                "item_id": shown["receipts"][0]["item_id"], "state": "consumed", "preview": "go",
                "turn": 1, "position": shown["receipts"][0]["position"],
            }],
        })
    );
}

#[tokio::test]
async fn a_session_is_busy_while_it_runs_and_only_then() {
    let (world, root, child, gate) = busy_child().await;
    let idle = world.ask(root, GET, json!({})).await;
    assert_eq!(
        (&idle["status"], &idle["is_busy"]),
        (&json!("idle"), &json!(false))
    );
    let running = on(&world, root, "get", child).await;
    assert_eq!(
        (&running["status"], &running["is_busy"]),
        (&json!("running"), &json!(true))
    );
    gate.open();
    world.quiet(child).await;
    let idle = on(&world, root, "get", child).await;
    assert_eq!(
        (&idle["status"], &idle["is_busy"]),
        (&json!("idle"), &json!(false))
    );
}

#[tokio::test]
async fn agent_session_get_unknown_session_returns_error() {
    let world = World::new().await;
    let root = world.root(None).await;
    let child = world.child(root, None).await;
    let nobody = uuid_like(1);
    let (code, message) = refused(&world, root, GET, json!({ "session_id": nobody })).await;
    assert_eq!(code, "unknown-session");
    assert_eq!(message, format!("there is no session {nobody}"));
    let first = child.to_string()[..8].to_owned();
    let long = "a".repeat(10_000);
    for odd in [
        "",
        "..",
        "a/b",
        "../../etc/passwd",
        "/tmp/victim",
        "%2e%2e",
        "a\0b",
        &first,
        &long,
    ] {
        let (code, message) = refused(&world, root, GET, json!({ "session_id": odd })).await;
        assert_eq!(code, "unknown-session", "{odd:?}");
        assert!(message.len() < 200, "{message}");
    }
}

fn uuid_like(n: u32) -> String {
    format!("01890000-0000-7000-8000-{n:012}")
}

#[tokio::test]
async fn agent_session_get_unknown_session_id_returns_error() {
    let world = World::new().await;
    let root = world.root(None).await;
    let child = world.child(root, None).await;
    let sibling = world.child(root, None).await;
    let stranger = world.root(None).await;
    let nobody = uuid_like(2);
    let unknown = world
        .call(child, GET, json!({ "session_id": nobody }))
        .await;
    // A parent, a sibling and a stranger: known to the host, and none of the child's business.
    for real in [root, sibling, stranger] {
        let real = real.to_string();
        let other = world.call(child, GET, json!({ "session_id": real })).await;
        assert!(other.is_error);
        assert_eq!(other.content.replace(&real, &nobody), unknown.content);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_looks_at_once_get_the_same_answer() {
    let (world, root, child, _gate) = busy_child().await;
    let one = on(&world, root, "get", child).await;
    // Ten threads, none of which looks before all of them stand there.
    let line = std::sync::Barrier::new(10);
    let runtime = tokio::runtime::Handle::current();
    let looks = || {
        line.wait();
        let look = || runtime.block_on(on(&world, root, "get", child));
        std::iter::repeat_with(look).take(20).collect::<Vec<_>>()
    };
    let answers: Vec<Value> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..10).map(|_| scope.spawn(looks)).collect();
        let joined = threads.into_iter().map(|thread| thread.join().unwrap());
        joined.flatten().collect()
    });
    assert_eq!(answers, vec![one; 200]);
}
