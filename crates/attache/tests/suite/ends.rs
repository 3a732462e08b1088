//! Work that ends with its daemon, and what its client is told of it.

use std::process::Child;
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use serde_json::{Value, json};

use crate::clock::Since;
use crate::house::{Ended, House, ended, signal, until};
use crate::stub::{Reply, Stub, after_tools, chat_calls, chat_piece, chat_text, last_user};

/// A daemon in the foreground, and a run of it that its model is asked for.
fn served_run(house: &House, json: bool) -> (Child, Child) {
    let serve = house.spawn(&["serve"]);
    until("the daemon serves", || {
        house.state().join("attache.sock").exists()
    });
    let mut arguments = vec!["run", "--model", "openai/m", "go"];
    if json {
        arguments.push("--json");
    }
    (serve, house.spawn(&arguments))
}

fn end(run: Child) -> Ended {
    ended(run.wait_with_output().unwrap())
}

/// The line that says how a run ended.
fn result(run: &Ended) -> Value {
    run.lines().pop().unwrap()
}

/// What is said of a session that can be gone on with.
fn says_how_to_go_on(run: &Ended, id: &str) {
    let short = &id[id.len() - 8..];
    for words in [id, &format!("attache send {short}")] {
        assert!(run.err.contains(words), "{words} is not in {run:?}");
    }
}

#[test]
fn a_run_that_succeeds_while_its_daemon_ends_is_told_so() {
    for json in [true, false] {
        let (open, gate) = mpsc::sync_channel::<()>(1);
        let (asked, begun) = mpsc::sync_channel::<()>(1);
        let gate = Mutex::new(gate);
        let stub = Stub::new(move |_| {
            asked.send(()).unwrap();
            gate.lock().unwrap().recv().unwrap();
            chat_text(&["the whole", " answer"])
        });
        let house = stub.house();
        let (mut serve, run) = served_run(&house, json);
        begun.recv().unwrap();
        signal(serve.id(), "TERM");
        until("the daemon takes nobody any more", || {
            !house.state().join("attache.sock").exists()
        });
        open.send(()).unwrap();
        let run = end(run).well();
        assert_eq!(serve.wait().unwrap().code(), Some(0));
        assert!(run.out.contains("the whole answer"), "{run:?}");
        if json {
            let end = result(&run);
            assert_eq!(
                (&end["outcome"], &end["text"]),
                (&json!("succeeded"), &json!("the whole answer"))
            );
        }
        assert_eq!(run.err, "");
    }
}

#[test]
fn a_run_that_its_daemon_cuts_is_told_so_and_how_to_go_on() {
    let stub = Stub::new(|_| Reply::Silence(vec![chat_piece("half an ans")]));
    for by_restart in [false, true] {
        let house = stub.house();
        let run = house.spawn(&["run", "--model", "openai/m", "go"]);
        until("it is at work", || {
            let rows = house.ls();
            rows.first().is_some_and(|row| row["status"] == "running")
        });
        if by_restart {
            house.run(&["restart", "--now"]).well();
        } else {
            signal(house.daemon().unwrap(), "TERM");
        }
        let run = end(run);
        assert_eq!(run.code, 1, "{run:?}");
        assert!(run.out.contains("half an ans"), "{run:?}");
        let row = house.ls().remove(0);
        assert_eq!(
            (&row["status"], &row["outcome"], &row["end_reason"]),
            (
                &json!("stopped"),
                &json!("interrupted"),
                &json!("interrupted")
            )
        );
        says_how_to_go_on(&run, row["session_id"].as_str().unwrap());
    }
}

#[test]
fn a_run_whose_daemon_is_killed_says_how_to_go_on() {
    let stub = Stub::new(|_| Reply::Silence(vec![chat_piece("half an ans")]));
    let house = stub.house();
    let (mut serve, run) = served_run(&house, false);
    until("it is at work", || {
        let rows = house.ls();
        rows.first().is_some_and(|row| row["status"] == "running")
    });
    let id = house.ls()[0]["session_id"].as_str().unwrap().to_owned();
    signal(serve.id(), "KILL");
    serve.wait().unwrap();
    let run = end(run);
    assert_eq!(run.code, 3, "{run:?}");
    says_how_to_go_on(&run, &id);
}

/// Every session creates two more, for ever.
const GROW: &str = r#"{"rules": [
    {"when": {"user": "^grow", "step": 0}, "reply": [
        {"call": "agent_session_create", "arguments": {"initial_message": "grow", "name": "g"}},
        {"call": "agent_session_create", "arguments": {"initial_message": "grow", "name": "g"}}]},
    {"when": {"user": "^grow", "step": 1},
        "capture": {"ids": {"tool": "agent_session_create", "pointer": "/session_id", "all": true}},
        "reply": [{"call": "agent_session_wait", "for_each": "ids",
            "arguments": {"session_id": "${item}", "wait_for_idle": true, "timeout_seconds": 300}}]},
    {"reply": [{"text": "end"}]}]}"#;

/// What is promised for the end of a tree.
const PROMISED: Duration = Duration::from_secs(5);

#[test]
fn a_tree_that_grows_for_ever_ends_within_five_seconds() {
    for (verb, status) in [("interrupt", "idle"), ("terminate", "stopped")] {
        let house = House::new();
        let script = house.file("grow.json", GROW);
        let model = format!("scripted/{}", script.display());
        let limits = "concurrent=none,agents=none,depth=none";
        let start = [
            "run", "--detach", "--json", "--model", &model, "--budget", limits, "grow",
        ];
        let started = house.run(&start).well().json();
        let id = started["session_id"].as_str().unwrap().to_owned();
        until("it has grown", || house.ls().len() > 150);
        let mut end = vec![verb, id.as_str()];
        if verb == "interrupt" {
            end.push("--tree");
        }
        let since = Since::now();
        house.run(&end).well();
        let rows = house.ls();
        let passed = since.passed();
        assert!(
            passed < PROMISED,
            "{verb} of {} took {passed:?}",
            rows.len()
        );
        let others: Vec<&Value> = rows.iter().filter(|row| row["status"] != status).collect();
        assert!(others.is_empty(), "{verb}: {others:?}");
        assert_eq!(house.ls().len(), rows.len(), "{verb}: it has ended");
    }
}

#[test]
fn a_parent_is_removed_only_when_nothing_runs_that_would_end_with_it() {
    let stub = Stub::new(|request| {
        if last_user(request).contains("child") {
            return Reply::Silence(vec![chat_piece("child works")]);
        }
        if after_tools(request) {
            return chat_text(&["left to itself"]);
        }
        let child = || {
            let first = json!({ "initial_message": "you are the child" });
            ("agent_session_create", first)
        };
        chat_calls(&[child(), child()])
    });
    let house = stub.house();
    let run = ["run", "--detach", "--json", "--model", "openai/m", "go"];
    let started = house.run(&run).well().json();
    let id = started["session_id"].as_str().unwrap();
    house.run(&["wait", id, "--self"]).well();
    let refused = house.run(&["rm", "--yes", id, "--json"]);
    assert_eq!(refused.code, 4, "{refused:?}");
    for words in ["not-permitted", "2 descendants are running"] {
        assert!(refused.err.contains(words), "{words}: {refused:?}");
    }
    let running = |rows: &[Value]| rows.iter().filter(|row| row["status"] == "running").count();
    assert_eq!(running(&house.ls()), 2, "they go on");
    // What a restart has stopped is held by nobody, and stands by itself when its parent is removed.
    house.run(&["interrupt", id, "--tree"]).well();
    house.run(&["restart", "--now"]).well();
    house.run(&["rm", "--yes", id]).well();
    let roots = house.run(&["ls", "--roots", "--json"]).well().json();
    let tree = house.run(&["tree", "--json"]).well().json();
    let ids = |rows: &Value| -> Vec<Value> {
        let rows = rows.as_array().unwrap().iter();
        rows.map(|row| row["session_id"].clone()).collect()
    };
    assert_eq!(ids(&roots).len(), 2, "{roots}");
    assert_eq!(ids(&roots), ids(&tree));
}
