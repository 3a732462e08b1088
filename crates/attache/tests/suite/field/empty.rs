//! An empty last answer, at the top and in a child. G-16.

use serde_json::{Value, json};

use super::{DONE, Scene, both, delta, diagnosed, events, finish, fragments};
use crate::stub::{Reply, after_tools};

/// A call, with a text before it or without, then nothing for ever.
fn scene(text: Option<&str>, bytes: usize) -> Scene {
    let call = json!([{ "index": 0, "id": "call_1",
        "function": { "name": "list_directory", "arguments": "{}" } }]);
    let mut list: Vec<String> = Vec::new();
    list.extend(text.map(|text| delta(&json!({ "content": text }))));
    list.extend([fragments(&call), finish("tool_calls"), DONE.to_owned()]);
    let calls = both(&events(&list))[bytes].clone();
    let empty = both(&events(&[
        delta(&json!({})),
        finish("stop"),
        DONE.to_owned(),
    ]))[bytes]
        .clone();
    Scene::new(move |request: &Value| -> Reply {
        let was_called = request["messages"].to_string().contains("call_1");
        if after_tools(request) || was_called {
            empty.clone()
        } else {
            calls.clone()
        }
    })
}

/// How often it was asked again because it had said nothing.
fn reminders(scene: &Scene) -> usize {
    let requests = scene.stub.requests();
    let reminded = requests.iter().filter(|request| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        last["content"].to_string().contains("was empty")
    });
    reminded.count()
}

const MARK: &str = "the last answer was empty";

#[test]
fn g16_at_the_top_an_empty_answer_is_reminded_of_once_and_marked() {
    for bytes in [0, 1] {
        let nothing = scene(None, bytes);
        let told = nothing.run();
        assert_eq!(reminders(&nothing), 1);
        assert_eq!(nothing.stub.requests().len(), 3);
        assert_eq!(told.result["outcome"], "succeeded");
        assert_eq!(told.result["end_reason"], "no-output");
        assert_eq!(nothing.show(&told.id)["result_preview"], Value::Null);
        nothing.alive(&told.id);

        let report = scene(Some("Report: all is well."), bytes);
        let told = report.run();
        assert_eq!(reminders(&report), 1);
        assert_eq!(told.result["outcome"], "succeeded");
        assert_eq!(told.result["end_reason"], "completed");
        assert_eq!(told.deltas, "Report: all is well.");
        let shown = report.show(&told.id);
        assert_eq!(shown["result_preview"], "Report: all is well.");
        diagnosed(&report, &told.id, MARK);
        report.restart();
        let shown = report.show(&told.id);
        assert_eq!(shown["result_preview"], "Report: all is well.");
        diagnosed(&report, &told.id, MARK);
        report.alive(&told.id);
    }
}

#[test]
fn g16_a_childs_result_is_its_last_text_and_its_parent_is_told_when_there_is_none() {
    let nothing = scene(None, 0);
    let (told, child) = nothing.run_child("openai/m");
    assert_eq!(reminders(&nothing), 1);
    let shown = nothing.show(&child);
    assert_eq!(shown["outcome"], "succeeded");
    assert_eq!(shown["end_reason"], "no-output");
    assert_eq!(shown["result_preview"], Value::Null);
    let notices = nothing.texts(&told.id, "diagnostic");
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(
        notices[0].contains("outcome: succeeded, end reason: no-output. It gave no output."),
        "{notices:?}"
    );
    assert_eq!(nothing.texts(&told.id, "assistant"), ["waiting", "told"]);
    nothing.alive(&told.id);
    nothing.alive(&child);

    let report = scene(Some("Report: all is well."), 0);
    let (told, child) = report.run_child("openai/m");
    assert_eq!(reminders(&report), 1);
    let shown = report.show(&child);
    assert_eq!(shown["outcome"], "succeeded");
    assert_eq!(shown["end_reason"], "completed");
    assert_eq!(shown["result_preview"], "Report: all is well.");
    diagnosed(&report, &child, MARK);
    let notices = report.texts(&told.id, "diagnostic");
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(!notices[0].contains("no-output"), "{notices:?}");
    assert_eq!(report.texts(&told.id, "assistant"), ["waiting", "told"]);
    report.restart();
    diagnosed(&report, &child, MARK);
    report.alive(&child);
}
