//! `agent_session_send`: which queue, when it is taken, and who takes nothing.

use attache_model::{Message, Part, Request};
use attache_session::{Command, EndReason, Event, Immediacy, Origin, QueueId, SessionId};
use attache_testkit::{Gate, World};
use serde_json::{Value, json};

use crate::kit::{busy_child, code, count, has_members, holding, on, stepping};

const SEND: &str = "agent_session_send";

async fn send(world: &World, caller: SessionId, target: SessionId, arguments: Value) -> Value {
    let mut arguments = arguments;
    arguments["session_id"] = json!(target.to_string());
    world.ask(caller, SEND, arguments).await
}

/// What was put into which queue, without the first message.
fn queued(world: &World, session: SessionId) -> Vec<(QueueId, String, Origin)> {
    let events = world.events(session).into_iter();
    events
        .filter_map(|stamped| match stamped.event {
            Event::Queued { queue, item } => {
                Some((queue, item.text.to_string(), item.origin.clone()))
            }
            _ => None,
        })
        .skip(1)
        .collect()
}

/// The texts of the history in order: what was consumed, called and said.
async fn history(world: &World, session: SessionId) -> Vec<String> {
    let page = world
        .ask(session, "agent_session_read_events", json!({}))
        .await;
    let events = page["events"].as_array().unwrap();
    let line = |event: &Value| {
        let kind = event["event_type"].as_str().unwrap();
        let text = event["content_preview"].as_str().unwrap();
        format!("{kind} {text}")
    };
    events.iter().map(line).collect()
}

#[tokio::test]
async fn agent_session_send_valid_session_enqueues_message() {
    let (world, root, child, gate) = busy_child().await;
    let sent = send(&world, root, child, json!({ "text": "more" })).await;
    has_members(&sent, &["ok", "item_id", "state"]);
    assert_eq!(
        (&sent["ok"], &sent["state"]),
        (&json!(true), &json!("accepted"))
    );
    assert_eq!(on(&world, root, "get", child).await["queued"], 1);
    assert_eq!(world.consumed(child), ["held work"]);
    gate.open();
    world.quiet(child).await;
    assert_eq!(world.consumed(child), ["held work", "more"]);
    let item = world
        .events(child)
        .into_iter()
        .find_map(|stamped| match stamped.event {
            Event::Consumed { item, .. } if &*item.text == "more" => Some(item.id.to_string()),
            _ => None,
        });
    assert_eq!(json!(item), sent["item_id"]);
}

#[tokio::test]
async fn agent_session_send_valid_session_id_enqueues_message() {
    let (world, root, child, gate) = busy_child().await;
    send(&world, root, child, json!({ "text": "more" })).await;
    gate.open();
    world.quiet(child).await;
    assert_eq!(
        queued(&world, child),
        [(QueueId::Default, "more".to_owned(), Origin::Session(root))]
    );
    // Only the full id names the child.
    let id = child.to_string();
    for part in [&id[..8], &id[28..]] {
        let arguments = json!({ "session_id": part, "text": "x" });
        assert_eq!(code(&world, root, SEND, arguments).await, "unknown-session");
    }
    let arguments = json!({ "session_id": id, "text": "  " });
    assert_eq!(
        code(&world, root, SEND, arguments).await,
        "invalid-arguments"
    );
    let arguments = json!({ "session_id": id, "text": "x".repeat(1024 * 1024 + 1) });
    assert_eq!(code(&world, root, SEND, arguments).await, "text-too-large");
    assert_eq!(queued(&world, child).len(), 1);
}

/// A child whose turn stands before a tool boundary.
async fn stepping_child() -> (World, SessionId, SessionId, Gate) {
    let world = World::new().await;
    let gate = Gate::default();
    world.puppet.teach(stepping(&gate));
    let root = world.root(None).await;
    let child = world.child(root, Some("held work")).await;
    gate.reached().await;
    (world, root, child, gate)
}

#[tokio::test]
async fn agent_session_send_immediate_mode_enqueues_immediate() {
    let (world, root, child, gate) = stepping_child().await;
    let arguments = json!({ "text": "now", "immediacy": "immediate" });
    let sent = send(&world, root, child, arguments).await;
    assert_eq!(
        (&sent["ok"], &sent["state"]),
        (&json!(true), &json!("accepted"))
    );
    gate.open();
    world.quiet(child).await;
    assert_eq!(
        queued(&world, child),
        [(QueueId::Immediate, "now".to_owned(), Origin::Session(root))]
    );
}

#[tokio::test]
async fn immediate_input_joins_the_turn_at_the_tool_boundary_and_stands_there() {
    let (world, root, child, gate) = stepping_child().await;
    let arguments = json!({ "text": "now", "immediacy": "immediate" });
    send(&world, root, child, arguments).await;
    gate.open();
    world.quiet(child).await;
    assert_eq!(
        history(&world, child).await,
        [
            "user held work",
            "tool_call agent_session_list {}",
            "tool_result []",
            "user now",
            "assistant done: now",
        ]
    );
    assert_eq!(world.puppet.requests().len(), 2);
}

#[tokio::test]
async fn queued_input_waits_for_the_end_of_the_turn() {
    let (world, root, child, gate) = stepping_child().await;
    send(&world, root, child, json!({ "text": "later" })).await;
    gate.open();
    world.quiet(child).await;
    assert_eq!(
        history(&world, child).await,
        [
            "user held work",
            "tool_call agent_session_list {}",
            "tool_result []",
            "assistant done: held work",
            "user later",
            "assistant done: later",
        ]
    );
}

#[tokio::test]
async fn g31_no_input_is_lost_doubled_or_overtaken_at_a_boundary() {
    let (world, root, child, gate) = stepping_child().await;
    for (text, immediacy) in [("A", "immediate"), ("B", "queue"), ("C", "immediate")] {
        let arguments = json!({ "text": text, "immediacy": immediacy });
        send(&world, root, child, arguments).await;
    }
    gate.open();
    world.quiet(child).await;
    assert_eq!(world.consumed(child), ["held work", "A", "C", "B"]);
}

#[tokio::test]
async fn g31_input_keeps_its_order_when_the_turn_ends_before_a_boundary() {
    let (world, root, child, gate) = busy_child().await;
    for (text, immediacy) in [("A", "immediate"), ("B", "queue"), ("C", "immediate")] {
        let arguments = json!({ "text": text, "immediacy": immediacy });
        send(&world, root, child, arguments).await;
    }
    assert_eq!(on(&world, root, "get", child).await["queued"], 3);
    // An interrupt takes nothing out of the queues.
    let stop = json!({ "session_id": child.to_string() });
    world.ask(root, "agent_session_stop", stop).await;
    gate.open();
    world.quiet(child).await;
    assert_eq!(world.consumed(child), ["held work", "A", "C", "B"]);
}

/// The texts of the user's messages in a request.
fn said(request: &Request) -> Vec<&str> {
    let mut texts = Vec::new();
    for message in &request.messages {
        if let Message::User(parts) = message {
            texts.extend(parts.iter().filter_map(|part| match part {
                Part::Text(text) => Some(&**text),
                _ => None,
            }));
        }
    }
    texts
}

#[tokio::test]
async fn g31_an_interrupt_while_a_message_is_on_its_way_neither_loses_nor_doubles_it() {
    // What is held: the record that it is in the queue, or that it joined the turn.
    for joins in [false, true] {
        let (world, store) = holding().await;
        let gate = Gate::default();
        world.puppet.teach(stepping(&gate));
        let root = world.root(None).await;
        let child = world.child(root, Some("held work")).await;
        gate.reached().await;
        let hold = store.hold(move |append| {
            append.session == child
                && append.events.iter().any(|stamped| match &stamped.event {
                    Event::Queued { item, .. } => !joins && &*item.text == "A",
                    Event::Consumed { item, .. } => joins && &*item.text == "A",
                    _ => false,
                })
        });
        let arguments = json!({ "text": "A", "immediacy": "immediate" });
        send(&world, root, child, arguments).await;
        if joins {
            gate.open();
        }
        hold.reached().await;
        // It was taken, and is in the history of nobody.
        assert_eq!(world.consumed(child), ["held work"]);
        let (ran, ()) = tokio::join!(world.engine.interrupt(child, false), async {
            hold.open();
        });
        assert!(ran.unwrap());
        gate.open();
        world.quiet(child).await;
        assert_eq!(world.consumed(child), ["held work", "A"]);
        let shown = on(&world, root, "get", child).await;
        assert_eq!(
            (&shown["status"], &shown["queued"]),
            (&json!("idle"), &json!(0))
        );
        let cut = |event: &Event| matches!(event, Event::TurnEnded { reason, .. } if *reason == EndReason::Interrupted);
        assert_eq!(count(&world, child, cut), 1);
        // The next turn reads it once, where it stands.
        send(&world, root, child, json!({ "text": "next" })).await;
        world.quiet(child).await;
        let request = world.puppet.requests().pop().unwrap();
        assert_eq!(said(&request), ["held work", "A", "next"]);
    }
}

#[tokio::test]
async fn holding_and_releasing_a_queue_keeps_its_immediacy() {
    let world = World::new().await;
    let root = world.root(None).await;
    let child = world.child(root, None).await;
    for (queue, immediacy) in [
        (QueueId::Default, Immediacy::Queue),
        (QueueId::Immediate, Immediacy::Immediate),
    ] {
        let configure = |immediacy| Command::ConfigureQueue {
            queue,
            immediacy,
            expected: None,
        };
        let set = |command| world.engine.command(child, command, None);
        set(configure(Some(Immediacy::Held))).await.unwrap();
        let immediate = queue == QueueId::Immediate;
        let word = if immediate { "immediate" } else { "queue" };
        let arguments = json!({ "text": word, "immediacy": word });
        send(&world, root, child, arguments).await;
        world.quiet(child).await;
        let shown = on(&world, root, "get", child).await;
        assert_eq!(
            (&shown["status"], &shown["queued"]),
            (&json!("idle"), &json!(1))
        );
        set(configure(None)).await.unwrap();
        world.quiet(child).await;
        let now = world
            .events(child)
            .into_iter()
            .rev()
            .find_map(|s| match s.event {
                Event::QueueSet {
                    queue: of,
                    immediacy,
                    ..
                } if of == queue => Some(immediacy),
                _ => None,
            });
        assert_eq!(now, Some(immediacy));
    }
    assert_eq!(world.consumed(child), ["queue", "immediate"]);
}

#[tokio::test]
async fn a_stopped_child_takes_nothing_until_it_is_acquired() {
    let (world, root, child, _gate) = busy_child().await;
    let gate = Gate::default();
    gate.open();
    let world = world.restarted().await;
    world.puppet.teach(crate::kit::held(&gate));
    world.engine.start(root, None).await.unwrap();
    let arguments = json!({ "session_id": child.to_string(), "text": "x" });
    assert_eq!(
        code(&world, root, SEND, arguments.clone()).await,
        "session-stopped"
    );
    let acquired = on(&world, root, "acquire", child).await;
    assert_eq!(acquired["status"], "idle");
    let sent = world.ask(root, SEND, arguments).await;
    assert_eq!(sent["ok"], true);
    world.quiet(child).await;
    assert_eq!(world.consumed(child), ["held work", "x"]);
}

#[tokio::test]
async fn g32_a_disposed_child_takes_nothing_until_it_is_acquired() {
    let (world, root, child, gate) = busy_child().await;
    let stop = json!({ "session_id": child.to_string(), "dispose": true });
    world.ask(root, "agent_session_stop", stop).await;
    let arguments = json!({ "session_id": child.to_string(), "text": "x" });
    assert_eq!(
        code(&world, root, SEND, arguments.clone()).await,
        "session-disposed"
    );
    gate.open();
    let acquired = on(&world, root, "acquire", child).await;
    assert_eq!(
        (&acquired["already_acquired"], &acquired["status"]),
        (&json!(false), &json!("idle"))
    );
    assert_eq!(world.ask(root, SEND, arguments).await["ok"], true);
    world.quiet(child).await;
    assert_eq!(world.consumed(child), ["held work", "x"]);
}

#[tokio::test]
async fn a_session_without_input_refuses_it() {
    let world = World::new().await;
    let root = world.root(None).await;
    let child = world.left_behind(vec![root], false).await;
    let arguments = json!({ "session_id": child.to_string(), "text": "x" });
    assert_eq!(code(&world, root, SEND, arguments).await, "no-user-input");
    assert_eq!(on(&world, root, "get", child).await["queued"], 0);
}
