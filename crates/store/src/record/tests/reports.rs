//! What stands beside a result for the ledger: written with it where there is any, absent from older records.

use attache_session::*;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::pictures::picture;
use super::{one_of, read, session, word};
use crate::record::encode_event;

fn report() -> impl Strategy<Value = CallReport> {
    let flags = any::<(bool, bool)>();
    let call = (word(), word(), flags).prop_map(|(name, arguments, flags)| NestedCall {
        name,
        arguments,
        failed: flags.0,
        changes_state: flags.1,
    });
    let nested = (vec(call, 0..3), any::<u64>());
    (
        option::of(word()),
        option::of(word()),
        any::<bool>(),
        nested,
    )
        .prop_map(
            |(target, detail, failed, (nested, nested_total))| CallReport {
                target,
                detail,
                failed,
                nested,
                nested_total,
            },
        )
}

/// Any result of a call.
pub(super) fn result() -> impl Strategy<Value = CallResult> {
    let origin = one_of(&[ResultOrigin::Tool, ResultOrigin::Cut]);
    let said = (word(), word(), any::<bool>());
    let beside = (option::of(any::<u64>()), option::of(report()));
    let images = vec(picture(), 0..3);
    (said, option::of(session()), origin, images, beside).prop_map(
        |((call, content, is_error), spawned, origin, images, (took_micros, report))| CallResult {
            call,
            content,
            is_error,
            spawned,
            origin,
            images,
            took_micros,
            report: report.map(Into::into),
        },
    )
}

fn ended(took_micros: Option<u64>, report: Option<CallReport>) -> Event {
    Event::CallEnded {
        turn: TurnId(3),
        result: CallResult {
            call: "c".into(),
            content: "text".into(),
            is_error: false,
            spawned: None,
            origin: ResultOrigin::Tool,
            images: Vec::new(),
            took_micros,
            report: report.map(Into::into),
        },
    }
}

fn written(event: Event) -> String {
    let stamped = Stamped {
        at: Timestamp(1),
        observed: None,
        event,
    };
    encode_event(&stamped).unwrap().into_owned()
}

#[test]
fn what_a_tool_says_of_a_call_is_stored_beside_its_result_and_costs_nothing_unsaid() {
    let before = r#"{"kind":"call-ended","v":1,"min_reader":1,"f":{"turn":3,"call":"c","is_error":false,"cut":false}}"#;
    assert_eq!(written(ended(None, None)), before);
    let report = CallReport {
        detail: Some("6 of 7 failed".into()),
        failed: true,
        ..CallReport::default()
    };
    let stored = r#"{"kind":"call-ended","v":1,"min_reader":1,"f":{"turn":3,"call":"c","is_error":false,"cut":false,"took_micros":7,"report":{"detail":"6 of 7 failed","failed":true}}}"#;
    assert_eq!(written(ended(Some(7), Some(report.clone()))), stored);
    assert_eq!(read(stored), Ok(ended(Some(7), Some(report))));
}

#[test]
fn a_result_from_before_and_after_reports_reads() {
    // From before there were any, and by a version that says more of them and less of a nested call.
    let before = r#"{"kind":"call-ended","v":1,"min_reader":1,"f":{"turn":3,"call":"c","is_error":false,"cut":false}}"#;
    assert_eq!(read(before), Ok(ended(None, None)));
    let after = r#"{"kind":"call-ended","f":{"turn":3,"call":"c","took_micros":-1,"report":{"mood":"good","nested":[{"name":"n","age":1}],"nested_total":20}}}"#;
    let report = CallReport {
        nested: vec![NestedCall {
            name: "n".into(),
            arguments: "".into(),
            failed: false,
            changes_state: true,
        }],
        nested_total: 20,
        ..CallReport::default()
    };
    assert_eq!(read(after), Ok(ended(Some(0), Some(report))));
}
