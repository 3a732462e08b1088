//! The decoder of Gemini's dialect, by the harness of `decoders`.

use attache_model::dialect::Phase;
use attache_model::{Dialect, ErrorKind, StopReason, Usage};

use crate::decoders::{Outcome, call, outcome, sse};
use crate::replies::GEMINI;

fn gemini(events: &[&str]) -> Outcome {
    outcome(Dialect::Gemini, &sse(events))
}

fn text(text: &str) -> String {
    format!(r#"{{"candidates":[{{"content":{{"parts":[{{"text":"{text}"}}]}}}}]}}"#)
}

fn finish(reason: &str) -> String {
    format!(r#"{{"candidates":[{{"finishReason":"{reason}"}}]}}"#)
}

// G-01, G-06
#[test]
fn gemini_with_thoughts_text_calls_and_usage() {
    let reply = gemini(&GEMINI);
    assert_eq!(reply.text, "Let me look \u{90a3}\u{1f30d}.");
    assert_eq!(
        reply.reasoning,
        concat!(
            "hm 😀",
            r#"<{"on":{"text":[7,20]},"signature":"c2ln","type":"thought_signature"}>"#,
            r#"<{"on":{"call":0},"signature":"Y2FsbA==","type":"thought_signature"}>"#
        )
    );
    assert_eq!(
        reply.calls,
        [
            call("f1", "get", r#"{"x":"é🙏"}"#),
            call("call_1", "put", r#"{"y":2.0}"#)
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
        (usage, Some(StopReason::ToolCalls), None, Phase::Stopped)
    );
}

// G-03: there is no terminal event, so a reason to finish is what tells an end from a cut.
#[test]
fn gemini_cut_at_any_event_is_truncated() {
    for end in 0..GEMINI.len() {
        let mut events = GEMINI[..end].to_vec();
        let reply = gemini(&events);
        assert_eq!(
            (reply.error.map(|error| error.kind), reply.phase),
            (Some(ErrorKind::Truncated), Phase::Open),
            "after {end}"
        );
        events.push("[DONE]");
        assert_eq!(gemini(&events).error.is_none(), end > 0, "after {end}");
    }
}

#[test]
fn what_follows_a_reason_to_finish_still_counts() {
    let reply = gemini(&[
        r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"cw=="}]},"finishReason":"STOP"}]}"#,
        r#"{"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2}}"#,
    ]);
    assert_eq!(
        (&*reply.text, reply.stop, reply.usage.output),
        ("ab", Some(StopReason::EndTurn), Some(2))
    );
    assert_eq!(
        reply.reasoning,
        r#"<{"on":{"text":[2,2]},"signature":"cw==","type":"thought_signature"}>"#
    );
}

#[test]
fn reasons_to_finish() {
    use StopReason::{ContentFilter, EndTurn, Length, Other};
    for (reason, want) in [
        ("STOP", EndTurn),
        ("MAX_TOKENS", Length),
        ("SAFETY", ContentFilter),
        ("RECITATION", ContentFilter),
        ("BLOCKLIST", ContentFilter),
        ("PROHIBITED_CONTENT", ContentFilter),
        ("SPII", ContentFilter),
        ("IMAGE_SAFETY", ContentFilter),
        ("LANGUAGE", Other("LANGUAGE".into())),
        ("OTHER", Other("OTHER".into())),
    ] {
        let reply = gemini(&[&text("x"), &finish(reason)]);
        assert_eq!(
            (reply.stop, reply.error, reply.phase),
            (Some(want), None, Phase::Stopped)
        );
    }
    for (reason, retryable) in [
        ("MALFORMED_FUNCTION_CALL", true),
        ("UNEXPECTED_TOOL_CALL", true),
        ("MISSING_THOUGHT_SIGNATURE", false),
    ] {
        let reply = gemini(&[&text("x"), &finish(reason), &finish("STOP")]);
        let error = reply.error.unwrap();
        assert_eq!(
            (error.kind, error.retryable, reply.stop),
            (ErrorKind::Malformed, retryable, None)
        );
        assert!(error.message.contains(reason), "{error}");
    }
    // Said with every event by some servers, and never by others.
    let reply = gemini(&[&text("x"), &finish("FINISH_REASON_UNSPECIFIED")]);
    assert_eq!(reply.phase, Phase::Open);
    // G-16
    let reply = gemini(&[&finish("STOP")]);
    assert_eq!(
        (&*reply.text, reply.stop, reply.error),
        ("", Some(StopReason::EndTurn), None)
    );
    let reply = gemini(&[
        r#"{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":3}}"#,
    ]);
    assert_eq!(
        (reply.stop, reply.usage.input, reply.phase),
        (Some(StopReason::ContentFilter), Some(3), Phase::Stopped)
    );
}

// G-05
#[test]
fn events_without_candidates() {
    for none in [r#""candidates":[],"#, r#""candidates":null,"#, ""] {
        let reply = gemini(&[
            &format!("{{{none}\"modelVersion\":\"m\"}}"),
            &text("x"),
            &finish("STOP"),
            &format!(
                "{{{none}\"usageMetadata\":{{\"promptTokenCount\":1,\"candidatesTokenCount\":8}}}}"
            ),
        ]);
        assert_eq!(
            (reply.error, reply.usage.input, reply.usage.output),
            (None, Some(1), Some(8))
        );
    }
    let reply = gemini(&[&text("x"), &finish("STOP")]);
    assert!(reply.usage.is_unknown());
}

// G-07, G-08, G-09
#[test]
fn odd_calls() {
    let reply = gemini(&[
        r#"{"candidates":[{"content":{"parts":[{"functionCall":{"id":"t","name":"get","args":{"q":1}}}]}}]}"#,
        r#"{"candidates":[{"content":{"parts":[{"functionCall":{"id":"t","name":"get"}},{"functionCall":{"args":null}}]}}]}"#,
        &finish("STOP"),
        &finish("STOP"),
    ]);
    assert_eq!(
        reply.calls,
        [
            call("t", "get", r#"{"q":1}"#),
            call("t_2", "get", ""),
            call("call_2", "", "")
        ]
    );
    assert_eq!(reply.stop, Some(StopReason::ToolCalls));
}

// G-12, G-14
#[test]
fn errors_inside_gemini() {
    for (event, kind, retryable) in [
        (
            r#"{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}"#,
            ErrorKind::Overloaded,
            true,
        ),
        (
            r#"[{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED"}}]"#,
            ErrorKind::Overloaded,
            true,
        ),
        (
            r#"{"error":{"code":400,"message":"The input token count (7) exceeds the maximum number of tokens allowed (5).","status":"INVALID_ARGUMENT"}}"#,
            ErrorKind::ContextOverflow,
            false,
        ),
        (r#"{"error":"bad field"}"#, ErrorKind::Refused, false),
        (r#"{"candidates":7}"#, ErrorKind::Malformed, false),
        ("not json", ErrorKind::Malformed, false),
    ] {
        let reply = gemini(&[&text("Partial"), event, &finish("STOP")]);
        let error = reply.error.unwrap();
        assert_eq!((error.kind, error.retryable), (kind, retryable), "{event}");
        assert_eq!(
            (&*reply.text, reply.stop, reply.phase),
            ("Partial", None, Phase::Failed)
        );
    }
}

#[test]
fn parts_that_were_not_asked_for() {
    let reply = gemini(&[
        r#"{"candidates":[{"content":{"parts":[{"executableCode":{"code":"1"}},{"text":"a"},{"inlineData":{"data":"AA"}}]}},{"index":1,"content":{"parts":[{"text":"other"}]}}]}"#,
        r#"{"candidates":[{"content":{"role":"model"},"finishReason":"STOP"}]}"#,
    ]);
    assert_eq!((&*reply.text, reply.error), ("a", None));
    let signed = gemini(&[
        r#"{"candidates":[{"content":{"parts":[{"thought":true,"text":"t","thoughtSignature":"dA=="}]}}]}"#,
        &finish("STOP"),
    ]);
    assert_eq!(
        signed.reasoning,
        r#"t<{"on":"thought","signature":"dA==","type":"thought_signature"}>"#
    );
}
