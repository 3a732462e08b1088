//! An answer that is longer than a page shows, streamed to a reader that keeps up and to one that does
//! not: nothing of it is missing and nothing is there twice.

use std::io::Read;

use serde_json::json;

use crate::house::{House, until};
use crate::stub::{Stub, chat_text};

/// Numbered lines, longer than what a page shows of an item.
fn long() -> String {
    (0..40_000)
        .map(|number| format!("line {number}\n"))
        .collect()
}

fn pieces(text: &str) -> Vec<&str> {
    let cut = |at: usize| text.get(at..(at + 64).min(text.len()));
    (0..text.len()).step_by(64).filter_map(cut).collect()
}

#[test]
fn a_long_answer_is_whole_for_every_reader() {
    let text = long();
    let whole = text.clone();
    let stub = Stub::new(move |_| chat_text(&pieces(&whole)));
    let house = stub.house();
    let run = ["run", "--model", "openai/m", "go"];
    let plain = house.run(&run).well();
    assert!(
        plain.out == text,
        "{} of {} bytes",
        plain.out.len(),
        text.len()
    );
    let in_process = ["run", "--in-process", "--model", "openai/m", "go"];
    let alone = House::new()
        .with("OPENAI_API_KEY", "sk-test")
        .with("OPENAI_BASE_URL", &stub.url("/v1"))
        .run(&in_process)
        .well();
    assert!(
        alone.out == text,
        "{} of {} bytes",
        alone.out.len(),
        text.len()
    );
    let lines = house.run(&[&run[..], &["--json"]].concat()).well().lines();
    let deltas: String = lines
        .iter()
        .filter(|line| line["type"] == "delta")
        .map(|line| line["text"].as_str().unwrap())
        .collect();
    assert!(deltas == text, "{} of {} bytes", deltas.len(), text.len());
    let result = lines.last().unwrap();
    assert!(result["text"] == json!(text));
    let id = result["session_id"].as_str().unwrap();
    let page = house.run(&["events", id, "--json"]).well().json();
    let answer = page["events"].as_array().unwrap().last().unwrap();
    assert_eq!(answer["cut"], false);
    assert!(answer["text"] == json!(text));
}

#[test]
fn a_long_answer_is_whole_for_a_reader_that_comes_late() {
    let text = long();
    let whole = text.clone();
    let stub = Stub::new(move |_| chat_text(&pieces(&whole)));
    let house = stub.house();
    let mut run = house.spawn(&["run", "--model", "openai/m", "go"]);
    until("the session has its answer", || {
        house
            .ls()
            .first()
            .is_some_and(|row| row["outcome"] == "succeeded")
    });
    let mut out = String::new();
    run.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert!(run.wait().unwrap().success());
    assert!(out == text, "{} of {} bytes", out.len(), text.len());
}
