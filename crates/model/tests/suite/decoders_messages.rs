//! The decoder of Messages, by the harness of `decoders`.

use attache_model::dialect::Phase;
use attache_model::{Dialect, ErrorKind, StopReason, Usage};

use crate::decoders::{Outcome, call, outcome, sse};
use crate::replies::{MESSAGE_DELTA, MESSAGE_STOP, MESSAGES};

fn messages(events: &[&str]) -> Outcome {
    outcome(Dialect::Anthropic, &sse(events))
}

// G-01, G-06
#[test]
fn messages_with_thinking_a_call_and_usage() {
    let mut events = MESSAGES.to_vec();
    events.extend([MESSAGE_DELTA, MESSAGE_STOP]);
    let done = messages(&events);
    assert_eq!(done.text, "Let me look.");
    assert_eq!(
        done.reasoning,
        r#"hm 😀<{"signature":"c2ln","type":"thinking"}>"#
    );
    assert_eq!(done.calls, [call("toolu_1", "get", r#"{"a":1}"#)]);
    let usage = Usage {
        input: Some(130),
        output: Some(42),
        cache_read: Some(100),
        cache_write: Some(20),
        reasoning: Some(7),
    };
    assert_eq!(
        (done.usage, done.stop, done.error),
        (usage, Some(StopReason::ToolCalls), None)
    );
    assert_eq!(done.phase, Phase::Closed);
}

// G-03
#[test]
fn messages_cut_at_any_event_are_truncated() {
    for end in 0..MESSAGES.len() {
        let done = messages(&MESSAGES[..end]);
        assert_eq!(
            done.error.map(|error| error.kind),
            Some(ErrorKind::Truncated),
            "after {end}"
        );
    }
    let done = messages(&[MESSAGE_STOP]);
    assert_eq!(
        done.error.map(|error| error.kind),
        Some(ErrorKind::Truncated)
    );
    let mut events = MESSAGES.to_vec();
    events.push(MESSAGE_DELTA);
    let done = messages(&events);
    assert_eq!((done.error, done.phase), (None, Phase::Stopped));
}

// G-07, G-08
#[test]
fn messages_with_odd_blocks() {
    let done = messages(&[
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"b3Bh"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use","id":"x","name":"web","input":{}}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t","name":"get","input":{"whole":true}}}"#,
        r#"{"type":"content_block_stop","index":2}"#,
        r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"t","name":"none","input":{}}}"#,
        r#"{"type":"content_block_stop","index":3}"#,
        r#"{"type":"something_new","payload":[1]}"#,
        MESSAGE_DELTA,
        MESSAGE_DELTA,
        MESSAGE_STOP,
    ]);
    assert_eq!(
        done.reasoning,
        r#"<{"data":"b3Bh","type":"redacted_thinking"}>"#
    );
    assert_eq!(
        done.calls,
        [
            call("t", "get", r#"{"whole":true}"#),
            call("t_2", "none", "")
        ]
    );
    assert_eq!(
        (done.error, done.usage.input, done.usage.output),
        (None, None, Some(42))
    );
}

// G-12
#[test]
fn messages_with_an_error_event() {
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let begin = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Partial"}}"#;
    for events in [vec![error], vec![begin, error, MESSAGE_STOP]] {
        let done = messages(&events);
        let failure = done.error.unwrap();
        assert_eq!(
            (failure.kind, failure.retryable, done.phase),
            (ErrorKind::Overloaded, true, Phase::Failed)
        );
    }
    assert_eq!(
        messages(&["nonsense"]).error.map(|error| error.kind),
        Some(ErrorKind::Malformed)
    );
}

// G-16
#[test]
fn messages_without_a_block_are_an_empty_answer() {
    let stop = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}"#;
    let done = messages(&[MESSAGES[0], stop, MESSAGE_STOP]);
    assert_eq!(
        (&*done.text, done.stop, done.error, done.phase),
        ("", Some(StopReason::EndTurn), None, Phase::Closed)
    );
}
