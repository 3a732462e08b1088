//! Bodies of Responses: items in their order, what reasoning goes back and where, and ids.

use serde_json::{Value, json};

use super::{answer, body, call, full, reasoning, request};
use crate::dialect::Dialect;
use crate::message::{Message, Part};
use crate::quirks::Quirks;
use crate::request::{Options, Request};

fn responses(request: &Request) -> Value {
    body(Dialect::OpenAiResponses, request, &Quirks::default())
}

/// An item of reasoning as the decoder keeps it.
fn item(id: &str, before: Option<Value>) -> Part {
    let mut item = json!({
        "id": id, "type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}],
        "encrypted_content": "ZW5j", "status": "completed", "content": null,
    });
    if let Some(before) = before {
        item["before"] = before;
    }
    reasoning("hm", Some(item))
}

/// The same as it goes back.
fn sent(id: &str) -> Value {
    json!({
        "id": id, "type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}],
        "encrypted_content": "ZW5j",
    })
}

fn said(text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]})
}

fn called(id: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "get", "arguments": "{}"})
}

// G-08, G-09, G-15
#[test]
fn responses_in_full() {
    assert_eq!(
        responses(&full()),
        json!({
            "model": "m",
            "instructions": "Be \"good\".",
            "input": [
                {"type": "message", "role": "user", "content": [
                    {"type": "input_text", "text": "look"},
                    {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
                ]},
                said("I look."),
                {"type": "function_call", "call_id": "a", "name": "get", "arguments": "{\"q\": 1}"},
                {"type": "function_call", "call_id": "b", "name": "no_such_tool", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "a", "output": "one"},
                {"type": "function_call_output", "call_id": "b", "output": ""},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "and?"}]},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hurry"}]},
            ],
            "stream": true,
            "store": false,
            "tools": [
                {"type": "function", "name": "get", "description": "Gets.", "strict": false,
                    "parameters": {"type": "object", "properties": {"q": {"type": "integer"}}}},
                {"type": "function", "name": "odd", "description": "", "strict": false,
                    "parameters": {"type": "object", "properties": {"a": {"anyOf": [{}]}}}},
            ],
        })
    );
    let mut last = full();
    last.tools_allowed = false;
    assert_eq!(responses(&last)["tool_choice"], "none");
    assert_eq!(responses(&last)["tools"], responses(&full())["tools"]);
}

// G-10
#[test]
fn reasoning_goes_back_before_the_item_that_it_stood_before() {
    // As a history keeps it: reasoning, then the whole text, then the calls.
    let history = |parts: Vec<Part>| {
        let body = responses(&request(vec![
            Message::User(vec![Part::text("x")]),
            Message::Assistant(parts),
        ]));
        body["input"].as_array().unwrap()[1..].to_vec()
    };
    let two_calls = || ["c0", "c1"].map(|id| Part::Call(call(id, "get", "{}")));
    let [first, second] = two_calls();
    assert_eq!(
        history(vec![
            item("a", Some(json!("reasoning"))),
            item("b", Some(json!({"call": 0}))),
            item("c", Some(json!({"text": 0}))),
            item("d", Some(json!({"call": 1}))),
            item("e", Some(json!({"text": 3}))),
            item("f", None),
            Part::text("onetwo"),
            first,
            second,
        ]),
        [
            sent("c"),
            said("one"),
            sent("e"),
            said("two"),
            sent("a"),
            sent("b"),
            called("c0"),
            sent("d"),
            called("c1"),
        ]
    );
    // A message that turned out empty: what stood before it stands before the call.
    let [first, _] = two_calls();
    assert_eq!(
        history(vec![item("a", Some(json!({"text": 0}))), first]),
        [sent("a"), called("c0")]
    );
    // Nothing follows any more: reasoning alone is refused.
    for before in [
        json!({"text": 0}),
        json!({"call": 0}),
        json!("reasoning"),
        json!(7),
    ] {
        assert_eq!(history(vec![item("a", Some(before))]), [] as [Value; 0]);
    }
    let [first, _] = two_calls();
    assert_eq!(
        history(vec![item("a", Some(json!({"call": 5}))), first]),
        [called("c0")]
    );
    // The text is another than it was.
    assert_eq!(
        history(vec![
            item("a", Some(json!({"text": 1}))),
            item("b", Some(json!({"text": 99}))),
            Part::text("é")
        ]),
        [sent("a"), sent("b"), said("é")]
    );
}

#[test]
fn what_the_provider_would_have_to_look_up_stays_here() {
    let parts = vec![
        reasoning(
            "a",
            Some(json!({"type": "reasoning", "id": "rs", "summary": [], "before": {"text": 0}})),
        ),
        reasoning(
            "b",
            Some(
                json!({"type": "reasoning", "id": "rs", "encrypted_content": null,
                "content": [{"type": "reasoning_text", "text": "b"}], "before": {"text": 0}}),
            ),
        ),
        reasoning("c", Some(json!({"type": "thinking", "signature": "s"}))),
        reasoning("d", None),
        Part::text("y"),
    ];
    let body = responses(&request(vec![Message::Assistant(parts)]));
    assert_eq!(
        body["input"],
        json!([
            {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "b"}]},
            said("y"),
        ])
    );
}

#[test]
fn encrypted_reasoning_is_asked_for_where_models_reason() {
    let include = |model: &str, effort: Option<&str>| {
        let mut request = request(Vec::new());
        request.model = model.into();
        request.options = std::sync::Arc::new(Options {
            reasoning_effort: effort.map(Into::into),
            ..Options::default()
        });
        let body = responses(&request);
        (
            body["include"][0].is_string(),
            body.get("reasoning").cloned(),
        )
    };
    for (model, effort, want) in [
        ("gpt-5.5", None, true),
        ("gpt-6-mini", None, true),
        ("o3", None, true),
        ("openai/o4-mini", None, true),
        ("gpt-5-codex", None, true),
        ("gpt-5-chat-latest", None, false),
        ("gpt-4.1", None, false),
        ("gpt-4o", None, false),
        ("my-deployment", None, false),
        ("my-deployment", Some("low"), true),
        ("my-deployment", Some("none"), false),
    ] {
        assert_eq!(include(model, effort).0, want, "{model} {effort:?}");
    }
    assert_eq!(
        include("gpt-6", Some("high")).1,
        Some(json!({"effort": "high", "summary": "auto"}))
    );
    assert_eq!(
        include("gpt-6", Some("none")).1,
        Some(json!({"effort": "none"}))
    );
    assert_eq!(include("gpt-6", None).1, None);
}

// G-07
#[test]
fn ids_that_repeat_are_renamed_with_their_outputs() {
    let round = || {
        let call = call("t:3", "get", "{}");
        let result = answer(&call, "r", false);
        [
            Message::Assistant(vec![Part::Call(call)]),
            Message::Tool(vec![result]),
        ]
    };
    let body = responses(&request(round().into_iter().chain(round()).collect()));
    let items = body["input"].as_array().unwrap().iter();
    let ids: Vec<_> = items.map(|item| item["call_id"].clone()).collect();
    assert_eq!(ids, ["t_3", "t_3", "t_3_2", "t_3_2"]);
}
