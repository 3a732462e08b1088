//! The unix socket as a program in another language would use it: lines of JSON, with the schema at
//! hand and nothing of ours.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};

use crate::house::House;
use crate::stub::{Reply, Stub, chat_piece};

pub(crate) struct Door {
    out: UnixStream,
    lines: BufReader<UnixStream>,
    validator: jsonschema::Validator,
}

impl Door {
    fn open(house: &House) -> Self {
        house.run(&["ls"]).well();
        let out = UnixStream::connect(house.state().join("attache.sock")).unwrap();
        let lines = BufReader::new(out.try_clone().unwrap());
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../schemas/attach-agent-session.v1.json"
        );
        let schemas: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let validator = jsonschema::validator_for(&schemas["from-host"]).unwrap();
        Self {
            out,
            lines,
            validator,
        }
    }

    pub(crate) fn greeted(house: &House) -> Self {
        let mut door = Self::open(house);
        door.say(&json!({ "type": "hello", "version": 1, "features": [], "program": "test" }));
        let hello = door.hear();
        assert_eq!(
            (&hello["type"], &hello["version"]),
            (&json!("hello"), &json!(1))
        );
        door
    }

    fn say(&mut self, frame: &Value) {
        self.say_bytes(frame.to_string().as_bytes());
    }

    fn say_bytes(&mut self, bytes: &[u8]) {
        // A host that has refused the connection reads no further.
        let _said = self
            .out
            .write_all(bytes)
            .and_then(|()| self.out.write_all(b"\n"));
    }

    /// The next frame, which must fit the committed schema.
    fn hear(&mut self) -> Value {
        let mut line = String::new();
        assert!(
            self.lines.read_line(&mut line).unwrap() > 0,
            "the host closed the connection"
        );
        let frame: Value = serde_json::from_str(&line).unwrap();
        let faults: Vec<String> = self
            .validator
            .iter_errors(&frame)
            .map(|fault| fault.to_string())
            .collect();
        assert!(faults.is_empty(), "{faults:?}: {frame}");
        frame
    }

    fn ask(&mut self, id: &str, body: Value) -> Value {
        self.say(&json!({ "type": "command", "command-id": id, "body": body }));
        loop {
            let frame = self.hear();
            if frame["command-id"] == id {
                return frame;
            }
        }
    }

    pub(crate) fn create(
        &mut self,
        session: &str,
        first: Value,
        detached: bool,
        house: &House,
    ) -> Value {
        let body = json!({
            "kind": "create-session", "session-id": session, "agent": null, "model": "echo/any",
            "parameters": {}, "working-directory": house.work().canonicalize().unwrap(),
            "name": null, "first-message": first, "environment": {}, "detached": detached,
        });
        self.ask("create", body)
    }
}

const ID: &str = "01931f2e-0000-7000-8000-00000000abcd";

#[test]
fn a_stream_is_a_snapshot_and_what_follows() {
    let house = House::new();
    let mut door = Door::greeted(&house);
    let created = door.create(ID, Value::Null, true, &house);
    assert_eq!(created["body"]["session"]["status"], "idle");
    door.say(&json!({ "type": "command", "command-id": "a",
        "body": { "kind": "attach", "session-id": ID } }));
    assert_eq!(door.hear()["type"], "answer");
    let snapshot = door.hear();
    assert_eq!(
        (&snapshot["type"], &snapshot["stream"]),
        (&json!("snapshot"), &json!("session"))
    );
    assert_eq!(snapshot["history"], json!([]));
    let mut next = snapshot["sequence"].as_u64().unwrap();
    door.say(&json!({ "type": "command", "command-id": "s", "body": {
        "kind": "enqueue", "session-id": ID, "queue": { "kind": "default" }, "text": "hello there",
        "start": false, "environment": {} } }));
    let mut items = Vec::new();
    loop {
        let frame = door.hear();
        if frame["type"] != "delta" {
            continue;
        }
        assert_eq!(frame["epoch"], snapshot["epoch"]);
        let sequence = frame["sequence"].as_u64().unwrap();
        assert!(sequence >= next, "sequences go up: {sequence} after {next}");
        next = sequence;
        match frame["patch"]["topic"].as_str().unwrap() {
            "item-text" => assert_eq!(frame["live"], true),
            "item-put" => {
                items.push(frame["patch"]["item"]["text"].as_str().unwrap().to_owned());
                // The number of a record is its own.
                next += 1;
            }
            "session-put" if frame["patch"]["session"]["status"] == "idle" && items.len() == 2 => {
                break;
            }
            _ => {}
        }
    }
    assert_eq!(items, ["hello there", "hello there"]);
    let ended = door.ask("t", json!({ "kind": "terminate", "session-id": ID }));
    assert_eq!(ended["body"]["changed"], true);
}

#[test]
fn text_streams_live_with_its_offset_and_a_record_replaces_it() {
    let stub = Stub::new(|_| Reply::Silence(vec![chat_piece("half an "), chat_piece("answer")]));
    let house = House::new();
    let mut door = Door::greeted(&house);
    let create = json!({
        "kind": "create-session", "session-id": ID, "agent": null, "model": "openai/m",
        "parameters": {}, "working-directory": house.work().canonicalize().unwrap(),
        "name": null, "first-message": null, "detached": true,
        "environment": { "OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": stub.url("/v1") },
    });
    door.ask("create", create);
    door.ask("a", json!({ "kind": "attach", "session-id": ID }));
    door.ask(
        "s",
        json!({ "kind": "enqueue", "session-id": ID, "queue": { "kind": "default" },
        "text": "go", "start": false, "environment": {} }),
    );
    let mut streamed = String::new();
    while streamed != "half an answer" {
        let frame = door.hear();
        if frame["patch"]["topic"] == "item-text" {
            assert_eq!(frame["live"], true);
            assert_eq!(
                frame["patch"]["offset"],
                streamed.len(),
                "nothing is missing"
            );
            streamed.push_str(frame["patch"]["text"].as_str().unwrap());
        }
    }
    door.say(&json!({ "type": "command", "command-id": "i",
        "body": { "kind": "interrupt", "session-id": ID, "tree": false } }));
    let record = loop {
        let frame = door.hear();
        if frame["patch"]["topic"] == "item-put" && frame["patch"]["item"]["kind"] == "assistant" {
            break frame;
        }
    };
    assert_eq!(record["live"], false);
    assert_eq!(record["patch"]["item"]["text"], "half an answer");
}

#[test]
fn a_terminated_session_ends_its_stream_once() {
    let house = House::new();
    let mut door = Door::greeted(&house);
    door.create(ID, Value::Null, true, &house);
    door.ask("a", json!({ "kind": "attach", "session-id": ID }));
    door.say(&json!({ "type": "command", "command-id": "t",
        "body": { "kind": "terminate", "session-id": ID } }));
    let terminal = loop {
        let frame = door.hear();
        if frame["type"] == "session-terminal" {
            break frame;
        }
    };
    assert_eq!(
        (&terminal["session-id"], &terminal["reason"]),
        (&json!(ID), &json!("terminated"))
    );
    let row = door.ask("g", json!({ "kind": "get-session", "session-id": ID }));
    assert_eq!(row["body"]["session"]["status"], "stopped");
    // Nothing of the stream follows: the next frame is the answer to the next question.
    door.say(
        &json!({ "type": "command", "command-id": "last", "body": { "kind": "host-status" } }),
    );
    assert_eq!(door.hear()["command-id"], "last");
}

#[test]
fn a_command_is_applied_once_for_its_id_also_after_a_restart() {
    let house = House::new();
    let mut door = Door::greeted(&house);
    door.create(ID, Value::Null, true, &house);
    let enqueue = |text: &str| {
        json!({ "kind": "enqueue", "session-id": ID,
            "queue": { "kind": "named", "name": "later", "held": true },
            "text": text, "start": false, "environment": {} })
    };
    let first = door.ask("11111111-1111-4111-8111-111111111111", enqueue("once"));
    let again = door.ask("11111111-1111-4111-8111-111111111111", enqueue("once"));
    assert_eq!(first["body"]["item-id"], again["body"]["item-id"]);
    let other = door.ask(
        "11111111-1111-4111-8111-111111111111",
        enqueue("something else"),
    );
    assert_eq!(other["error"]["code"], "command-id-reused");
    house.crash();
    let mut door = Door::greeted(&house);
    let later = door.ask("11111111-1111-4111-8111-111111111111", enqueue("once"));
    assert_eq!(first["body"]["item-id"], later["body"]["item-id"]);
    let shown = house.run(&["show", ID, "--json"]).well().json();
    let queues = shown["queues"].as_array().unwrap();
    let queue = queues
        .iter()
        .find(|queue| queue["name"] == "later")
        .unwrap();
    assert_eq!(queue["items"].as_array().unwrap().len(), 1);
    let created = door.create(ID, Value::Null, true, &house);
    assert_eq!(
        created["body"]["session"]["session-id"], ID,
        "a repeat creates nothing new"
    );
    assert_eq!(house.ls().len(), 1);
}

#[test]
fn what_is_no_frame_is_refused_and_the_connection_goes_on() {
    let house = House::new();
    let mut door = Door::open(&house);
    let early = door.ask("x", json!({ "kind": "host-status" }));
    assert_eq!(early["error"]["code"], "invalid-message");
    let mut door = Door::greeted(&house);
    let deep = "[".repeat(40);
    for bad in [
        "{",
        "",
        "null",
        "[]",
        r#"{"type":"shout"}"#,
        r#"{"type":"hello","version":1,"features":[],"program":"p","more":1}"#,
        r#"{"type":"command","command-id":"c","body":{"kind":"steer","session-id":"x"}}"#,
        r#"{"type":"command","command-id":"c","body":{"kind":"attach"}}"#,
        &deep,
    ] {
        door.say_bytes(bad.as_bytes());
        let frame = door.hear();
        assert_eq!(frame["error"]["code"], "invalid-message", "{bad}: {frame}");
        assert_eq!(frame["error"]["category"], "invalid");
        assert!(
            !frame["error"]["correlation-id"]
                .as_str()
                .unwrap()
                .is_empty()
        );
    }
    door.say_bytes(b"{\"type\":\"\xff\"}");
    assert_eq!(door.hear()["error"]["code"], "invalid-message");
    let status = door.ask("s", json!({ "kind": "host-status" }));
    assert_eq!(status["type"], "answer");
    let large = "x".repeat(1024 * 1024 + 10);
    door.say_bytes(large.as_bytes());
    assert_eq!(door.hear()["error"]["code"], "invalid-message");
    let mut line = String::new();
    assert_eq!(
        door.lines.read_line(&mut line).unwrap_or(0),
        0,
        "too much ends the connection"
    );
    assert!(house.daemon().is_some(), "and nothing else");
}

#[test]
fn what_is_not_there_is_an_unknown_session_to_every_command() {
    let house = House::new();
    let mut door = Door::greeted(&house);
    let other = "01931f2e-0000-7000-8000-00000000ffff";
    for kind in ["attach", "get-session", "terminate", "delete"] {
        let frame = door.ask(kind, json!({ "kind": kind, "session-id": other }));
        assert_eq!(frame["error"]["code"], "unknown-session", "{kind}: {frame}");
        assert_eq!(frame["error"]["category"], "not-found");
        assert_eq!(frame["error"]["retryable"], false);
    }
}

#[test]
fn a_tree_is_watched_as_rows() {
    let house = House::new();
    let mut door = Door::greeted(&house);
    door.ask(
        "w",
        json!({ "kind": "watch-tree", "root-session-id": null }),
    );
    assert_eq!(door.hear()["stream"], "tree");
    door.say(
        &json!({ "type": "command", "command-id": "create", "body": {
        "kind": "create-session", "session-id": ID, "agent": null, "model": "echo/any",
        "parameters": {}, "working-directory": house.work().canonicalize().unwrap(), "name": "one",
        "first-message": "hi", "environment": {}, "detached": true } }),
    );
    loop {
        let frame = door.hear();
        if frame["patch"]["topic"] == "tree-row" {
            let row = &frame["patch"]["session"];
            assert_eq!(
                (&row["session-id"], &row["name"]),
                (&json!(ID), &json!("one"))
            );
            if row["status"] == "idle" {
                assert_eq!(row["outcome"], "succeeded");
                break;
            }
        }
    }
    door.ask("t", json!({ "kind": "terminate", "session-id": ID }));
    door.say(&json!({ "type": "command", "command-id": "d",
        "body": { "kind": "delete", "session-id": ID } }));
    loop {
        let frame = door.hear();
        if frame["patch"]["topic"] == "tree-gone" {
            assert_eq!(frame["session-id"], ID);
            break;
        }
    }
}
