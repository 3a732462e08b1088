//! The decoder of Responses, by the harness of `decoders`.

use attache_model::dialect::Phase;
use attache_model::{Dialect, ErrorKind, StopReason, Usage};
use serde_json::{Value, json};

use crate::decoders::{Outcome, call, outcome, sse};
use crate::replies::RESPONSES;

fn responses(events: &[&str]) -> Outcome {
    outcome(Dialect::OpenAiResponses, &sse(events))
}

fn added(index: u64, item: &str) -> String {
    format!(r#"{{"type":"response.output_item.added","output_index":{index},"item":{item}}}"#)
}

fn done(index: u64, item: &str) -> String {
    format!(r#"{{"type":"response.output_item.done","output_index":{index},"item":{item}}}"#)
}

const COMPLETED: &str =
    r#"{"type":"response.completed","response":{"status":"completed","output":[]}}"#;
const TEXT: &str =
    r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"Partial"}"#;

/// The opaque parts of the reasoning.
fn opaques(outcome: &Outcome) -> Vec<Value> {
    let mut found = Vec::new();
    let mut rest = &*outcome.reasoning;
    while let Some(at) = rest.find("<{") {
        let mut values = serde_json::Deserializer::from_str(&rest[at + 1..]).into_iter();
        found.push(values.next().unwrap().unwrap());
        rest = &rest[at + 1 + values.byte_offset()..];
    }
    found
}

// G-01, G-06: pieces of characters and of arguments, and wholes that repeat what came in pieces.
#[test]
fn responses_with_reasoning_text_calls_and_usage() {
    let reply = responses(&RESPONSES);
    assert_eq!(reply.text, "Let me look \u{90a3}\u{1f30d}.");
    assert!(
        reply.reasoning.starts_with("hm 😀\n\nso<"),
        "{}",
        reply.reasoning
    );
    assert_eq!(
        opaques(&reply),
        [json!({
            "id": "rs_1", "type": "reasoning", "encrypted_content": "ZW5j", "status": "completed",
            "summary": [{"type": "summary_text", "text": "hm 😀"}, {"type": "summary_text", "text": "so"}],
            "before": {"text": 0},
        })]
    );
    assert_eq!(
        reply.calls,
        [
            call("call_a", "get", r#"{"x":"é🙏"}"#),
            call("call_b", "put", r#"{"y":2}"#)
        ]
    );
    let usage = Usage {
        input: Some(100),
        output: Some(42),
        cache_read: Some(64),
        cache_write: None,
        reasoning: Some(7),
    };
    assert_eq!(
        (reply.usage, reply.stop, reply.error, reply.phase),
        (usage, Some(StopReason::ToolCalls), None, Phase::Closed)
    );
}

#[test]
fn each_reasoning_item_tells_what_it_stood_before() {
    let reasoning = |id: &str| {
        format!(r#"{{"id":"{id}","type":"reasoning","summary":[],"encrypted_content":"{id}"}}"#)
    };
    let call = |id: &str| {
        format!(
            r#"{{"id":"fc_{id}","type":"function_call","call_id":"{id}","name":"t","arguments":"{{}}"}}"#
        )
    };
    let message = |text: &str| {
        format!(
            r#"{{"id":"m","type":"message","content":[{{"type":"output_text","text":"{text}"}}]}}"#
        )
    };
    let items = [
        reasoning("a"),
        reasoning("b"),
        call("c0"),
        reasoning("c"),
        message("one"),
        reasoning("d"),
        call("c1"),
        reasoning("e"),
        message("two"),
        reasoning("f"),
    ];
    let mut events = Vec::new();
    for (index, item) in (0..).zip(&items) {
        events.push(added(index, item));
        events.push(done(index, item));
    }
    let mut events: Vec<&str> = events.iter().map(String::as_str).collect();
    events.push(COMPLETED);
    let reply = responses(&events);
    let before: Vec<_> = opaques(&reply)
        .iter()
        .map(|item| {
            (
                item["id"].as_str().unwrap().to_owned(),
                item["before"].clone(),
            )
        })
        .collect();
    let want = [
        ("a", json!("reasoning")),
        ("b", json!({"call": 0})),
        ("c", json!({"text": 0})),
        ("d", json!({"call": 1})),
        ("e", json!({"text": 3})),
        ("f", Value::Null),
    ];
    assert_eq!(before, want.map(|(id, before)| (id.to_owned(), before)));
    assert_eq!(reply.text, "onetwo");
}

// G-03
#[test]
fn responses_cut_at_any_event_are_truncated() {
    for end in 0..RESPONSES.len() - 1 {
        let reply = responses(&RESPONSES[..end]);
        assert_eq!(
            (reply.error.map(|error| error.kind), reply.phase),
            (Some(ErrorKind::Truncated), Phase::Open),
            "after {end}"
        );
        let mut events = RESPONSES[..end].to_vec();
        events.push("[DONE]");
        let whole = end >= RESPONSES.len() - 1 || (14..15).contains(&end);
        let kind = responses(&events).error.map(|error| error.kind);
        assert_eq!(kind.is_none(), whole, "after {end} and the end");
    }
    let mut events = RESPONSES.to_vec();
    events.extend([TEXT, "[DONE]", "nonsense"]);
    assert_eq!(responses(&events), responses(&RESPONSES));
}

// G-06, G-07, G-08
#[test]
fn calls_come_together_however_their_wholes_are_repeated() {
    let item = r#"{"id":"fc","type":"function_call","call_id":"c","name":"get","arguments":""}"#;
    let whole =
        r#"{"id":"fc","type":"function_call","call_id":"c","name":"get","arguments":"{\"q\":1}"}"#;
    let delta = |id: &str, text: &str| {
        format!(
            r#"{{"type":"response.function_call_arguments.delta","item_id":"{id}","delta":"{text}"}}"#
        )
    };
    let finished = r#"{"type":"response.function_call_arguments.done","item_id":"fc","arguments":"{\"q\":1}"}"#;
    let want = [call("c", "get", r#"{"q":1}"#)];
    for events in [
        vec![added(0, item), done(0, whole)],
        vec![added(0, whole), done(0, whole), done(0, whole)],
        vec![added(0, whole)],
        // A place that is to be filled.
        vec![
            added(0, &item.replace("\"\"}", "\"{}\"}")),
            delta("fc", r#"{\"q\":1}"#),
        ],
        vec![done(0, whole)],
        vec![added(0, item), finished.to_owned(), finished.to_owned()],
        vec![
            added(0, item),
            delta("fc", r#"{\"q\""#),
            delta("fc", ":1}"),
            finished.to_owned(),
            done(0, whole),
            delta("fc", "late"),
        ],
        // The end of the pieces was lost; the whole makes up for it.
        vec![added(0, item), delta("fc", r#"{\"q\""#), done(0, whole)],
        // Ids made anew for each event, as some gateways do: the place in the output counts.
        vec![
            added(0, item),
            r#"{"type":"response.function_call_arguments.delta","item_id":"other","output_index":0,"delta":"{\"q\":1}"}"#
                .to_owned(),
            done(0, whole),
        ],
    ] {
        let mut events: Vec<&str> = events.iter().map(String::as_str).collect();
        events.push(COMPLETED);
        let reply = responses(&events);
        assert_eq!(reply.calls, want, "{events:?}");
        assert_eq!(reply.stop, Some(StopReason::ToolCalls));
    }
    // The end alone.
    let alone = format!(
        r#"{{"type":"response.completed","response":{{"output":[{whole},{{"type":"message","content":[{{"type":"output_text","text":"x"}}]}}]}}}}"#
    );
    let reply = responses(&[&alone]);
    assert_eq!((&*reply.calls, &*reply.text), (&want[..], "x"));
    // The end in place of the item's own.
    let reply = responses(&[&added(0, item), &delta("fc", r#"{\"q\""#), &alone]);
    assert_eq!((&*reply.calls, &*reply.text), (&want[..], ""));
    // One id twice.
    let reply = responses(&[&done(0, whole), &done(1, whole), COMPLETED]);
    assert_eq!(
        reply.calls,
        [
            call("c", "get", r#"{"q":1}"#),
            call("c_2", "get", r#"{"q":1}"#)
        ]
    );
    // No id, no name, no arguments.
    let reply = responses(&[&done(0, r#"{"type":"function_call"}"#), COMPLETED]);
    assert_eq!(reply.calls, [call("call_0", "", "")]);
}

#[test]
fn ends_of_responses_say_why() {
    let refusal =
        r#"{"type":"response.refusal.delta","output_index":0,"content_index":0,"delta":"No."}"#;
    let incomplete = |reason: &str| {
        format!(
            r#"{{"type":"response.incomplete","response":{{"incomplete_details":{reason},"usage":{{"input_tokens":5,"output_tokens":6}}}}}}"#
        )
    };
    for (events, text, stop) in [
        (vec![refusal, COMPLETED], "No.", StopReason::Refusal),
        (
            vec![TEXT, &incomplete(r#"{"reason":"max_output_tokens"}"#)],
            "Partial",
            StopReason::Length,
        ),
        (
            vec![TEXT, &incomplete(r#"{"reason":"content_filter"}"#)],
            "Partial",
            StopReason::ContentFilter,
        ),
        (
            vec![&incomplete(r#"{"reason":"novel"}"#)],
            "",
            StopReason::Other("novel".into()),
        ),
        (
            vec![&incomplete("null")],
            "",
            StopReason::Other("incomplete".into()),
        ),
        // G-16: nothing at all is no failure.
        (vec![COMPLETED], "", StopReason::EndTurn),
    ] {
        let reply = responses(&events);
        assert_eq!(
            (&*reply.text, reply.stop, reply.error, reply.phase),
            (text, Some(stop), None, Phase::Closed),
            "{events:?}"
        );
    }
}

#[test]
fn pieces_without_an_announced_item_still_belong_together() {
    let piece = |place: &str, text: &str| {
        format!(r#"{{"type":"response.output_text.delta"{place},"delta":"{text}"}}"#)
    };
    for place in ["", r#","item_id":"m""#, r#","output_index":0"#] {
        let whole = format!(r#"{{"type":"response.output_text.done"{place},"text":"a😀"}}"#);
        let events = [
            piece(place, r"a\ud83d"),
            piece(place, r"\ude00"),
            whole,
            COMPLETED.to_owned(),
        ];
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        assert_eq!(responses(&events).text, "a😀", "{place}");
    }
}

// G-12, G-14
#[test]
fn errors_inside_responses() {
    for (event, kind, retryable) in [
        (
            r#"{"type":"error","code":"rate_limit_exceeded","message":"slow down","param":null,"sequence_number":3}"#,
            ErrorKind::Overloaded,
            true,
        ),
        (
            r#"{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"Your input exceeds the context window"}}"#,
            ErrorKind::ContextOverflow,
            false,
        ),
        (
            r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"An error occurred"},"usage":{"input_tokens":3}}}"#,
            ErrorKind::Refused,
            true,
        ),
        (
            r#"{"type":"response.failed","response":{"error":{"code":"context_length_exceeded","message":"too long"}}}"#,
            ErrorKind::ContextOverflow,
            false,
        ),
        (
            r#"{"type":"response.failed","response":{"error":null}}"#,
            ErrorKind::Refused,
            false,
        ),
        (
            r#"{"error":{"message":"bad field","code":400}}"#,
            ErrorKind::Refused,
            false,
        ),
        (r#"{"choices":[]}"#, ErrorKind::Malformed, false),
        (
            r#"{"type":"response.output_item.added","item":7}"#,
            ErrorKind::Malformed,
            false,
        ),
        ("not json", ErrorKind::Malformed, false),
    ] {
        let reply = responses(&[TEXT, event, COMPLETED, "[DONE]"]);
        let error = reply.error.unwrap();
        assert_eq!((error.kind, error.retryable), (kind, retryable), "{event}");
        assert_eq!(
            (&*reply.text, reply.stop, reply.phase),
            ("Partial", None, Phase::Failed)
        );
    }
}

#[test]
fn what_came_later_than_this_code_is_passed_over() {
    let reply = responses(&[
        r#"{"type":"keepalive","sequence_number":1}"#,
        r#"{"type":"response.novel","delta":{"form":["of","its"]},"item":3}"#,
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"web_search_call","id":"ws","status":"in_progress"}}"#,
        r#"{"type":"response.web_search_call.searching","output_index":0,"item_id":"ws"}"#,
        r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"web_search_call","id":"ws","status":"completed"}}"#,
        r#"{"type":"response.output_text.delta","output_index":1,"delta":"x"}"#,
        r#"{"type":"response.reasoning_summary_text.delta","output_index":2,"summary_index":0,"delta":"brief"}"#,
        r#"{"type":"response.reasoning_text.delta","output_index":2,"content_index":0,"delta":"deep"}"#,
        COMPLETED,
    ]);
    assert_eq!(
        (&*reply.text, &*reply.reasoning, reply.error),
        ("x", "brief\n\ndeep", None)
    );
}
