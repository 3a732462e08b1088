//! `attache show --ledger`: the tool calls of a session's last run, for people and for programs.

use serde_json::{Value, json};

use crate::commands::members;
use crate::house::House;

/// Writes a file, fails to read another one, makes a child that has nothing to do, and is done.
fn script() -> Value {
    json!({ "rules": [
        { "when": { "step": 0 }, "reply": [
            { "call": "write_file", "arguments": { "path": "a.txt", "content": "one\n" } },
        ] },
        { "when": { "step": 1 }, "reply": [
            { "call": "read_file", "arguments": { "path": "none.txt" } },
            { "call": "list_directory", "arguments": {} },
            { "call": "agent_session_create", "arguments": {} },
        ] },
        { "reply": [{ "text": "done" }] },
    ] })
}

#[test]
fn show_tells_what_the_calls_of_the_last_run_came_to_also_after_a_crash() {
    let house = House::new();
    house.file("script.json", &script().to_string());
    house
        .run(&["run", "--model", "scripted/script.json", "go"])
        .well();
    let rows = house.ls();
    let id = |row: usize| rows[row]["session_id"].as_str().unwrap();
    let ledger = |id: &str| {
        let shown = house.run(&["show", id, "--ledger", "--json"]).well();
        shown.json()["ledger"].clone()
    };
    let told = ledger(id(0));
    assert_eq!(told["total"], 4);
    let calls = told["calls"].as_array().unwrap();
    let outcomes: Vec<Value> = calls
        .iter()
        .map(|call| json!([call["name"], call["outcome"], call["changes_state"]]))
        .collect();
    assert_eq!(
        json!(outcomes),
        json!([
            ["write_file", "ok", true],
            ["read_file", "failed", false],
            ["list_directory", "ok", false],
            ["agent_session_create", "ok", true],
        ])
    );
    assert_eq!(
        members(&calls[0]),
        [
            "arguments",
            "arguments_digest",
            "changes_state",
            "detail",
            "duration_micros",
            "name",
            "nested",
            "nested_total",
            "outcome",
            "result_digest",
        ]
    );
    assert!(calls[1]["arguments"].as_str().unwrap().contains("none.txt"));
    assert!(calls.iter().all(|call| call["duration_micros"].is_u64()));
    // A session that has had no run has no ledger, which is another thing than no calls.
    assert_eq!(ledger(id(1)), Value::Null);

    let usual = house.run(&["show", id(0), "--json"]).well().json();
    assert_eq!(usual.get("ledger"), None);
    let text = house.run(&["show", id(0), "--ledger"]).well().out;
    let lines: Vec<&str> = text.lines().collect();
    let at = |what: &str| {
        let at = lines.iter().position(|line| line.starts_with(what));
        at.unwrap_or_else(|| panic!("{what:?} was expected in {text}"))
    };
    let head = at("tool calls            4 in the last run");
    for (line, (outcome, does, name)) in lines[head + 1..].iter().zip([
        ("ok", "changes", "write_file"),
        ("failed", "looks", "read_file"),
        ("ok", "looks", "list_directory"),
        ("ok", "changes", "agent_session_create"),
    ]) {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(
            (words[0], words[1], words[4]),
            (outcome, does, name),
            "{line}"
        );
    }
    let text = house.run(&["show", id(1), "--ledger"]).well().out;
    assert!(text.contains("tool calls            not known"), "{text}");

    house.crash();
    assert_eq!(ledger(id(0)), told);
    // The last run counts: one that calls nothing has an empty ledger.
    house.file(
        "script.json",
        &json!({ "rules": [{ "reply": [{ "text": "hm" }] }] }).to_string(),
    );
    house.run(&["send", id(0), "anything else?"]).well();
    house.run(&["wait", id(0)]).well();
    assert_eq!(ledger(id(0)), json!({ "total": 0, "calls": [] }));
}
