//! Schemas for answers, keys of caches, thinking, and the quirks that no other file of these tests is about.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{answer, body, call, full, reasoning, request};
use crate::dialect::Dialect;
use crate::json::Json;
use crate::message::{Message, Part};
use crate::quirks::{Quirks, ReasoningBack, Thinking};
use crate::request::{Options, OutputSchema, Request};

fn with_options(model: &str, options: Options) -> Request {
    let mut request = request(vec![Message::User(vec![Part::text("x")])]);
    request.model = model.into();
    request.options = Arc::new(options);
    request
}

fn output(schema: &Value) -> Options {
    Options {
        output_schema: Some(OutputSchema {
            name: "answer".into(),
            schema: Json::from_value(schema),
        }),
        ..Options::default()
    }
}

#[test]
fn a_schema_for_the_answer_goes_where_the_dialect_has_it() {
    let strict = json!({"type": "object", "properties": {"a": {"type": "string"}},
        "required": ["a"], "additionalProperties": false});
    let loose = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let quirks = Quirks::default();
    for (schema, is_strict) in [(&strict, true), (&loose, false)] {
        let request = with_options("m", output(schema));
        let of = |dialect| body(dialect, &request, &quirks);
        assert_eq!(
            of(Dialect::OpenAiChat)["response_format"],
            json!({"type": "json_schema",
                "json_schema": {"name": "answer", "strict": is_strict, "schema": schema}})
        );
        assert_eq!(
            of(Dialect::OpenAiResponses)["text"]["format"],
            json!({"type": "json_schema", "name": "answer", "strict": is_strict, "schema": schema})
        );
        assert_eq!(
            of(Dialect::Anthropic)["output_config"],
            json!({"format": {"type": "json_schema", "schema": schema}})
        );
        let gemini = of(Dialect::Gemini);
        assert_eq!(gemini["generationConfig"]["responseJsonSchema"], *schema);
        assert_eq!(
            gemini["generationConfig"]["responseMimeType"],
            "application/json"
        );
    }
    // Members of our own objects that a definition adds do not take the schema away.
    for (dialect, key, pointer) in [
        (Dialect::OpenAiResponses, "text", "/text/format/schema"),
        (
            Dialect::Anthropic,
            "output_config",
            "/output_config/format/schema",
        ),
        (
            Dialect::Gemini,
            "generationConfig",
            "/generationConfig/responseJsonSchema",
        ),
    ] {
        let mut options = output(&strict);
        options.extra = Some(Json::from_value(&json!({key: {"seed": 7}})));
        let body = body(dialect, &with_options("m", options), &quirks);
        assert_eq!(body[key]["seed"], 7);
        assert_eq!(body.pointer(pointer), Some(&strict));
    }
    // Where there is none, one is told.
    let quirks = Quirks {
        output_schema: false,
        ..quirks
    };
    for dialect in Dialect::ALL {
        let request = with_options("m", output(&strict));
        let encoded = dialect.encode(&request, &quirks);
        assert_eq!(encoded.notices.len(), 1, "{dialect:?}");
        let text = String::from_utf8(encoded.body).unwrap();
        assert!(!text.contains("answer"), "{text}");
    }
    let mut beside_tools = full();
    beside_tools.options = Arc::new(output(&strict));
    for (model, notices) in [("gemini-2.5-pro", 1), ("gemini-3-pro", 0)] {
        beside_tools.model = model.into();
        let encoded = Dialect::Gemini.encode(&beside_tools, &Quirks::profile("gemini").unwrap());
        assert_eq!(encoded.notices.len(), notices, "{model}");
    }
}

#[test]
fn a_cache_key_goes_to_those_who_place_by_it() {
    let options = Options {
        cache_key: Some("session-1".into()),
        ..Options::default()
    };
    let request = with_options("m", options);
    let key =
        |dialect, quirks: &Quirks| body(dialect, &request, quirks)["prompt_cache_key"].clone();
    for dialect in [Dialect::OpenAiChat, Dialect::OpenAiResponses] {
        for name in ["openai", "azure"] {
            assert_eq!(key(dialect, &Quirks::profile(name).unwrap()), "session-1");
        }
        assert_eq!(key(dialect, &Quirks::default()), Value::Null);
    }
    for dialect in [Dialect::Anthropic, Dialect::Gemini] {
        assert_eq!(
            key(dialect, &Quirks::profile("openai").unwrap()),
            Value::Null
        );
    }
}

#[test]
fn cache_marks_of_chat_stand_at_two_ends_and_only_for_models_that_need_them() {
    let quirks = Quirks::profile("openrouter").unwrap();
    let mut request = full();
    request.model = "anthropic/claude-x".into();
    let marked = |text: &str| json!([{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]);
    let messages = body(Dialect::OpenAiChat, &request, &quirks)["messages"].clone();
    assert_eq!(messages[0]["content"], marked("Be \"good\"."));
    assert_eq!(messages[6]["content"], marked("hurry"));
    assert_eq!(messages.to_string().matches("ephemeral").count(), 2);
    request.messages.truncate(3);
    let messages = body(Dialect::OpenAiChat, &request, &quirks)["messages"].clone();
    // The last result is empty, and nothing empty can be marked.
    assert_eq!(messages.to_string().matches("ephemeral").count(), 1);
    request.model = "openai/gpt-x".into();
    let text = body(Dialect::OpenAiChat, &request, &quirks).to_string();
    assert!(!text.contains("ephemeral"));
}

#[test]
fn thinking_is_asked_for_as_the_generation_wants() {
    let budget = json!({"type": "enabled", "budget_tokens": 2048});
    let adaptive = json!({"type": "adaptive"});
    for (model, thinking, want) in [
        ("claude-3-7-sonnet-20250219", Thinking::ByModel, &budget),
        ("claude-sonnet-4-20250514", Thinking::ByModel, &budget),
        ("claude-opus-4-5-20251101", Thinking::ByModel, &budget),
        ("claude-opus-4-6", Thinking::ByModel, &adaptive),
        (
            "anthropic.claude-sonnet-4-6-v1",
            Thinking::ByModel,
            &adaptive,
        ),
        ("claude-opus-5", Thinking::ByModel, &adaptive),
        ("claude-mythos-preview", Thinking::ByModel, &adaptive),
        ("qwen-9", Thinking::ByModel, &budget),
        ("claude-opus-5", Thinking::Budget, &budget),
        ("qwen-9", Thinking::Adaptive, &adaptive),
    ] {
        let options = Options {
            reasoning_effort: Some("low".into()),
            temperature: Some(0.5),
            ..Options::default()
        };
        let quirks = Quirks {
            thinking,
            ..Quirks::default()
        };
        let body = body(Dialect::Anthropic, &with_options(model, options), &quirks);
        assert_eq!(body["thinking"], *want, "{model}");
        assert_eq!(body["output_config"]["effort"] == "low", *want == adaptive);
        assert_eq!(body.get("temperature"), None);
    }
}

// G-10
#[test]
fn reasoning_goes_back_within_the_tool_loop_and_in_its_field() {
    let step = |id: &str, thought: &str| {
        let call = call(id, "get", "{}");
        let result = answer(&call, "r", false);
        [
            Message::Assistant(vec![reasoning(thought, None), Part::Call(call)]),
            Message::Tool(vec![result]),
        ]
    };
    let mut messages = vec![Message::User(vec![Part::text("one")])];
    messages.extend(step("a", "old"));
    messages.push(Message::User(vec![Part::text("two")]));
    messages.extend(step("b", "new"));
    let request = request(messages);
    let thoughts = |quirks: &Quirks| {
        let body = body(Dialect::OpenAiChat, &request, quirks);
        [2, 5].map(|at| body["messages"][at][&*quirks.reasoning_field].clone())
    };
    for (reasoning_back, want) in [
        (ReasoningBack::Never, [Value::Null, Value::Null]),
        (ReasoningBack::Always, [json!("old"), json!("new")]),
        (ReasoningBack::ToolLoop, [Value::Null, json!("new")]),
    ] {
        for field in ["reasoning_content", "reasoning"] {
            let quirks = Quirks {
                reasoning_back,
                reasoning_field: field.into(),
                ..Quirks::default()
            };
            assert_eq!(thoughts(&quirks), want, "{reasoning_back:?} {field}");
        }
    }
}

// G-10
#[test]
fn details_of_reasoning_go_back_as_they_came() {
    let details = json!([
        {"type": "reasoning.text", "text": "hm", "signature": "s", "format": "f", "index": 0},
        {"type": "reasoning.encrypted", "data": "d", "id": "rs", "index": 1},
    ]);
    let parts = vec![
        reasoning("hm", None),
        reasoning(
            "",
            Some(json!({"type": "reasoning_details", "details": details})),
        ),
        reasoning("", Some(json!({"type": "thinking", "signature": "s"}))),
        Part::text("y"),
    ];
    let request = request(vec![Message::Assistant(parts)]);
    let of = |name: &str| {
        let quirks = Quirks::profile(name).unwrap();
        body(Dialect::OpenAiChat, &request, &quirks)["messages"][1].clone()
    };
    assert_eq!(
        of("openrouter"),
        json!({"role": "assistant", "content": "y", "reasoning_details": details})
    );
    assert_eq!(of("openai"), json!({"role": "assistant", "content": "y"}));
    assert_eq!(
        of("ollama"),
        json!({"role": "assistant", "content": "y", "reasoning": "hm"})
    );
}

#[test]
fn small_quirks_of_chat() {
    let mut request = full();
    request.options = Arc::new(Options {
        max_output_tokens: Some(5),
        ..Options::default()
    });
    let mut quirks = Quirks::profile("openai").unwrap();
    quirks.set("parallel_tool_calls", "false").unwrap();
    let sent = body(Dialect::OpenAiChat, &request, &quirks);
    assert_eq!(sent["messages"][0]["role"], "developer");
    assert_eq!(sent["parallel_tool_calls"], false);
    assert_eq!(sent["max_completion_tokens"], 5);
    request.tools = Arc::default();
    let sent = body(Dialect::OpenAiChat, &request, &quirks);
    assert_eq!(sent.get("parallel_tool_calls"), None);
    let sent = body(Dialect::OpenAiChat, &request, &Quirks::default());
    assert_eq!(sent["messages"][0]["role"], "system");
    // G-07: ids from elsewhere in a spelling that is taken.
    let call = call("functions.get:0", "get", "{}");
    let result = answer(&call, "r", false);
    request.messages = vec![
        Message::Assistant(vec![Part::Call(call)]),
        Message::Tool(vec![result]),
    ];
    let sent = body(Dialect::OpenAiChat, &request, &quirks);
    assert_eq!(
        sent["messages"][1]["tool_calls"][0]["id"],
        "functions_get_0"
    );
    assert_eq!(sent["messages"][2]["tool_call_id"], "functions_get_0");
}

#[test]
fn generations_are_read_from_names() {
    for (model, want) in [
        ("claude-opus-4-6", Some((4, 6))),
        ("claude-sonnet-4-20250514", Some((4, 0))),
        ("claude-3-5-haiku-latest", Some((3, 5))),
        ("models/gemini-2.5-pro", Some((2, 5))),
        ("gemini-3-pro-preview", Some((3, 0))),
        ("gemini-flash-latest", None),
        ("", None),
    ] {
        assert_eq!(super::super::generation(model), want, "{model}");
    }
}
