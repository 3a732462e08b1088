//! The tool calls of a session's last run, for `attache show --ledger`.

use attache_client::Client;
use attache_client::protocol::{Answer, Command, LedgerCallView, LedgerView, NestedCallView};
use serde_json::{Value, json};

use crate::fail::Failure;
use crate::safe::in_line;

/// The ledger of a session; none when it has had no run, or nothing is known of it.
pub(crate) async fn of(client: &Client, id: &str) -> Result<Option<LedgerView>, Failure> {
    let session_id = id.to_owned();
    match client.ask(Command::GetLedger { session_id }).await? {
        Answer::Ledger { ledger } => Ok(ledger),
        _ => Err(Failure::internal("an answer of another kind")),
    }
}

/// As JSON: null when nothing is known, which is another thing than no calls.
pub(crate) fn shape(ledger: Option<&LedgerView>) -> Value {
    let Some(LedgerView { total, calls }) = ledger else {
        return Value::Null;
    };
    json!({ "total": total, "calls": calls.iter().map(call).collect::<Vec<_>>() })
}

fn call(call: &LedgerCallView) -> Value {
    let LedgerCallView {
        name,
        arguments,
        arguments_digest,
        result_digest,
        outcome,
        duration_micros,
        changes_state,
        detail,
        nested: calls,
        nested_total,
    } = call;
    json!({
        "name": name,
        "arguments": arguments,
        "arguments_digest": arguments_digest,
        "result_digest": result_digest,
        "outcome": outcome.as_str(),
        "duration_micros": duration_micros,
        "changes_state": changes_state,
        "detail": detail,
        "nested": calls.iter().map(nested).collect::<Vec<_>>(),
        "nested_total": nested_total,
    })
}

fn nested(call: &NestedCallView) -> Value {
    let NestedCallView {
        name,
        arguments,
        outcome,
        changes_state,
    } = call;
    json!({
        "name": name,
        "arguments": arguments,
        "outcome": outcome.as_str(),
        "changes_state": changes_state,
    })
}

/// For people: one line that says how many there are, then one for each call, and under it those that it made.
pub(crate) fn lines(ledger: Option<&LedgerView>) -> String {
    let Some(LedgerView { total, calls }) = ledger else {
        return "tool calls            not known: there has been no run, or nothing of it is known\n".to_owned();
    };
    let shown = calls.len() as u64;
    let mut text = match total {
        0 => "tool calls            none in the last run\n".to_owned(),
        total if shown < *total => {
            format!("tool calls            {total} in the last run, {shown} of them here\n")
        }
        total => format!("tool calls            {total} in the last run\n"),
    };
    for call in calls {
        text.push_str(&line(call));
        for nested in &call.nested {
            let NestedCallView {
                name,
                arguments,
                outcome,
                changes_state,
            } = nested;
            text.push_str(&format!(
                "      {:<8}{:<9}{}  {}\n",
                outcome.as_str(),
                changing(*changes_state),
                in_line(name),
                in_line(arguments)
            ));
        }
        let more = call.nested_total.saturating_sub(call.nested.len() as u64);
        if more > 0 {
            text.push_str(&format!("      and {more} more\n"));
        }
    }
    text
}

fn line(call: &LedgerCallView) -> String {
    let took = call.duration_micros.map_or("-".to_owned(), duration);
    let mut line = format!(
        "  {:<8}{:<9}{took:>9}  {}  {}",
        call.outcome.as_str(),
        changing(call.changes_state),
        in_line(&call.name),
        in_line(&call.arguments)
    );
    if let Some(detail) = &call.detail {
        line.push_str(&format!("  ({})", in_line(detail)));
    }
    line.push('\n');
    line
}

fn changing(changes_state: bool) -> &'static str {
    if changes_state { "changes" } else { "looks" }
}

/// Three digits or so: `840 µs`, `12.5 ms`, `3.21 s`, `125 s`.
fn duration(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => format!("{:.1} ms", micros as f64 / 1e3),
        1_000_000..100_000_000 => format!("{:.2} s", micros as f64 / 1e6),
        _ => format!("{} s", micros / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use attache_client::protocol::CallOutcome;

    use super::*;

    fn call(name: &str, outcome: CallOutcome) -> LedgerCallView {
        LedgerCallView {
            name: name.to_owned(),
            arguments: "{}".to_owned(),
            arguments_digest: String::new(),
            result_digest: None,
            outcome,
            duration_micros: None,
            changes_state: false,
            detail: None,
            nested: Vec::new(),
            nested_total: 0,
        }
    }

    #[test]
    fn a_ledger_is_told_line_by_line_and_none_is_another_thing_than_an_empty_one() {
        let nested = NestedCallView {
            name: "fetch".to_owned(),
            arguments: "{}".to_owned(),
            outcome: CallOutcome::Failed,
            changes_state: true,
        };
        let batch = LedgerCallView {
            duration_micros: Some(12_480),
            changes_state: true,
            detail: Some("6 of 7\u{1b}[2J failed".to_owned()),
            nested: vec![nested],
            nested_total: 7,
            ..call("run_batch", CallOutcome::Failed)
        };
        let ledger = |total, calls| Some(LedgerView { total, calls });
        let two = vec![call("grep", CallOutcome::Ok), batch];
        let shown = lines(ledger(50, two).as_ref());
        let shown: Vec<&str> = shown.lines().collect();
        assert_eq!(
            shown[0],
            "tool calls            50 in the last run, 2 of them here"
        );
        assert_eq!(shown[1], "  ok      looks            -  grep  {}");
        assert!(shown[2].starts_with("  failed  changes    12.5 ms  run_batch  {}  (6 of 7"));
        assert!(!shown[2].contains('\u{1b}'));
        assert_eq!(shown[3], "      failed  changes  fetch  {}");
        assert_eq!(shown[4..], ["      and 6 more"]);
        let whole = lines(ledger(1, vec![call("grep", CallOutcome::Ok)]).as_ref());
        assert!(whole.starts_with("tool calls            1 in the last run\n"));
        let none = lines(ledger(0, Vec::new()).as_ref());
        assert_eq!(none, "tool calls            none in the last run\n");
        assert!(lines(None).contains("not known"));
        assert_eq!(shape(None), Value::Null);
        let empty = json!({ "total": 0, "calls": [] });
        assert_eq!(shape(ledger(0, Vec::new()).as_ref()), empty);
    }

    #[test]
    fn a_duration_has_few_digits() {
        for (micros, shown) in [
            (0, "0 µs"),
            (999, "999 µs"),
            (1_000, "1.0 ms"),
            (12_480, "12.5 ms"),
            (3_210_000, "3.21 s"),
            (125_900_000, "125 s"),
        ] {
            assert_eq!(duration(micros), shown);
        }
    }
}
