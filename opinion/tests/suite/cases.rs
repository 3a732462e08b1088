//! What is played: every recorded reply whole, without its last event, cut in its middle; and a few that go wrong. A reply
//! that has halves of characters is also played with whole ones, since the other library reads none that has them.

use attache_model::Dialect;

use crate::replies::recorded;

/// An answer of a provider.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) dialect: Dialect,
    /// The whole answer, head included.
    pub(crate) answer: Vec<u8>,
}

/// Text, and then an error inside the stream.
const ERRORS: [(Dialect, &str, &[&str]); 4] = [
    (
        Dialect::OpenAiChat,
        "chat",
        &[
            r#"{"choices":[{"index":0,"delta":{"content":"Hel"}}]}"#,
            r#"{"error":{"message":"Provider overloaded","type":"server_error","code":502}}"#,
        ],
    ),
    (
        Dialect::OpenAiResponses,
        "responses",
        &[
            r#"{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","status":"in_progress","output":[],"usage":null}}"#,
            r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","role":"assistant","content":[],"status":"in_progress"}}"#,
            r#"{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"Hel"}"#,
            r#"{"type":"response.failed","response":{"id":"resp_1","status":"failed","error":{"code":"server_error","message":"An error occurred"},"output":[],"usage":null}}"#,
        ],
    ),
    (
        Dialect::Anthropic,
        "messages",
        &[
            r#"{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"model":"m","stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":1}}}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}"#,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        ],
    ),
    (
        Dialect::Gemini,
        "gemini",
        &[
            r#"{"candidates":[{"content":{"parts":[{"text":"Hel"}],"role":"model"},"index":0}]}"#,
            r#"{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}"#,
        ],
    ),
];

/// All cases; their names are different.
pub(crate) fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |name: String, dialect, answer| {
        cases.push(Case {
            name,
            dialect,
            answer,
        });
    };
    for (name, dialect, events) in recorded() {
        let last = events.len() - 1;
        let whole: Vec<String> = events.iter().map(|event| mended(event)).collect();
        let whole: Vec<&str> = whole.iter().map(String::as_str).collect();
        if whole != events {
            add(format!("{name} as it came"), dialect, stream(&events));
        }
        let events = whole;
        add(name.to_owned(), dialect, stream(&events));
        add(
            format!("{name} without its last event"),
            dialect,
            stream(&events[..last]),
        );
        // One of two events is cut above already.
        if last > 1 {
            add(
                format!("{name} cut in its middle"),
                dialect,
                stream(&events[..=last / 2]),
            );
        }
    }
    for (dialect, name, events) in ERRORS {
        add(
            format!("{name} with an error inside"),
            dialect,
            stream(events),
        );
        let odd = [events[0], "not JSON", events[0]];
        add(
            format!("{name} with an event that is no JSON"),
            dialect,
            stream(&odd),
        );
        let body = r#"{"error":{"message":"Slow down","type":"rate_limit_error","code":429}}"#;
        let head = "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\n";
        let answer = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
        add(
            format!("{name} refused with 429"),
            dialect,
            answer.into_bytes(),
        );
    }
    cases
}

/// An event with its character in one piece: where the second half was.
fn mended(event: &str) -> String {
    event.replace(r"\ud83d", "").replace(r"\ude00", "😀")
}

fn stream(events: &[&str]) -> Vec<u8> {
    let mut bytes = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n".to_vec();
    for event in events {
        bytes.extend_from_slice(format!("data: {event}\n\n").as_bytes());
    }
    bytes
}
