//! What the puppet says in these tests: the first word of its last input names a program, and how
//! many tool results have come since then is the step it is at. Text that names none is answered.

use std::time::Duration;

use attache_model::{ErrorKind, ModelError};
use attache_testkit::{Gate, Piece, Puppet, text};
use serde_json::{Value, json};

/// A request as the puppet gets it.
pub(crate) type Request = attache_testkit::Request;

/// What the puppet says; programs that wait do so at `gate`.
pub(crate) fn say(request: &Request, gate: &Gate) -> Vec<Piece> {
    let input = Puppet::last_user(request);
    let program = input.split(' ').next().unwrap_or_default();
    match (program, Puppet::rounds(request)) {
        ("list", 0) => calls(&[("agent_session_list", json!({}))]),
        ("two", 0) => calls(&[create("leaf 1"), create("leaf 2")]),
        ("two", 1) => {
            let ids = children(request);
            let waits: Vec<_> = ids.iter().map(|id| on(id, "agent_session_wait")).collect();
            calls(&waits)
        }
        ("watch", 0) => calls(&[create("leaf")]),
        ("deep", 0) => calls(&[create("watch")]),
        ("watch" | "deep", 1) => {
            let ids = children(request);
            let watches: Vec<_> = ids
                .iter()
                .map(|id| on(id, "agent_session_on_complete"))
                .collect();
            calls(&watches)
        }
        ("busy" | "idle" | "patient" | "chain-1", 0) => calls(&[create("late")]),
        ("chain-2", 0) => calls(&[create("chain-1")]),
        ("chain-3", 0) => calls(&[create("chain-2")]),
        ("busy" | "idle" | "chain-1" | "chain-2" | "chain-3", 1) => {
            let ids = children(request);
            calls(&[on(&ids[0], "agent_session_on_complete")])
        }
        ("patient", 1) => {
            let ids = children(request);
            let both = ["agent_session_on_complete", "agent_session_wait"];
            calls(&both.map(|tool| on(&ids[0], tool)))
        }
        ("busy", 2) => vec![
            Piece::Text("it takes ".to_owned()),
            Piece::Pause(Duration::from_secs(3)),
            Piece::Text("its time".to_owned()),
        ],
        ("late", 0) => vec![
            Piece::Pause(Duration::from_secs(1)),
            Piece::Text("the last token".to_owned()),
        ],
        ("child", 0) => calls(&[create("leaf")]),
        ("slow-child", 0) => calls(&[create("slow")]),
        ("ask", 0) => calls(&[("ask_user", json!({ "question": "Which one?" }))]),
        ("fail", 0) => vec![
            Piece::Text("half an answer".to_owned()),
            Piece::Fail(ModelError::new(ErrorKind::Refused, "no")),
        ],
        ("tree", 0) => calls(&[create("slow-child"), create("slow")]),
        ("slow", 0) => vec![
            Piece::Text("thinking ".to_owned()),
            Piece::Wait(gate.clone()),
            Piece::Call("agent_session_list".to_owned(), "{}".to_owned()),
        ],
        _ => text(&format!("answer to {input}")),
    }
}

fn create(first: &str) -> (&'static str, Value) {
    ("agent_session_create", json!({ "initial_message": first }))
}

fn on(id: &str, tool: &'static str) -> (&'static str, Value) {
    let mut arguments = json!({ "session_id": id });
    if tool == "agent_session_wait" {
        arguments["wait_for_idle"] = json!(true);
    }
    (tool, arguments)
}

fn calls(list: &[(&'static str, Value)]) -> Vec<Piece> {
    let piece = |(name, arguments): &(&'static str, Value)| {
        Piece::Call((*name).to_owned(), arguments.to_string())
    };
    list.iter().map(piece).collect()
}

/// Ids of the sessions that the newest results tell of.
fn children(request: &Request) -> Vec<String> {
    let results = Puppet::results(request);
    let ids = results.iter().filter_map(|result| {
        let value: Value = serde_json::from_str(result).ok()?;
        value["session_id"].as_str().map(str::to_owned)
    });
    ids.collect()
}
