//! What the model of the benchmarks says. The first user message holds the name of a script in double brackets:
//! `hello` is a text of 20 deltas; `fan@N` creates N sub-agents, waits for each and answers; `leaf` reads a file and
//! answers. Everything is decided by the request alone, so that any number of sessions may ask at once.

use serde_json::{Value, json};

/// Deltas of `hello`.
const DELTAS: usize = 20;

/// The prompt that makes a parent of so many.
pub(super) fn fan(children: usize) -> String {
    format!("[[fan@{children}]]")
}

/// The prompt for a plain text.
pub(super) const HELLO: &str = "[[hello]]";

/// The reply to a request: pieces of an event stream, each written by itself.
pub(super) fn to(request: &str) -> Vec<String> {
    if let Some(children) = between(request, "[[fan@", "]]").and_then(|text| text.parse().ok()) {
        return vec![parent(request, children)];
    }
    if request.contains("[[leaf]]") {
        return vec![if has_results(request) {
            whole(&json!({ "content": "The note has one line." }), "stop")
        } else {
            calls([("read_file", json!({ "path": "note.txt" }))].into_iter())
        }];
    }
    let mut pieces: Vec<String> = (0..DELTAS)
        .map(|number| event(&json!({ "content": format!("word {number} ") }), None))
        .collect();
    pieces.push(whole(&json!({}), "stop"));
    pieces
}

/// A parent creates all, then waits for all, then answers.
fn parent(request: &str, children: usize) -> String {
    if !has_results(request) {
        return calls((0..children).map(|number| {
            let task = format!("[[leaf]] {number}: what does note.txt say?");
            ("agent_session_create", json!({ "initial_message": task }))
        }));
    }
    let parsed: Value = serde_json::from_str(request).unwrap_or(Value::Null);
    let messages = parsed["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let results: Vec<Value> = messages
        .iter()
        .filter(|message| message["role"] == "tool")
        .filter_map(|message| serde_json::from_str(message["content"].as_str()?).ok())
        .collect();
    if results.len() > children {
        let done = results[children..]
            .iter()
            .filter(|result| result["status"] == "idle")
            .count();
        return whole(&json!({ "content": answer(done) }), "stop");
    }
    calls(results.iter().map(|made| {
        let arguments = json!({
            "session_id": made["session_id"], "wait_for_idle": true, "timeout_seconds": 300,
        });
        ("agent_session_wait", arguments)
    }))
}

/// What a parent says when so many of its sub-agents are done.
pub(super) fn answer(done: usize) -> String {
    format!("{done} are done.")
}

fn has_results(request: &str) -> bool {
    request.contains(r#""role":"tool""#)
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    text.split_once(before)?
        .1
        .split_once(after)
        .map(|(found, _)| found)
}

fn calls<'a>(calls: impl Iterator<Item = (&'a str, Value)>) -> String {
    let all: Vec<Value> = calls
        .enumerate()
        .map(|(index, (name, arguments))| {
            json!({
                "index": index, "id": format!("call_{name}_{index}"), "type": "function",
                "function": { "name": name, "arguments": arguments.to_string() },
            })
        })
        .collect();
    let mut text: String = all
        .iter()
        .map(|call| event(&json!({ "tool_calls": [call] }), None))
        .collect();
    text.push_str(&whole(&json!({}), "tool_calls"));
    text
}

/// A delta of a text.
pub(super) fn text(text: &str) -> String {
    event(&json!({ "content": text }), None)
}

/// The end of an answer.
pub(super) fn end() -> String {
    whole(&json!({}), "stop")
}

/// A last delta with all that ends a stream.
fn whole(delta: &Value, finish: &str) -> String {
    let usage = json!({ "choices": [], "usage": { "prompt_tokens": 30, "completion_tokens": 7 } });
    let mut text = String::new();
    if delta.as_object().is_some_and(|fields| !fields.is_empty()) {
        text.push_str(&event(delta, None));
    }
    text.push_str(&event(&json!({}), Some(finish)));
    text.push_str(&format!("data: {usage}\n\ndata: [DONE]\n\n"));
    text
}

fn event(delta: &Value, finish: Option<&str>) -> String {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
    format!("data: {}\n\n", json!({ "choices": [choice] }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_creates_then_waits_then_answers() {
        let ask = |results: &[Value]| {
            let mut messages = vec![json!({ "role": "user", "content": fan(2) })];
            messages.extend(
                results
                    .iter()
                    .map(|result| json!({ "role": "tool", "content": result.to_string() })),
            );
            to(&json!({ "messages": messages }).to_string()).concat()
        };
        let made = json!({ "session_id": "s1", "created_at": "t" });
        let done = json!({ "session_id": "s1", "status": "idle" });
        let count = |text: &str, word: &str| text.matches(word).count();
        assert_eq!(count(&ask(&[]), "agent_session_create\""), 2);
        let waits = ask(&[made.clone(), made.clone()]);
        assert_eq!(count(&waits, "agent_session_wait\""), 2);
        let end = ask(&[made.clone(), made, done.clone(), done]);
        assert!(end.contains(&answer(2)), "{end}");
    }

    #[test]
    fn a_leaf_reads_and_answers_and_hello_has_its_deltas() {
        let leaf = to(r#"{"messages":[{"role":"user","content":"[[leaf]] 1"}]}"#).concat();
        assert!(leaf.contains("read_file"), "{leaf}");
        assert_eq!(to(HELLO).len(), DELTAS + 1);
    }
}
