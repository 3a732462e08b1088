//! Receipts: a sender can follow what it sent, and is told when nobody will ever read it.

use attache_session::{SessionId, Status};
use attache_testkit::World;
use serde_json::{Value, json};

use crate::kit::{busy_child, on};

/// State, reason and text of what the caller sent to a session.
async fn sent(world: &World, caller: SessionId, target: SessionId) -> Vec<(String, Value, String)> {
    let shown = on(world, caller, "get", target).await;
    let receipts = shown["receipts"].as_array().expect("a list").iter();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    receipts
        .map(|it| {
            (
                text(&it["state"]),
                it["reason"].clone(),
                text(&it["preview"]),
            )
        })
        .collect()
}

async fn send(world: &World, caller: SessionId, target: SessionId, text: &str) -> Value {
    let arguments = json!({ "session_id": target.to_string(), "text": text });
    world.ask(caller, "agent_session_send", arguments).await
}

#[tokio::test]
async fn what_was_sent_is_followed_until_a_turn_has_it() {
    let (world, root, child, gate) = busy_child().await;
    let first = sent(&world, root, child).await;
    assert_eq!(first.len(), 1, "its first message");
    assert_eq!(
        (first[0].0.as_str(), &first[0].1),
        ("consumed", &Value::Null)
    );
    let item = send(&world, root, child, "and then this").await["item_id"].clone();
    let waiting = on(&world, root, "get", child).await;
    let last = &waiting["receipts"][1];
    assert_eq!(last["item_id"], item);
    assert!(["accepted", "delivered"].contains(&last["state"].as_str().expect("a state")));
    gate.open();
    world.quiet(root).await;
    let read = on(&world, root, "get", child).await;
    let last = &read["receipts"][1];
    assert_eq!(
        (&last["state"], &last["turn"]),
        (&json!("consumed"), &json!(2))
    );
    let events = world.events(child);
    let position = usize::try_from(last["position"].as_u64().expect("a position")).expect("small");
    assert_eq!(events[position - 1].event.kind(), "consumed");
    // The receipts of one sender are none of another's.
    assert_eq!(sent(&world, child, child).await, []);
}

#[tokio::test]
async fn twenty_of_them_are_shown() {
    let (world, root, child, gate) = busy_child().await;
    gate.open();
    world.quiet(root).await;
    for number in 0..25 {
        send(&world, root, child, &format!("message {number}")).await;
        world.quiet(root).await;
    }
    let receipts = sent(&world, root, child).await;
    assert_eq!(receipts.len(), 20);
    assert_eq!(receipts[19].2, "message 24");
}

#[tokio::test]
async fn what_a_stopped_session_has_not_read_is_missed_until_it_starts() {
    let (world, root, child, _gate) = busy_child().await;
    send(&world, root, child, "and then this").await;
    world.quiet_mail(child).await;
    world.engine.terminate(child).await.expect("it ends");
    let last = sent(&world, root, child).await.pop().expect("it was sent");
    assert_eq!(
        (last.0.as_str(), last.1),
        ("missed", json!("session-stopped"))
    );
    world.puppet.teach(|_| attache_testkit::text("read"));
    on(&world, root, "acquire", child).await;
    world.quiet(root).await;
    let last = sent(&world, root, child).await.pop().expect("it was sent");
    assert_eq!(last.0, "consumed");
}

#[tokio::test]
async fn a_sender_is_told_once_when_the_receiver_was_deleted() {
    for restarted in [false, true] {
        let (world, root, child, _gate) = busy_child().await;
        world.puppet.teach(|_| attache_testkit::text("noted"));
        let item = send(&world, root, child, "and then this").await["item_id"].clone();
        world.quiet_mail(child).await;
        world.engine.terminate(child).await.expect("it ends");
        let world = if restarted {
            let world = world.restarted().await;
            world.engine.start(root, None).await.expect("it starts");
            world
        } else {
            world
        };
        world.engine.delete(child).await.expect("it is deleted");
        world.quiet(root).await;
        let item = item.as_str().expect("an id");
        let told = world.consumed(root);
        let told: Vec<&String> = told.iter().filter(|text| text.contains(item)).collect();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("was not read") && told[0].contains("and then this"));
        assert_eq!(world.row(root).status, Status::Idle);
    }
}
