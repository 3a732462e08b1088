//! Recorded replies of every dialect, as the events of a stream: data alone, because the second opinion in `opinion/`
//! includes this file and plays the same bytes. What they mean is said by the tests.

use attache_model::Dialect;

/// A reply with a thought, text, and two calls in one event.
pub(crate) const GEMINI: [&str; 5] = [
    r#"{"candidates":[{"content":{"parts":[{"text":"hm \ud83d","thought":true}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":100,"totalTokenCount":100},"modelVersion":"m","responseId":"r"}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"\ude00","thought":true}],"role":"model"},"index":0}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"Let me "}],"role":"model"},"index":0}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"look 那🌍.","thoughtSignature":"c2ln"}],"role":"model"},"index":0}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"functionCall":{"id":"f1","name":"get","args":{"x":"é🙏"}},"thoughtSignature":"Y2FsbA=="},{"functionCall":{"name":"put","args":{"y":2.0}}}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":35,"thoughtsTokenCount":7,"cachedContentTokenCount":64,"totalTokenCount":142}}"#,
];

/// A reply with thinking, text and a call, without its end.
pub(crate) const MESSAGES: [&str; 14] = [
    r#"{"type":"message_start","message":{"id":"m","usage":{"input_tokens":10,"cache_read_input_tokens":100,"cache_creation_input_tokens":20,"output_tokens":1}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
    r#"{"type":"ping"}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm \ud83d"}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"\ude00"}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
    r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Let me look."}}"#,
    r#"{"type":"content_block_stop","index":1}"#,
    r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"get","input":{}}}"#,
    r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}"#,
    r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}"#,
    r#"{"type":"content_block_stop","index":2}"#,
];
pub(crate) const MESSAGE_DELTA: &str = r#"{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":42,"output_tokens_details":{"thinking_tokens":7}}}"#;
pub(crate) const MESSAGE_STOP: &str = r#"{"type":"message_stop"}"#;

/// A reply with a summary of reasoning, text, two calls side by side and another reasoning item between them.
pub(crate) const RESPONSES: [&str; 24] = [
    r#"{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","status":"in_progress","output":[],"usage":null}}"#,
    r#"{"type":"response.in_progress","sequence_number":1,"response":{"id":"resp_1","status":"in_progress","output":[]}}"#,
    r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"status":"in_progress"}}"#,
    r#"{"type":"response.reasoning_summary_part.added","item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}"#,
    r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"hm \ud83d"}"#,
    r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"\ude00"}"#,
    r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":1,"delta":"so"}"#,
    r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"hm 😀"},{"type":"summary_text","text":"so"}],"encrypted_content":"ZW5j","status":"completed"}}"#,
    r#"{"type":"response.output_item.added","output_index":1,"item":{"id":"msg_1","type":"message","role":"assistant","content":[],"status":"in_progress"}}"#,
    r#"{"type":"response.content_part.added","item_id":"msg_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}"#,
    r#"{"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"Let me "}"#,
    r#"{"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"look 那🌍."}"#,
    r#"{"type":"response.output_text.done","item_id":"msg_1","output_index":1,"content_index":0,"text":"Let me look 那🌍."}"#,
    r#"{"type":"response.output_item.done","output_index":1,"item":{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"Let me look 那🌍.","annotations":[]}],"status":"completed"}}"#,
    r#"{"type":"response.output_item.added","output_index":2,"item":{"id":"fc_1","type":"function_call","call_id":"call_a","name":"get","arguments":"","status":"in_progress"}}"#,
    r#"{"type":"response.output_item.added","output_index":4,"item":{"id":"fc_2","type":"function_call","call_id":"call_b","name":"put","arguments":""}}"#,
    r#"{"type":"response.function_call_arguments.delta","item_id":"fc_2","output_index":4,"delta":"{\"y\":2"}"#,
    r#"{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"{\"x\":"}"#,
    r#"{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"\"é🙏\"}"}"#,
    r#"{"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":2,"arguments":"{\"x\":\"é🙏\"}"}"#,
    r#"{"type":"response.output_item.done","output_index":2,"item":{"id":"fc_1","type":"function_call","call_id":"call_a","name":"get","arguments":"{\"x\":\"é🙏\"}","status":"completed"}}"#,
    r#"{"type":"response.function_call_arguments.done","item_id":"fc_2","output_index":4,"arguments":"{\"y\":2}"}"#,
    r#"{"type":"response.output_item.done","output_index":4,"item":{"id":"fc_2","type":"function_call","call_id":"call_b","name":"put","arguments":"{\"y\":2}","status":"completed"}}"#,
    r#"{"type":"response.completed","response":{"id":"resp_1","status":"completed","output":[{"id":"rs_1","type":"reasoning","summary":[]},{"id":"msg_1","type":"message","content":[{"type":"output_text","text":"Let me look 那🌍."}]}],"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":64},"output_tokens":42,"output_tokens_details":{"reasoning_tokens":7},"total_tokens":142}}}"#,
];

const CHAT_CALLS: [&str; 8] = [
    r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning_content":"th\ud83d"}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"reasoning_content":"\ude00ink"}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"content":"那🌍\ud83d"}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"content":"\ude00"}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"t","arguments":"{\"é\":"}},{"index":1,"id":"c","function":{"name":"u","arguments":""}}]}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"🙏\"}"}}]}}]}"#,
    r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
    r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}"#,
];
const CHAT_DETAILS: [&str; 3] = [
    r#"{"choices":[{"delta":{"reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm","format":"f","index":0}]}}]}"#,
    r#"{"choices":[{"delta":{"content":"x","reasoning_details":[{"type":"reasoning.text","signature":"s","index":0}]}}]}"#,
    r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":8}}"#,
];
const RESPONSES_ALONE: [&str; 1] = [
    r#"{"type":"response.completed","response":{"output":[{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}],"encrypted_content":"ZQ=="},{"type":"function_call","call_id":"c","name":"t","arguments":"{}"}],"usage":{"input_tokens":3,"output_tokens":4}}}"#,
];
const GEMINI_LATE: [&str; 3] = [
    r#"{"candidates":[{"content":{"parts":[{"text":"a"}],"role":"model"},"finishReason":"STOP"}]}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"cw=="}]},"finishReason":"STOP"}]}"#,
    r#"{"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2}}"#,
];

/// Two calls at once, both of which the server counts as the first; no `[DONE]`.
const CHAT_BOTH_FIRST: [&str; 6] = [
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":"}}]}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"b","type":"function","function":{"name":"g","arguments":""}}]}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"y\":2}"}}]}}]}"#,
    r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
    r#"{"choices":[],"usage":{"prompt_tokens":30,"completion_tokens":12,"prompt_tokens_details":{"cached_tokens":20},"completion_tokens_details":{"reasoning_tokens":5}}}"#,
];
/// An answer that ends at its limit.
const CHAT_LENGTH: [&str; 3] = [
    r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"Once upon"}}],"usage":null}"#,
    r#"{"choices":[{"index":0,"delta":{},"finish_reason":"length"}],"usage":null}"#,
    r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}"#,
];
/// A call after which the server says that the answer is complete.
const CHAT_STOP_AFTER_CALL: [&str; 2] = [
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}}]}"#,
    r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2}}"#,
];
/// An answer that ends at its limit.
const RESPONSES_LENGTH: [&str; 4] = [
    r#"{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","status":"in_progress","output":[],"usage":null}}"#,
    r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","role":"assistant","content":[],"status":"in_progress"}}"#,
    r#"{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"Once upon"}"#,
    r#"{"type":"response.incomplete","response":{"id":"resp_1","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"id":"msg_1","type":"message","role":"assistant","status":"incomplete","content":[{"type":"output_text","text":"Once upon","annotations":[]}]}],"usage":{"input_tokens":9,"output_tokens":2,"total_tokens":11}}}"#,
];
/// Two calls, and thinking that the provider keeps to itself.
const MESSAGES_CALLS: [&str; 12] = [
    r#"{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"model":"m","stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"output_tokens":1}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"c2VjcmV0"}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"get","input":{}}}"#,
    r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\": [1, "}}"#,
    r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"2]}"}}"#,
    r#"{"type":"content_block_stop","index":1}"#,
    r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_2","name":"now","input":{}}}"#,
    r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}"#,
    r#"{"type":"content_block_stop","index":2}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":30}}"#,
    r#"{"type":"message_stop"}"#,
];
/// An answer that ends at its limit.
const MESSAGES_LENGTH: [&str; 6] = [
    r#"{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"model":"m","stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":1}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Once upon"}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens","stop_sequence":null},"usage":{"output_tokens":2}}"#,
    r#"{"type":"message_stop"}"#,
];
/// An answer that ends at its limit.
const GEMINI_LENGTH: [&str; 2] = [
    r#"{"candidates":[{"content":{"parts":[{"text":"Once "}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":9,"totalTokenCount":9}}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"upon"}],"role":"model"},"finishReason":"MAX_TOKENS","index":0}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":2,"totalTokenCount":11}}"#,
];

/// Well-formed replies: a name, the dialect, the events.
pub(crate) fn recorded() -> Vec<(&'static str, Dialect, Vec<&'static str>)> {
    let with = |events: &[&'static str], end: &[&'static str]| [events, end].concat();
    vec![
        (
            "chat-calls",
            Dialect::OpenAiChat,
            with(&CHAT_CALLS, &["[DONE]"]),
        ),
        (
            "chat-details",
            Dialect::OpenAiChat,
            with(&CHAT_DETAILS, &["[DONE]"]),
        ),
        (
            "chat-both-first",
            Dialect::OpenAiChat,
            CHAT_BOTH_FIRST.to_vec(),
        ),
        (
            "chat-length",
            Dialect::OpenAiChat,
            with(&CHAT_LENGTH, &["[DONE]"]),
        ),
        (
            "chat-stop-after-call",
            Dialect::OpenAiChat,
            with(&CHAT_STOP_AFTER_CALL, &["[DONE]"]),
        ),
        ("responses", Dialect::OpenAiResponses, RESPONSES.to_vec()),
        (
            "responses-alone",
            Dialect::OpenAiResponses,
            RESPONSES_ALONE.to_vec(),
        ),
        (
            "responses-length",
            Dialect::OpenAiResponses,
            RESPONSES_LENGTH.to_vec(),
        ),
        (
            "messages",
            Dialect::Anthropic,
            with(&MESSAGES, &[MESSAGE_DELTA, MESSAGE_STOP]),
        ),
        (
            "messages-calls",
            Dialect::Anthropic,
            MESSAGES_CALLS.to_vec(),
        ),
        (
            "messages-length",
            Dialect::Anthropic,
            MESSAGES_LENGTH.to_vec(),
        ),
        ("gemini", Dialect::Gemini, GEMINI.to_vec()),
        ("gemini-late", Dialect::Gemini, GEMINI_LATE.to_vec()),
        ("gemini-length", Dialect::Gemini, GEMINI_LENGTH.to_vec()),
    ]
}
