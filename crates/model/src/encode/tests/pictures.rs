//! Pictures in messages and in results of tools, in every dialect.

use serde_json::{Value, json};

use super::{answer, body, call, request};
use crate::dialect::Dialect;
use crate::message::{Image, Message, Part};
use crate::quirks::Quirks;
use crate::request::Request;

/// Two results, the first with a picture, and words of the user behind them.
fn shots() -> Request {
    let calls = [call("a", "shot", "{}"), call("b", "get", "{}")];
    let mut results = vec![
        answer(&calls[0], "taken", false),
        answer(&calls[1], "two", false),
    ];
    results[0].images.push(Image {
        media_type: "image/png".into(),
        base64: "AAAA".into(),
    });
    request(vec![
        Message::Assistant(calls.into_iter().map(Part::Call).collect()),
        Message::Tool(results),
        Message::User(vec![Part::text("and?")]),
    ])
}

const NOTE: &str = "[1 picture of the result of shot (call a):]";

fn quirks(result_images: bool) -> Quirks {
    Quirks {
        cache_marks: false,
        result_images,
        ..Quirks::default()
    }
}

fn sent(dialect: Dialect, model: &str, list: &str, inside: bool) -> Vec<Value> {
    let mut request = shots();
    request.model = model.into();
    let body = body(dialect, &request, &quirks(inside));
    body[list].as_array().unwrap().clone()
}

#[test]
fn chat_completions_show_them_after_the_whole_batch() {
    for inside in [false, true] {
        let messages = sent(Dialect::OpenAiChat, "m", "messages", inside);
        assert_eq!(
            messages[2..],
            [
                json!({"role": "tool", "content": "taken", "tool_call_id": "a"}),
                json!({"role": "tool", "content": "two", "tool_call_id": "b"}),
                json!({"role": "user", "content": [
                    {"type": "text", "text": NOTE},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                ]}),
                json!({"role": "user", "content": "and?"}),
            ]
        );
    }
}

#[test]
fn responses_take_them_as_output() {
    let picture = json!({"type": "input_image", "image_url": "data:image/png;base64,AAAA"});
    let items = sent(Dialect::OpenAiResponses, "m", "input", true);
    assert_eq!(
        items[2],
        json!({"type": "function_call_output", "call_id": "a",
            "output": [{"type": "input_text", "text": "taken"}, picture]})
    );
    assert_eq!(items[3]["output"], "two");
    let items = sent(Dialect::OpenAiResponses, "m", "input", false);
    assert_eq!(items[2]["output"], "taken");
    assert_eq!(
        items[4],
        json!({"type": "message", "role": "user",
            "content": [{"type": "input_text", "text": NOTE}, picture]})
    );
}

#[test]
fn messages_take_them_as_blocks_of_the_result() {
    let picture = json!({"type": "image", "source":
        {"type": "base64", "media_type": "image/png", "data": "AAAA"}});
    let messages = sent(Dialect::Anthropic, "m", "messages", true);
    assert_eq!(
        messages[1]["content"],
        json!([
            {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "taken"}, picture]},
            {"type": "tool_result", "tool_use_id": "b", "content": "two"},
            {"type": "text", "text": "and?"},
        ])
    );
    let messages = sent(Dialect::Anthropic, "m", "messages", false);
    assert_eq!(
        messages[1]["content"],
        json!([
            {"type": "tool_result", "tool_use_id": "a", "content": "taken"},
            {"type": "tool_result", "tool_use_id": "b", "content": "two"},
            {"type": "text", "text": NOTE},
            picture,
            {"type": "text", "text": "and?"},
        ])
    );
}

#[test]
fn gemini_takes_them_by_generation() {
    let picture = json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}});
    let two =
        json!({"functionResponse": {"id": "b", "name": "get", "response": {"output": "two"}}});
    let contents = sent(Dialect::Gemini, "gemini-3-flash", "contents", true);
    assert_eq!(
        contents[1]["parts"],
        json!([
            {"functionResponse": {"id": "a", "name": "shot", "response": {"output": "taken"}, "parts": [picture]}},
            two,
            {"text": "and?"},
        ])
    );
    for (model, inside) in [("gemini-2.5-flash", true), ("gemini-3-flash", false)] {
        let contents = sent(Dialect::Gemini, model, "contents", inside);
        assert_eq!(
            contents[1]["parts"],
            json!([
                {"functionResponse": {"id": "a", "name": "shot", "response": {"output": "taken"}}},
                two,
                {"text": NOTE},
                picture,
                {"text": "and?"},
            ])
        );
    }
}

#[test]
fn a_model_that_takes_none_is_told_of_each_in_words() {
    let mut request = shots();
    request.model = "gemini-3-flash".into();
    request.messages.push(Message::User(vec![Part::Image {
        media_type: "image/gif".into(),
        base64: "Zg==".into(),
    }]));
    let mut plain = request.clone();
    plain.messages.truncate(1);
    let of = |kind: &str, bytes: u32| {
        format!(
            "[A picture is left out here: {kind}, {bytes} bytes. This model takes no pictures.]"
        )
    };
    let quirks = Quirks {
        images: false,
        ..quirks(true)
    };
    for dialect in [
        Dialect::OpenAiChat,
        Dialect::OpenAiResponses,
        Dialect::Anthropic,
        Dialect::Gemini,
    ] {
        let encoded = dialect.encode(&request, &quirks);
        let sent = String::from_utf8(encoded.body).unwrap();
        assert!(!sent.contains("AAAA") && !sent.contains("Zg=="), "{sent}");
        assert!(
            sent.contains(&format!("taken\\n{}", of("image/png", 3))),
            "{sent}"
        );
        assert!(sent.contains(&of("image/gif", 1)), "{sent}");
        assert_eq!(encoded.notices, [crate::encode::no_pictures()]);
        // Nothing is said where there is none.
        assert!(dialect.encode(&plain, &quirks).notices.is_empty());
    }
}

#[test]
fn a_result_of_nothing_but_pictures_has_no_empty_text() {
    let mut request = shots();
    if let Message::Tool(results) = &mut request.messages[1] {
        results[0].content = "".into();
    }
    let of = |dialect| body(dialect, &request, &quirks(true));
    assert_eq!(
        of(Dialect::OpenAiResponses)["input"][2]["output"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
    assert_eq!(
        of(Dialect::Anthropic)["messages"][1]["content"][0]["content"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
}
