//! A ledger as viewers are told of it. Each part is taken apart without `..`, so that a new field breaks the build here.

use attache_protocol::{CallOutcome, LedgerCallView, LedgerView, NestedCallView};
use attache_session::{Ledger, LedgerEntry, NestedCall};

pub(crate) fn to_wire(ledger: &Ledger) -> LedgerView {
    let Ledger { calls, total } = ledger;
    LedgerView {
        total: *total,
        calls: calls.iter().map(entry).collect(),
    }
}

fn entry(entry: &LedgerEntry) -> LedgerCallView {
    let LedgerEntry {
        name,
        arguments,
        arguments_digest,
        result_digest,
        outcome: came_to,
        duration_micros,
        changes_state,
        detail,
        nested: calls,
        nested_total,
    } = entry;
    LedgerCallView {
        name: name.to_string(),
        arguments: arguments.to_string(),
        arguments_digest: arguments_digest.to_string(),
        result_digest: result_digest.map(|digest| digest.to_string()),
        outcome: outcome(*came_to),
        duration_micros: *duration_micros,
        changes_state: *changes_state,
        detail: detail.as_deref().map(str::to_owned),
        nested: calls.iter().map(nested).collect(),
        nested_total: *nested_total,
    }
}

fn nested(call: &NestedCall) -> NestedCallView {
    let NestedCall {
        name,
        arguments,
        failed: _,
        changes_state,
    } = call;
    NestedCallView {
        name: name.to_string(),
        arguments: arguments.to_string(),
        outcome: outcome(call.outcome()),
        changes_state: *changes_state,
    }
}

fn outcome(outcome: attache_session::CallOutcome) -> CallOutcome {
    match outcome {
        attache_session::CallOutcome::Ok => CallOutcome::Ok,
        attache_session::CallOutcome::Failed => CallOutcome::Failed,
        attache_session::CallOutcome::Cut => CallOutcome::Cut,
        attache_session::CallOutcome::Running => CallOutcome::Running,
    }
}
