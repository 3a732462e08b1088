//! What a parent finds of its children after the daemon has ended while one was at work. G-19.

use serde_json::{Value, json};

use crate::house::{House, gone, signal, until};
use crate::stub::{
    Reply, Stub, chat_calls, chat_piece, chat_text, last_user, session_named, well_formed,
};

/// A parent of one child that thinks for ever until it is told to go on. Asked to look, the parent lists, gets, waits,
/// stops and acquires, one after the other.
fn script(request: &Value) -> Reply {
    let user = last_user(request);
    if user.contains("you are the child") {
        return Reply::Silence(vec![chat_piece("half an answer")]);
    }
    if user.contains("behind the run") {
        return chat_text(&["heard"]);
    }
    if user.contains("go on") {
        return chat_text(&["the child went on"]);
    }
    let messages = request["messages"].as_array().unwrap();
    let said = request["messages"].to_string();
    let Some(child) = session_named(&said) else {
        let first = json!({ "initial_message": "you are the child" });
        return chat_calls(&[("agent_session_create", first)]);
    };
    if !user.contains("look") {
        return chat_text(&["it is at work"]);
    }
    let id = json!({ "session_id": child });
    let wait = json!({ "session_id": child, "timeout_seconds": 30, "wait_for_idle": true });
    let calls = [
        ("agent_session_list", json!({})),
        ("agent_session_get", id.clone()),
        ("agent_session_wait", wait),
        ("agent_session_stop", id.clone()),
        ("agent_session_acquire", id),
    ];
    let since = messages.iter().rev().take_while(|it| it["role"] != "user");
    let done = since.filter(|it| it["role"] == "tool").count();
    match calls.get(done) {
        Some(next) => chat_calls(std::slice::from_ref(next)),
        None => chat_text(&["I have looked"]),
    }
}

fn a_tree_whose_daemon_ends(end: impl Fn(&House)) {
    let stub = Stub::new(script);
    let house = stub.house();
    let run = [
        "run", "--detach", "--json", "--model", "openai/m", "make one",
    ];
    let started = house.run(&run).well().json();
    let root = started["session_id"].as_str().unwrap();
    until("the parent is idle and the child at work", || {
        let rows = house.ls();
        rows.len() == 2 && rows[0]["status"] == "idle" && stub.answering() == 1
    });
    let child = house.ls()[1]["session_id"].as_str().unwrap().to_owned();
    house.run(&["send", &child, "behind the run"]).well();
    end(&house);
    let asked = stub.requests().len();

    let row = &house.ls()[1];
    assert_eq!(row["session_id"], *child);
    let told = ["status", "outcome", "end_reason"].map(|name| row[name].as_str().unwrap());
    assert_eq!(told[..2], ["stopped", "interrupted"], "{row}");
    assert!(row["last_activity_at"].is_string());
    let interrupted = house.run(&["interrupt", &child, "--json"]).well().json();
    assert_eq!(interrupted["changed"], false, "{interrupted}");
    house.run(&["wait", &child, "--timeout", "30"]);
    assert_eq!(stub.requests().len(), asked, "nothing starts by itself");

    house.run(&["send", root, "look"]).well();
    house.run(&["wait", root, "--timeout", "20"]).well();
    let requests = stub.requests();
    let (of_the_child, of_the_parent): (Vec<&Value>, Vec<&Value>) = requests[asked..]
        .iter()
        .partition(|request| last_user(request).contains("behind the run"));
    assert_eq!((of_the_parent.len(), of_the_child.len()), (6, 1));
    let last = of_the_parent.last().unwrap();
    let messages = last["messages"].as_array().unwrap().iter();
    let results = messages.rev().take_while(|it| it["role"] != "user");
    let results = results.filter(|it| it["role"] == "tool");
    let mut results: Vec<Value> = results
        .map(|it| serde_json::from_str(it["content"].as_str().unwrap()).unwrap())
        .collect();
    results.reverse();
    let [list, get, wait, stop, acquire] = results.as_slice() else {
        panic!("{results:#?}");
    };
    assert_eq!(list[0]["session_id"], *child);
    for shown in [&list[0], get, wait] {
        assert_eq!(
            (&shown["status"], &shown["outcome"]),
            (&json!("stopped"), &json!("interrupted")),
            "{shown}"
        );
    }
    assert_eq!(get["queued"], 1, "{get}");
    assert_eq!(wait["ended_by"], "stopped", "{wait}");
    assert_eq!(stop["was_running"], false, "{stop}");
    assert_eq!(acquire["already_acquired"], true, "{acquire}");
    // Taken back, it works on what had waited; told to, it goes on with its history.
    house.run(&["send", &child, "go on"]).well();
    house.run(&["wait", &child, "--timeout", "20"]).well();
    let requests = stub.requests();
    requests.iter().for_each(well_formed);
    let last = requests.last().unwrap()["messages"].to_string();
    let places = ["you are the child", "behind the run", "go on"];
    let places = places.map(|text| last.find(text).unwrap_or_else(|| panic!("{text}: {last}")));
    assert!(places.is_sorted(), "{last}");
    assert_eq!(house.ls()[1]["result_preview"], "the child went on");
}

#[test]
fn g19_a_daemon_that_is_asked_to_end_leaves_the_truth_behind() {
    a_tree_whose_daemon_ends(|house| {
        let daemon = house.daemon().unwrap();
        signal(daemon, "TERM");
        until("the daemon has ended", || gone(daemon));
    });
}

#[test]
fn g19_a_daemon_that_is_killed_leaves_the_truth_behind() {
    a_tree_whose_daemon_ends(House::crash);
}
