//! Reasoning that must, or must not, be sent back. G-10.

use serde_json::{Value, json};

use super::{DONE, Scene, both, delta, events, finish, fragments, refusal};
use crate::stub::{Reply, after_tools, chat_text};

/// What the server does without.
#[derive(Clone, Copy)]
enum Wants {
    /// Each message with calls has it.
    All,
    /// Those behind the last message of the user have it.
    Loop,
    /// None has it.
    None,
}

/// Whether the server refuses a request, by what it holds of reasoning.
fn refuses(request: &Value, wants: Wants) -> bool {
    let messages = request["messages"].as_array().unwrap();
    let user = messages.iter().rposition(|it| it["role"] == "user");
    messages.iter().enumerate().any(|(at, message)| {
        let has = !message["reasoning_content"].is_null();
        let calls = !message["tool_calls"].is_null();
        match wants {
            Wants::All => calls && !has,
            Wants::Loop => calls && !has && user.is_none_or(|user| user < at),
            Wants::None => has,
        }
    })
}

#[test]
fn g10_a_setting_decides_what_goes_back_also_in_a_child_and_after_a_restart() {
    let call = json!([{ "index": 0, "id": "call_1",
        "function": { "name": "list_directory", "arguments": "{}" } }]);
    let thinks = events(&[
        delta(&json!({ "reasoning_content": "th" })),
        delta(&json!({ "reasoning_content": "ink" })),
        fragments(&call),
        finish("tool_calls"),
        DONE.to_owned(),
    ]);
    for (back, wants) in [
        ("tool-loop", Wants::Loop),
        ("always", Wants::All),
        ("never", Wants::None),
    ] {
        // One of them byte by byte too.
        let ways = if back == "tool-loop" { 2 } else { 1 };
        for thinks in both(&thinks).into_iter().take(ways) {
            let say = move |request: &Value| -> Reply {
                if refuses(request, wants) {
                    refusal("reasoning_content")
                } else if after_tools(request) {
                    chat_text(&["answer"])
                } else {
                    thinks.clone()
                }
            };
            let scene = Scene::new(say).provider(&format!(
                "[providers.field.quirks]\nreasoning_back = \"{back}\""
            ));
            let told = scene.run_as("field/m", "go");
            assert_eq!(told.deltas, "answer");
            assert_eq!(told.result["outcome"], "succeeded", "{back}");
            let (_, child) = scene.run_child("field/m");
            assert_eq!(scene.texts(&child, "assistant"), ["answer"], "{back}");
            scene.restart();
            for id in [&told.id, &child] {
                scene.house.run(&["send", id, "go on"]).well();
                scene.wait(id);
                assert_eq!(scene.show(id)["outcome"], "succeeded", "{back}");
                assert_eq!(scene.texts(id, "assistant"), ["answer", "answer"]);
                assert!(
                    scene
                        .events(id)
                        .iter()
                        .all(|event| { !event["text"].to_string().contains("think") })
                );
                scene.alive(id);
            }
            let sent = scene.stub.requests();
            let has = |request: &Value| {
                request
                    .to_string()
                    .contains("\"reasoning_content\":\"think\"")
            };
            assert_eq!(
                sent.iter().any(has),
                !matches!(wants, Wants::None),
                "{back}"
            );
        }
    }
}

#[test]
fn g10_a_server_that_changed_its_mind_is_followed_by_the_setting() {
    // The reasoning is on record whatever goes back: what is kept today can be sent tomorrow.
    let call = json!([{ "index": 0, "id": "call_1",
        "function": { "name": "list_directory", "arguments": "{}" } }]);
    let thinks = events(&[
        delta(&json!({ "reasoning_content": "think" })),
        fragments(&call),
        finish("tool_calls"),
        DONE.to_owned(),
    ]);
    let scene = Scene::new(move |request| {
        let changed = request["messages"].to_string().contains("it has changed");
        let wants = if changed { Wants::All } else { Wants::None };
        if refuses(request, wants) {
            refusal("reasoning_content")
        } else if after_tools(request) || changed {
            chat_text(&["answer"])
        } else {
            thinks.clone()
        }
    })
    .provider("");
    let told = scene.run_as("field/m", "go");
    assert_eq!(told.result["outcome"], "succeeded");
    let scene = scene.provider("[providers.field.quirks]\nreasoning_back = \"always\"");
    scene.restart();
    scene
        .house
        .run(&["send", &told.id, "it has changed"])
        .well();
    scene.wait(&told.id);
    assert_eq!(scene.texts(&told.id, "assistant"), ["answer", "answer"]);
}
