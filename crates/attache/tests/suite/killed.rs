//! The daemon is killed once for each kind of append that people and models can bring about, before
//! it, after it, and before its effects. Whatever was accepted is there afterwards, once, and each
//! session works on with a well-formed history.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::house::{House, gone, until};
use crate::stub::{
    Reply, Stub, after_tools, chat_calls, chat_piece, chat_text, last_user, session_named,
    well_formed,
};

/// Stored kinds of the walk, each with the numbers of its appends that are tried. The first append
/// of a session holds the first five; their second is a later one, alone.
const POINTS: [(&str, &[u32]); 25] = [
    ("created", &[1, 2]),
    ("started", &[1, 2]),
    ("queued", &[1, 2]),
    ("turn-started", &[1, 2]),
    ("consumed", &[1, 2]),
    ("said", &[1]),
    ("call-started", &[1]),
    ("call-ended", &[1]),
    ("turn-ended", &[1]),
    ("child-held", &[1]),
    ("watch-set", &[1]),
    ("watcher-added", &[1]),
    ("watcher-removed", &[1]),
    ("watch-ended", &[1]),
    ("sent", &[1]),
    ("child-released", &[1]),
    ("parent-released", &[1]),
    ("parent-holds", &[1]),
    ("queue-set", &[1]),
    ("compacted", &[1]),
    ("bounds-set", &[1]),
    ("settings-set", &[1]),
    ("modal-set", &[1]),
    ("noted", &[1]),
    ("stopped", &[1]),
];

/// Stored kinds that no command and no tool of this walk brings about.
const WITHOUT_A_DOOR: [&str; 5] = [
    "acknowledged",
    "edited",
    "withdrawn",
    "moved",
    "queue-deleted",
];

#[test]
fn killed_at_each_kind_of_append_nothing_is_lost_or_doubled() {
    let tried = POINTS.iter().map(|(kind, _)| *kind);
    let mut tried: Vec<&str> = tried.chain(WITHOUT_A_DOOR).collect();
    let mut known = attache_session::Event::KINDS.to_vec();
    tried.sort_unstable();
    known.sort_unstable();
    assert_eq!(tried, known);
    for (kind, numbers) in POINTS {
        for number in numbers {
            for place in ["before", "after", "before-effect"] {
                killed_at(&format!("{kind}:{place}:{number}"));
            }
        }
    }
}

/// What the models of the walk say. A parent creates a child that looks around and then thinks for
/// ever, asks to be told of its end, sends it more, gives it up, takes it back, and is told.
fn script(request: &Value) -> Reply {
    let user = last_user(request);
    if user.contains("go on") {
        return chat_text(&["went on"]);
    }
    if user.contains("Write a summary") {
        // What the script goes by later has to be in it.
        let said = request["messages"].to_string();
        let id = session_named(&said).unwrap_or_default();
        let summary = json!({ "session_id": id, "already_acquired": true });
        return chat_text(&[&summary.to_string()]);
    }
    if user.contains("this asks") && !after_tools(request) {
        return chat_calls(&[("ask_user", json!({ "question": "Which one?" }))]);
    }
    if user.contains("this fails") {
        return Reply::Status(401, "{}".to_owned());
    }
    if user.contains("child, more") {
        return chat_text(&["child done"]);
    }
    if user.contains("you are the child") {
        return if after_tools(request) {
            Reply::Silence(vec![chat_piece("child thinks")])
        } else {
            chat_calls(&[("list_directory", json!({}))])
        };
    }
    let said = request["messages"].to_string();
    let Some(id) = session_named(&said) else {
        return chat_calls(&[(
            "agent_session_create",
            json!({ "initial_message": "you are the child" }),
        )]);
    };
    if said.contains("already_acquired") {
        return chat_text(&["all done"]);
    }
    // The word of the child's end comes behind the result of giving it up.
    if said.contains("was_running") || user.contains("has settled") {
        return chat_calls(&[("agent_session_acquire", json!({ "session_id": id }))]);
    }
    if said.contains("fired_immediately") {
        let arguments = json!({ "session_id": id, "dispose": true });
        return chat_calls(&[("agent_session_stop", arguments)]);
    }
    let more = json!({ "session_id": id, "text": "child, more" });
    chat_calls(&[
        ("agent_session_on_complete", json!({ "session_id": id })),
        ("agent_session_send", more),
    ])
}

/// A command of a person whose text was accepted is held to it.
fn send(house: &House, accepted: &mut Vec<&'static str>, id: &str, text: &'static str) {
    let ended = house.run(&["send", id, text, "--json"]);
    if ended.code == 0 && ended.json()["state"] == "accepted" {
        accepted.push(text);
    }
}

fn killed_at(point: &str) {
    let stub = Stub::new(script);
    let house = stub.house().with("ATTACHE_FAULT", point);
    let mut accepted = Vec::new();
    let started = house.run(&["run", "--detach", "--json", "--model", "openai/m", "go"]);
    let root =
        (started.code == 0).then(|| started.json()["session_id"].as_str().unwrap().to_owned());
    let lock = std::fs::read_to_string(house.state().join("daemon.lock")).unwrap();
    let daemon: u32 = lock.trim().parse().unwrap();
    // A daemon that these commands start instead of a killed one has no point to be killed at.
    let house = house.with("ATTACHE_FAULT", "");
    if let Some(id) = &root {
        accepted.push("go");
        house.run(&["wait", id, "--timeout", "20"]);
        send(&house, &mut accepted, id, "this fails");
        house.run(&["wait", id, "--timeout", "20"]);
        let later = [
            "send",
            id,
            "for later",
            "--queue",
            "later",
            "--held",
            "--json",
        ];
        if house.run(&later).code == 0 {
            accepted.push("for later");
        }
        if point.starts_with("compacted") {
            house.run(&["compact", id]);
        }
        if point.starts_with("bounds-set") {
            house.run(&["budget", id, "tokens=100000,agents=9"]);
        }
        if point.starts_with("modal-set") {
            send(&house, &mut accepted, id, "this asks");
        }
        if point.starts_with("settings-set") {
            house.run(&["background", id, "on"]);
            house.run(&["background", id, "off"]);
        }
        house.run(&["terminate", id]);
    }
    until(&format!("{point}: the daemon is killed"), || gone(daemon));

    until(&format!("{point}: all are stopped"), || {
        house.ls().iter().all(|row| row["status"] == "stopped")
    });
    let rows = house.ls();
    assert!(rows.len() <= 2, "{point}: {rows:?}");
    let ids: Vec<&str> = rows
        .iter()
        .map(|row| row["session_id"].as_str().unwrap())
        .collect();
    if let Some(root) = &root {
        assert_eq!(ids.first(), Some(&root.as_str()), "{point}: {rows:?}");
    }
    let mut held_to = BTreeMap::new();
    for (place, id) in ids.iter().enumerate() {
        let asked = stub.requests().len();
        house.run(&["send", id, "go on"]).well();
        let waited = house.run(&["wait", id, "--timeout", "20"]);
        assert_eq!(waited.code, 0, "{point}: {waited:?}");
        let requests = stub.requests();
        assert!(requests.len() > asked, "{point}: a send is worked on");
        requests.iter().for_each(well_formed);
        held_to.insert(place, history(&house, id, point));
    }
    let Some(parent) = held_to.get(&0) else {
        return;
    };
    let times = |history: &[Value], text: &str| {
        let text = json!(text);
        history.iter().filter(|event| event["text"] == text).count()
    };
    // The root was born with its task: it has it whenever it is there.
    assert_eq!(times(parent, "go"), 1, "{point}: {parent:?}");
    for text in ["go on", "this fails"] {
        let expected = usize::from(text == "go on" || accepted.contains(&text));
        assert_eq!(times(parent, text), expected, "{point} {text}: {parent:?}");
    }
    let shown = house.run(&["show", ids[0], "--json"]).well().json();
    let held = shown["queues"].to_string().matches("for later").count();
    let expected = usize::from(accepted.contains(&"for later"));
    assert_eq!(held, expected, "{point}: {shown}");
    let told = parent
        .iter()
        .filter(|event| {
            event["text"]
                .as_str()
                .is_some_and(|text| text.contains("has settled"))
        })
        .count();
    // The two commits between the end that was watched and the parent's turn that reads of it.
    let was_watched = ["watcher-removed", "watch-ended"];
    let exactly = was_watched.iter().any(|kind| point.starts_with(kind));
    assert!(told <= 1 && (told == 1 || !exactly), "{point}: {parent:?}");
    if let Some(child) = held_to.get(&1) {
        assert_eq!(times(child, "you are the child"), 1, "{point}: {child:?}");
        let more = times(child, "child, more");
        let sent = parent.iter().any(|event| {
            event["name"] == "agent_session_send"
                && event["text"]
                    .as_str()
                    .is_some_and(|text| text.contains("\"accepted\""))
        });
        assert!(more <= 1 && (!sent || more == 1), "{point}: {child:?}");
    }
}

/// A session's history, in which each call has exactly one result.
fn history(house: &House, id: &str, point: &str) -> Vec<Value> {
    let page = house
        .run(&["events", id, "--json", "--limit", "200"])
        .well()
        .json();
    let events = page["events"].as_array().unwrap();
    let of = |wanted: &str| -> Vec<&str> {
        let calls = events.iter().filter(|event| event["event_type"] == wanted);
        calls
            .filter_map(|event| event["call_id"].as_str())
            .collect()
    };
    let (mut calls, mut results) = (of("tool_call"), of("tool_result"));
    // A provider may use an id again: as often as it stands with a call it stands with a result.
    for ids in [&mut calls, &mut results] {
        ids.sort_unstable();
    }
    assert_eq!(calls, results, "{point}: {page}");
    events.clone()
}
