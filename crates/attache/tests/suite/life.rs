//! The daemon's life: started on demand, one for a state folder, ended in good order or killed;
//! and what its sessions are afterwards.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use serde_json::json;

use crate::clock::Since;
use crate::house::{House, gone, signal, until};
use crate::seat::{Seat, idle};
use crate::stub::{
    Reply, Stub, after_tools, chat_calls, chat_piece, chat_text, last_user, session_named,
    well_formed,
};

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
fn a_daemon_at_work_or_with_a_viewer_stays() {
    let stub = Stub::new(|_| Reply::Silence(vec![chat_piece("thinking")]));
    let house = stub.house().with("ATTACHE_DAEMON__IDLE_SECONDS", "1");
    let started = house
        .run(&["run", "--detach", "--json", "--model", "openai/m", "go"])
        .well();
    let id = started.json()["session_id"].as_str().unwrap().to_owned();
    let daemon = house.daemon().unwrap();
    let stays = |why: &str| {
        let since = Since::now();
        until(why, || since.passed() > Duration::from_secs(2));
        assert!(!gone(daemon), "{why}");
    };
    stays("a session is at work");
    let mut viewer = house.spawn(&["events", &id, "--follow"]);
    let mut seen = BufReader::new(viewer.stdout.take().unwrap());
    seen.read_line(&mut String::new()).unwrap();
    house.run(&["interrupt", &id]).well();
    stays("a viewer is there");
    viewer.kill().unwrap();
    viewer.wait().unwrap();
    until("the daemon has left", || gone(daemon));
}

#[test]
fn a_daemon_that_is_asked_to_end_writes_down_what_it_interrupts() {
    let stub = Stub::new(|_| Reply::Silence(vec![chat_piece("half an ans")]));
    let house = stub.house();
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
fn a_run_whose_client_vanishes_ends_after_its_grace_and_a_detached_one_goes_on() {
    let stub = Stub::new(|_request| Reply::Silence(vec![chat_piece("working")]));
    let house = stub.house();
    let mut run = house.spawn(&["run", "--model", "openai/m", "stay"]);
    let detached = house
        .run(&["run", "--detach", "--json", "--model", "openai/m", "go on"])
        .well();
    let detached = detached.json()["session_id"].as_str().unwrap().to_owned();
    until("both work", || stub.requests().len() == 2);
    let since = Since::now();
    run.kill().unwrap();
    run.wait().unwrap();
    until("the run's session has ended", || {
        let rows = house.ls();
        let run = rows.iter().find(|row| row["session_id"] != json!(detached));
        run.is_some_and(|row| row["status"] == "stopped" && row["outcome"] == "interrupted")
    });
    // A client that was only slow to come back has five seconds.
    assert!(since.passed() > Duration::from_secs(4));
    assert!(since.passed() < Duration::from_secs(10));
    let rows = house.ls();
    let other = rows.iter().find(|row| row["session_id"] == json!(detached));
    assert_eq!(other.unwrap()["status"], "running");
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
    let house = stub.house();
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
        if let Some(id) = session_named(&called) {
            return chat_calls(&[("agent_session_on_complete", json!({ "session_id": id }))]);
        }
        chat_calls(&[(
            "agent_session_create",
            json!({ "initial_message": "you are the child" }),
        )])
    });
    let house = stub.house();
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
    let house = stub.house();
    let started = house
        .run(&["run", "--detach", "--json", "--model", "openai/m", "go"])
        .well();
    let id = started.json()["session_id"].as_str().unwrap().to_owned();
    house.run(&["wait", &id, "--self"]).well();
    until("the child works", || stub.requests().len() == 3);
    let since = Since::now();
    house.run(&["terminate", &id]).well();
    until("both are stopped", || {
        house.ls().iter().all(|row| row["status"] == "stopped")
    });
    until("nobody asks a model any more", || stub.answering() == 0);
    assert!(since.passed() < Duration::from_secs(5));
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
    let house = stub.house();
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

#[test]
fn a_restart_lets_work_end_starts_the_program_anew_and_does_not_wait_when_told_so() {
    let (open, gate) = mpsc::sync_channel::<()>(1);
    let gate = Mutex::new(gate);
    let stub = Stub::new(move |_| {
        gate.lock().unwrap().recv().unwrap();
        chat_text(&["done in time"])
    });
    let house = stub.house();
    let start = ["run", "--detach", "--json", "--model", "openai/m", "go"];
    house.run(&start).well();
    let before = house.daemon().unwrap();
    let mut restart = house.spawn(&["restart"]);
    let mut told = String::new();
    let mut notes = BufReader::new(restart.stderr.take().unwrap());
    notes.read_line(&mut told).unwrap();
    assert!(told.contains("1 at work"), "{told}");
    open.send(()).unwrap();
    assert!(restart.wait().unwrap().success());
    let after = house.daemon().unwrap();
    assert_ne!(before, after);
    assert!(gone(before));
    assert_eq!(house.ls()[0]["result_preview"], "done in time");
    house.run(&start).well();
    house.run(&["restart", "--now"]).well();
    assert!(gone(after));
    assert_eq!(house.ls()[1]["outcome"], "interrupted");
}

#[test]
fn a_restart_does_not_wait_for_who_only_has_a_look() {
    let house = House::new();
    let session = idle(&house);
    let viewer = Seat::at(&house, &["attach", &session, "--plain"]);
    viewer.shows("session ");
    let restarted = house.run(&["restart"]).well();
    assert!(!restarted.err.contains("at work"), "{}", restarted.err);
    viewer.shows("the host is there again");
    viewer.leaves();
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
