//! `agent_session_stop`: what ends, what stays, and that it stays ended.

use attache_session::{Event, ResultOrigin};
use attache_testkit::{Gate, Piece, Puppet, World, call};
use serde_json::{Value, json};

use crate::kit::{busy_child, code, count, on};

const STOP: &str = "agent_session_stop";

#[tokio::test]
async fn agent_session_stop_running_session_calls_interrupt() {
    let (world, root, child, _gate) = busy_child().await;
    let grandchild = world.child(child, Some("held below")).await;
    let stopped = on(&world, root, "stop", child).await;
    assert_eq!(stopped, json!({ "ok": true, "was_running": true }));
    world.quiet(child).await;
    for session in [child, grandchild] {
        let shown = on(&world, root, "get", session).await;
        assert_eq!(
            (&shown["status"], &shown["outcome"], &shown["end_reason"]),
            (&json!("idle"), &json!("cancelled"), &json!("cancelled"))
        );
    }
    let again = on(&world, root, "stop", child).await;
    assert_eq!(again, json!({ "ok": true, "was_running": false }));
}

#[tokio::test]
async fn agent_session_stop_interrupt_only_stops_but_retains_lease() {
    let (world, root, child, gate) = busy_child().await;
    on(&world, root, "stop", child).await;
    world.quiet(child).await;
    assert_eq!(
        count(&world, root, |e| matches!(e, Event::ChildReleased { .. })),
        0
    );
    assert_eq!(
        count(&world, child, |e| matches!(e, Event::Stopped { .. })),
        0
    );
    assert_eq!(
        on(&world, root, "acquire", child).await["already_acquired"],
        true
    );
    gate.open();
    let send = json!({ "session_id": child.to_string(), "text": "again" });
    assert_eq!(
        world.ask(root, "agent_session_send", send).await["ok"],
        true
    );
    world.quiet(child).await;
    assert_eq!(world.consumed(child), ["held work", "again"]);
}

#[tokio::test]
async fn agent_session_stop_with_dispose_disposes_session() {
    let (world, root, child, _gate) = busy_child().await;
    assert_eq!(world.engine.load().0, 2);
    let dispose = json!({ "session_id": child.to_string(), "dispose": true });
    let stopped = world.ask(root, STOP, dispose).await;
    assert_eq!(stopped, json!({ "ok": true, "was_running": true }));
    assert_eq!(world.engine.load(), (1, 0));
    let shown = on(&world, root, "get", child).await;
    assert_eq!(
        (&shown["status"], &shown["is_busy"], &shown["outcome"]),
        (&json!("stopped"), &json!(false), &json!("cancelled"))
    );
}

#[tokio::test]
async fn agent_session_stop_with_dispose_releases_lease() {
    let (world, root, child, _gate) = busy_child().await;
    let dispose = json!({ "session_id": child.to_string(), "dispose": true });
    world.ask(root, STOP, dispose.clone()).await;
    let released = count(
        &world,
        root,
        |event| matches!(event, Event::ChildReleased { child: of } if *of == child),
    );
    assert_eq!(released, 1);
    // The history stays readable, and a second dispose changes nothing.
    let read = on(&world, root, "read_events", child).await;
    assert_eq!(read["events"][0]["content_preview"], "held work");
    let again = world.ask(root, STOP, dispose).await;
    assert_eq!(again, json!({ "ok": true, "was_running": false }));
    let of_itself = json!({ "session_id": ".", "dispose": true });
    assert_eq!(
        code(&world, root, STOP, of_itself).await,
        "invalid-arguments"
    );
}

#[tokio::test]
async fn g32_what_was_stopped_stays_stopped() {
    let (world, root, child, gate) = busy_child().await;
    let dispose = json!({ "session_id": child.to_string(), "dispose": true });
    world.ask(root, STOP, dispose).await;
    // The model's answer comes after the end, and finds nobody.
    gate.open();
    world.quiet(root).await;
    let shown = on(&world, root, "get", child).await;
    assert_eq!(
        (
            &shown["status"],
            &shown["outcome"],
            &shown["result_preview"]
        ),
        (&json!("stopped"), &json!("cancelled"), &json!(null))
    );
    assert_eq!(
        count(&world, child, |e| matches!(e, Event::TurnEnded { .. })),
        1
    );
    assert_eq!(
        count(&world, child, |e| matches!(e, Event::Stopped { .. })),
        1
    );
    assert_eq!(world.puppet.requests().len(), 1);
}

#[tokio::test]
async fn g32_a_tool_that_returns_late_changes_nothing() {
    let world = World::new().await;
    let gate = Gate::default();
    let stand = gate.clone();
    world.puppet.teach(move |request| {
        let result = Puppet::results(request).pop();
        match (Puppet::task(request).as_str(), result) {
            ("boss", None) => call("agent_session_create", &json!({ "initial_message": "w" })),
            ("boss", Some(made)) => {
                let made: Value = serde_json::from_str(&made).unwrap();
                let arguments = json!({ "session_id": made["session_id"], "wait_for_idle": true });
                call("agent_session_wait", &arguments)
            }
            _ => vec![Piece::Wait(stand.clone())],
        }
    });
    let root = world.root(None).await;
    let boss = world.child(root, Some("boss")).await;
    while world.engine.waiting_for(boss).is_empty() {
        tokio::task::yield_now().await;
    }
    let requests = world.puppet.requests().len();
    let dispose = json!({ "session_id": boss.to_string(), "dispose": true });
    world.ask(root, STOP, dispose).await;
    gate.open();
    world.quiet(root).await;
    let shown = on(&world, root, "get", boss).await;
    assert_eq!(
        (&shown["status"], &shown["outcome"], &shown["is_busy"]),
        (&json!("stopped"), &json!("cancelled"), &json!(false))
    );
    let cut = count(
        &world,
        boss,
        |event| matches!(event, Event::CallEnded { result, .. } if result.origin == ResultOrigin::Cut),
    );
    assert_eq!(cut, 1);
    assert_eq!(
        count(&world, boss, |e| matches!(e, Event::TurnEnded { .. })),
        1
    );
    assert_eq!(world.puppet.requests().len(), requests);
    assert_eq!(world.engine.waiting_for(boss), []);
}

#[tokio::test]
async fn a_dispose_of_what_is_no_child_changes_nothing() {
    let (world, root, child, _gate) = busy_child().await;
    let grandchild = world.child(child, Some("held below")).await;
    let dispose = json!({ "session_id": grandchild.to_string(), "dispose": true });
    assert_eq!(code(&world, root, STOP, dispose).await, "invalid-arguments");
    let shown = on(&world, root, "get", grandchild).await;
    assert_eq!(
        (&shown["status"], &shown["outcome"]),
        (&json!("running"), &json!(null))
    );
    // Without dispose, it can be stopped over two generations.
    let stopped = on(&world, root, "stop", grandchild).await;
    assert_eq!(stopped, json!({ "ok": true, "was_running": true }));
}
