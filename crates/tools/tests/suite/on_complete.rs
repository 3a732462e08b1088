//! `agent_session_on_complete`: when a watch fires, what it says, and that it fires once.

use attache_session::{Event, Origin, Outcome, QueueId, SessionId, Status};
use attache_testkit::{Gate, Piece, Puppet, World, call, text, timed};
use serde_json::{Value, json};

use crate::kit::{busy_child, code, count, held, on, unread_child};

const WATCH: &str = "agent_session_on_complete";

/// What a session was told by notices: the queue, of whom, and the text.
fn notices(world: &World, session: SessionId) -> Vec<(QueueId, SessionId, String)> {
    let events = world.events(session).into_iter();
    events
        .filter_map(|stamped| match stamped.event {
            Event::Queued { queue, item } => match &item.origin {
                Origin::Notice { about, .. } => Some((queue, *about, item.text.to_string())),
                _ => None,
            },
            _ => None,
        })
        .collect()
}

async fn watch(world: &World, caller: SessionId, target: SessionId, message: Value) -> Value {
    let arguments = json!({ "session_id": target.to_string(), "message": message });
    world.ask(caller, WATCH, arguments).await
}

fn at_once(fired: bool) -> Value {
    json!({ "ok": true, "fired_immediately": fired })
}

fn default_line(session: SessionId, status: &str, outcome: &str, reason: &str) -> String {
    let without = match reason {
        "completed" | "refusal" => "",
        _ => " It gave no output.",
    };
    format!(
        "Session {session} has settled; status: {status}, outcome: {outcome}, end reason: {reason}.{without} \
         Its result is read with agent_session_get or agent_session_read_events."
    )
}

#[tokio::test]
async fn agent_session_on_complete_session_completes_enqueues_parent_message() {
    let (world, root, child, gate) = busy_child().await;
    assert_eq!(
        watch(&world, root, child, json!("it is done")).await,
        at_once(false)
    );
    assert_eq!(notices(&world, root), []);
    gate.open();
    world.quiet(root).await;
    assert_eq!(
        notices(&world, root),
        [(QueueId::Immediate, child, "it is done".to_owned())]
    );
    assert_eq!(world.consumed(root), ["it is done"]);
}

#[tokio::test]
async fn agent_session_on_complete_running_session_enqueues_on_completion() {
    let (world, root, child, gate) = busy_child().await;
    watch(&world, root, child, Value::Null).await;
    let shown = world.ask(root, "agent_session_get", json!({})).await;
    assert_eq!(shown["waiting_for"], json!([child.to_string()]));
    gate.open();
    world.quiet(root).await;
    assert_eq!(notices(&world, root).len(), 1);
    // Once for a registration: the next end of the child tells nobody.
    let send = json!({ "session_id": child.to_string(), "text": "again" });
    world.ask(root, "agent_session_send", send).await;
    world.quiet(root).await;
    assert_eq!(notices(&world, root).len(), 1);
    assert_eq!(world.consumed(root).len(), 1);
    // Two registrations are two notices.
    let gate = Gate::default();
    world.puppet.teach(held(&gate));
    let send = json!({ "session_id": child.to_string(), "text": "x" });
    world.ask(root, "agent_session_send", send).await;
    assert_eq!(
        watch(&world, root, child, json!("one")).await,
        at_once(false)
    );
    assert_eq!(
        watch(&world, root, child, json!("two")).await,
        at_once(false)
    );
    gate.open();
    world.quiet(root).await;
    assert_eq!(world.consumed(root)[1..], ["one", "two"]);
}

#[tokio::test]
async fn agent_session_on_complete_session_already_complete_enqueues_immediately() {
    let (world, root, child, gate) = busy_child().await;
    gate.open();
    world.quiet(child).await;
    assert_eq!(
        watch(&world, root, child, json!("at once")).await,
        at_once(true)
    );
    assert_eq!(
        notices(&world, root),
        [(QueueId::Immediate, child, "at once".to_owned())]
    );
    world.quiet(root).await;
    assert_eq!(world.consumed(root), ["at once"]);
}

#[tokio::test]
async fn agent_session_on_complete_terminal_state_enqueues_immediately() {
    let (world, root, child, _gate) = busy_child().await;
    world.engine.terminate(child).await.unwrap();
    assert_eq!(watch(&world, root, child, Value::Null).await, at_once(true));
    assert_eq!(
        notices(&world, root),
        [(
            QueueId::Immediate,
            child,
            default_line(child, "stopped", "cancelled", "cancelled")
        )]
    );
    world.quiet(root).await;
    assert_eq!(world.consumed(root).len(), 1);
}

#[tokio::test]
async fn agent_session_on_complete_custom_message_uses_provided_message() {
    let (world, root, child, gate) = busy_child().await;
    let message = "Schritt 2 🙏\nnow merge";
    watch(&world, root, child, json!(message)).await;
    gate.open();
    world.quiet(root).await;
    assert_eq!(world.consumed(root), [message]);
    let empty = json!({ "session_id": child.to_string(), "message": " " });
    assert_eq!(code(&world, root, WATCH, empty).await, "invalid-arguments");
}

#[tokio::test]
async fn agent_session_on_complete_default_message_includes_session_id_and_status() {
    let (world, root, child, gate) = busy_child().await;
    watch(&world, root, child, Value::Null).await;
    gate.open();
    world.quiet(root).await;
    assert_eq!(
        world.consumed(root),
        [default_line(child, "idle", "succeeded", "completed")]
    );
    // A notice is no word of a person, and says where it comes from.
    let read = world
        .ask(root, "agent_session_read_events", json!({}))
        .await;
    assert_eq!(
        (&read["events"][0]["event_type"], &read["events"][0]["role"]),
        (&json!("diagnostic"), &json!("system"))
    );
    assert_eq!(read["events"][0]["origin_session_id"], child.to_string());
}

#[tokio::test]
async fn input_that_was_sent_before_a_watch_counts_as_work() {
    let (world, root, child, gate) = unread_child("held work").await;
    assert_eq!(
        watch(&world, root, child, json!("end")).await,
        at_once(false)
    );
    // Nothing was told, and nothing has been read meanwhile.
    assert_eq!(notices(&world, root), []);
    assert_eq!(world.row(child).view.unread.inputs, 1);
    gate.open();
    world.quiet(root).await;
    assert_eq!(world.consumed(child), ["held work"]);
    assert_eq!(world.consumed(root), ["end"]);
    // The same with nothing held: the child has read nothing yet, or stands before its model.
    for n in 0..20 {
        let gate = Gate::default();
        world.puppet.teach(held(&gate));
        let send = json!({ "session_id": child.to_string(), "text": format!("held {n}") });
        world.ask(root, "agent_session_send", send).await;
        assert_eq!(
            watch(&world, root, child, json!(format!("end {n}"))).await,
            at_once(false)
        );
        assert_eq!(notices(&world, root).len(), n + 1);
        gate.open();
        world.quiet(root).await;
        assert_eq!(world.consumed(child).len(), n + 2);
        assert_eq!(world.consumed(root).len(), n + 2);
    }
}

#[tokio::test]
async fn a_turn_that_says_nothing_still_tells_its_end() {
    let (world, root, child, gate) = busy_child().await;
    let silent = gate.clone();
    world.puppet.teach(move |request| {
        if Puppet::task(request) == "silent" {
            return vec![Piece::Wait(silent.clone())];
        }
        text("ok")
    });
    let mute = world.child(root, Some("silent")).await;
    watch(&world, root, mute, Value::Null).await;
    gate.open();
    world.quiet(root).await;
    assert_eq!(
        world.consumed(root),
        [default_line(mute, "idle", "succeeded", "no-output")]
    );
    let shown = on(&world, root, "get", mute).await;
    assert_eq!(
        (
            &shown["end_reason"],
            &shown["outcome"],
            &shown["result_preview"]
        ),
        (&json!("no-output"), &json!("succeeded"), &json!(null))
    );
    assert_eq!(on(&world, root, "get", child).await["status"], "idle");
}

#[tokio::test]
async fn a_child_that_is_stopped_or_fails_is_not_told_as_done() {
    let (world, root, child, _gate) = busy_child().await;
    watch(&world, root, child, Value::Null).await;
    world.engine.terminate(child).await.unwrap();
    world.quiet(root).await;
    assert_eq!(
        world.consumed(root),
        [default_line(child, "stopped", "cancelled", "cancelled")]
    );
    world.puppet.teach(|request| {
        if Puppet::task(request) == "fail" {
            let refusal = attache_model::StopReason::Refusal;
            return vec![Piece::Text("no".to_owned()), Piece::Stop(refusal)];
        }
        text("ok")
    });
    let failing = world.child(root, Some("fail")).await;
    watch(&world, root, failing, Value::Null).await;
    world.quiet(root).await;
    assert_eq!(
        world.consumed(root)[1..],
        [default_line(failing, "error", "failed", "refusal")]
    );
}

#[tokio::test]
async fn a_watch_of_oneself_tells_the_end_of_the_own_run() {
    let (world, root, child, gate) = busy_child().await;
    let own = json!({ "session_id": ".", "message": "my run is over" });
    assert_eq!(world.ask(child, WATCH, own).await, at_once(false));
    gate.open();
    world.quiet(root).await;
    assert_eq!(world.consumed(child), ["held work", "my run is over"]);
    let stranger = world.root(None).await;
    let foreign = json!({ "session_id": stranger.to_string() });
    assert_eq!(code(&world, root, WATCH, foreign).await, "unknown-session");
}

#[tokio::test]
async fn toolset_dispose_cancels_on_complete_registrations() {
    let (world, root, child, gate) = busy_child().await;
    watch(&world, root, child, json!("too late")).await;
    // A viewer keeps the child at work after its parent has ended.
    let viewer = world.engine.attach(child).await.unwrap();
    world.engine.terminate(root).await.unwrap();
    assert_eq!(
        count(&world, root, |e| matches!(e, Event::WatchEnded { .. })),
        1
    );
    gate.open();
    world.quiet(child).await;
    assert_eq!(world.consumed(child), ["held work"]);
    world.engine.start(root, None).await.unwrap();
    world.quiet(root).await;
    assert_eq!(notices(&world, root), []);
    assert_eq!(world.consumed(root), Vec::<String>::new());
    drop(viewer);
}

#[tokio::test(start_paused = true)]
async fn a_parent_that_is_removed_is_told_nothing_and_holds_up_nobody() {
    // Its registration ends with its own end, or with a restart that ends nothing for good.
    for restarted in [false, true] {
        let (mut world, root, _, gate) = busy_child().await;
        let parent = world.child(root, None).await;
        let child = world.child(parent, Some("held below")).await;
        watch(&world, parent, child, json!("too late")).await;
        if restarted {
            world = world.restarted().await;
        } else {
            // Somebody else holds it.
            on(&world, root, "acquire", child).await;
            world.engine.terminate(parent).await.unwrap();
        }
        world.engine.delete(parent).await.unwrap();
        assert!(world.engine.row(parent).is_err());
        gate.open();
        if restarted {
            world.engine.start(child, None).await.unwrap();
            let given = attache_session::Command::Enqueue {
                item: None,
                queue: QueueId::Default,
                text: "go on".into(),
                origin: Origin::Viewer,
            };
            world.engine.command(child, given, None).await.unwrap();
        }
        let ((), took) = timed(world.quiet(child)).await;
        assert_eq!(took, std::time::Duration::ZERO, "{restarted}");
        let ends = |event: &Event| matches!(event, Event::TurnEnded { .. });
        assert_eq!(count(&world, child, ends), 1 + usize::from(restarted));
        assert_eq!(world.row(child).view.outcome(), Some(Outcome::Succeeded));
        // The child works on, and ends when it is told to.
        assert!(world.engine.terminate(child).await.unwrap());
        assert_eq!(world.row(child).status, Status::Stopped);
    }
}

#[tokio::test(start_paused = true)]
async fn a_child_that_is_removed_holds_up_nobody() {
    // It was ended before, or a restart had ended it and nobody had told its parent.
    for restarted in [false, true] {
        let (mut world, root, child, gate) = busy_child().await;
        watch(&world, root, child, json!("it is over")).await;
        gate.open();
        if restarted {
            world = world.restarted().await;
        } else {
            world.engine.terminate(child).await.unwrap();
        }
        world.engine.delete(child).await.unwrap();
        world.engine.start(root, None).await.unwrap();
        let ((), took) = timed(world.quiet(root)).await;
        assert_eq!(took, std::time::Duration::ZERO, "{restarted}");
        assert_eq!(world.consumed(root), ["it is over"], "{restarted}");
        let list = world.ask(root, "agent_session_list", json!({})).await;
        assert_eq!(list, json!([]));
        let unknown = json!({ "session_id": child.to_string() });
        for tool in ["agent_session_stop", "agent_session_acquire", WATCH] {
            let refused = code(&world, root, tool, unknown.clone()).await;
            assert_eq!(refused, "unknown-session");
        }
        // What the parent still holds of it does not keep the parent from ending.
        assert!(world.engine.terminate(root).await.unwrap());
        assert_eq!(world.row(root).status, Status::Stopped);
    }
}

#[tokio::test]
async fn a_watch_in_the_same_step_as_the_send_counts_it_as_work() {
    send_and_then().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_calls_of_a_step_begin_in_order_on_several_threads() {
    for _ in 0..20 {
        send_and_then().await;
    }
}

/// A model that sends something to an idle child and, in the same step, waits for it or asks to be
/// told of its end.
async fn send_and_then() {
    for tool in [WATCH, "agent_session_wait"] {
        let world = World::new().await;
        let root = world.root(None).await;
        let child = world.child(root, None).await;
        world.puppet.teach(move |request| {
            if Puppet::task(request) != "go" {
                return text("answer");
            }
            if Puppet::after_tools(request) || Puppet::last_user(request) != "go" {
                return text("ok");
            }
            let target = child.to_string();
            let send = json!({ "session_id": target, "text": "question" });
            let then = match tool {
                WATCH => json!({ "session_id": target }),
                _ => json!({ "session_id": target, "wait_for_idle": true }),
            };
            let mut pieces = call("agent_session_send", &send);
            pieces.extend(call(tool, &then));
            pieces
        });
        let send = json!({ "session_id": ".", "text": "go" });
        world.ask(root, "agent_session_send", send).await;
        world.quiet(root).await;
        let requests = world.puppet.requests();
        let results = requests
            .iter()
            .map(Puppet::results)
            .find(|results| results.len() == 2)
            .unwrap();
        let result: Value = serde_json::from_str(&results[1]).unwrap();
        match tool {
            WATCH => {
                // A child that was fast may have ended by now; it was never told as idle before.
                assert_eq!(result["ok"], true);
                assert_eq!(
                    world.consumed(root)[1..],
                    [default_line(child, "idle", "succeeded", "completed")]
                );
            }
            _ => assert_eq!(result["result_preview"], "answer"),
        }
    }
}

#[tokio::test]
async fn a_watch_outlives_a_restart_and_fires_once() {
    let (world, root, child, _gate) = busy_child().await;
    watch(&world, root, child, Value::Null).await;
    let world = world.restarted().await;
    world.puppet.teach(|_| text("ok"));
    // The parent is stopped: the notice waits for it.
    world.quiet(root).await;
    assert_eq!(notices(&world, root), []);
    world.engine.start(root, None).await.unwrap();
    world.quiet(root).await;
    assert_eq!(
        world.consumed(root),
        [default_line(
            child,
            "stopped",
            "interrupted",
            "host-restart"
        )]
    );
    let world = world.restarted().await;
    world.engine.start(root, None).await.unwrap();
    world.quiet(root).await;
    assert_eq!(world.consumed(root).len(), 1);
}
