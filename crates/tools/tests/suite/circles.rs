//! Waits that could never end, tried while the other side of the circle really waits.

use std::time::Duration;

use attache_testkit::{Gate, Piece, Puppet, World, call, text, timed};
use serde_json::{Value, json};

use crate::kit::{column, held, on, refused};

const WAIT: &str = "agent_session_wait";

#[tokio::test(start_paused = true)]
async fn g26_a_child_that_waits_for_its_waiting_parent_is_refused_at_once() {
    let world = World::new().await;
    let root = world.root(None).await;
    let gate = Gate::default();
    let stand = gate.clone();
    world.puppet.teach(move |request| {
        let result = Puppet::results(request).pop();
        let result: Option<Value> = result.map(|text| serde_json::from_str(&text).unwrap());
        match (Puppet::task(request).as_str(), result) {
            ("parent", None) => call(
                "agent_session_create",
                &json!({ "initial_message": "child" }),
            ),
            ("parent", Some(made)) if made["created_at"].is_string() => {
                let arguments = json!({ "session_id": made["session_id"], "wait_for_idle": true });
                call(WAIT, &arguments)
            }
            ("parent", Some(waited)) => text(waited["result_preview"].as_str().unwrap()),
            (_, None) => {
                let wait = |target: &str| call(WAIT, &json!({ "session_id": target }));
                let mut pieces = vec![Piece::Wait(stand.clone())];
                pieces.extend(wait("."));
                pieces.extend(wait(&root.to_string()));
                pieces
            }
            (_, Some(_)) => text(&Puppet::results(request).join("\n")),
        }
    });
    let send = json!({ "session_id": ".", "text": "parent" });
    world.ask(root, "agent_session_send", send).await;
    while world.engine.waiting_for(root).is_empty() {
        tokio::task::yield_now().await;
    }
    let child = world.engine.waiting_for(root)[0];
    gate.open();
    let ((), took) = timed(world.quiet(root)).await;
    assert_eq!(took, Duration::ZERO, "no time limit ended it");
    // Both sides have ended well, and the parent has read why the child could not wait.
    let told = on(&world, root, "get", root).await;
    let results = on(&world, root, "get", child).await;
    assert_eq!(told["result_preview"], results["result_preview"]);
    let preview = told["result_preview"].as_str().unwrap();
    let codes: Vec<Value> = preview
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["error"].clone())
        .collect();
    for (error, code, named) in [
        (&codes[0], "self-wait", child),
        (&codes[1], "wait-cycle", root),
    ] {
        assert_eq!(error["code"], code);
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(&named.to_string()), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn g26_a_sibling_that_was_acquired_is_waited_for_in_one_direction_only() {
    let world = World::new().await;
    let gate = Gate::default();
    world.puppet.teach(held(&gate));
    let root = world.root(None).await;
    let one = world.child(root, None).await;
    let two = world.child(root, Some("held work")).await;
    gate.reached().await;
    let target = json!({ "session_id": two.to_string() });
    let before = refused(&world, one, WAIT, target).await.0;
    assert_eq!(before, "unknown-session");
    on(&world, one, "acquire", two).await;
    // While the one waits for the other, the other can wait for neither of its parents.
    let arguments = json!({ "session_id": two.to_string(), "wait_for_idle": true });
    let ((waited, took), ()) = tokio::join!(timed(world.ask(one, WAIT, arguments)), async {
        while world.engine.waiting_for(one).is_empty() {
            tokio::task::yield_now().await;
        }
        for above in [one, root] {
            let target = json!({ "session_id": above.to_string(), "wait_for_idle": true });
            let (code, message) = refused(&world, two, WAIT, target).await;
            assert_eq!(code, "wait-cycle");
            assert!(message.contains(&above.to_string()), "{message}");
        }
        assert_eq!(world.engine.waiting_for(two), []);
        gate.open();
    });
    assert_eq!(
        (&waited["ended_by"], took),
        (&json!("settled"), Duration::ZERO)
    );
    let contents = column(&waited["new_events"], "content_preview");
    assert_eq!(contents, ["done: held work"]);
}
