//! Golden frames: `schemas/attach-agent-session.v1.frames.jsonl` holds one frame for each command, answer, patch and whatever else
//! has kinds, one a line. What the types make of each line is exactly that line again. Which frames there have to be follows from
//! the schema, so that a new kind is not forgotten; a change of a line is a change of the protocol.

use attache_protocol::{FromHost, FromViewer, decode, encode, schema};
use serde_json::{Map, Value, json};

/// What a text of a sample says.
const TEXT: &str = "text";

/// Values that fit a schema: one, and for each choice in it one more. What may be null is not.
fn samples(of: &Value, root: &Value) -> Vec<Value> {
    if let Some(name) = of["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap();
        return samples(&root["$defs"][name], root);
    }
    if let Some(choices) = of["oneOf"].as_array().or(of["anyOf"].as_array()) {
        let some = choices.iter().filter(|choice| choice["type"] != "null");
        return some.flat_map(|choice| samples(choice, root)).collect();
    }
    if !of["const"].is_null() {
        return vec![of["const"].clone()];
    }
    if let Some(values) = of["enum"].as_array() {
        return values.clone();
    }
    let kind = match &of["type"] {
        Value::Array(kinds) => kinds.iter().find(|kind| **kind != "null").unwrap(),
        kind => kind,
    };
    match kind.as_str() {
        Some("object") => objects(of, root),
        Some("array") => {
            let items = samples(&of["items"], root).into_iter();
            items.map(|item| json!([item])).collect()
        }
        Some("string") => vec![json!(TEXT)],
        Some("integer") => vec![json!(7)],
        Some("number") => vec![json!(0.5)],
        Some("boolean") => vec![json!(true)],
        Some("null") => vec![Value::Null],
        // Anything may stand there.
        None => vec![json!({ "anything": [1, null, "text"] })],
        Some(other) => panic!("{other} is new in the schema"),
    }
}

/// An object with the first sample of each member, and one more for each further sample of one of them.
fn objects(of: &Value, root: &Value) -> Vec<Value> {
    let Some(properties) = of["properties"].as_object() else {
        let values = match &of["additionalProperties"] {
            Value::Object(_) => samples(&of["additionalProperties"], root),
            _ => vec![json!({ "anything": [1] })],
        };
        return values.into_iter().map(|it| json!({ "KEY": it })).collect();
    };
    let members: Vec<(&String, Vec<Value>)> = properties
        .iter()
        .map(|(name, of)| (name, samples(of, root)))
        .collect();
    let base: Map<String, Value> = members
        .iter()
        .map(|(name, values)| ((*name).clone(), values[0].clone()))
        .collect();
    let mut all = vec![Value::Object(base.clone())];
    for (name, values) in &members {
        for value in &values[1..] {
            let mut other = base.clone();
            other.insert((*name).clone(), value.clone());
            all.push(Value::Object(other));
        }
    }
    all
}

/// A frame as the types write it.
fn written(frame: &Value, from: &str) -> Vec<u8> {
    let bytes = serde_json::to_vec(frame).unwrap();
    let again = match from {
        "from-viewer" => decode::<FromViewer>(&bytes).map(|frame| encode(&frame)),
        _ => decode::<FromHost>(&bytes).map(|frame| encode(&frame)),
    };
    again.unwrap_or_else(|fault| panic!("{fault}: {frame}"))
}

#[test]
fn every_kind_of_frame_is_written_and_read_byte_for_byte_as_it_is_committed() {
    let schema = schema();
    let mut lines = String::new();
    let mut count = 0;
    for from in ["from-viewer", "from-host"] {
        let checks = jsonschema::validator_for(&schema[from]).unwrap();
        for frame in samples(&schema[from], &schema[from]) {
            let bytes = written(&frame, from);
            let line = String::from_utf8(bytes.clone()).unwrap();
            let read: Value = serde_json::from_slice(&bytes).unwrap();
            assert_eq!(read, frame, "nothing is added and nothing gets lost");
            checks
                .validate(&read)
                .unwrap_or_else(|fault| panic!("{fault}: {line}"));
            assert_eq!(written(&read, from), bytes, "{line}");
            lines.push_str(&format!("{line}\n"));
            count += 1;
        }
    }
    super::committed("attach-agent-session.v1.frames.jsonl", &lines);
    assert!(count > 120, "{count}");
}

#[test]
fn every_name_that_tells_kinds_apart_stands_in_a_golden_frame() {
    fn names<'a>(of: &'a Value, into: &mut Vec<&'a str>) {
        match of {
            Value::Object(members) => {
                into.extend(members.get("const").and_then(Value::as_str));
                members.values().for_each(|member| names(member, into));
            }
            Value::Array(all) => all.iter().for_each(|one| names(one, into)),
            _ => {}
        }
    }
    let schema = schema();
    let mut all = Vec::new();
    names(&schema, &mut all);
    assert!(all.len() > 100, "{}", all.len());
    let file = include_str!("../../../../schemas/attach-agent-session.v1.frames.jsonl");
    for name in all {
        assert!(file.contains(&format!("{name:?}")), "{name}");
    }
}
