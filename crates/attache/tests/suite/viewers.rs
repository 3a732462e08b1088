//! Viewers line by line, as processes of their own: several of one session, through the death of the daemon, with questions and
//! commands behind a slash.

use serde_json::json;

use crate::house::{House, gone, signal, until};
use crate::seat::{Seat, idle};
use crate::stub::{Stub, after_tools, chat_calls, chat_text, last_user};

#[test]
fn viewers_of_one_session_come_back_after_the_daemon_was_killed_and_agree() {
    let house = House::new();
    let id = idle(&house);
    let mut one = Seat::at(&house, &["attach", &id, "--plain"]);
    let two = Seat::at(&house, &["attach", &id, "--plain", "--read-only"]);
    for viewer in [&one, &two] {
        viewer.shows("> begin\nbegin\n");
    }
    one.types("first words");
    for viewer in [&one, &two] {
        viewer.shows("first words\n");
    }
    let daemon = house.daemon().unwrap();
    signal(daemon, "KILL");
    until("the daemon is gone", || gone(daemon));
    for viewer in [&one, &two] {
        viewer.shows("looking for the host");
        viewer.shows("the host is there again");
        viewer.shows("is stopped; the next message starts it");
    }
    one.types("after the end");
    for viewer in [&one, &two] {
        viewer.shows("after the end\n");
    }
    house.run(&["wait", &id]).well();
    let (one, two) = (one.leaves(), two.leaves());
    for shown in [&one, &two] {
        for text in ["begin\n", "first words\n", "after the end\n"] {
            let times = shown.matches(text).count() - shown.matches(&format!("> {text}")).count();
            assert_eq!(times, 1, "{text:?} in {shown}");
        }
    }
    // It goes on by itself: its viewers' leaving ends nothing.
    let row = house.run(&["show", &id, "--json"]).well().json();
    assert_eq!(
        (&row["status"], &row["continue_in_background"]),
        (&json!("idle"), &json!(true))
    );
}

#[test]
fn a_question_is_answered_by_the_next_line_and_another_viewer_sees_it_go() {
    let stub = Stub::new(|request| {
        if last_user(request).contains("go") && !after_tools(request) {
            let ask = json!({ "question": "Which colour?", "choices": ["red", "blue"] });
            return chat_calls(&[("ask_user", ask)]);
        }
        let said = request["messages"].to_string();
        chat_text(&[if said.contains("blue") {
            "it is blue"
        } else {
            "it is not"
        }])
    });
    let house = stub.house();
    let run = ["run", "--detach", "--json", "--model", "openai/m", "go"];
    let started = house.run(&run).well().json();
    let id = started["session_id"].as_str().unwrap();
    let mut one = Seat::at(&house, &["attach", id, "--plain"]);
    let two = Seat::at(&house, &["attach", id, "--plain", "--read-only"]);
    for viewer in [&one, &two] {
        viewer.shows("asks: Which colour?");
        viewer.shows("2) blue");
    }
    assert!(house.run(&["tree"]).out.contains("asks a person"));
    one.types("2");
    for viewer in [&one, &two] {
        viewer.shows(": blue (Which colour?)");
        viewer.shows("it is blue");
    }
    one.leaves();
    two.leaves();
}

#[test]
fn what_is_typed_behind_a_slash_is_a_command_or_else_goes_to_the_agent() {
    let house = House::new();
    let id = idle(&house);
    let typed = b"/rename a better name\n/tools\n/tool fly on\n/fly high\n/quit\nnever sent\n";
    let ended = house.run_with(&["attach", &id, "--plain"], typed).well();
    assert!(
        ended.err.contains("the session is called a better name"),
        "{ended:?}"
    );
    assert!(ended.err.contains("on  read_file"), "{ended:?}");
    assert!(ended.err.contains("has no tool fly"), "{ended:?}");
    assert!(ended.out.ends_with("/fly high\n"), "{ended:?}");
    let row = house.run(&["show", &id, "--json"]).well().json();
    assert_eq!(row["name"], "a better name");
    let looks = house.run_with(&["attach", &id, "--read-only"], b"hello\n/rename x\n");
    let looks = looks.well();
    assert!(looks.err.contains("this viewer only looks"), "{looks:?}");
    assert!(looks.err.contains("for looking only"), "{looks:?}");
}

#[test]
fn a_session_that_was_opened_to_work_with_ends_when_its_viewer_leaves_and_says_so() {
    let house = House::new();
    let ended = house
        .run_with(&["chat", "--model", "echo/any"], b"hello\n")
        .well();
    assert!(ended.err.contains("so it ends"), "{ended:?}");
    until("it has ended", || house.ls()[0]["status"] == "stopped");
    let id = house.ls()[0]["session_id"].as_str().unwrap().to_owned();
    house.run(&["background", &id, "on"]).well();
    let ended = house.run_with(&["chat", &id], b"more\n").well();
    assert!(!ended.err.contains("so it ends"), "{ended:?}");
    assert_eq!(house.ls()[0]["status"], "idle");
}
