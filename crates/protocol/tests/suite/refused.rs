//! Frames that are refused: what the schema does not have, and what no frame may be.

use attache_protocol::{DEPTH_LIMIT, FRAME_LIMIT, FromHost, FromViewer, decode, schema};
use serde_json::{Value, json};

const FRAMES: &str = include_str!("../../../../schemas/attach-agent-session.v1.frames.jsonl");

/// Places of a value: pointers to all objects in it.
fn objects(value: &Value, at: &str, into: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            into.push(at.to_owned());
            for (name, member) in members {
                objects(member, &format!("{at}/{name}"), into);
            }
        }
        Value::Array(all) => {
            for (index, one) in all.iter().enumerate() {
                objects(one, &format!("{at}/{index}"), into);
            }
        }
        _ => {}
    }
}

/// Members that hold what the protocol passes on as it is, or names of the sender's own.
const OPEN: [&str; 5] = [
    "agent-definition",
    "schema",
    "content",
    "environment",
    "parameters",
];

fn is_open(place: &str) -> bool {
    place.split('/').any(|name| OPEN.contains(&name))
}

/// Whether either side takes it.
fn is_taken(frame: &Value) -> bool {
    let bytes = serde_json::to_vec(frame).unwrap();
    decode::<FromViewer>(&bytes).is_ok() || decode::<FromHost>(&bytes).is_ok()
}

#[test]
fn an_unknown_member_is_refused_at_every_place() {
    let mut tried = 0;
    for line in FRAMES.lines() {
        let frame: Value = serde_json::from_str(line).unwrap();
        assert!(is_taken(&frame), "{line}");
        let mut places = Vec::new();
        objects(&frame, "", &mut places);
        for place in places.iter().filter(|place| !is_open(place)) {
            let mut spoiled = frame.clone();
            spoiled.pointer_mut(place).unwrap()["no-such-member"] = json!(1);
            assert!(!is_taken(&spoiled), "{place} of {line}");
            tried += 1;
        }
    }
    assert!(tried > 500, "{tried}");
}

#[test]
fn a_member_that_is_missing_or_of_another_type_is_refused() {
    let schema = schema();
    let sides =
        ["from-viewer", "from-host"].map(|from| jsonschema::validator_for(&schema[from]).unwrap());
    let mut needed = 0;
    for line in FRAMES.lines() {
        let frame: Value = serde_json::from_str(line).unwrap();
        let mut places = Vec::new();
        objects(&frame, "", &mut places);
        for place in places.iter().filter(|place| !is_open(place)) {
            let names = frame.pointer(place).unwrap().as_object().unwrap();
            for name in names.keys() {
                if OPEN.contains(&name.as_str()) {
                    continue;
                }
                let mut other = frame.clone();
                // No member is a number below zero.
                other.pointer_mut(place).unwrap()[name] = json!(-0.5e300);
                let is_number = name.ends_with("usd") || ["used", "most"].contains(&name.as_str());
                assert!(!is_taken(&other) || is_number, "{place}/{name} of {line}");
                let mut without = frame.clone();
                let object = without.pointer_mut(place).unwrap().as_object_mut().unwrap();
                object.remove(name);
                // What may be null may be left out; whatever the schema demands has to be there.
                let fits = sides.iter().any(|side| side.is_valid(&without));
                assert_eq!(is_taken(&without), fits, "{place}/{name} of {line}");
                needed += usize::from(!fits);
            }
        }
    }
    assert!(needed > 500, "{needed}");
}

#[test]
fn what_is_no_frame_is_refused() {
    let deep = format!(
        r#"{{"type":"command","command-id":"c","body":{{"kind":"respond-modal","session-id":"s","modal-id":"m","answer":{{"accepted":true,"text":null,"content":{}1{}}}}}}}"#,
        "[".repeat(DEPTH_LIMIT),
        "]".repeat(DEPTH_LIMIT)
    );
    let large = format!(
        r#"{{"type":"hello","version":1,"features":[],"program":"{}"}}"#,
        "x".repeat(FRAME_LIMIT)
    );
    let hello = r#"{"type":"hello","version":1,"features":[],"program":"p"}"#;
    let table = [
        "",
        " ",
        "null",
        "[]",
        "7",
        "{}",
        r#""hello""#,
        r#"{"type":"goodbye"}"#,
        r#"{"type":"Hello","version":1,"features":[],"program":"p"}"#,
        r#"{"type":"hello","version":"1","features":[],"program":"p"}"#,
        r#"{"type":"hello","version":-1,"features":[],"program":"p"}"#,
        r#"{"type":"hello","version":1,"features":[],"program":"\ud800"}"#,
        r#"{"type":"hello","type":"hello","version":1,"features":[],"program":"p"}"#,
        r#"{"type":"hello","version":1,"version":1,"features":[],"program":"p"}"#,
        r#"{"type":"command","command-id":"c","body":{"kind":"steer","session-id":"s"}}"#,
        r#"{"type":"hello","version":1,"features":[],"program":"p"} x"#,
        "{\"type\":\"hello\",\"version\":1,\"features\":[],\"program\":\"p\u{0}\"}",
        &format!("{hello}{hello}"),
        &deep,
        &large,
    ];
    assert!(decode::<FromViewer>(hello.as_bytes()).is_ok());
    for text in table {
        let shown = &text[..text.len().min(100)];
        assert!(decode::<FromViewer>(text.as_bytes()).is_err(), "{shown}");
    }
    assert!(decode::<FromViewer>(b"\xff\xfe{}").is_err());
}
