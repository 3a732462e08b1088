//! How long a session's runtime lasts: viewers that hold it, and actors that fail.

use attache_session::{Command, EndReason, Origin, Outcome, QueueId, Status, StopReason};
use attache_testkit::{Gate, Piece, World, text};
use serde_json::json;

#[tokio::test]
async fn a_viewer_holds_a_disposed_child_until_it_leaves() {
    let world = World::new().await;
    let root = world.root(None).await;
    let child = world.child(root, None).await;
    let viewer = world.engine.attach(child).await.unwrap();
    world
        .ask(
            root,
            "agent_session_stop",
            json!({ "session_id": child.to_string(), "dispose": true }),
        )
        .await;
    assert_eq!(world.row(child).status, Status::Idle, "the viewer holds it");
    drop(viewer);
    world
        .engine
        .settled(child, attache_engine::Quiet::Itself)
        .await
        .unwrap();
    while world.row(child).status != Status::Stopped {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        world.row(child).view.summary.stop,
        Some(StopReason::Disposed)
    );
}

#[tokio::test]
async fn a_child_that_is_acquired_again_stays_when_the_viewer_leaves() {
    let world = World::new().await;
    let root = world.root(None).await;
    let child = world.child(root, None).await;
    let viewer = world.engine.attach(child).await.unwrap();
    let id = child.to_string();
    world
        .ask(
            root,
            "agent_session_stop",
            json!({ "session_id": id, "dispose": true }),
        )
        .await;
    world
        .ask(root, "agent_session_acquire", json!({ "session_id": id }))
        .await;
    drop(viewer);
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.row(child).status, Status::Idle);
}

fn enqueue(text: &str) -> Command {
    Command::Enqueue {
        item: None,
        queue: QueueId::Default,
        text: text.into(),
        origin: Origin::Viewer,
    }
}

#[tokio::test]
async fn an_actor_that_fails_ends_its_turn_and_a_second_failure_leaves_the_session_stopped() {
    let world = World::new().await;
    let gate = Gate::default();
    let held = gate.clone();
    world
        .puppet
        .teach(move |_| vec![Piece::Wait(held.clone()), Piece::Text("done".to_owned())]);
    let root = world.root(Some("go")).await;
    gate.reached().await;
    world.time.break_once();
    let lost = world
        .engine
        .command(root, enqueue("the actor fails on this"), None)
        .await;
    assert!(lost.is_err());
    // The next command finds the session as it was stored; its turn has failed, and it works on.
    world.puppet.teach(|_| text("after all"));
    world
        .engine
        .command(root, enqueue("next"), None)
        .await
        .unwrap();
    world.quiet(root).await;
    let ends: Vec<EndReason> = ends(&world, root);
    assert_eq!(ends, [EndReason::StorageError, EndReason::Completed]);
    assert_eq!(world.row(root).view.outcome(), Some(Outcome::Succeeded));

    world.time.break_once();
    assert!(
        world
            .engine
            .command(root, enqueue("and again"), None)
            .await
            .is_err()
    );
    let refused = world.engine.command(root, enqueue("too soon"), None).await;
    assert!(refused.is_ok(), "it is accepted, and waits");
    assert_eq!(world.row(root).status, Status::Stopped);
    gate.open();
}

fn ends(world: &World, session: attache_session::SessionId) -> Vec<EndReason> {
    world
        .events(session)
        .into_iter()
        .filter_map(|stamped| match stamped.event {
            attache_session::Event::TurnEnded { reason, .. } => Some(reason),
            _ => None,
        })
        .collect()
}
