//! The daemon is killed at each commit between a child's last token and the turn of its parent that is told of it: before the
//! commit, after it, and before its effects. Whatever the parent does meanwhile, it is told exactly once.

use std::sync::{Arc, Condvar, Mutex};

use serde_json::{Value, json};

use crate::house::{House, gone, until};
use crate::stub::{
    Reply, Stub, after_tools, chat_calls, chat_text, last_user, session_named, well_formed,
};

/// Opened once; whoever waits goes on then.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<Door>, Condvar)>);

#[derive(Default)]
struct Door {
    open: bool,
    reached: bool,
}

impl Gate {
    fn open(&self) {
        self.0.0.lock().unwrap().open = true;
        self.0.1.notify_all();
    }

    fn wait(&self) {
        let mut door = self.0.0.lock().unwrap();
        door.reached = true;
        let _door = self.0.1.wait_while(door, |door| !door.open).unwrap();
    }

    fn is_reached(&self) -> bool {
        self.0.0.lock().unwrap().reached
    }
}

/// What the parents do when the last child says its last.
struct Case {
    /// The task of the root, by which the model plays.
    task: &'static str,
    /// Whether somebody looks at the root, which is then kept in memory.
    seen: bool,
    /// How many sessions there are.
    sessions: usize,
    /// Whether all stands as it should; the rows begin with the root's.
    ready: fn(&House, &Gate, &[Value]) -> bool,
}

/// What the models of the walk say.
fn script(request: &Value, last_word: &Gate, busy: &Gate, armed: &std::path::Path) -> Reply {
    let user = last_user(request);
    if user.contains("go on") || user.contains("has settled") {
        return chat_text(&["I went on"]);
    }
    let create = |task: &str| {
        let arguments = json!({ "initial_message": task });
        chat_calls(&[("agent_session_create", arguments)])
    };
    if user.contains("the last child") {
        last_word.wait();
        std::fs::write(armed, "").unwrap();
        return chat_text(&["the ", "last token"]);
    }
    if !after_tools(request) {
        return match user.trim_matches('"') {
            "three below" => create("two below"),
            "two below" => create("one below"),
            _ => create("the last child"),
        };
    }
    let said = request["messages"].to_string();
    let id = json!({ "session_id": session_named(&said).unwrap() });
    if !said.contains("fired_immediately") {
        let mut calls = vec![("agent_session_on_complete", id.clone())];
        if user.contains("waits") {
            calls.push(("agent_session_wait", id));
        }
        return chat_calls(&calls);
    }
    if user.contains("is busy") {
        busy.wait();
    }
    chat_text(&["I am done"])
}

fn is_idle(row: &Value) -> bool {
    row["status"] == "idle"
}

fn has_ended(row: &Value) -> bool {
    row["status"] != "running"
}

/// The rows of all sessions; none while the daemon that was asked ends.
fn rows(house: &House) -> Option<Vec<Value>> {
    let listed = house.run(&["ls", "--json"]);
    (listed.code == 0).then(|| listed.json().as_array().unwrap().clone())
}

/// All but the last child have done what they had to.
fn others_are_idle(_house: &House, _busy: &Gate, rows: &[Value]) -> bool {
    rows[..rows.len() - 1].iter().all(is_idle)
}

fn walk(case: &Case) {
    let mut commits = 0;
    loop {
        let next = commits + 1;
        let places = ["before", "after", "before-effect"];
        let killed = places.map(|place| killed_at(case, &format!("append:{place}:{next}")));
        if killed == [false; 3] {
            break;
        }
        commits = next;
    }
    // The child's last words and its end, the word of it, and the turn that takes it.
    assert!(commits >= 3, "{}: {commits}", case.task);
}

/// True when the daemon was killed.
fn killed_at(case: &Case, point: &str) -> bool {
    let (last_word, busy) = (Gate::default(), Gate::default());
    let armed = tempfile::tempdir().unwrap();
    let file = armed.path().join("armed");
    let point = format!("{point}:{}", file.display());
    let stub = {
        let (last_word, busy) = (last_word.clone(), busy.clone());
        Stub::new(move |request| script(request, &last_word, &busy, &file))
    };
    let house = stub.house().with("ATTACHE_FAULT", &point);
    let point = format!("{}, {point}", case.task);
    let run = [
        "run", "--detach", "--json", "--model", "openai/m", case.task,
    ];
    let started = house.run(&run).well().json();
    let root = started["session_id"].as_str().unwrap();
    let viewer = case
        .seen
        .then(|| house.spawn(&["events", root, "--follow"]));
    until(&format!("{point}: the daemon serves"), || {
        house.state().join("daemon.lock").exists() && !house.ls().is_empty()
    });
    let lock = std::fs::read_to_string(house.state().join("daemon.lock")).unwrap();
    let daemon: u32 = lock.trim().parse().unwrap();
    // A daemon that is started instead of a killed one has no point to be killed at.
    let house = house.with("ATTACHE_FAULT", "");
    until(&format!("{point}: all stands as it should"), || {
        let rows = rows(&house).unwrap_or_default();
        rows.len() == case.sessions && last_word.is_reached() && (case.ready)(&house, &busy, &rows)
    });
    last_word.open();
    until(&format!("{point}: the child ends"), || {
        rows(&house).is_some_and(|rows| rows.last().is_some_and(has_ended))
    });
    busy.open();
    let quiet = {
        let mut found = Vec::new();
        until(&format!("{point}: all are quiet"), || {
            found = rows(&house).unwrap_or_default();
            !found.is_empty() && found.iter().all(has_ended)
        });
        found
    };
    if let Some(mut viewer) = viewer {
        // What it prints is nobody's matter here.
        let _ended = viewer.kill();
        viewer.wait().unwrap();
    }
    let ids = quiet.iter().map(|row| row["session_id"].as_str().unwrap());
    let ids: Vec<&str> = ids.collect();
    assert_eq!(ids.len(), case.sessions, "{point}: {quiet:?}");
    // Nothing starts by itself after a crash.
    let killed = quiet.iter().any(|row| row["status"] == "stopped");
    if killed {
        until(&format!("{point}: the daemon is killed"), || gone(daemon));
        for id in &ids {
            house.run(&["send", id, "go on"]).well();
            house.run(&["wait", id, "--timeout", "20"]).well();
        }
    }
    stub.requests().iter().for_each(well_formed);
    for pair in ids.windows(2) {
        let events = house.run(&["events", pair[0], "--json", "--limit", "200"]);
        let events = events.well().json();
        let events = events["events"].as_array().unwrap();
        let header = format!("Session {} has settled", pair[1]);
        let is_of_it = |event: &&Value| {
            let text = event["text"].as_str().unwrap_or_default();
            text.starts_with(&header)
        };
        let told = events.iter().filter(is_of_it).count();
        assert_eq!(told, 1, "{point}: {events:#?}");
    }
    killed
}

#[test]
fn a_busy_parent_is_told_once_at_each_commit() {
    walk(&Case {
        task: "is busy",
        seen: false,
        sessions: 2,
        ready: |_, busy, _| busy.is_reached(),
    });
}

#[test]
fn an_idle_parent_that_somebody_looks_at_is_told_once_at_each_commit() {
    walk(&Case {
        task: "is idle",
        seen: true,
        sessions: 2,
        ready: others_are_idle,
    });
}

#[test]
fn an_unloaded_parent_is_told_once_at_each_commit() {
    walk(&Case {
        task: "is unloaded",
        seen: false,
        sessions: 2,
        ready: others_are_idle,
    });
}

#[test]
fn a_parent_that_waits_is_told_once_at_each_commit() {
    walk(&Case {
        task: "waits",
        seen: false,
        sessions: 2,
        ready: |house, _, _| house.run(&["tree"]).out.contains("  waits for "),
    });
}

#[test]
fn three_generations_are_told_once_each_at_each_commit() {
    walk(&Case {
        task: "three below",
        seen: false,
        sessions: 4,
        ready: others_are_idle,
    });
}
