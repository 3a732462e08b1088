//! What is shown of sessions: histories as they grow, texts that are not to be obeyed, and data that
//! does not arrive.

use std::io::{BufRead, BufReader};
use std::process::Child;

use serde_json::{Value, json};

use crate::commands::{echo, members};
use crate::house::House;

/// Lines of a command that goes on.
fn lines_of(child: &mut Child) -> impl Iterator<Item = Value> + use<> {
    BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
}

#[test]
fn a_history_is_followed_page_after_page_until_the_session_ends() {
    let house = House::new();
    let id = echo(&house, "before");
    let follow = ["events", &id, "--follow", "--json"];
    let mut whole = house.spawn(&[&follow[..], &["--limit", "1"]].concat());
    let wanted = ["--type", "assistant", "--search", "E"];
    let mut part = house.spawn(&[&follow[..], &wanted[..]].concat());
    let (mut all, mut some) = (lines_of(&mut whole), lines_of(&mut part));
    let shown = |event: &Value| (event["event_type"].clone(), event["text"].clone());
    let said = |text: &str| {
        [
            (json!("user"), json!(text)),
            (json!("assistant"), json!(text)),
        ]
    };
    let mut seen: Vec<_> = all.by_ref().take(2).map(|event| shown(&event)).collect();
    assert_eq!(seen, said("before"));
    assert_eq!(shown(&some.next().unwrap()), said("before")[1]);
    // What was stored is read: what comes now is followed.
    for text in ["later", "not this", "the last"] {
        house.run(&["send", &id, text]).well();
        house.run(&["wait", &id, "--self"]).well();
        seen.extend(all.by_ref().take(2).map(|event| shown(&event)));
    }
    house.run(&["terminate", &id]).well();
    assert!(all.all(|event| event["event_type"] == "diagnostic"));
    assert_eq!(
        seen,
        ["before", "later", "not this", "the last"]
            .map(said)
            .concat()
    );
    let rest: Vec<_> = some.map(|event| shown(&event)).collect();
    assert_eq!(rest, [&said("later")[1..], &said("the last")[1..]].concat());
    for mut child in [whole, part] {
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn names_of_models_forge_no_rows_and_move_no_cursor() {
    let house = House::new();
    let name = "kid\u{1b}]0;title\u{7}\n01a22cd7 idle forged\u{1b}[2J";
    let script = json!({ "rules": [
        { "when": { "step": 1 }, "reply": [{ "text": "done" }] },
        { "reply": [{ "call": "agent_session_create", "arguments": { "name": name } }] },
    ] });
    house.file("script.json", &script.to_string());
    house
        .run(&["run", "--model", "scripted/script.json", "go"])
        .well();
    let rows = house.ls();
    assert_eq!(rows[1]["name"], name, "a program reads it as it is");
    let kid = rows[1]["session_id"].as_str().unwrap();
    for line in [
        vec!["ls"],
        vec!["tree"],
        vec!["show", kid],
        vec!["events", kid],
    ] {
        let shown = house.run(&line).well().out;
        assert!(!shown.contains(['\u{1b}', '\u{7}']), "{line:?}: {shown}");
        assert!(
            !shown.lines().any(|line| line.starts_with("01a22cd7")),
            "{line:?}: {shown}"
        );
    }
}

#[test]
fn data_that_cannot_be_written_is_no_success() {
    let house = House::new();
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let mut list = house.command(&["doctor"]);
    let ended = list.stdout(full).output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    let told = String::from_utf8(ended.stderr).unwrap();
    assert!(told.contains("could not be written"), "{told}");
    let error = house.run(&["show", "--json", "nothing"]);
    let told: Value = serde_json::from_str(error.err.lines().next().unwrap()).unwrap();
    assert_eq!(
        members(&told["error"]),
        [
            "category",
            "code",
            "correlation_id",
            "hint",
            "message",
            "retryable"
        ]
    );
    assert_eq!(told["error"]["category"], "not-found");
}
