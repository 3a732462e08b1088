//! Calls without a result, siblings that fail, and a conversation that is cut behind a batch. G-15.

use std::time::Duration;

use serde_json::{Value, json};

use super::Scene;
use crate::clock::Since;
use crate::house::until;
use crate::stub::{
    Reply, after_tools, chat_calls, chat_piece, chat_text, last_user, session_named,
};

fn answer(request: &Value, calls: &[(&str, Value)]) -> Reply {
    if after_tools(request) {
        chat_text(&["done"])
    } else {
        chat_calls(calls)
    }
}

/// The contents of the results in a request.
fn results(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().unwrap();
    let own = messages.iter().filter(|message| message["role"] == "tool");
    own.map(|message| message["content"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn g15_an_interrupted_call_gets_one_result_that_says_why() {
    let scene = Scene::new(|request| {
        let user = last_user(request);
        if user.contains("think for ever") {
            return Reply::Silence(vec![chat_piece("hm")]);
        }
        if user.contains("continue") {
            return chat_text(&["went on"]);
        }
        let said = request["messages"].to_string();
        match session_named(&said) {
            None => chat_calls(&[(
                "agent_session_create",
                json!({ "initial_message": "think for ever" }),
            )]),
            Some(id) => {
                let wait =
                    json!({ "session_id": id, "wait_for_idle": true, "timeout_seconds": 300 });
                // The second is over at once, the first is not.
                chat_calls(&[("agent_session_wait", wait), ("list_directory", json!({}))])
            }
        }
    });
    scene.house.file("here.txt", "x");
    let id = scene.start("go");
    until("the wait runs", || scene.texts(&id, "tool_call").len() == 3);
    let since = Since::now();
    scene.house.run(&["interrupt", &id]).well();
    scene.house.run(&["wait", &id, "--self"]).well();
    assert!(
        since.passed() < Duration::from_secs(1),
        "{:?}",
        since.passed()
    );
    assert_eq!(scene.show(&id)["outcome"], "interrupted");
    for restarted in [false, true] {
        if restarted {
            scene.restart();
        }
        scene.house.run(&["send", &id, "continue"]).well();
        scene.house.run(&["wait", &id, "--self"]).well();
        let requests = scene.stub.requests();
        let own = requests
            .iter()
            .rfind(|it| last_user(it).contains("continue"));
        let results = results(own.unwrap());
        assert_eq!(results.len(), 3, "{results:?}");
        assert!(results[0].contains("session_id"), "{results:?}");
        assert!(
            results[1].contains("No result: the run ended first (interrupted)"),
            "{results:?}"
        );
        let events = scene.events(&id);
        let cut = events
            .iter()
            .filter(|event| event["text"].to_string().contains("No result"));
        assert_eq!(cut.count(), 1, "{events:?}");
        assert_eq!(scene.texts(&id, "assistant").last().unwrap(), "went on");
        assert_eq!(
            scene.show(&id)["outcome"],
            "succeeded",
            "the strict server took it"
        );
    }
}

#[test]
fn g15_a_sibling_that_fails_leaves_the_batch_whole() {
    let scene = Scene::new(|request| {
        answer(
            request,
            &[
                ("read_file", json!({ "path": "missing.txt" })),
                ("list_directory", json!({})),
                ("read_file", json!({ "path": "../../etc/passwd" })),
            ],
        )
    });
    scene.house.file("here.txt", "x");
    let told = scene.run();
    assert_eq!(
        told.result["outcome"], "succeeded",
        "the strict server took it"
    );
    let results = results(&scene.stub.requests()[1]);
    assert_eq!(results.len(), 3);
    assert!(
        results[0].contains("error") && results[2].contains("error"),
        "{results:?}"
    );
    assert!(
        results[1].contains("here.txt"),
        "order follows the calls: {results:?}"
    );
    scene.restart();
    scene.alive(&told.id);
}

#[test]
fn g15_a_cut_never_falls_inside_of_a_batch() {
    // One result is nearly all of the conversation: a cut by size alone would fall beside it.
    for big in [0, 1] {
        let scene = Scene::new(move |request| {
            let said = request["messages"].to_string();
            if said.contains("Write a summary") {
                return chat_text(&["the summary"]);
            }
            if said.len() > 40_000 {
                let error = json!({ "code": "context_length_exceeded", "message": "too many" });
                return Reply::Status(400, json!({ "error": error }).to_string());
            }
            if said.contains("the summary") {
                return chat_text(&["done"]);
            }
            let mut calls = [
                ("read_file", json!({ "path": "big.txt" })),
                ("read_file", json!({ "path": "small.txt" })),
            ];
            calls.rotate_left(big);
            answer(request, &calls)
        });
        scene.house.file(
            "big.txt",
            &"a line of text that is a good deal longer\n".repeat(1_900),
        );
        scene.house.file("small.txt", "small");
        let told = scene.run();
        assert_eq!(told.result["outcome"], "succeeded", "{}", told.result);
        assert_eq!(scene.texts(&told.id, "diagnostic"), ["the summary"]);
        // A person's cut behind it, and one after a restart.
        scene.alive(&told.id);
        scene.house.run(&["compact", &told.id]).well();
        scene.alive(&told.id);
        scene.restart();
        scene.alive(&told.id);
    }
}
