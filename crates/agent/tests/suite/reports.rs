//! What stands beside a result for the ledger: how long the call ran, and what its tool says of it, within bounds.

use std::time::Duration;

use attache_agent::{Input, Output, ToolOutcome};
use attache_session::{CallReport, CallResult, NestedCall};
use serde_json::{Value, json};

use crate::turn::{all, call, turn};

/// A call that ended with this text.
pub(crate) fn ended(id: &str, content: &str) -> Input {
    let outcome = ToolOutcome {
        content: content.to_owned(),
        ..ToolOutcome::json(&Value::Null)
    };
    Input::ToolEnded {
        call: id.into(),
        outcome,
        took: Duration::from_millis(7),
    }
}

/// The recorded result of a turn's one call.
fn recorded(name: &str, ended: Option<(ToolOutcome, Duration)>) -> CallResult {
    let mut turn = turn(50);
    turn.handle(Input::Begin);
    let asks = call(0, "a", name, "{}");
    let mut out = all(&mut turn, asks.into_iter().chain([Input::ModelEnded]));
    out.extend(turn.handle(Input::StepRecorded));
    if let Some((outcome, took)) = ended {
        out.extend(turn.handle(Input::ToolEnded {
            call: "a".into(),
            outcome,
            took,
        }));
    }
    let results = out.into_iter().find_map(|output| match output {
        Output::RecordResults(mut results) => results.pop(),
        _ => None,
    });
    results.expect("a result is recorded")
}

#[test]
fn a_result_is_recorded_with_the_time_that_its_call_took_and_with_a_bounded_report() {
    let plain = || ToolOutcome::json(&json!({ "found": true }));
    let took = Duration::from_micros(12_345);
    let result = recorded("look_up", Some((plain(), took)));
    assert_eq!((result.took_micros, result.report), (Some(12_345), None));
    // A tool that says nothing of a call is like one that does not report.
    let silent = plain().with_report(CallReport::default());
    assert_eq!(recorded("look_up", Some((silent, took))).report, None);

    let nested = NestedCall {
        name: "fetch".into(),
        arguments: "é".repeat(500).into(),
        failed: true,
        changes_state: false,
    };
    let report = CallReport {
        detail: Some("d".repeat(500).into()),
        failed: true,
        nested: vec![nested; 20],
        ..CallReport::default()
    };
    let outcome = plain().with_report(report);
    let result = recorded("look_up", Some((outcome, took)));
    // What the model reads is as ever.
    assert_eq!(
        (&*result.content, result.is_error),
        (r#"{"found":true}"#, false)
    );
    let report = result.report.expect("the report is recorded");
    assert!(report.failed);
    assert_eq!((report.nested.len(), report.nested_total), (15, 20));
    let texts = [report.detail.as_deref(), Some(&report.nested[0].arguments)];
    let counts = texts.map(|text| text.map_or(0, |text| text.chars().count()));
    assert_eq!(counts, [200, 100]);

    // A call that could not be made took no time.
    let result = recorded("no_such_tool", None);
    assert_eq!((result.is_error, result.took_micros), (true, Some(0)));
}
