//! A connection that closes in the middle of a call, and one that stays open behind the end. G-03.

use std::time::Duration;

use serde_json::json;

use super::{DONE, Scene, both, delta, diagnosed, events, finish, fragments};
use crate::clock::Since;
use crate::house::until;
use crate::stub::{After, Reply, last_user};

/// Half of a call, and then the end of the connection.
fn half() -> Reply {
    let call = json!([{ "index": 0, "id": "call_1", "function": {
        "name": "write_file", "arguments": "{\"path\":\"/tmp/x\",\"con" } }]);
    events(&[
        delta(&json!({ "content": "I write it." })),
        fragments(&call),
    ])
}

#[test]
fn g03_a_call_that_was_cut_off_never_runs_and_what_was_shown_stays() {
    for reply in both(&half()) {
        let scene = Scene::new(move |_| reply.clone());
        let told = scene.run();
        assert_eq!(told.deltas, "I write it.");
        assert_eq!(told.result["outcome"], "failed");
        assert_eq!(told.result["end_reason"], "provider-error");
        // What was seen is kept once, and is marked; nothing was called.
        assert_eq!(scene.stub.requests().len(), 1);
        let shown = scene.events(&told.id);
        let said: Vec<_> = shown
            .iter()
            .filter(|event| event["event_type"] == "assistant")
            .collect();
        assert_eq!(said.len(), 1, "{shown:?}");
        assert_eq!(said[0]["text"], "I write it.");
        assert_eq!(said[0]["incomplete"], true, "{shown:?}");
        for kind in ["tool_call", "tool_result"] {
            assert_eq!(scene.texts(&told.id, kind), [""; 0]);
        }
        diagnosed(&scene, &told.id, "before the reply was finished");
        scene.alive(&told.id);
        scene.restart();
        scene.alive(&told.id);
    }
}

#[test]
fn g03_with_nothing_shown_it_is_a_fault_that_is_tried_again() {
    let call = json!([{ "index": 0, "id": "call_1", "function": {
        "name": "write_file", "arguments": "{\"path\":\"/tmp/x\",\"con" } }]);
    // Not even the beginning of the call has come.
    let reply = events(&[": hello\n\n".to_owned()]);
    let scene = Scene::new(move |_| reply.clone()).with("ATTACHE_REQUEST__RETRIES", "1");
    let told = scene.run();
    assert_eq!(told.result["end_reason"], "provider-error");
    assert_eq!(scene.stub.requests().len(), 2);
    diagnosed(&scene, &told.id, "tried 2 times");
    scene.alive(&told.id);
    // A call that had begun is something that was seen.
    let reply = events(&[fragments(&call)]);
    let scene = Scene::new(move |_| reply.clone()).with("ATTACHE_REQUEST__RETRIES", "1");
    let told = scene.run();
    assert_eq!(scene.stub.requests().len(), 1);
    assert_eq!(scene.texts(&told.id, "tool_call"), [""; 0]);
    scene.alive(&told.id);
}

#[test]
fn g03_the_turn_is_over_at_its_end_though_the_socket_stays_open() {
    let text = [
        delta(&json!({ "content": "whole" })),
        finish("stop"),
        DONE.to_owned(),
    ];
    let writes: Vec<_> = text
        .iter()
        .map(|event| event.clone().into_bytes())
        .collect();
    for reply in both(&Reply::Writes(writes, After::Hold)) {
        let scene = Scene::new(move |request| {
            if last_user(request).contains("warm") {
                events(&[
                    delta(&json!({ "content": "warm" })),
                    finish("stop"),
                    DONE.to_owned(),
                ])
            } else {
                reply.clone()
            }
        });
        // The daemon is there already.
        scene.run_as("openai/m", "warm");
        let begun = Since::now();
        let told = scene.run();
        assert!(
            begun.passed() < Duration::from_secs(1),
            "{:?}",
            begun.passed()
        );
        assert_eq!(told.result["text"], "whole");
        assert_eq!(told.result["end_reason"], "completed");
        until("the connection is dropped", || scene.stub.answering() == 0);
        scene.alive(&told.id);
    }
}
