//! `agent_session_acquire`, and what the end of a holder does.

use attache_session::Event;
use attache_testkit::{Gate, World};
use serde_json::json;

use crate::kit::{DETAIL, busy_child, code, column, count, has_members, held, ids, on};

const ACQUIRE: &str = "agent_session_acquire";

fn members() -> Vec<&'static str> {
    let mut all = DETAIL.to_vec();
    all.push("already_acquired");
    all
}

#[tokio::test]
async fn agent_session_acquire_existing_session_returns_status() {
    let (world, root, child, _gate) = busy_child().await;
    let world = world.restarted().await;
    world.engine.start(root, None).await.unwrap();
    let acquired = on(&world, root, "acquire", child).await;
    // A run that its host's end cut says what it may have done.
    assert_eq!(acquired["side_effects"], "none");
    has_members(&acquired, &[&members()[..], &["side_effects"]].concat());
    assert_eq!(acquired["session_id"], child.to_string());
    assert_eq!(
        (
            &acquired["status"],
            &acquired["outcome"],
            &acquired["end_reason"]
        ),
        (
            &json!("idle"),
            &json!("interrupted"),
            &json!("host-restart")
        )
    );
}

#[tokio::test]
async fn agent_session_acquire_existing_session_acquires_lease() {
    let (world, root, child, _gate) = busy_child().await;
    let dispose = json!({ "session_id": child.to_string(), "dispose": true });
    world.ask(root, "agent_session_stop", dispose).await;
    assert_eq!(world.engine.load().0, 1);
    let acquired = on(&world, root, "acquire", child).await;
    assert_eq!(
        (&acquired["already_acquired"], &acquired["status"]),
        (&json!(false), &json!("idle"))
    );
    assert_eq!(world.engine.load().0, 2);
    assert_eq!(
        count(&world, root, |e| matches!(e, Event::ChildHeld { .. })),
        2
    );
}

#[tokio::test]
async fn agent_session_acquire_unknown_session_returns_error() {
    let world = World::new().await;
    let root = world.root(None).await;
    let child = world.child(root, None).await;
    let stranger = world.root(None).await;
    let nobody = "01890000-0000-7000-8000-000000000005";
    let unknown = world
        .call(child, ACQUIRE, json!({ "session_id": nobody }))
        .await;
    assert!(unknown.is_error && unknown.content.contains("unknown-session"));
    for real in [stranger.to_string(), root.to_string()] {
        let other = world
            .call(child, ACQUIRE, json!({ "session_id": real }))
            .await;
        assert_eq!(other.content.replace(&real, nobody), unknown.content);
    }
    let own = json!({ "session_id": "." });
    assert_eq!(code(&world, child, ACQUIRE, own).await, "invalid-arguments");
    assert_eq!(world.row(child).view.summary.parents, [root]);
    assert_eq!(world.row(stranger).view.summary.parents, []);
}

#[tokio::test]
async fn agent_session_acquire_already_in_leases_does_not_acquire_second_lease() {
    let world = World::new().await;
    let root = world.root(None).await;
    let child = world.child(root, None).await;
    for _ in 0..3 {
        assert_eq!(
            on(&world, root, "acquire", child).await["already_acquired"],
            true
        );
    }
    assert_eq!(
        count(&world, root, |e| matches!(e, Event::ChildHeld { .. })),
        1
    );
    // One release gives up the only hold there is.
    let dispose = json!({ "session_id": child.to_string(), "dispose": true });
    world.ask(root, "agent_session_stop", dispose).await;
    assert_eq!(on(&world, root, "get", child).await["status"], "stopped");
}

#[tokio::test]
async fn agent_session_acquire_already_acquired_returns_status() {
    let (world, root, child, _gate) = busy_child().await;
    let acquired = on(&world, root, "acquire", child).await;
    has_members(&acquired, &members());
    assert_eq!(
        (
            &acquired["already_acquired"],
            &acquired["status"],
            &acquired["is_busy"]
        ),
        (&json!(true), &json!("running"), &json!(true))
    );
}

#[tokio::test]
async fn toolset_dispose_releases_all_leases() {
    let (world, root, child, _gate) = busy_child().await;
    let second = world.child(root, None).await;
    let grandchild = world.child(second, Some("held below")).await;
    assert_eq!(world.engine.load().0, 4);
    assert!(world.engine.terminate(root).await.unwrap());
    world.quiet(root).await;
    for session in [child, second, grandchild] {
        world.quiet(session).await;
        let row = world.row(session);
        assert_eq!(row.status.as_str(), "stopped");
    }
    assert_eq!(world.engine.load(), (0, 0));
    assert_eq!(
        count(&world, root, |e| matches!(e, Event::ChildReleased { .. })),
        2
    );
    let list = world
        .ask(root, "agent_session_list", json!({ "recursive": true }))
        .await;
    assert_eq!(column(&list, "status"), ["stopped", "stopped", "stopped"]);
}

#[tokio::test]
async fn a_further_parent_holds_what_an_ancestor_created() {
    let world = World::new().await;
    let gate = Gate::default();
    world.puppet.teach(held(&gate));
    let root = world.root(None).await;
    let one = world.child(root, Some("held one")).await;
    let two = world.child(root, None).await;
    // Before it is acquired, a sibling is unknown.
    let get = json!({ "session_id": one.to_string() });
    assert_eq!(
        code(&world, two, "agent_session_get", get).await,
        "unknown-session"
    );
    let acquired = on(&world, two, "acquire", one).await;
    assert_eq!(
        (&acquired["already_acquired"], &acquired["status"]),
        (&json!(false), &json!("running"))
    );
    assert_eq!(world.row(one).view.summary.parents, [root, two]);
    let list = world.ask(two, "agent_session_list", json!({})).await;
    assert_eq!(column(&list, "session_id"), ids(&[one]));
    // One parent gives it up: the other still holds it.
    let dispose = json!({ "session_id": one.to_string(), "dispose": true });
    world.ask(root, "agent_session_stop", dispose).await;
    assert_eq!(on(&world, two, "get", one).await["status"], "idle");
    let send = json!({ "session_id": one.to_string(), "text": "x" });
    let refused = code(&world, root, "agent_session_send", send.clone()).await;
    assert_eq!(refused, "session-disposed");
    gate.open();
    assert_eq!(world.ask(two, "agent_session_send", send).await["ok"], true);
    world.quiet(one).await;
    assert_eq!(world.consumed(one), ["held one", "x"]);
    // The circle is refused, and nothing is changed by the try.
    let circle = json!({ "session_id": two.to_string() });
    assert_eq!(code(&world, one, ACQUIRE, circle).await, "unknown-session");
    assert_eq!(world.row(two).view.summary.parents, [root]);
}

#[tokio::test]
async fn a_restarted_parent_finds_its_children_and_works_with_them_again() {
    let world = World::new().await;
    let root = world.root(None).await;
    let child = world.child(root, Some("before")).await;
    world.quiet(root).await;
    let world = world.restarted().await;
    world.engine.start(root, None).await.unwrap();
    assert_eq!(on(&world, root, "get", child).await["status"], "stopped");
    let acquired = on(&world, root, "acquire", child).await;
    assert_eq!(
        (&acquired["already_acquired"], &acquired["status"]),
        (&json!(true), &json!("idle"))
    );
    let send = json!({ "session_id": child.to_string(), "text": "after" });
    assert_eq!(
        world.ask(root, "agent_session_send", send).await["ok"],
        true
    );
    world.quiet(root).await;
    assert_eq!(world.consumed(child), ["before", "after"]);
}
