//! `agent_session_list`: which sessions are listed, how, and in which order.

use attache_session::SessionId;
use attache_testkit::{Gate, World};
use serde_json::{Value, json};

use crate::kit::{busy_child, code, column, has_members, held, ids, no_usage};

const LIST: &str = "agent_session_list";

/// A root with children that run, are idle and run, and a grandchild.
async fn family() -> (World, SessionId, [SessionId; 3], SessionId) {
    let world = World::new().await;
    let gate = Gate::default();
    world.puppet.teach(held(&gate));
    let root = world.root(None).await;
    let one = world.child(root, Some("held 1")).await;
    let two = world.child(root, Some("free 2")).await;
    let grandchild = world.child(two, None).await;
    world.quiet(two).await;
    let three = world.child(root, Some("held 3")).await;
    (world, root, [one, two, three], grandchild)
}

#[tokio::test]
async fn agent_session_list_no_filter_returns_all_sessions() {
    let (world, root, children, grandchild) = family().await;
    let list = world.ask(root, LIST, json!({ "recursive": false })).await;
    assert_eq!(column(&list, "session_id"), ids(&children));
    assert_eq!(column(&list, "status"), ["running", "idle", "running"]);
    let all = world.ask(root, LIST, json!({ "recursive": true })).await;
    let [one, two, three] = children;
    assert_eq!(
        column(&all, "session_id"),
        ids(&[one, two, grandchild, three])
    );
}

#[tokio::test]
async fn agent_session_list_no_filters_returns_all_sessions() {
    let (world, root, children, _) = family().await;
    let list = world.ask(root, LIST, json!({})).await;
    assert_eq!(column(&list, "session_id"), ids(&children));
    for row in list.as_array().unwrap() {
        has_members(
            row,
            &[
                "session_id",
                "name",
                "status",
                "outcome",
                "created_at",
                "last_activity_at",
                "usage",
                "context_tokens",
            ],
        );
        assert_eq!(row["name"], "attache");
        assert_eq!(row["usage"], no_usage());
    }
    assert_eq!(list[0]["outcome"], Value::Null);
    assert_eq!(list[1]["outcome"], "succeeded");
    let times = column(&list, "created_at");
    assert!(times.is_sorted() && times.iter().all(|at| at.len() == 27 && at.ends_with('Z')));
}

#[tokio::test]
async fn agent_session_list_status_filter_returns_only_matching_sessions() {
    let (world, root, [_, two, _], _) = family().await;
    let idle = world.ask(root, LIST, json!({ "status": "idle" })).await;
    assert_eq!(column(&idle, "session_id"), ids(&[two]));
    assert_eq!(column(&idle, "status"), ["idle"]);
    for none in ["stopped", "error"] {
        let list = world.ask(root, LIST, json!({ "status": none })).await;
        assert_eq!(list, json!([]));
    }
    let wrong = code(&world, root, LIST, json!({ "status": "busy" })).await;
    assert_eq!(wrong, "invalid-arguments");
}

#[tokio::test]
async fn agent_session_list_status_filter_returns_matching_sessions() {
    let (world, root, [one, _, three], _) = family().await;
    let running = world.ask(root, LIST, json!({ "status": "running" })).await;
    assert_eq!(column(&running, "session_id"), ids(&[one, three]));
    assert_eq!(column(&running, "status"), ["running", "running"]);
}

#[tokio::test]
async fn a_running_child_is_never_listed_as_idle() {
    let (world, root, child, gate) = busy_child().await;
    let list = world.ask(root, LIST, json!({})).await;
    assert_eq!(column(&list, "status"), ["running"]);
    let idle = world.ask(root, LIST, json!({ "status": "idle" })).await;
    assert_eq!(idle, json!([]));
    gate.open();
    world.quiet(child).await;
    let list = world.ask(root, LIST, json!({})).await;
    assert_eq!(column(&list, "status"), ["idle"]);
}

#[tokio::test]
async fn a_disposed_child_stays_in_the_list_as_stopped() {
    let (world, root, child, _gate) = busy_child().await;
    let stop = json!({ "session_id": child.to_string(), "dispose": true });
    world.ask(root, "agent_session_stop", stop).await;
    let list = world.ask(root, LIST, json!({})).await;
    assert_eq!(column(&list, "session_id"), ids(&[child]));
    assert_eq!(column(&list, "status"), ["stopped"]);
    assert_eq!(column(&list, "outcome"), ["cancelled"]);
    let none = world.ask(root, LIST, json!({ "status": "idle" })).await;
    assert_eq!(none, json!([]));
}

#[tokio::test]
async fn a_list_is_read_page_by_page() {
    let (world, root, children, _) = family().await;
    let mut seen = Vec::new();
    let mut after = Value::Null;
    loop {
        let arguments = json!({ "limit": 1, "after_session_id": after });
        let page = world.ask(root, LIST, arguments).await;
        let Some(last) = column(&page, "session_id").pop() else {
            break;
        };
        seen.push(last.clone());
        after = json!(last);
    }
    assert_eq!(seen, ids(&children));
    let foreign = world.root(None).await;
    let arguments = json!({ "after_session_id": foreign.to_string() });
    assert_eq!(code(&world, root, LIST, arguments).await, "unknown-session");
}

#[tokio::test]
async fn a_restart_shows_children_stopped_with_their_true_outcome() {
    let world = World::new().await;
    let gate = Gate::default();
    world.puppet.teach(held(&gate));
    let root = world.root(None).await;
    let done = world.child(root, Some("free")).await;
    world.quiet(root).await;
    let cut = world.child(root, Some("held")).await;
    let fresh = world.child(root, None).await;
    gate.reached().await;
    let world = world.restarted().await;
    let list = world.ask(root, LIST, json!({})).await;
    assert_eq!(column(&list, "session_id"), ids(&[done, cut, fresh]));
    assert_eq!(column(&list, "status"), ["stopped", "stopped", "stopped"]);
    assert_eq!(list[0]["outcome"], "succeeded");
    assert_eq!(list[1]["outcome"], "interrupted");
    assert_eq!(list[2]["outcome"], Value::Null);
}
