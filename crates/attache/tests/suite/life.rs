//! The daemon's life: started on demand, one for a state folder, ended in good order or killed;
//! and what its sessions are afterwards.

use std::path::Path;

use serde_json::{Value, json};

use crate::house::{House, signal, until};
use crate::stub::{Reply, Stub, after_tools, chat_calls, chat_piece, chat_text, last_user};

fn openai(stub: &Stub) -> House {
    House::new()
        .with("OPENAI_API_KEY", "sk-test")
        .with("OPENAI_BASE_URL", &stub.url("/v1"))
}

fn gone(process: u32) -> bool {
    let path = format!("/proc/{process}/stat");
    // A process that has ended and was not waited for is a zombie of its parent.
    std::fs::read_to_string(path).map_or(true, |stat| stat.contains(") Z "))
}

#[test]
fn many_that_come_at_once_start_one_daemon() {
    let house = House::new();
    let mut children: Vec<_> = (0..8).map(|_| house.spawn(&["ls", "--json"])).collect();
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    let daemon = house.daemon().unwrap();
    let others = house.run(&["ls"]).well();
    assert_eq!((others.out.as_str(), house.daemon()), ("", Some(daemon)));
}

#[test]
fn a_second_process_on_the_state_folder_is_refused() {
    let house = House::new();
    house.run(&["ls"]).well();
    let refused = house.run(&["serve"]);
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(refused.err.contains("in use by process"), "{refused:?}");
}

#[test]
fn an_idle_daemon_that_was_started_on_demand_leaves() {
    let house = House::new().with("ATTACHE_DAEMON__IDLE_SECONDS", "1");
    house.run(&["ls"]).well();
    let daemon = house.daemon().unwrap();
    until("the daemon has left", || gone(daemon));
    assert!(!house.state().join("attache.sock").exists());
}

#[test]
fn a_daemon_that_is_asked_to_end_writes_down_what_it_interrupts() {
    let stub = Stub::new(|_| Reply::Silence(vec![chat_piece("half an ans")]));
    let house = openai(&stub);
    let mut serve = house.spawn(&["serve"]);
    until("the daemon serves", || {
        house.state().join("attache.sock").exists()
    });
    let started = house
        .run(&["run", "--detach", "--json", "--model", "openai/m", "go"])
        .well();
    let id = started.json()["session_id"].as_str().unwrap().to_owned();
    until("the model has begun", || !stub.requests().is_empty());
    house
        .run(&["send", &id, "and then this", "--queue", "next"])
        .well();
    until("half of it is there", || {
        let shown = house.run(&["show", &id, "--json"]).json();
        shown["status"] == "running"
    });
    signal(serve.id(), "TERM");
    assert_eq!(serve.wait().unwrap().code(), Some(0));
    assert_eq!(stub.requests().len(), 1, "no new work after the signal");
    let row = &house.ls()[0];
    assert_eq!(row["status"], "stopped");
    assert_eq!(row["outcome"], "interrupted");
    let events = house.run(&["events", &id, "--json"]).well().json();
    let texts = events["events"].to_string();
    assert!(texts.contains("half an ans"), "{texts}");
    let shown = house.run(&["show", &id, "--json"]).well().json();
    assert!(
        shown["queues"].to_string().contains("and then this"),
        "{shown}"
    );
}

#[test]
fn a_run_whose_client_vanishes_is_interrupted_and_a_detached_one_goes_on() {
    let stub = Stub::new(|_| Reply::Silence(vec![chat_piece("working")]));
    let house = openai(&stub);
    let mut run = house.spawn(&["run", "--model", "openai/m", "stay"]);
    let detached = house
        .run(&["run", "--detach", "--json", "--model", "openai/m", "go on"])
        .well();
    let detached = detached.json()["session_id"].as_str().unwrap().to_owned();
    until("both run", || stub.requests().len() == 2);
    run.kill().unwrap();
    run.wait().unwrap();
    let by_id = |house: &House, wanted: bool| -> Value {
        let rows = house.ls();
        rows.into_iter()
            .find(|row| (row["session_id"] == json!(detached)) == wanted)
            .unwrap()
    };
    until("the run is interrupted", || {
        by_id(&house, false)["outcome"] == "interrupted"
    });
    assert_eq!(by_id(&house, true)["status"], "running");
}

#[test]
fn an_interrupt_from_the_keyboard_ends_the_tree() {
    let stub = Stub::new(|request| {
        if last_user(request).contains("child") {
            return Reply::Silence(vec![chat_piece("child works")]);
        }
        if after_tools(request) {
            return Reply::Silence(vec![chat_piece("parent works")]);
        }
        chat_calls(&[(
            "agent_session_create",
            json!({ "initial_message": "you are the child" }),
        )])
    });
    let house = openai(&stub);
    let mut run = house.spawn(&["run", "--model", "openai/m", "go"]);
    until("parent and child work", || stub.requests().len() == 3);
    signal(run.id(), "INT");
    assert_eq!(run.wait().unwrap().code(), Some(130));
    let rows = house.ls();
    assert_eq!(rows.len(), 2);
    assert!(
        rows.iter().all(|row| row["outcome"] == "interrupted"),
        "{rows:?}"
    );
}

#[test]
fn an_interrupted_tree_is_not_woken_by_its_own_notices() {
    let stub = Stub::new(|request| {
        if last_user(request).contains("child") {
            return Reply::Silence(vec![chat_piece("child works")]);
        }
        let called = request["messages"].to_string();
        if called.contains("fired_immediately") {
            return Reply::Silence(vec![chat_piece("parent works")]);
        }
        if let Some(place) = called.find("session_id") {
            let id: String = called[place..]
                .chars()
                .skip_while(|c| !c.is_ascii_digit())
                .take_while(|c| c.is_ascii_hexdigit() || *c == '-')
                .collect();
            return chat_calls(&[("agent_session_on_complete", json!({ "session_id": id }))]);
        }
        chat_calls(&[(
            "agent_session_create",
            json!({ "initial_message": "you are the child" }),
        )])
    });
    let house = openai(&stub);
    let started = house
        .run(&["run", "--detach", "--json", "--model", "openai/m", "go"])
        .well();
    let id = started.json()["session_id"].as_str().unwrap().to_owned();
    until("parent and child work", || stub.requests().len() == 4);
    house.run(&["interrupt", &id, "--tree"]).well();
    house.run(&["wait", &id]).well();
    let rows = house.ls();
    assert!(
        rows.iter().all(|row| row["outcome"] == "interrupted"),
        "{rows:?}"
    );
    assert!(rows.iter().all(|row| row["status"] == "idle"), "{rows:?}");
    assert_eq!(stub.requests().len(), 4);
}

#[test]
fn terminate_ends_the_tree_within_five_seconds() {
    let stub = Stub::new(|request| {
        if last_user(request).contains("child") {
            return Reply::Silence(vec![chat_piece("child works")]);
        }
        if after_tools(request) {
            return chat_text(&["left to itself"]);
        }
        chat_calls(&[(
            "agent_session_create",
            json!({ "initial_message": "you are the child" }),
        )])
    });
    let house = openai(&stub);
    let started = house
        .run(&["run", "--detach", "--json", "--model", "openai/m", "go"])
        .well();
    let id = started.json()["session_id"].as_str().unwrap().to_owned();
    house.run(&["wait", &id, "--self"]).well();
    until("the child works", || stub.requests().len() == 3);
    house.run(&["terminate", &id]).well();
    until("both are stopped", || {
        house.ls().iter().all(|row| row["status"] == "stopped")
    });
    let asked = stub.requests().len();
    house.run(&["ls"]).well();
    assert_eq!(stub.requests().len(), asked);
}

#[test]
fn after_a_kill_nothing_starts_by_itself_and_a_send_goes_on_with_the_history() {
    let stub = Stub::new(|request| {
        if last_user(request).contains("go on") {
            return chat_text(&["done after all"]);
        }
        if after_tools(request) {
            return Reply::Silence(vec![chat_piece("so far")]);
        }
        chat_calls(&[("list_directory", json!({}))])
    });
    let house = openai(&stub);
    let started = house
        .run(&["run", "--detach", "--json", "--model", "openai/m", "go"])
        .well();
    let id = started.json()["session_id"].as_str().unwrap().to_owned();
    until("the second step has begun", || stub.requests().len() == 2);
    house.crash();
    let row = house.ls().remove(0);
    assert_eq!(row["status"], "stopped");
    assert_eq!(
        (&row["outcome"], &row["end_reason"]),
        (&json!("interrupted"), &json!("host-restart"))
    );
    assert_eq!(stub.requests().len(), 2, "nothing starts by itself");
    house.run(&["send", &id, "go on"]).well();
    house.run(&["wait", &id]).well();
    let row = house.ls().remove(0);
    assert_eq!(
        (&row["status"], &row["outcome"]),
        (&json!("idle"), &json!("succeeded"))
    );
    let requests = stub.requests();
    well_formed(&requests[2]);
    assert!(
        requests[2].to_string().contains("list_directory"),
        "the history is there"
    );
}

/// Each call is answered exactly once, right behind its message.
fn well_formed(request: &Value) {
    let messages = request["messages"].as_array().unwrap();
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        match message["role"].as_str().unwrap() {
            "tool" => {
                let id = message["tool_call_id"].as_str().unwrap();
                assert_eq!(open.first().map(String::as_str), Some(id), "{request}");
                open.remove(0);
            }
            _ => assert!(open.is_empty(), "a call without its result: {request}"),
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            open.push(call["id"].as_str().unwrap().to_owned());
        }
    }
    assert!(open.is_empty(), "{request}");
}

/// Kinds of stored events that the walk below brings about.
#[cfg(feature = "fault")]
const KINDS: [&str; 18] = [
    "created",
    "started",
    "queued",
    "turn-started",
    "consumed",
    "said",
    "call-started",
    "call-ended",
    "turn-ended",
    "child-held",
    "watch-set",
    "watcher-added",
    "watcher-removed",
    "watch-ended",
    "sent",
    "child-released",
    "parent-released",
    "stopped",
];

#[cfg(feature = "fault")]
#[test]
fn killed_at_each_kind_of_append_nothing_is_lost_or_doubled() {
    for kind in KINDS {
        for place in ["before", "after", "before-effect"] {
            killed_at(kind, place);
        }
    }
}

/// What the models of the walk say: a parent creates a child that looks around and then thinks for
/// ever, asks to be told of its end, sends it more, gives it up, and is told.
#[cfg(feature = "fault")]
fn script(request: &Value) -> Reply {
    let user = last_user(request);
    if user.contains("go on") {
        return chat_text(&["went on"]);
    }
    if user.contains("has settled") {
        return chat_text(&["so it has"]);
    }
    if user.contains("child, more") {
        return chat_text(&["child done"]);
    }
    if user.contains("child") {
        return if after_tools(request) {
            Reply::Silence(vec![chat_piece("child thinks")])
        } else {
            chat_calls(&[("list_directory", json!({}))])
        };
    }
    let said = request["messages"].to_string();
    let id = said.find("session_id").map(|place| -> String {
        said[place..]
            .chars()
            .skip_while(|c| !c.is_ascii_digit())
            .take_while(|c| c.is_ascii_hexdigit() || *c == '-')
            .collect()
    });
    match id {
        None => chat_calls(&[(
            "agent_session_create",
            json!({ "initial_message": "you are the child" }),
        )]),
        Some(_) if said.contains("was_running") => chat_text(&["all done"]),
        Some(id) if said.contains("fired_immediately") => chat_calls(&[(
            "agent_session_stop",
            json!({ "session_id": id, "dispose": true }),
        )]),
        Some(id) => chat_calls(&[
            ("agent_session_on_complete", json!({ "session_id": id })),
            (
                "agent_session_send",
                json!({ "session_id": id, "text": "child, more" }),
            ),
        ]),
    }
}

/// Kills the daemon at a point of the walk; whatever was accepted is there, once, and each session
/// works on with a well-formed history.
#[cfg(feature = "fault")]
fn killed_at(kind: &str, place: &str) {
    let point = format!("{kind}:{place}:1");
    let stub = Stub::new(script);
    let house = openai(&stub).with("ATTACHE_FAULT", &point);
    let started = house.run(&["run", "--detach", "--json", "--model", "openai/m", "go"]);
    let id = (started.code == 0).then(|| started.json()["session_id"].as_str().unwrap().to_owned());
    let lock = std::fs::read_to_string(house.state().join("daemon.lock")).unwrap();
    let daemon: u32 = lock.trim().parse().unwrap();
    // A daemon that these commands start instead of a killed one has no point to be killed at.
    let house = house.with("ATTACHE_FAULT", "");
    if let Some(id) = &id {
        house.run(&["wait", id, "--timeout", "20"]);
        house.run(&["terminate", id]);
    }
    until(&format!("{point}: the daemon is killed"), || gone(daemon));
    let rows = house.ls();
    if place != "before" || kind != "created" && kind != "started" && kind != "queued" {
        let early = ["turn-started", "consumed"].contains(&kind) && place == "before";
        assert!(
            early || !rows.is_empty(),
            "{point}: what was stored is there"
        );
    }
    if let Some(id) = &id {
        assert!(
            rows.iter().any(|row| row["session_id"] == json!(id)),
            "{point}: {rows:?}"
        );
    }
    for row in rows {
        let id = row["session_id"].as_str().unwrap();
        assert_eq!(row["status"], "stopped", "{point}: {row}");
        let asked = stub.requests().len();
        house.run(&["send", id, "go on"]).well();
        let waited = house.run(&["wait", id, "--timeout", "20"]);
        assert_eq!(waited.code, 0, "{point}: {waited:?}");
        let requests = stub.requests();
        assert!(requests.len() > asked, "{point}: a send is worked on");
        requests.iter().for_each(well_formed);
        let page = house
            .run(&["events", id, "--json", "--limit", "200"])
            .well()
            .json();
        let events = page["events"].as_array().unwrap();
        let count = |text: &str| events.iter().filter(|event| event["text"] == text).count();
        assert_eq!(count("go on"), 1, "{point}: {page}");
        assert!(count("child, more") <= 1, "{point}: {page}");
        assert!(count("you are the child") <= 1, "{point}: {page}");
        let of = |wanted: &str| -> Vec<&Value> {
            let kind = |event: &&Value| event["event_type"] == wanted;
            events
                .iter()
                .filter(kind)
                .map(|event| &event["call_id"])
                .collect()
        };
        assert_eq!(
            of("tool_call").len(),
            of("tool_result").len(),
            "{point}: {page}"
        );
    }
}

#[test]
fn a_restart_ends_the_daemon_and_starts_the_program_anew() {
    let house = House::new();
    house.run(&["ls"]).well();
    let before = house.daemon().unwrap();
    house.run(&["restart"]).well();
    let after = house.daemon().unwrap();
    assert_ne!(before, after);
    assert!(gone(before));
}

#[test]
fn the_socket_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let house = House::new();
    house.run(&["ls"]).well();
    let socket = house.state().join("attache.sock");
    let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{}", Path::new(&socket).display());
}
