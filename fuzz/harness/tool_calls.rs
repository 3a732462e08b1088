//! Fragments of tool calls in any sequence: nothing panics, the arguments of each call are the join of some fragments in
//! their order, and ids are unique. Shared by the fuzz target and by the test that replays the corpus.

use std::collections::HashSet;

use attache_model::{Assembler, Deltas, Dialect};
use serde_json::{Map, Value, json};

const IDS: [&str; 4] = ["", "call_1", "t:3", "call_2"];
const NAMES: [&str; 4] = ["", "get", "put", "no such tool"];
const FRAGMENTS: [&str; 16] = [
    "",
    "{",
    "}",
    "{}",
    "{\"q\":",
    "1}",
    "\"é🙏\"}",
    " ",
    "null",
    "[1,2]",
    "\"{}\"",
    "{\"a\":{\"b\":",
    "2}}",
    "\\\"",
    "x",
    "{\"q\":1}",
];

/// The input: four bytes an entry (how it is bound to a call, its id, its name, its arguments). The first byte's upper
/// bits say whether the entry begins an event of its own and whether a reason to finish comes behind it.
pub(crate) fn check(data: &[u8]) {
    let mut events: Vec<(Vec<Value>, bool)> = Vec::new();
    let mut fragments = Vec::new();
    for bytes in data.chunks_exact(4).take(64) {
        let [bound, id, name, arguments] = [bytes[0], bytes[1], bytes[2], bytes[3]];
        let mut entry = Map::new();
        if bound & 7 != 7 {
            entry.insert("index".to_owned(), json!(bound & 3));
        }
        if id & 8 != 0 {
            entry.insert("id".to_owned(), pick(&IDS, id));
        }
        let mut function = Map::new();
        if name & 8 != 0 {
            function.insert("name".to_owned(), pick(&NAMES, name));
        }
        if arguments & 16 != 0 {
            let text = FRAGMENTS[usize::from(arguments) % FRAGMENTS.len()];
            function.insert("arguments".to_owned(), json!(text));
            fragments.push(text);
        }
        entry.insert("function".to_owned(), Value::Object(function));
        let (own_event, finish) = (bound & 32 != 0, bound & 64 != 0);
        match events.last_mut() {
            Some((entries, last)) if !own_event && !*last => {
                entries.push(Value::Object(entry));
                *last = finish;
            }
            _ => events.push((vec![Value::Object(entry)], finish)),
        }
    }
    let mut decoder = Dialect::OpenAiChat.decoder();
    let mut out = Deltas::new();
    let mut assembler = Assembler::new();
    for (entries, finish) in events {
        let reason = finish.then_some("tool_calls");
        let choice = json!({"delta": {"tool_calls": entries}, "finish_reason": reason});
        let event = json!({"choices": [choice]}).to_string();
        decoder.push(event.as_bytes(), &mut out);
        for delta in out.drain() {
            assembler.push(&delta);
        }
    }
    let _ = decoder.end(&mut out);
    for delta in out.drain() {
        assembler.push(&delta);
    }
    let mut ids = HashSet::new();
    for call in assembler.finish().calls() {
        assert!(ids.insert(call.id.clone()), "{:?} twice", call.id);
        assert!(!call.id.is_empty());
        let _ = call.input();
        assert!(
            is_joined(&call.arguments, &fragments),
            "{:?} is no join of {fragments:?}",
            call.arguments
        );
    }
}

fn pick(words: &[&str; 4], byte: u8) -> Value {
    match byte & 4 {
        0 => json!(words[usize::from(byte & 3)]),
        _ => Value::Null,
    }
}

/// Whether `text` is the join of some of the fragments in their order.
fn is_joined(text: &str, fragments: &[&str]) -> bool {
    let mut ends = HashSet::from([0]);
    for fragment in fragments {
        let longer: Vec<usize> = ends
            .iter()
            .filter(|end| text[**end..].starts_with(fragment))
            .map(|end| end + fragment.len())
            .collect();
        ends.extend(longer);
    }
    ends.contains(&text.len())
}
