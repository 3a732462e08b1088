//! Bytes on the model stream: characters cut by a read, every lawful spelling of an event stream, and usage without
//! choices. G-01, G-02, G-05.

use serde_json::{Value, json};

use super::{DONE, Scene, both, chunk, delta, events, finish, fragments, single};
use crate::stub::{After, Reply, after_tools, chat_text};

const TEXT: &str = "\u{90a3}\u{1f30d}";

/// Cuts bytes behind each of these places.
fn cut(bytes: &[u8], places: &[usize]) -> Vec<Vec<u8>> {
    let mut from = 0;
    let mut writes = Vec::new();
    for to in places.iter().copied().chain([bytes.len()]) {
        writes.push(bytes[from..to].to_vec());
        from = to;
    }
    writes
}

fn position(bytes: &[u8], wanted: &[u8]) -> usize {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
        .unwrap()
}

/// Everywhere where the text of a run is told, it is this.
fn says(scene: &Scene, text: &str) {
    let told = scene.run();
    assert_eq!(told.deltas, text);
    assert_eq!(told.result["text"], text);
    assert_eq!(told.result["end_reason"], "completed");
    assert_eq!(scene.texts(&told.id, "assistant"), [text]);
    scene.restart();
    assert_eq!(scene.texts(&told.id, "assistant"), [text]);
    assert_eq!(scene.show(&told.id)["result_preview"], text);
    scene.alive(&told.id);
}

#[test]
fn g01_a_character_cut_by_a_read_is_whole_everywhere() {
    let reply = [
        delta(&json!({ "content": TEXT })),
        finish("stop"),
        DONE.to_owned(),
    ]
    .concat();
    let bytes = reply.into_bytes();
    let places = [
        position(&bytes, &[0x82, 0xA3]),
        position(&bytes, &[0x8C, 0x8D]),
    ];
    assert_eq!(bytes[places[0] - 1], 0xE9);
    let cut = Reply::Writes(cut(&bytes, &places), After::Close);
    for reply in both(&cut) {
        says(&Scene::new(move |_| reply.clone()), TEXT);
    }
}

#[test]
fn g01_a_byte_that_is_no_text_is_one_mark_and_the_rest_arrives() {
    let mut bytes = delta(&json!({ "content": TEXT })).into_bytes();
    let at = position(&bytes, &[0xF0, 0x9F]);
    bytes.insert(at, 0xFF);
    let rest = [
        delta(&json!({ "content": " rest" })),
        finish("stop"),
        DONE.to_owned(),
    ]
    .concat();
    bytes.extend(rest.into_bytes());
    for reply in both(&Reply::Writes(vec![bytes], After::Close)) {
        let scene = Scene::new(move |_| reply.clone());
        says(&scene, "\u{90a3}\u{fffd}\u{1f30d} rest");
    }
}

/// A reply with text and a call, as the usual events.
fn usual() -> Vec<Value> {
    let choice = |delta: Value, finish: Option<&str>| json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] });
    let call = json!([{ "index": 0, "id": "call_1", "function": {
        "name": "list_directory", "arguments": "{\"path\":\".\"}" } }]);
    vec![
        choice(json!({ "content": "Let me " }), None),
        choice(json!({ "content": "look." }), None),
        choice(json!({ "tool_calls": call }), None),
        choice(json!({}), Some("tool_calls")),
        json!({ "choices": [], "usage": { "prompt_tokens": 11, "completion_tokens": 5 } }),
    ]
}

#[test]
fn g02_every_lawful_spelling_of_a_stream_is_the_same_reply() {
    let lines: Vec<String> = usual().iter().map(Value::to_string).collect();
    let joined = |event: &dyn Fn(&String) -> String| -> String {
        let all: String = lines.iter().map(event).collect();
        all + &event(&"[DONE]".to_owned())
    };
    let odd = ": PROCESSING\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n";
    let spellings = [
        joined(&|data| format!("data: {data}\r\n\r\n")),
        joined(&|data| format!("data:{data}\n\n")),
        joined(&|data| format!("{odd}id: 7\nretry: 10\ndata: {data}\n\n")),
        // One payload over two lines; the terminal mark is none.
        joined(&|data| match data.split_once(",\"") {
            Some((first, rest)) => format!("data: {first},\ndata: \"{rest}\n\n"),
            None => format!("data: {data}\n\n"),
        }),
    ];
    for spelling in spellings {
        for reply in both(&Reply::Writes(vec![spelling.into_bytes()], After::Close)) {
            let scene = Scene::new(move |request| {
                if after_tools(request) {
                    chat_text(&["seen"])
                } else {
                    reply.clone()
                }
            });
            scene.house.file("here.txt", "x");
            let told = scene.run();
            assert_eq!(told.deltas, "Let me look.seen");
            assert_eq!(scene.texts(&told.id, "assistant"), ["Let me look.", "seen"]);
            assert_eq!(scene.texts(&told.id, "tool_call"), ["{\"path\":\".\"}"]);
            let results = scene.texts(&told.id, "tool_result");
            assert!(
                results.len() == 1 && results[0].contains("here.txt"),
                "{results:?}"
            );
            assert_eq!(told.result["usage"]["input_tokens"], 41);
            assert_eq!(told.result["usage"]["output_tokens"], 12);
            assert_eq!(scene.texts(&told.id, "diagnostic"), [""; 0]);
            scene.alive(&told.id);
        }
    }
}

#[test]
fn g05_a_chunk_without_choices_is_no_fault_and_unknown_usage_is_null() {
    let usage = json!({ "prompt_tokens": 1, "completion_tokens": 8 });
    let data = |value: Value| format!("data: {value}\n\n");
    let last = [
        Some(json!({ "choices": [], "usage": usage })),
        Some(json!({ "choices": null, "usage": usage })),
        Some(json!({ "usage": usage })),
        None,
    ];
    for last in last {
        let mut list = vec![data(json!({ "choices": [], "prompt_filter_results": [] }))];
        if last.as_ref().is_some_and(|it| it["choices"].is_null()) {
            list.push(data(
                json!({ "choices": null, "prompt_filter_results": [] }),
            ));
            list.push(data(json!({ "prompt_filter_results": [] })));
        }
        list.extend([
            delta(&json!({ "content": "eight" })),
            chunk(&json!({}), Some("stop")),
        ]);
        list.extend(last.clone().map(data));
        list.push(DONE.to_owned());
        for reply in both(&events(&list)) {
            let scene = Scene::new(move |_| reply.clone());
            let told = scene.run();
            assert_eq!(told.result["text"], "eight");
            assert_eq!(told.result["outcome"], "succeeded");
            let count = |known: u64| last.as_ref().map_or(Value::Null, |_| json!(known));
            let shown = scene.show(&told.id);
            for usage in [&told.result["usage"], &shown["usage"]] {
                assert_eq!(usage["input_tokens"], count(1));
                assert_eq!(usage["output_tokens"], count(8));
                assert_eq!(usage["cache_read_tokens"], Value::Null);
            }
            if last.is_none() {
                scene.restart();
                let again = scene.show(&told.id);
                assert_eq!(again["usage"]["input_tokens"], Value::Null);
                assert_eq!(again["usage"]["output_tokens"], Value::Null);
            }
        }
    }
}

#[test]
fn g06_byte_by_byte_a_call_is_the_same_call() {
    // The characters of arguments are cut as those of text are.
    let call = json!([{ "index": 0, "id": "call_1", "function": {
        "name": "write_file", "arguments": format!("{{\"path\":\"a.txt\",\"content\":\"{TEXT}\"}}") } }]);
    let list = [fragments(&call), finish("tool_calls"), DONE.to_owned()];
    let reply = single(events(&list));
    let scene = Scene::new(move |request| {
        if after_tools(request) {
            chat_text(&["written"])
        } else {
            reply.clone()
        }
    });
    scene.run();
    let written = std::fs::read_to_string(scene.house.work().join("a.txt"));
    assert_eq!(written.unwrap(), TEXT);
}
