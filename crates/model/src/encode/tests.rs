//! Request bodies against the JSON that providers expect.

mod gemini;
mod options;
mod pictures;
mod responses;

use std::sync::Arc;

use serde_json::{Value, json};

use super::{CallIds, Quirks, sendable_name};
use crate::dialect::Dialect;
use crate::json::Json;
use crate::message::{Message, Part, ToolCall, ToolResult};
use crate::quirks::ReasoningBack;
use crate::request::{Options, Request, ToolSet, ToolSpec};

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
    }
}

fn answer(call: &ToolCall, content: &str, is_error: bool) -> ToolResult {
    ToolResult {
        call_id: call.id.clone(),
        name: call.name.clone(),
        content: content.into(),
        is_error,
        images: Vec::new(),
    }
}

fn reasoning(text: &str, opaque: Option<Value>) -> Part {
    Part::Reasoning {
        text: text.into(),
        opaque: opaque.map(|value| Json::from_value(&value)),
    }
}

fn image() -> Part {
    Part::Image {
        media_type: "image/png".into(),
        base64: "AAAA".into(),
    }
}

fn tools() -> Arc<ToolSet> {
    Arc::new(ToolSet::new(vec![
        ToolSpec {
            name: "get".into(),
            description: "Gets.".into(),
            input_schema: Json::parse(r#"{"type":"object","properties":{"q":{"type":"integer"}}}"#)
                .unwrap(),
        },
        ToolSpec {
            name: "odd".into(),
            description: "".into(),
            input_schema: Json::parse(
                r#"{"anyOf":[{"required":["a"]}],"properties":{"a":{"anyOf":[{}]}}}"#,
            )
            .unwrap(),
        },
    ]))
}

fn request(messages: Vec<Message>) -> Request {
    Request {
        model: "m".into(),
        system: Some("Be \"good\".".into()),
        messages,
        tools: Arc::default(),
        tools_allowed: true,
        options: Arc::default(),
    }
}

fn body(dialect: Dialect, request: &Request, quirks: &Quirks) -> Value {
    serde_json::from_slice(&dialect.encode(request, quirks).body).unwrap()
}

fn chat(request: &Request) -> Value {
    body(Dialect::OpenAiChat, request, &Quirks::default())
}

/// Without cache marks, which have a test of their own.
fn messages(request: &Request) -> Value {
    body(
        Dialect::Anthropic,
        request,
        &Quirks {
            cache_marks: false,
            ..Quirks::default()
        },
    )
}

/// A conversation with everything in it.
fn full() -> Request {
    let calls = [
        call("a", "get", r#"{"q": 1}"#),
        call("b", "no such/tool", "{broken"),
    ];
    let results = vec![answer(&calls[0], "one", false), answer(&calls[1], "", true)];
    let [first, second] = calls;
    let mut request = request(vec![
        Message::User(vec![Part::text("look"), image()]),
        Message::Assistant(vec![
            reasoning("hm", Some(json!({"type": "thinking", "signature": "s1"}))),
            reasoning("", Some(json!({"type": "redacted_thinking", "data": "d1"}))),
            Part::text("I "),
            Part::text("look."),
            Part::Call(first),
            Part::Call(second),
        ]),
        Message::Tool(results),
        Message::User(vec![Part::text("and?")]),
        Message::User(vec![Part::text("hurry")]),
    ]);
    request.tools = tools();
    request
}

// G-08, G-09, G-15: arguments that are not JSON, names that do not exist, and each call answered in order.
#[test]
fn chat_completions_in_full() {
    assert_eq!(
        chat(&full()),
        json!({
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be \"good\"."},
                {"role": "user", "content": [
                    {"type": "text", "text": "look"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                ]},
                {"role": "assistant", "content": "I look.", "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "get", "arguments": "{\"q\": 1}"}},
                    {"id": "b", "type": "function", "function": {"name": "no_such_tool", "arguments": "{}"}},
                ]},
                {"role": "tool", "content": "one", "tool_call_id": "a"},
                {"role": "tool", "content": "", "tool_call_id": "b"},
                {"role": "user", "content": "and?"},
                {"role": "user", "content": "hurry"},
            ],
            "stream": true,
            "stream_options": {"include_usage": true},
            "tools": [
                {"type": "function", "function": {"name": "get", "description": "Gets.",
                    "parameters": {"type": "object", "properties": {"q": {"type": "integer"}}}}},
                {"type": "function", "function": {"name": "odd", "description": "",
                    "parameters": {"type": "object", "properties": {"a": {"anyOf": [{}]}}}}},
            ],
        })
    );
}

// G-08, G-09, G-15
#[test]
fn messages_in_full() {
    assert_eq!(
        messages(&full()),
        json!({
            "model": "m",
            "max_tokens": 8192,
            "system": [{"type": "text", "text": "Be \"good\"."}],
            "messages": [
                {"role": "user", "content": [
                    {"type": "text", "text": "look"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
                ]},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s1"},
                    {"type": "redacted_thinking", "data": "d1"},
                    {"type": "text", "text": "I "},
                    {"type": "text", "text": "look."},
                    {"type": "tool_use", "id": "a", "name": "get", "input": {"q": 1}},
                    {"type": "tool_use", "id": "b", "name": "no_such_tool", "input": {}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "one"},
                    {"type": "tool_result", "tool_use_id": "b", "is_error": true},
                    {"type": "text", "text": "and?"},
                    {"type": "text", "text": "hurry"},
                ]},
            ],
            "stream": true,
            "tools": [
                {"name": "get", "description": "Gets.",
                    "input_schema": {"type": "object", "properties": {"q": {"type": "integer"}}}},
                {"name": "odd", "description": "",
                    "input_schema": {"type": "object", "properties": {"a": {"anyOf": [{}]}}}},
            ],
        })
    );
}

#[test]
fn cache_marks_stand_at_the_three_ends() {
    let body = body(Dialect::Anthropic, &full(), &Quirks::default());
    let mark = json!({"type": "ephemeral"});
    for at in ["/system/0", "/tools/1", "/messages/2/content/3"] {
        assert_eq!(body.pointer(at).unwrap()["cache_control"], mark, "{at}");
    }
    assert_eq!(body.to_string().matches("ephemeral").count(), 3);
}

#[test]
fn a_last_round_forbids_calls_and_still_names_the_tools() {
    let mut last = full();
    last.tools_allowed = false;
    assert_eq!(chat(&last)["tool_choice"], "none");
    assert_eq!(messages(&last)["tool_choice"], json!({"type": "none"}));
    assert_eq!(chat(&last)["tools"], chat(&full())["tools"]);
    last.tools = Arc::default();
    assert_eq!(
        (chat(&last).get("tools"), chat(&last).get("tool_choice")),
        (None, None)
    );
    assert_eq!(
        (
            messages(&last).get("tools"),
            messages(&last).get("tool_choice")
        ),
        (None, None)
    );
}

// G-11
#[test]
fn tools_are_encoded_once_and_adapted_ones_are_named() {
    let request = full();
    let encoded = Dialect::OpenAiChat.encode(&request, &Quirks::default());
    assert_eq!(encoded.notices.len(), 1);
    assert!(encoded.notices[0].contains("odd"));
    let kept = request
        .tools
        .encoded(1, |_| unreachable!("the form is known already"));
    assert!(
        encoded
            .body
            .windows(kept.list.get().len())
            .any(|part| part == kept.list.get().as_bytes())
    );
    let raw = Quirks {
        plain_root_schema: false,
        ..Quirks::default()
    };
    let body = body(Dialect::OpenAiChat, &request, &raw);
    assert!(body.pointer("/tools/1/function/parameters/anyOf").is_some());
    assert!(
        Dialect::OpenAiChat
            .encode(&request, &raw)
            .notices
            .is_empty()
    );
}

// G-10
#[test]
fn reasoning_goes_back_where_the_provider_wants_it() {
    let request = full();
    assert!(!chat(&request).to_string().contains("hm"));
    let quirks = Quirks {
        reasoning_back: ReasoningBack::Always,
        ..Quirks::default()
    };
    let body = body(Dialect::OpenAiChat, &request, &quirks);
    assert_eq!(body["messages"][2]["reasoning_content"], "hm");
    assert!(!body.to_string().contains("signature"));
    // Reasoning of another dialect, or without a signature, is nothing that Messages would take.
    let request = self::request(vec![
        Message::User(vec![Part::text("x")]),
        Message::Assistant(vec![
            reasoning("a", None),
            reasoning("b", Some(json!({"type": "other", "x": 1}))),
            reasoning("c", Some(json!([1]))),
            Part::text("y"),
        ]),
    ]);
    assert_eq!(
        messages(&request)["messages"][1]["content"],
        json!([{"type": "text", "text": "y"}])
    );
}

// G-07
#[test]
fn ids_that_repeat_are_renamed_together_with_their_results() {
    let round = || {
        let calls = [call("t:3", "get", "{}"), call("t:3_2", "get", "")];
        let results = calls.iter().map(|call| answer(call, "r", false)).collect();
        [
            Message::Assistant(calls.into_iter().map(Part::Call).collect()),
            Message::Tool(results),
        ]
    };
    let history: Vec<_> = [Message::User(vec![Part::text("x")])]
        .into_iter()
        .chain(round())
        .chain(round())
        .collect();
    let body = chat(&request(history.clone()));
    let ids = |at: usize| [0, 1].map(|n| body["messages"][at]["tool_calls"][n]["id"].clone());
    assert_eq!(ids(2), ["t:3", "t:3_2"]);
    assert_eq!(ids(5), ["t:3_3", "t:3_2_2"]);
    assert_eq!(
        [6, 7].map(|at| body["messages"][at]["tool_call_id"].clone()),
        ["t:3_3", "t:3_2_2"]
    );
    let body = messages(&request(history));
    assert_eq!(body["messages"][1]["content"][0]["id"], "t_3");
    assert_eq!(body["messages"][2]["content"][0]["tool_use_id"], "t_3");
}

#[test]
fn options_are_written_where_they_belong() {
    let mut request = request(vec![Message::User(vec![Part::text("x")])]);
    request.system = None;
    request.options = Arc::new(Options {
        temperature: Some(0.5),
        top_p: Some(0.9),
        max_output_tokens: Some(100),
        extra: Some(
            Json::parse(
                r#"{"top_p":0.1,"seed":7,"model":"other","stream":false,"tool_choice":"auto"}"#,
            )
            .unwrap(),
        ),
        ..Options::default()
    });
    let quirks = Quirks {
        max_tokens_field: "max_completion_tokens".into(),
        stream_options: false,
        ..Quirks::default()
    };
    assert_eq!(
        body(Dialect::OpenAiChat, &request, &quirks),
        json!({
            "model": "m", "messages": [{"role": "user", "content": "x"}], "stream": true,
            "temperature": 0.5, "top_p": 0.1, "max_completion_tokens": 100, "seed": 7,
        })
    );
    assert_eq!(
        messages(&request),
        json!({
            "model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}], "stream": true,
            "temperature": 0.5, "top_p": 0.1, "max_tokens": 100, "seed": 7,
        })
    );
    request.options = Arc::new(Options {
        temperature: Some(0.5),
        reasoning_effort: Some("low".into()),
        ..Options::default()
    });
    assert_eq!(chat(&request)["reasoning_effort"], "low");
    let body = messages(&request);
    assert_eq!(
        body["thinking"],
        json!({"type": "enabled", "budget_tokens": 2048})
    );
    assert_eq!(
        (body["max_tokens"].as_u64(), body.get("temperature")),
        (Some(8192 + 2048), None)
    );
}

#[test]
fn empty_messages_do_not_break_a_request() {
    let request = request(vec![
        Message::User(vec![Part::text("  "), Part::text("x")]),
        Message::Assistant(Vec::new()),
        Message::User(Vec::new()),
        Message::User(vec![Part::text("y")]),
    ]);
    assert_eq!(
        messages(&request)["messages"],
        json!([{"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]}])
    );
    assert_eq!(
        chat(&request)["messages"],
        json!([
            {"role": "system", "content": "Be \"good\"."},
            {"role": "user", "content": [{"type": "text", "text": "  "}, {"type": "text", "text": "x"}]},
            {"role": "assistant", "content": ""},
            {"role": "user", "content": ""},
            {"role": "user", "content": "y"},
        ])
    );
}

// G-07
#[test]
fn ids_are_unique_and_results_follow_their_calls() {
    let mut ids = CallIds::new(true);
    assert_eq!(ids.call("a"), "a");
    assert_eq!(ids.result("a"), "a");
    ids.next_message();
    assert_eq!(ids.call("a"), "a_2");
    assert_eq!(ids.call("t:3"), "t_3");
    assert_eq!(ids.call(""), "call");
    assert_eq!(ids.result("a"), "a_2");
    assert_eq!(ids.result("t:3"), "t_3");
    assert_eq!(CallIds::new(false).call("t:3"), "t:3");
    let long = "x".repeat(80);
    assert_eq!(ids.call(&long).len(), 64);
    ids.next_message();
    let second = ids.call(&long).into_owned();
    assert!(second.len() <= 64 && second.ends_with("_2"));
    assert_eq!(ids.result(&long), second);
}

// G-09
#[test]
fn invented_names_can_be_sent() {
    for (name, want) in [
        ("get", "get"),
        ("", "unnamed"),
        ("foo bar/../x", "foo_bar____x"),
    ] {
        assert_eq!(sendable_name(name), want);
    }
    assert_eq!(sendable_name(&"ä".repeat(300)).len(), 64);
}
