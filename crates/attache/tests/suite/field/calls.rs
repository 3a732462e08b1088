//! Putting tool calls together, ids that repeat, arguments that are none, and tools that do not exist. G-06 to G-09.

use serde_json::{Value, json};

use super::{DONE, Scene, Told, both, diagnosed, events, finish, fragments, single};
use crate::stub::{Reply, after_tools, chat_text};

/// A reply with these entries of `tool_calls`, one list an event.
fn calls(lists: &[Value]) -> Reply {
    let mut all: Vec<String> = lists.iter().map(fragments).collect();
    all.extend([finish("tool_calls"), DONE.to_owned()]);
    events(&all)
}

fn call(index: usize, id: &str, name: &str, arguments: &Value) -> Value {
    json!({ "index": index, "id": id, "type": "function",
        "function": { "name": name, "arguments": arguments } })
}

/// Calls once, then answers.
fn once(reply: Reply) -> Scene {
    Scene::new(move |request| {
        if after_tools(request) {
            chat_text(&["done"])
        } else {
            reply.clone()
        }
    })
}

/// Arguments and results of the calls, and whether each result is an error.
fn made(scene: &Scene, told: &Told) -> Vec<(String, String, bool)> {
    let shown = scene.events(&told.id);
    let of = |kind: &str| -> Vec<&Value> {
        let own = shown.iter().filter(|event| event["event_type"] == kind);
        own.collect()
    };
    let results = of("tool_result");
    let made = of("tool_call");
    assert_eq!(made.len(), results.len(), "{shown:?}");
    made.iter()
        .map(|call| {
            let own: Vec<_> = results
                .iter()
                .filter(|result| result["call_id"] == call["call_id"])
                .collect();
            assert_eq!(own.len(), 1, "one result a call: {shown:?}");
            (
                call["text"].as_str().unwrap().to_owned(),
                own[0]["text"].as_str().unwrap().to_owned(),
                own[0]["is_error"] == true,
            )
        })
        .collect()
}

#[test]
fn g06_fragments_are_one_call_after_the_finish() {
    let part = |id: &str, arguments: &str| json!([{ "index": 0, "id": id, "function": { "arguments": arguments } }]);
    let name = |arguments: &str| json!({ "index": 0, "id": "call_1", "function": { "name": "glob", "arguments": arguments } });
    let (first, second) = ("{\"patt", "ern\":\"Oslo*\"}");
    let bare = json!([{ "index": 0, "function": { "arguments": first } }]);
    let variants = [
        vec![json!([name("")]), bare, part("", second)],
        vec![
            json!([name(""), { "index": 0, "function": { "arguments": "{" } }]),
            part("", &first[1..]),
            part("", second),
        ],
        vec![
            json!([{ "index": 0, "id": "call_1", "function": { "name": "glob" } },
                { "index": 0, "function": { "arguments": "{" } }]),
            part("call_1", &first[1..]),
            part("call_1", second),
        ],
        vec![json!([name(&format!("{first}{second}"))])],
        vec![json!([name(first)]), part("", second)],
    ];
    for lists in variants {
        for reply in both(&calls(&lists)) {
            let scene = once(reply);
            scene.house.file("Oslo.txt", "x");
            let told = scene.run();
            let made = made(&scene, &told);
            assert_eq!(made.len(), 1, "{made:?}");
            assert_eq!(made[0].0, "{\"pattern\":\"Oslo*\"}");
            assert!(made[0].1.contains("Oslo.txt") && !made[0].2, "{made:?}");
            let requests = scene.stub.requests();
            let sent = &requests[1]["messages"];
            assert!(sent.to_string().contains("Oslo*"), "{sent}");
            assert_eq!(requests.len(), 2);
            assert_eq!(told.result["text"], "done");
        }
    }
}

#[test]
fn g07_an_id_given_twice_and_a_second_finish_make_no_call_twice() {
    let usage = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "tool_calls" }],
        "usage": { "prompt_tokens": 3, "completion_tokens": 4 } });
    let read = |index: usize, path: &str| {
        call(
            index,
            "t:3",
            "read_file",
            &json!(json!({ "path": path }).to_string()),
        )
    };
    let list = [
        fragments(&json!([read(0, "one.txt")])),
        fragments(&json!([read(1, "two.txt")])),
        finish("tool_calls"),
        format!("data: {usage}\n\n"),
        DONE.to_owned(),
    ];
    for reply in both(&events(&list)) {
        let scene = once(reply);
        scene.house.file("one.txt", "the first");
        scene.house.file("two.txt", "the second");
        let told = scene.run();
        assert_eq!(told.result["text"], "done");
        let made = made(&scene, &told);
        assert_eq!(made.len(), 2, "{made:?}");
        for (call, word) in made.iter().zip(["the first", "the second"]) {
            assert!(call.1.contains(word), "{made:?}");
        }
        let requests = scene.stub.requests();
        assert_eq!(requests.len(), 2, "the strict server took it");
        let results: Vec<String> = requests[1]["messages"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|message| message["role"] == "tool")
            .map(|message| message["content"].to_string())
            .collect();
        assert!(results[0].contains("the first") && results[1].contains("the second"));
        assert_eq!(told.result["usage"]["input_tokens"], 33);
        assert_eq!(told.result["usage"]["output_tokens"], 11);
        scene.restart();
        scene.alive(&told.id);
    }
}

#[test]
fn g08_arguments_that_are_nothing_are_an_empty_object() {
    let forms = [
        json!(""),
        json!("  "),
        json!("null"),
        Value::Null,
        json!("{}"),
    ];
    let entry = |(at, arguments): (usize, &Value)| {
        json!([call(at, &format!("call_{at}"), "list_directory", arguments)])
    };
    let lists: Vec<Value> = forms.iter().enumerate().map(entry).collect();
    for reply in both(&calls(&lists)) {
        let scene = once(reply);
        scene.house.file("here.txt", "x");
        let told = scene.run();
        let made = made(&scene, &told);
        assert_eq!(made.len(), forms.len(), "{made:?}");
        assert!(
            made.iter()
                .all(|call| !call.2 && call.1.contains("here.txt")),
            "{made:?}"
        );
        assert_eq!(told.result["text"], "done", "the strict server took it");
        scene.alive(&told.id);
    }
}

#[test]
fn g08_arguments_that_are_no_object_are_told_of_by_their_fault() {
    for (arguments, wanted) in [
        ("{\"mode\": fastt}", Some("not valid JSON")),
        ("[1,2]", Some("are a JSON array")),
        ("{\"path\":\".\"", Some("not valid JSON")),
        // Encoded twice is unwrapped once.
        ("\"{\\\"path\\\":\\\".\\\"}\"", None),
        ("\"\\\"{}\\\"\"", Some("are a JSON string")),
    ] {
        let reply = calls(&[json!([call(
            0,
            "call_1",
            "list_directory",
            &json!(arguments)
        )])]);
        let scene = once(single(reply));
        scene.house.file("here.txt", "x");
        let told = scene.run();
        let made = made(&scene, &told);
        // As it was streamed, byte for byte.
        assert_eq!(made[0].0, arguments);
        match wanted {
            Some(wanted) => {
                assert!(
                    made[0].2 && made[0].1.contains(wanted),
                    "{arguments}: {made:?}"
                );
                for wrong in ["length", "cut off", "limit"] {
                    assert!(!made[0].1.contains(wrong), "{made:?}");
                }
            }
            None => assert!(made[0].1.contains("here.txt"), "{made:?}"),
        }
        assert_eq!(told.result["text"], "done");
        scene.alive(&told.id);
    }
}

#[test]
fn g08_g09_the_third_bad_call_in_a_row_ends_the_turn_with_a_reason() {
    for (name, arguments) in [
        ("list_directory", "{\"mode\": fastt}"),
        ("sites_list", "{}"),
    ] {
        let reply = calls(&[json!([call(0, "call_1", name, &json!(arguments))])]);
        let scene = Scene::new(move |_| reply.clone());
        let told = scene.run();
        assert_eq!(told.result["outcome"], "failed");
        assert_eq!(told.result["end_reason"], "repeated-call");
        assert_eq!(scene.stub.requests().len(), 3);
        assert_eq!(made(&scene, &told).len(), 2);
        diagnosed(
            &scene,
            &told.id,
            &format!("the same call of {name:?} three times in a row"),
        );
        scene.alive(&told.id);
        scene.restart();
        scene.alive(&told.id);
    }
}

#[test]
fn g09_a_tool_that_does_not_exist_is_an_error_of_its_own_call() {
    let long = "n".repeat(300);
    let names = ["directory_list", "", "foo bar/../x", long.as_str()];
    for reply in both(&calls(&[json!([
        call(0, "call_0", names[0], &json!("{}")),
        call(1, "call_1", names[1], &json!("{}")),
        call(2, "call_2", "list_directory", &json!("{}")),
        call(3, "call_3", names[2], &json!("{}")),
        call(4, "call_4", names[3], &json!("{}")),
    ])])) {
        let scene = once(reply);
        scene.house.file("here.txt", "x");
        let told = scene.run();
        let made = made(&scene, &told);
        assert_eq!(made.len(), 5, "{made:?}");
        let (bad, good): (Vec<_>, Vec<_>) = made.into_iter().partition(|call| call.2);
        assert_eq!((bad.len(), good.len()), (4, 1), "{bad:?}");
        assert!(good[0].1.contains("here.txt"), "{good:?}");
        for call in &bad {
            assert!(
                call.1.contains("there is no tool named") && call.1.len() < 600,
                "{bad:?}"
            );
        }
        let close = "Did you mean list_directory";
        assert_eq!(
            bad.iter().filter(|call| call.1.contains(close)).count(),
            1,
            "{bad:?}"
        );
        assert_eq!(told.result["text"], "done", "the strict server took it");
        scene.alive(&told.id);
        scene.restart();
        scene.alive(&told.id);
    }
}
