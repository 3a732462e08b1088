//! Bodies of Gemini: parts, signatures, generation options, and schemas as they are taken there.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{body, call, full, reasoning, request};
use crate::dialect::Dialect;
use crate::json::Json;
use crate::message::{Message, Part};
use crate::quirks::Quirks;
use crate::request::{Options, Request, ToolSet, ToolSpec};

fn gemini(request: &Request) -> Value {
    body(
        Dialect::Gemini,
        request,
        &Quirks::profile("gemini").unwrap(),
    )
}

fn of(model: &str, mut request: Request) -> Value {
    request.model = model.into();
    gemini(&request)
}

// G-08, G-09, G-11, G-15
#[test]
fn gemini_in_full() {
    assert_eq!(
        of("gemini-2.5-pro", full()),
        json!({
            "systemInstruction": {"parts": [{"text": "Be \"good\"."}]},
            "contents": [
                {"role": "user", "parts": [
                    {"text": "look"},
                    {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
                ]},
                {"role": "model", "parts": [
                    {"text": "I look."},
                    {"functionCall": {"id": "a", "name": "get", "args": {"q": 1}}},
                    {"functionCall": {"id": "b", "name": "no_such_tool", "args": {}}},
                ]},
                {"role": "user", "parts": [
                    {"functionResponse": {"id": "a", "name": "get", "response": {"output": "one"}}},
                    {"functionResponse": {"id": "b", "name": "no_such_tool", "response": {"error": ""}}},
                    {"text": "and?"},
                    {"text": "hurry"},
                ]},
            ],
            "tools": [{"functionDeclarations": [
                {"name": "get", "description": "Gets.",
                    "parametersJsonSchema": {"type": "object", "properties": {"q": {"type": "integer"}}}},
                {"name": "odd", "description": "",
                    "parametersJsonSchema": {"type": "object", "properties": {"a": {"anyOf": [{}]}},
                        "anyOf": [{"required": ["a"]}]}},
            ]}],
        })
    );
    let mut last = full();
    last.tools_allowed = false;
    assert_eq!(
        gemini(&last)["toolConfig"],
        json!({"functionCallingConfig": {"mode": "NONE"}})
    );
    assert_eq!(gemini(&last)["tools"], gemini(&full())["tools"]);
}

fn signed(on: Value, signature: &str) -> Part {
    let data = json!({"type": "thought_signature", "signature": signature, "on": on});
    reasoning("thought", Some(data))
}

// G-10
#[test]
fn signatures_go_back_on_the_part_that_carried_them() {
    let parts = |model: &str, parts: Vec<Part>| {
        let history = request(vec![Message::Assistant(parts)]);
        of(model, history)["contents"][0]["parts"].clone()
    };
    let calls = || ["c0", "c1"].map(|id| Part::Call(call(id, "get", "{}")));
    let called = |id: &str| json!({"functionCall": {"id": id, "name": "get", "args": {}}});
    let with = |mut part: Value, signature: &str| {
        part["thoughtSignature"] = signature.into();
        part
    };
    let [first, second] = calls();
    assert_eq!(
        parts(
            "gemini-3-pro",
            vec![
                signed(json!({"call": 1}), "s1"),
                signed(json!({"text": [2, 4]}), "s2"),
                signed(json!({"text": [6, 6]}), "s3"),
                signed(json!("thought"), "s4"),
                signed(json!({"text": [9, 11]}), "lost"),
                reasoning(
                    "other",
                    Some(json!({"type": "thinking", "signature": "no"}))
                ),
                Part::text("abcd"),
                Part::text("ef"),
                first,
                second,
            ]
        ),
        json!([
            {"text": "thought", "thought": true, "thoughtSignature": "s4"},
            {"text": "ab"},
            {"text": "cd", "thoughtSignature": "s2"},
            {"text": "ef"},
            {"text": "", "thoughtSignature": "s3"},
            {"text": "", "thoughtSignature": "lost"},
            called("c0"),
            with(called("c1"), "s1"),
        ])
    );
    // Calls of another model: new models demand a signature, old ones know none.
    let [first, second] = calls();
    assert_eq!(
        parts("gemini-3.1-flash", vec![first, second]),
        json!([
            with(called("c0"), "skip_thought_signature_validator"),
            called("c1")
        ])
    );
    let [first, _] = calls();
    assert_eq!(
        parts("gemini-2.5-flash", vec![first]),
        json!([called("c0")])
    );
}

#[test]
fn options_have_places_of_their_own() {
    let with = |model: &str, options: Options| {
        let mut request = request(vec![Message::User(vec![Part::text("x")])]);
        request.options = Arc::new(options);
        of(model, request)
    };
    let all = Options {
        temperature: Some(0.5),
        top_p: Some(0.9),
        max_output_tokens: Some(100),
        reasoning_effort: Some("low".into()),
        extra: Some(
            Json::parse(
                r#"{"generationConfig":{"topP":0.1,"seed":7},"safetySettings":[],"contents":[],"toolConfig":{}}"#,
            )
            .unwrap(),
        ),
        ..Options::default()
    };
    let body = with("gemini-2.5-pro", all);
    assert_eq!(
        body["generationConfig"],
        json!({"temperature": 0.5, "topP": 0.1, "maxOutputTokens": 100, "seed": 7,
            "thinkingConfig": {"thinkingBudget": 2048, "includeThoughts": true}})
    );
    assert_eq!(body["safetySettings"], json!([]));
    assert_eq!(body["contents"][0]["role"], "user");
    assert_eq!(body.get("toolConfig"), None);
    for (model, effort, want) in [
        (
            "gemini-3-pro",
            "low",
            json!({"thinkingLevel": "low", "includeThoughts": true}),
        ),
        (
            "gemini-flash-latest",
            "max",
            json!({"thinkingLevel": "high", "includeThoughts": true}),
        ),
        ("gemini-2.5-flash", "none", json!({"thinkingBudget": 0})),
    ] {
        let options = Options {
            reasoning_effort: Some(effort.into()),
            ..Options::default()
        };
        let body = with(model, options);
        assert_eq!(body["generationConfig"]["thinkingConfig"], want, "{model}");
    }
    assert_eq!(
        with("gemini-3-pro", Options::default()).get("generationConfig"),
        None
    );
}

// G-11
#[test]
fn schemas_lose_only_the_name_of_their_own_language() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "$schema": {"type": "string"},
            "n": {"$schema": "x", "$ref": "#/$defs/n"},
        },
        "additionalProperties": false,
        "$defs": {"n": {"type": "integer", "exclusiveMinimum": 0}},
    });
    let mut request = request(Vec::new());
    request.tools = Arc::new(ToolSet::new(vec![ToolSpec {
        name: "t".into(),
        description: "".into(),
        input_schema: Json::from_value(&schema),
    }]));
    assert_eq!(
        gemini(&request)["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"],
        json!({
            "type": "object",
            "properties": {"$schema": {"type": "string"}, "n": {"$ref": "#/$defs/n"}},
            "additionalProperties": false,
            "$defs": {"n": {"type": "integer", "exclusiveMinimum": 0}},
        })
    );
}
