//! A conversation that does not fit, told in many wordings, and room that cannot be made. G-14.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::{Scene, diagnosed, events};
use crate::stub::{
    Reply, Stub, after_tools, anthropic_call, anthropic_text, chat_calls, chat_text, last_user,
    session_named,
};

pub(super) const DIALECTS: [&str; 4] = ["openai-chat", "openai-responses", "anthropic", "gemini"];

fn data(value: &Value) -> String {
    let name = value["type"]
        .as_str()
        .map_or(String::new(), |name| format!("event: {name}\n"));
    format!("{name}data: {value}\n\n")
}

/// A whole answer.
pub(super) fn says(dialect: &str, text: &str) -> Reply {
    match dialect {
        "openai-chat" => chat_text(&[text]),
        "anthropic" => anthropic_text(text),
        "gemini" => events(&[data(&json!({ "candidates": [{ "finishReason": "STOP",
            "content": { "role": "model", "parts": [{ "text": text }] } }] }))]),
        _ => events(&[
            data(
                &json!({ "type": "response.output_text.delta", "output_index": 0,
                "content_index": 0, "delta": text }),
            ),
            data(&json!({ "type": "response.completed",
                "response": { "status": "completed", "output": [] } })),
        ]),
    }
}

/// A call of `list_directory`.
fn looks(dialect: &str) -> Reply {
    calls(dialect, "list_directory", &json!({}))
}

/// A call.
pub(super) fn calls(dialect: &str, name: &str, arguments: &Value) -> Reply {
    match dialect {
        "openai-chat" => chat_calls(&[(name, arguments.clone())]),
        "anthropic" => anthropic_call(name, arguments),
        "gemini" => events(&[data(&json!({ "candidates": [{ "finishReason": "STOP",
            "content": { "role": "model", "parts": [
                { "functionCall": { "name": name, "args": arguments } }] } }] }))]),
        _ => {
            let item = json!({ "id": "fc_1", "type": "function_call", "call_id": "call_a",
                "name": name, "arguments": arguments.to_string() });
            events(&[
                data(
                    &json!({ "type": "response.output_item.added", "output_index": 0, "item": item }),
                ),
                data(
                    &json!({ "type": "response.output_item.done", "output_index": 0, "item": item }),
                ),
                data(&json!({ "type": "response.completed",
                    "response": { "status": "completed", "output": [] } })),
            ])
        }
    }
}

/// What providers say of a prompt that is too long, each with the dialects that it is said in.
fn wordings() -> Vec<(&'static [&'static str], Value)> {
    vec![
        (
            &DIALECTS[..2],
            json!({ "error": { "code": "context_length_exceeded", "message": "too big" } }),
        ),
        (
            &DIALECTS[..1],
            json!({ "error": { "code": 400, "message":
            "This model's maximum context length is 131072 tokens. However, you requested about 140000" } }),
        ),
        (
            &DIALECTS[..1],
            json!({ "object": "error", "code": 400, "message":
            "The prompt contains at least 131073 input tokens" }),
        ),
        (
            &DIALECTS[2..3],
            json!({ "type": "error", "error": { "type": "invalid_request_error",
            "message": "prompt is too long: 210000 > 200000" } }),
        ),
        (
            &DIALECTS[1..2],
            json!({ "type": "error", "code": "context_length_exceeded",
            "message": "Your input exceeds the context window of this model." }),
        ),
        (
            &DIALECTS[3..],
            json!({ "error": { "code": 400, "status": "INVALID_ARGUMENT", "message":
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)." } }),
        ),
    ]
}

#[test]
fn g14_each_wording_is_understood_in_mid_turn_and_makes_room_once() {
    for (dialects, body) in wordings() {
        for dialect in dialects.iter().copied() {
            for in_stream in [false, true] {
                let body = body.clone();
                let refused = move || {
                    if in_stream {
                        events(&[data(&body)])
                    } else {
                        Reply::Status(400, body.to_string())
                    }
                };
                let asked = AtomicUsize::new(0);
                let stub = Stub::new(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
                    0 => looks(dialect),
                    1 => refused(),
                    2 => says(dialect, "the summary"),
                    3 => says(dialect, "answer"),
                    _ => says(dialect, "alive"),
                });
                let scene = Scene::of(stub).provider_of(dialect, "");
                let told = scene.run_as("field/m", "go");
                let what = format!("{dialect} {in_stream}: {}", told.result);
                assert_eq!(told.deltas, "answer", "{what}");
                assert_eq!(told.result["end_reason"], "completed", "{what}");
                let requests = scene.stub.requests();
                assert_eq!(requests.len(), 4, "{what}");
                let says = |at: usize, words: &str| requests[at].to_string().contains(words);
                assert!(
                    says(2, "Write a summary") && says(3, "the summary"),
                    "{what}"
                );
                let cuts = scene.texts(&told.id, "diagnostic");
                assert_eq!(cuts, ["the summary"], "{what}");
                scene.alive(&told.id);
            }
        }
    }
}

/// A server that takes so many bytes of messages; its model makes so many results of 64 KiB.
fn narrow(bytes: usize, results: usize) -> Scene {
    Scene::new(move |request| {
        if request["messages"].to_string().len() > bytes {
            let error = json!({ "code": "context_length_exceeded", "message": "too many" });
            return Reply::Status(400, json!({ "error": error }).to_string());
        }
        let said = request["messages"].to_string();
        if said.contains("Write a summary") {
            chat_text(&["the summary"])
        } else if after_tools(request) || said.contains("the summary") {
            chat_text(&["answer"])
        } else {
            let find = json!({ "pattern": "needle", "limit": 1000 });
            chat_calls(&vec![("grep", find); results])
        }
    })
}

#[test]
fn g14_huge_results_in_the_middle_of_a_turn_are_made_room_for() {
    // The last is six times too large: the first question for a summary does not fit either.
    for (bytes, results, requests) in [(198_000, 3, 4), (990_000, 15, 4), (170_000, 15, 5)] {
        let scene = narrow(bytes, results);
        let line = format!("needle {}\n", "\u{e4}".repeat(490));
        scene.house.file("hay.txt", &line.repeat(1_000));
        let told = scene.run();
        let made = scene.texts(&told.id, "tool_result");
        assert!(!made.is_empty() && made.iter().all(|result| result.len() > 10_000));
        assert_eq!(
            told.result["end_reason"], "completed",
            "{results}: {}",
            told.result
        );
        assert_eq!(told.deltas, "answer");
        let asked = scene.stub.requests().len();
        assert_eq!(asked, requests, "one cut, one more try");
        assert_eq!(scene.texts(&told.id, "diagnostic"), ["the summary"]);
        scene.alive(&told.id);
        scene.restart();
        scene.alive(&told.id);
    }
}

/// A model that reads the whole text of a child, 900 kB in one result, then a page of it, and answers.
fn reader(bytes: usize) -> Scene {
    let long: String = (0..75_000).map(|line| format!("line {line:6}\n")).collect();
    let child = "write it all";
    Scene::new(move |request| {
        let said = request["messages"].to_string();
        if said.contains("Write a summary") {
            return chat_text(&["the first summary"]);
        } else if said.contains("the first summary") {
            return chat_text(&["answer"]);
        } else if last_user(request).contains(child) {
            return chat_text(&[&long]);
        } else if said.len() > bytes {
            let message = format!("maximum context length is {} tokens", bytes / 4);
            return Reply::Status(400, json!({ "error": { "message": message } }).to_string());
        }
        let id = session_named(&said).unwrap_or_default();
        let calls = said.matches("\"tool_call_id\"").count();
        match calls {
            0 => chat_calls(&[("agent_session_create", json!({ "initial_message": child }))]),
            1 => chat_calls(&[(
                "agent_session_wait",
                json!({ "session_id": id, "wait_for_idle": true }),
            )]),
            2 => chat_calls(&[(
                "agent_session_read_events",
                json!({ "session_id": id, "event_types": ["assistant"], "full": true }),
            )]),
            3 => {
                let (_, cut) = said.split_once("result_id").unwrap();
                let cut = cut.replace('\\', "");
                let mut words = cut.split('"');
                let result = words.nth(1).unwrap();
                chat_calls(&[(
                    "read_result",
                    json!({ "result_id": result, "cursor": 880_000 }),
                )])
            }
            _ => chat_text(&["answer"]),
        }
    })
}

#[test]
fn g14_one_result_of_900_kb_is_given_in_part_read_on_and_made_room_for() {
    for (bytes, cuts) in [(400_000, 0), (120_000, 1)] {
        let scene = reader(bytes);
        let told = scene.run();
        assert_eq!(told.result["end_reason"], "completed", "{}", told.result);
        assert!(told.deltas == "answer", "{} bytes", told.deltas.len());
        let results = scene.texts(&told.id, "tool_result");
        let longest = results.iter().map(String::len).max().unwrap();
        assert!(longest > 900_000, "{longest}: the whole is on record");
        let requests = scene.stub.requests();
        let sizes = requests
            .iter()
            .map(|request| request["messages"].to_string().len());
        assert!(sizes.max().unwrap() < 200_000, "the model is given a part");
        assert_eq!(scene.texts(&told.id, "diagnostic").len(), cuts);
        if cuts == 0 {
            let said = requests.last().unwrap().to_string();
            assert!(said.contains("line  74999"), "the page that was asked for");
        }
        scene.alive(&told.id);
        scene.restart();
        scene.alive(&told.id);
    }
}

#[test]
fn g14_with_no_room_to_be_made_it_stops_with_a_plain_reason() {
    for summaries in [false, true] {
        let scene = Scene::new(move |request| {
            let said = request["messages"].to_string();
            if summaries && said.contains("Write a summary") {
                return chat_text(&["the summary"]);
            }
            let error = json!({ "code": "context_length_exceeded", "message": "131072 at most" });
            Reply::Status(400, json!({ "error": error }).to_string())
        });
        let told = scene.run();
        assert_eq!(told.result["outcome"], "failed");
        assert_eq!(told.result["end_reason"], "provider-error");
        diagnosed(&scene, &told.id, "does not fit into the model's context");
        diagnosed(&scene, &told.id, "131072 at most");
        let asked = scene.stub.requests().len();
        assert!(asked <= 5, "{asked}");
        // Nothing drives itself: the next request is the next command's.
        scene.wait(&told.id);
        assert_eq!(scene.stub.requests().len(), asked);
        scene.alive(&told.id);
    }
}
