//! The decoder of Chat Completions against the ways in which servers spell a reply, and the harness of the other dialects.
//! Every case is read at once, byte by byte and in pieces, and must give the same each time.

use attache_model::dialect::Phase;
use attache_model::sse::SseReader;
use attache_model::{
    Assembler, Delta, Deltas, Dialect, ErrorKind, ModelError, Part, StopReason, Usage,
};

/// What a reply amounts to.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Outcome {
    pub(crate) text: String,
    pub(crate) reasoning: String,
    /// Id, name, arguments.
    pub(crate) calls: Vec<(String, String, String)>,
    pub(crate) usage: Usage,
    pub(crate) stop: Option<StopReason>,
    pub(crate) error: Option<ModelError>,
    pub(crate) phase: Phase,
}

pub(crate) fn read<'a>(dialect: Dialect, pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let mut sse = SseReader::new();
    let mut decoder = dialect.decoder();
    let mut out = Deltas::new();
    for piece in pieces {
        sse.push(piece);
        while let Some(event) = sse.next_event().unwrap() {
            decoder.push(event, &mut out);
        }
    }
    let phase = decoder.phase();
    let end = match phase {
        Phase::Failed => Ok(()),
        _ => decoder.end(&mut out),
    };
    let mut assembler = Assembler::new();
    let mut error = end.err();
    let mut stops = 0;
    for delta in out.drain() {
        match &delta {
            Delta::Failed(failure) => error = Some(failure.clone()),
            Delta::Stop(_) => stops += 1,
            Delta::Text(text)
            | Delta::Reasoning(text)
            | Delta::CallArguments { fragment: text, .. } => {
                assert!(!text.is_empty());
            }
            _ => {}
        }
        assembler.push(&delta);
    }
    assert!(stops < 2, "a reply stops once");
    let done = assembler.finish();
    Outcome {
        text: done.text(),
        reasoning: done
            .parts
            .iter()
            .map(|part| match part {
                Part::Reasoning { text, opaque } => match opaque {
                    Some(opaque) => format!("{text}<{opaque}>"),
                    None => text.to_string(),
                },
                _ => String::new(),
            })
            .collect(),
        calls: done
            .calls()
            .map(|call| {
                (
                    call.id.to_string(),
                    call.name.to_string(),
                    call.arguments.to_string(),
                )
            })
            .collect(),
        usage: done.usage,
        stop: done.stop,
        error,
        phase,
    }
}

/// Reads in three ways and wants the same.
pub(crate) fn outcome(dialect: Dialect, bytes: &[u8]) -> Outcome {
    let whole = read(dialect, [bytes]);
    assert_eq!(read(dialect, bytes.chunks(1)), whole, "byte by byte");
    assert_eq!(read(dialect, bytes.chunks(7)), whole, "by sevens");
    whole
}

pub(crate) fn sse(events: &[&str]) -> Vec<u8> {
    events
        .iter()
        .flat_map(|event| format!("data: {event}\n\n").into_bytes())
        .collect()
}

fn chat(events: &[&str]) -> Outcome {
    outcome(Dialect::OpenAiChat, &sse(events))
}

/// A chunk with this delta.
fn delta(delta: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#)
}

fn calls(entries: &str) -> String {
    delta(&format!(r#"{{"tool_calls":[{entries}]}}"#))
}

const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
const CALLS: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#;

pub(crate) fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
    (id.to_owned(), name.to_owned(), arguments.to_owned())
}

#[test]
fn text_reasoning_and_usage() {
    for field in ["reasoning_content", "reasoning"] {
        let done = chat(&[
            &delta(r#"{"role":"assistant","content":""}"#),
            &delta(&format!(r#"{{"{field}":"thi"}}"#)),
            &delta(&format!(r#"{{"{field}":"nk","content":null}}"#)),
            &delta(r#"{"content":"Hel\"lo\n"}"#),
            &delta(r#"{"content":"you"}"#),
            STOP,
            r#"{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":2}}}"#,
            "[DONE]",
        ]);
        assert_eq!((&*done.text, &*done.reasoning), ("Hel\"lo\nyou", "think"));
        let usage = Usage {
            input: Some(10),
            output: Some(5),
            cache_read: Some(4),
            cache_write: None,
            reasoning: Some(2),
        };
        assert_eq!(
            (done.usage, done.stop, done.error),
            (usage, Some(StopReason::EndTurn), None)
        );
        assert_eq!(done.phase, Phase::Closed);
    }
}

// G-01
#[test]
fn characters_cut_by_reads_and_bytes_that_are_no_text() {
    let mut bytes = sse(&[&delta(r#"{"content":"那🌍"}"#), STOP, "[DONE]"]);
    assert_eq!(
        outcome(Dialect::OpenAiChat, &bytes).text,
        "\u{90a3}\u{1f30d}"
    );
    let at = bytes.iter().position(|byte| *byte == 0xF0).unwrap();
    bytes.insert(at, 0xFF);
    let done = outcome(Dialect::OpenAiChat, &bytes);
    assert_eq!((&*done.text, done.error), ("那\u{fffd}🌍", None));
    // Outside of what is shown such a byte does no harm at all, even in a name.
    let event =
        b"data: {\"x\xFF\":\"\xFF\\ud800\",\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    assert_eq!(outcome(Dialect::OpenAiChat, event).text, "a");
}

// G-01
#[test]
fn surrogate_pairs_split_over_fragments() {
    let done = chat(&[
        &delta(r#"{"content":"a\ud83d"}"#),
        &delta(r#"{"content":"\ude00b"}"#),
        &delta(r#"{"reasoning":"\ud83d"}"#),
        &calls(r#"{"index":0,"id":"c","function":{"name":"t","arguments":"{\"t\":\"\ud83d"}}"#),
        &calls(r#"{"index":0,"function":{"arguments":"\ude00\"}"}}"#),
        CALLS,
    ]);
    assert_eq!((&*done.text, &*done.reasoning), ("a😀b", "\u{fffd}"));
    assert_eq!(done.calls, [call("c", "t", "{\"t\":\"😀\"}")]);
}

// G-02
#[test]
fn every_spelling_of_the_stream_gives_the_same() {
    let events = [
        &delta(r#"{"content":"Hi"}"#),
        STOP,
        r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":8}}"#,
    ];
    let plain = chat(&[events[0], events[1], events[2], "[DONE]"]);
    let crlf = String::from_utf8(sse(&[events[0], events[1], events[2], "[DONE]"]))
        .unwrap()
        .replace('\n', "\r\n");
    assert_eq!(outcome(Dialect::OpenAiChat, crlf.as_bytes()), plain);
    let tight = crlf.replace("data: ", "data:");
    assert_eq!(outcome(Dialect::OpenAiChat, tight.as_bytes()), plain);
    let noisy = format!(
        ": PROCESSING\n\nevent: ping\ndata: {{\"type\":\"ping\"}}\n\nid: 7\nretry: 10\ndata: {}\n\n: x\ndata: {}\n\ndata: {}\n\ndata: [DONE]\n\n",
        events[0], events[1], events[2]
    );
    assert_eq!(outcome(Dialect::OpenAiChat, noisy.as_bytes()), plain);
    let split = tight.replacen(",\"delta\"", "\r\ndata:,\"delta\"", 1);
    assert_eq!(outcome(Dialect::OpenAiChat, split.as_bytes()), plain);
}

// G-05
#[test]
fn chunks_without_choices() {
    for none in [r#"{"choices":[],"#, r#"{"choices":null,"#, "{"] {
        let done = chat(&[
            &format!("{none}\"prompt_filter_results\":[]}}"),
            &delta(r#"{"content":"x"}"#),
            STOP,
            &format!("{none}\"usage\":{{\"prompt_tokens\":1,\"completion_tokens\":8}}}}"),
        ]);
        assert_eq!(
            (done.usage.input, done.usage.output, done.error),
            (Some(1), Some(8), None)
        );
        assert_eq!(done.usage.cache_read, None);
        assert_eq!(done.phase, Phase::Stopped);
    }
    assert!(
        chat(&[&delta(r#"{"content":"x"}"#), STOP])
            .usage
            .is_unknown()
    );
    let done = chat(&[
        STOP,
        r#"{"usage":{"prompt_tokens":-1,"completion_tokens":2.0,"prompt_tokens_details":null}}"#,
    ]);
    assert_eq!((done.usage.input, done.usage.output), (None, Some(2)));
}

// G-06
#[test]
fn fragments_of_a_call_come_together() {
    let want = [call("call_1", "get", r#"{"loc":"Oslo"}"#)];
    for events in [
        vec![
            calls(r#"{"index":0,"id":"call_1","function":{"name":"get","arguments":""}}"#),
            calls(r#"{"index":0,"function":{"arguments":"{\"lo"}}"#),
            calls(r#"{"index":0,"id":"","function":{"name":"","arguments":"c\":\"Oslo\"}"}}"#),
        ],
        vec![
            calls(
                r#"{"index":0,"id":"call_1","function":{"name":"get"}},{"index":0,"function":{"arguments":"{"}}"#,
            ),
            calls(r#"{"index":0,"function":{"arguments":"\"loc\":\"Oslo\"}"}}"#),
        ],
        vec![calls(
            r#"{"index":0,"id":"call_1","function":{"name":"get","arguments":"{\"loc\":\"Oslo\"}"}}"#,
        )],
        // The id and the name with each fragment; a new id with each; no index at all; the whole call again at the end.
        vec![
            calls(r#"{"index":0,"id":"call_1","function":{"name":"get","arguments":"{\"loc\":"}}"#),
            calls(r#"{"index":0,"id":"call_1","function":{"name":"get","arguments":"\"Oslo\"}"}}"#),
        ],
        vec![
            calls(r#"{"index":0,"id":"call_1","function":{"name":"get","arguments":"{\"loc\":"}}"#),
            calls(r#"{"index":0,"id":"other","function":{"name":null,"arguments":"\"Oslo\"}"}}"#),
        ],
        vec![
            calls(r#"{"id":"call_1","function":{"name":"get","arguments":"{\"loc\":"}}"#),
            calls(r#"{"function":{"arguments":"\"Oslo\"}"}}"#),
        ],
        vec![
            calls(
                r#"{"index":0,"id":"call_1","function":{"name":"get","arguments":"{\"loc\":\"Oslo\"}"}}"#,
            ),
            calls(
                r#"{"index":0,"id":"call_1","function":{"name":"get","arguments":"{\"loc\":\"Oslo\"}"}}"#,
            ),
        ],
        vec![calls(
            r#"{"index":0,"id":"call_1","function":{"name":"get","arguments":{"loc":"Oslo"}}}"#,
        )],
        vec![
            calls(r#"{"index":0,"id":"call_1","function":{"arguments":"{\"loc\":"}}"#),
            calls(r#"{"index":0,"function":{"name":"get","arguments":"\"Oslo\"}"}}"#),
        ],
    ] {
        let mut events: Vec<&str> = events.iter().map(String::as_str).collect();
        events.push(CALLS);
        let done = chat(&events);
        assert_eq!(done.calls, want, "{events:?}");
        assert_eq!(done.stop, Some(StopReason::ToolCalls));
    }
}

// G-06, G-07
#[test]
fn parallel_calls_stay_apart() {
    let two = [call("a", "f", r#"{"x":1}"#), call("b", "g", r#"{"y":2}"#)];
    for events in [
        // Both with index 0, as some servers count.
        vec![
            calls(r#"{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}"#),
            calls(r#"{"index":0,"function":{"arguments":"1}"}}"#),
            calls(r#"{"index":0,"id":"b","function":{"name":"g","arguments":""}}"#),
            calls(r#"{"index":0,"function":{"arguments":"{\"y\":2}"}}"#),
        ],
        vec![
            calls(
                r#"{"index":0,"id":"a","function":{"name":"f"}},{"index":1,"id":"b","function":{"name":"g"}}"#,
            ),
            calls(
                r#"{"index":1,"function":{"arguments":"{\"y\":2}"}},{"index":0,"function":{"arguments":"{\"x\":1}"}}"#,
            ),
        ],
        vec![calls(
            r#"{"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}},{"id":"b","function":{"name":"g","arguments":"{\"y\":2}"}}"#,
        )],
    ] {
        let mut events: Vec<&str> = events.iter().map(String::as_str).collect();
        events.push(STOP);
        let done = chat(&events);
        assert_eq!(done.calls, two, "{events:?}");
        assert_eq!(
            done.stop,
            Some(StopReason::ToolCalls),
            "whatever the server called it"
        );
    }
}

// G-07
#[test]
fn an_id_that_repeats_and_a_finish_that_repeats() {
    for second in [0, 1] {
        let done = chat(&[
            &calls(r#"{"index":0,"id":"t:3","function":{"name":"get","arguments":"{\"q\":1}"}}"#),
            &calls(&format!(
                r#"{{"index":{second},"id":"t:3","function":{{"name":"get","arguments":"{{\"q\":2}}"}}}}"#
            )),
            CALLS,
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t:3","function":{"name":"get","arguments":"{\"q\":1}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3}}"#,
            "[DONE]",
        ]);
        assert_eq!(
            done.calls,
            [
                call("t:3", "get", r#"{"q":1}"#),
                call("t:3_2", "get", r#"{"q":2}"#)
            ]
        );
        assert_eq!(done.usage.input, Some(3));
    }
}

// G-09
#[test]
fn calls_without_a_name_or_an_id_are_still_calls() {
    let done = chat(&[
        &calls(r#"{"index":0,"id":"c","function":{"name":"","arguments":"{}"}}"#),
        CALLS,
    ]);
    assert_eq!(done.calls, [call("c", "", "{}")]);
    // One that waits for its name begins after the other; calls are numbered as they begin.
    let events = [
        calls(
            r#"{"index":0,"id":"a","function":{"arguments":"{}"}},{"index":1,"id":"b","function":{"name":"t"}}"#,
        ),
        CALLS.to_owned(),
    ];
    let mut decoder = Dialect::OpenAiChat.decoder();
    let mut out = Deltas::new();
    for event in &events {
        decoder.push(event.as_bytes(), &mut out);
    }
    let started = |delta: &Delta| match delta {
        Delta::CallStarted { index, id, .. } => Some((*index, id.clone())),
        _ => None,
    };
    let started: Vec<_> = out.as_slice().iter().filter_map(started).collect();
    assert_eq!(started, [(0, "b".to_owned()), (1, "a".to_owned())]);
    let done = chat(&[
        &calls(r#"{"index":0,"function":{"name":"t","arguments":null}}"#),
        CALLS,
    ]);
    assert_eq!(done.calls, [call("call_0", "t", "")]);
}

// G-03
#[test]
fn a_stream_that_ends_early_is_truncated() {
    let half = calls(
        r#"{"index":0,"id":"call_1","function":{"name":"write_file","arguments":"{\"path\":\"/tmp/x\",\"con"}}"#,
    );
    for (events, phase) in [
        (vec![&*half], Phase::Open),
        (vec![&*half, "[DONE]"], Phase::Failed),
        (vec!["[DONE]"], Phase::Failed),
        (vec![], Phase::Open),
    ] {
        let done = chat(&events);
        let error = done.error.unwrap();
        assert_eq!(
            (error.kind, error.retryable, done.phase),
            (ErrorKind::Truncated, true, phase),
            "{events:?}"
        );
    }
    let done = chat(&[&delta(r#"{"content":"whole"}"#), "[DONE]"]);
    assert_eq!(
        (done.stop, done.error, done.phase),
        (None, None, Phase::Closed)
    );
}

// G-12, G-14
#[test]
fn errors_inside_a_stream() {
    for (event, kind, status) in [
        (
            r#"{"error":{"message":"bad field","code":400}}"#,
            ErrorKind::Refused,
            Some(400),
        ),
        (
            r#"{"error":{"message":"m","code":"context_length_exceeded"}}"#,
            ErrorKind::ContextOverflow,
            None,
        ),
        (
            r#"{"object":"error","message":"boom","code":500}"#,
            ErrorKind::Refused,
            Some(500),
        ),
        (
            r#"{"error":"overworked","choices":[]}"#,
            ErrorKind::Refused,
            None,
        ),
        (
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            ErrorKind::Overloaded,
            None,
        ),
        ("not json", ErrorKind::Malformed, None),
        (r#"{"choices":[{"delta":7}]}"#, ErrorKind::Malformed, None),
        ("[1]", ErrorKind::Malformed, None),
    ] {
        let done = chat(&[&delta(r#"{"content":"Partial"}"#), event, STOP, "[DONE]"]);
        let error = done.error.unwrap();
        assert_eq!(
            (error.kind, error.status),
            (kind, status),
            "{event}: {error}"
        );
        assert_eq!(
            (&*done.text, done.stop, done.phase),
            ("Partial", None, Phase::Failed)
        );
    }
}

#[test]
fn reasons_to_stop() {
    for (reason, want) in [
        ("length", StopReason::Length),
        ("content_filter", StopReason::ContentFilter),
        ("function_call", StopReason::ToolCalls),
        ("abort", StopReason::Other("abort".into())),
    ] {
        let event = format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"{reason}"}}]}}"#);
        assert_eq!(chat(&[&event]).stop, Some(want));
    }
    // G-16: an empty answer is an answer.
    let done = chat(&[&delta("{}"), STOP, "[DONE]"]);
    assert_eq!(
        (&*done.text, done.stop, done.error, done.usage.is_unknown()),
        ("", Some(StopReason::EndTurn), None, true)
    );
    let done = chat(&[&delta(r#"{"refusal":"I will not."}"#), STOP]);
    assert_eq!(
        (&*done.text, done.stop),
        ("I will not.", Some(StopReason::Refusal))
    );
    let done = chat(&[
        &delta(r#"{"content":[{"type":"text","text":"in "},{"type":"text","text":"parts"}]}"#),
        STOP,
    ]);
    assert_eq!(done.text, "in parts");
}

// G-10
#[test]
fn details_of_reasoning_are_joined_and_kept() {
    let details = |list: &str| delta(&format!(r#"{{"reasoning_details":[{list}]}}"#));
    let done = chat(&[
        &delta(
            r#"{"reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"h","index":0,"format":"f"}]}"#,
        ),
        &details(r#"{"type":"reasoning.text","text":"m","index":0,"signature":null}"#),
        &details(r#"{"type":"reasoning.text","signature":"s","index":0,"format":"f"}"#),
        &details(r#"{"type":"reasoning.text","text":"next","index":1}"#),
        &details(r#"{"type":"reasoning.encrypted","data":"d","id":"rs","index":2}"#),
        &details(r#"{"type":"reasoning.encrypted","data":"e","id":"rs","index":2}"#),
        r#"{"choices":[{"delta":{"content":"x","reasoning_details":{"odd":true}}}]}"#,
        STOP,
    ]);
    let opaque = concat!(
        r#"{"details":["#,
        r#"{"format":"f","index":0,"signature":"s","text":"hm","type":"reasoning.text"},"#,
        r#"{"index":1,"text":"next","type":"reasoning.text"},"#,
        r#"{"data":"d","id":"rs","index":2,"type":"reasoning.encrypted"},"#,
        r#"{"data":"e","id":"rs","index":2,"type":"reasoning.encrypted"}],"#,
        r#""type":"reasoning_details"}"#
    );
    assert_eq!(
        (&*done.text, &*done.reasoning, done.error),
        ("x", &*format!("hm<{opaque}>"), None)
    );
}

#[test]
fn one_read_gives_one_delta() {
    let mut decoder = Dialect::OpenAiChat.decoder();
    let mut out = Deltas::new();
    for event in [delta(r#"{"content":"a"}"#), delta(r#"{"content":"b"}"#)] {
        decoder.push(event.as_bytes(), &mut out);
    }
    assert_eq!(out.as_slice(), [Delta::Text("ab".into())]);
}
