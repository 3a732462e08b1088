//! `agent_session_wait`: what ends a wait, when, and what it says then.

use std::time::Duration;

use attache_session::{Event, ResultOrigin, SessionId};
use attache_testkit::{Gate, Piece, Puppet, World, text, timed};
use serde_json::{Value, json};

use crate::kit::{
    DETAIL, busy_child, code, column, count, has_members, held, on, refused, unread_child,
};

const WAIT: &str = "agent_session_wait";

/// What a call takes that waits for nothing, or whose waiting is ended: time here is virtual.
const AT_ONCE: Duration = Duration::ZERO;

fn members() -> Vec<&'static str> {
    let mut all = DETAIL.to_vec();
    all.extend(["new_events", "has_more", "ended_by"]);
    all
}

async fn wait(world: &World, caller: SessionId, target: SessionId, arguments: Value) -> Value {
    let mut arguments = arguments;
    arguments["session_id"] = json!(target.to_string());
    world.ask(caller, WAIT, arguments).await
}

async fn send(world: &World, caller: SessionId, target: SessionId, text: &str) -> Value {
    let arguments = json!({ "session_id": target.to_string(), "text": text });
    world.ask(caller, "agent_session_send", arguments).await
}

#[tokio::test(start_paused = true)]
async fn agent_session_wait_session_becomes_idle_returns_before_timeout() {
    let (world, root, child, gate) = busy_child().await;
    let ((waited, took), ()) = tokio::join!(
        timed(wait(&world, root, child, json!({ "timeout_seconds": 300 }))),
        async { gate.open() }
    );
    has_members(&waited, &members());
    assert_eq!((&waited["ended_by"], took), (&json!("output"), AT_ONCE));
    let waited = wait(&world, root, child, json!({ "wait_for_idle": true })).await;
    assert_eq!(
        (&waited["ended_by"], &waited["status"], &waited["outcome"]),
        (&json!("settled"), &json!("idle"), &json!("succeeded"))
    );
    assert_eq!(waited["result_preview"], "done: held work");
}

#[tokio::test(start_paused = true)]
async fn agent_session_wait_idle_session_returns_immediately() {
    let world = World::new().await;
    let root = world.root(None).await;
    let child = world.child(root, Some("go")).await;
    world.quiet(child).await;
    let shown = on(&world, root, "get", child).await;
    for idle in [false, true] {
        let arguments = json!({ "wait_for_idle": idle });
        let (mut waited, took) = timed(wait(&world, root, child, arguments)).await;
        assert_eq!((&waited["ended_by"], took), (&json!("settled"), AT_ONCE));
        assert_eq!(waited["new_events"], json!([]));
        assert_eq!(waited["has_more"], false);
        for member in ["ended_by", "new_events", "has_more"] {
            waited.as_object_mut().unwrap().remove(member);
        }
        assert_eq!(waited, shown);
    }
}

/// A child that speaks and calls a tool behind a first gate, and ends behind a second.
async fn two_steps() -> (World, SessionId, SessionId, [Gate; 2]) {
    let world = World::new().await;
    let gates = [Gate::default(), Gate::default()];
    let [first, second] = gates.clone();
    world.puppet.teach(move |request| {
        if Puppet::after_tools(request) {
            return vec![Piece::Wait(second.clone()), Piece::Text("end".to_owned())];
        }
        let call = Piece::Call("agent_session_list".to_owned(), "{}".to_owned());
        let said = Piece::Text("begin".to_owned());
        vec![Piece::Wait(first.clone()), said, call]
    });
    let root = world.root(None).await;
    let child = world.child(root, Some("go")).await;
    gates[0].reached().await;
    (world, root, child, gates)
}

#[tokio::test(start_paused = true)]
async fn agent_session_wait_wait_for_idle_true_waits_until_not_busy() {
    let (world, root, child, [first, second]) = two_steps().await;
    let (waited, ()) = tokio::join!(
        wait(&world, root, child, json!({ "wait_for_idle": true })),
        async {
            first.open();
            second.reached().await;
            let shown = on(&world, root, "get", child).await;
            assert_eq!(
                (&shown["is_busy"], &shown["status"]),
                (&json!(true), &json!("running"))
            );
            second.open();
        }
    );
    assert_eq!(waited["ended_by"], "settled");
    assert_eq!(waited["is_busy"], false);
    assert_eq!(
        column(&waited["new_events"], "content_preview"),
        ["begin", "agent_session_list {}", "[]", "end"]
    );
}

#[tokio::test(start_paused = true)]
async fn agent_session_wait_running_session_waits_for_completion() {
    let (world, root, child, [first, second]) = two_steps().await;
    // The first output ends a wait that is not for idle.
    let (waited, ()) = tokio::join!(wait(&world, root, child, json!({})), async {
        first.open();
    });
    assert_eq!(
        (&waited["ended_by"], &waited["status"]),
        (&json!("output"), &json!("running"))
    );
    assert_eq!(waited["new_events"][0]["content_preview"], "begin");
    second.reached().await;
    let arguments = json!({ "wait_for_idle": true, "timeout_seconds": 60 });
    let (waited, ()) = tokio::join!(wait(&world, root, child, arguments), async {
        second.open();
    });
    assert_eq!(
        (&waited["ended_by"], &waited["status"]),
        (&json!("settled"), &json!("idle"))
    );
    assert_eq!(column(&waited["new_events"], "content_preview"), ["end"]);
    assert_eq!(waited["result_preview"], "end");
}

#[tokio::test(start_paused = true)]
async fn agent_session_wait_timeout_returns_timeout_status() {
    let (world, root, child, _gate) = busy_child().await;
    for idle in [false, true] {
        let arguments = json!({ "timeout_seconds": 5, "wait_for_idle": idle });
        let (waited, took) = timed(wait(&world, root, child, arguments)).await;
        assert_eq!(took, Duration::from_secs(5));
        has_members(&waited, &members());
        assert_eq!(
            (&waited["status"], &waited["ended_by"]),
            (&json!("timeout"), &json!("timeout"))
        );
        assert_eq!(waited["is_busy"], true);
        assert_eq!(waited["new_events"], json!([]));
    }
    // Without a time it is half a minute.
    for idle in [false, true] {
        let arguments = json!({ "wait_for_idle": idle });
        let (waited, took) = timed(wait(&world, root, child, arguments)).await;
        assert_eq!(waited["ended_by"], "timeout");
        assert_eq!(took, Duration::from_secs(30));
    }
    assert_eq!(on(&world, root, "get", child).await["status"], "running");
}

#[tokio::test(start_paused = true)]
async fn g25_a_wait_that_runs_out_is_no_failure() {
    let (world, root, child, gate) = busy_child().await;
    let arguments = json!({ "session_id": child.to_string(), "timeout_seconds": 1 });
    let (outcome, took) = timed(world.call(root, WAIT, arguments)).await;
    assert_eq!((outcome.is_error, took), (false, Duration::from_secs(1)));
    let arguments = json!({ "timeout_seconds": 10, "wait_for_idle": true });
    let (waited, ()) = tokio::join!(wait(&world, root, child, arguments), async { gate.open() });
    assert_eq!(
        (&waited["status"], &waited["ended_by"]),
        (&json!("idle"), &json!("settled"))
    );
    assert_eq!(
        column(&waited["new_events"], "content_preview"),
        ["done: held work"]
    );
    assert_eq!(world.consumed(child), ["held work"]);
}

#[tokio::test(start_paused = true)]
async fn g25_times_out_of_range_are_clamped_and_named() {
    let (world, root, child, _gate) = busy_child().await;
    let rows = [
        (Value::Null, None, 30),
        (json!(0), None, 0),
        (json!(7), None, 7),
        (json!(300), None, 300),
        (json!(-1), Some(0), 0),
        (json!(301), Some(300), 300),
        (json!(1e9), Some(300), 300),
        (json!(u64::MAX), Some(300), 300),
        (json!(-1e300), Some(0), 0),
    ];
    for (given, adjusted, seconds) in rows {
        let adjusted = adjusted.map_or(Value::Null, |to| json!({ "timeout_seconds": to }));
        let arguments = json!({ "timeout_seconds": given });
        let (waited, took) = timed(wait(&world, root, child, arguments)).await;
        // What it says of the time is what it did.
        assert_eq!(took, Duration::from_secs(seconds), "{given}");
        assert_eq!(
            (&waited["status"], &waited["ended_by"]),
            (&json!("timeout"), &json!("timeout"))
        );
        assert_eq!(waited["adjusted"], adjusted, "{given}");
    }
    for wrong in [json!("30"), json!(1.5), json!(true), json!([30])] {
        let arguments = json!({ "session_id": child.to_string(), "timeout_seconds": wrong });
        assert_eq!(
            code(&world, root, WAIT, arguments).await,
            "invalid-arguments"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn g25_an_interrupt_of_the_waiter_ends_the_wait_and_leaves_the_child() {
    let world = World::new().await;
    let gate = Gate::default();
    let stand = gate.clone();
    world.puppet.teach(move |request| {
        match (
            Puppet::task(request).as_str(),
            Puppet::results(request).pop(),
        ) {
            ("parent", None) => {
                let arguments = json!({ "initial_message": "child" });
                attache_testkit::call("agent_session_create", &arguments)
            }
            ("parent", Some(made)) => {
                let made: Value = serde_json::from_str(&made).unwrap();
                let arguments = json!({ "session_id": made["session_id"], "wait_for_idle": true });
                attache_testkit::call(WAIT, &arguments)
            }
            _ => vec![Piece::Wait(stand.clone()), Piece::Text("late".to_owned())],
        }
    });
    let root = world.root(Some("parent")).await;
    gate.reached().await;
    while world.engine.waiting_for(root).is_empty() {
        tokio::task::yield_now().await;
    }
    let child = world.engine.waiting_for(root)[0];
    assert_eq!(
        world.ask(root, "agent_session_get", json!({})).await["waiting_for"],
        json!([child.to_string()])
    );
    let (cut, took) = timed(async {
        let cut = world.engine.interrupt(root, false).await;
        let settled = world.engine.settled(root, attache_engine::Quiet::Itself);
        settled.await.unwrap();
        cut.unwrap()
    })
    .await;
    // A wait that did not hear of it would run out after half a minute, and look the same then.
    assert_eq!((cut, took), (true, AT_ONCE));
    let cuts = |event: &Event| matches!(event, Event::CallEnded { result, .. } if result.origin == ResultOrigin::Cut);
    assert_eq!(count(&world, root, cuts), 1);
    let shown = world.ask(root, "agent_session_get", json!({})).await;
    assert_eq!(
        (&shown["status"], &shown["outcome"], &shown["waiting_for"]),
        (&json!("idle"), &json!("interrupted"), &json!([]))
    );
    assert_eq!(on(&world, root, "get", child).await["status"], "running");
    gate.open();
    world.quiet(child).await;
    assert_eq!(on(&world, root, "get", child).await["outcome"], "succeeded");
}

#[tokio::test(start_paused = true)]
async fn g26_waits_that_could_never_end_are_refused_at_once() {
    let world = World::new().await;
    let root = world.root(None).await;
    let child = world.child(root, None).await;
    let sibling = world.child(root, None).await;
    let grandchild = world.child(child, None).await;
    let rows = [
        (child, ".".to_owned(), "self-wait"),
        (child, child.to_string(), "self-wait"),
        (child, root.to_string(), "wait-cycle"),
        (grandchild, root.to_string(), "wait-cycle"),
        (grandchild, child.to_string(), "wait-cycle"),
        (child, sibling.to_string(), "unknown-session"),
        (
            root,
            "01890000-0000-7000-8000-000000000004".to_owned(),
            "unknown-session",
        ),
    ];
    for (caller, target, wanted) in rows {
        let arguments = json!({ "session_id": target });
        let ((code, message), took) = timed(refused(&world, caller, WAIT, arguments)).await;
        assert_eq!((code.as_str(), took), (wanted, AT_ONCE), "{target}");
        // It names what cannot be waited for.
        let named = target.replace('.', &caller.to_string());
        assert!(message.contains(&named), "{message}");
    }
    // A wait over two generations is none of them.
    let waited = wait(&world, root, grandchild, json!({})).await;
    assert_eq!(waited["ended_by"], "settled");
}

#[tokio::test(start_paused = true)]
async fn input_that_was_sent_before_a_wait_counts_as_work() {
    let (world, root, child, gate) = unread_child("task").await;
    world.puppet.teach(text_of);
    let five = Duration::from_secs(5);
    for idle in [false, true] {
        let arguments = json!({ "wait_for_idle": idle, "timeout_seconds": 5 });
        let (waited, took) = timed(wait(&world, root, child, arguments)).await;
        assert_eq!(
            (&waited["ended_by"], &waited["is_busy"], &waited["queued"]),
            (&json!("timeout"), &json!(true), &json!(1))
        );
        assert_eq!(took, five);
    }
    let ((waited, took), ()) = tokio::join!(
        timed(wait(&world, root, child, json!({ "wait_for_idle": true }))),
        async { gate.open() }
    );
    assert_eq!((&waited["ended_by"], took), (&json!("settled"), AT_ONCE));
    assert_eq!(waited["result_preview"], "did task");
    assert_eq!(world.consumed(child), ["task"]);
    // The same with nothing held: the child is as fast as it is, and what was sent is never passed by.
    for n in 0..20 {
        let text = format!("task {n}");
        send(&world, root, child, &text).await;
        let waited = wait(&world, root, child, json!({ "wait_for_idle": true })).await;
        assert_eq!(waited["ended_by"], "settled");
        assert_eq!(waited["result_preview"], format!("did {text}"));
    }
}

fn text_of(request: &attache_model::Request) -> Vec<Piece> {
    text(&format!("did {}", Puppet::last_user(request)))
}

#[tokio::test(start_paused = true)]
async fn steering_the_waiter_ends_its_wait() {
    let world = World::new().await;
    let gate = Gate::default();
    world.puppet.teach(held(&gate));
    let top = world.root(None).await;
    let waiter = world.child(top, Some("held waiter")).await;
    let child = world.child(waiter, Some("held child")).await;
    gate.reached().await;
    let arguments = json!({ "wait_for_idle": true, "timeout_seconds": 300 });
    let ((waited, took), _) = tokio::join!(timed(wait(&world, waiter, child, arguments)), async {
        let arguments = json!({
            "session_id": waiter.to_string(), "text": "look here", "immediacy": "immediate"
        });
        world.ask(top, "agent_session_send", arguments).await
    });
    assert_eq!(took, AT_ONCE);
    assert_eq!(
        (&waited["ended_by"], &waited["status"]),
        (&json!("steered"), &json!("running"))
    );
    assert_eq!(on(&world, top, "get", child).await["status"], "running");
}

#[tokio::test(start_paused = true)]
async fn stopping_the_child_ends_a_wait_as_stopped() {
    let (world, root, child, _gate) = busy_child().await;
    let ((waited, took), _) = tokio::join!(
        timed(wait(&world, root, child, json!({ "wait_for_idle": true }))),
        world.engine.terminate(child)
    );
    assert_eq!(took, AT_ONCE);
    assert_eq!(
        (&waited["ended_by"], &waited["status"], &waited["outcome"]),
        (&json!("stopped"), &json!("stopped"), &json!("cancelled"))
    );
    let again = wait(&world, root, child, json!({})).await;
    assert_eq!(again["ended_by"], "stopped");
}

#[tokio::test(start_paused = true)]
async fn new_events_are_bounded_and_say_that_there_are_more() {
    let world = World::new().await;
    let gate = Gate::default();
    let stand = gate.clone();
    world.puppet.teach(move |request| {
        if Puppet::after_tools(request) {
            return text("end");
        }
        let call = Piece::Call("agent_session_get".to_owned(), "{}".to_owned());
        let mut pieces = vec![call; 12];
        pieces.insert(0, Piece::Wait(stand.clone()));
        pieces
    });
    let root = world.root(None).await;
    let child = world.child(root, Some("go")).await;
    gate.reached().await;
    let (waited, ()) = tokio::join!(
        wait(&world, root, child, json!({ "wait_for_idle": true })),
        async { gate.open() }
    );
    // Twelve calls, twelve results and the end are twenty-five.
    assert_eq!(waited["new_events"].as_array().unwrap().len(), 20);
    assert_eq!(waited["has_more"], true);
    assert_eq!(waited["result_preview"], "end");
}
