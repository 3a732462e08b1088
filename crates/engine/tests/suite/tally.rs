//! How often everything occurred in a simulation, and what must have occurred.

use std::collections::BTreeMap;

use attache_session::{CallResult, Event, Origin, ResultOrigin};
use attache_store::{Log as _, MemoryStore, RowFilter, Rows as _};
use serde_json::Value;

/// How often each thing occurred.
pub(crate) type Counts = BTreeMap<String, u64>;

pub(crate) fn count(counts: &mut Counts, what: &str) {
    *counts.entry(what.to_owned()).or_default() += 1;
}

/// What must have occurred at least once over all seeds: every kind of event that a session with turns has, every
/// fault, every race, and every way in which something ends.
pub(crate) const MUST: &[&str] = &[
    "created",
    "started",
    "stopped",
    "queued",
    "edited",
    "withdrawn",
    "moved",
    "queue-set",
    "queue-deleted",
    "turn-started",
    "consumed",
    "said",
    "call-started",
    "call-ended",
    "turn-ended",
    "compacted",
    "bounds-set",
    "noted",
    "watch-set",
    "watch-ended",
    "watcher-added",
    "watcher-removed",
    "child-held",
    "child-released",
    "parent-holds",
    "parent-released",
    "sent",
    "a call cut",
    "input at a tool boundary",
    "a notice",
    "an append refused",
    "a crash before an append",
    "a crash after an append",
    "a crash after an answer",
    "a crash in the life after a crash",
    "input refused for a full disk",
    "a model failed",
    "an overflow",
    "a cut by hand",
    "a cut while a turn runs",
    "an owner elsewhere",
    "a command fenced",
    "an unload",
    "a load again",
    "a viewer",
    "outcome failed",
    "end storage-error",
    "end provider-error",
    "end budget",
    "outcome interrupted",
    "outcome cancelled",
    "outcome succeeded",
    "outcome out-of-budget",
    "stopped disposed",
    "stopped terminated",
    "stopped parent-ended",
    "stopped host-restart",
    "a wait ended by output",
    "a wait ended by settled",
    "a wait ended by timeout",
    "a wait ended by steered",
    "a wait ended by stopped",
    "a watch fired at once",
    "an interrupt that hit",
    "a tree with 1 generations",
    "a tree with 2 generations",
    "a tree with 3 generations",
    "a tree with 4 generations",
    "a budget of a child",
    "refused: agents",
    "refused: depth",
    "refused: paused",
    "refused: more than is left",
    "a turn waits for a place",
    "a limit raised",
    "a limit lowered",
    "a limit lifted",
    "a tree paused",
    "a tree resumed",
    "told of a budget",
];

/// Counts what lies in a store at the end of a life.
pub(crate) fn tally(store: &MemoryStore, counts: &mut Counts) {
    let rows = store.rows(RowFilter::All, None, usize::MAX);
    for row in rows.expect("rows can be read") {
        let events = store.events(row.session, attache_session::Position(0), usize::MAX);
        let events: Vec<Event> = events
            .expect("the log can be read")
            .into_iter()
            .map(|item| item.event.event)
            .collect();
        for pair in events.windows(2) {
            if let [Event::CallEnded { .. }, Event::Consumed { .. }] = pair {
                count(counts, "input at a tool boundary");
            }
        }
        let mut runs = false;
        for event in &events {
            count(counts, event.kind());
            of_event(event, counts);
            match event {
                Event::TurnStarted { .. } => runs = true,
                Event::TurnEnded { .. } => runs = false,
                Event::Compacted { .. } if runs => count(counts, "a cut while a turn runs"),
                _ => {}
            }
        }
    }
    for trace in store.traces() {
        if trace.refused {
            count(counts, "an append refused");
        }
    }
}

fn of_event(event: &Event, counts: &mut Counts) {
    match event {
        Event::CallEnded { result, .. } => of_result(result, counts),
        Event::Queued { item, .. } => {
            if matches!(item.origin, Origin::Notice { .. }) {
                count(counts, "a notice");
                if item.text.starts_with("Four fifths of the budget") {
                    count(counts, "told of a budget");
                }
            }
            if let Some(generation) = item.text.strip_prefix("work ")
                && let Some(generation @ ("1" | "2" | "3" | "4")) = generation.get(..1)
                && item.origin != Origin::Viewer
            {
                count(counts, &format!("a tree with {generation} generations"));
            }
        }
        Event::TurnEnded { reason, .. } => {
            count(counts, &format!("end {reason}"));
            count(counts, &format!("outcome {}", reason.outcome()));
        }
        Event::Noted { code, .. } if **code == *"provider-error" => {
            count(counts, "a model failed");
        }
        Event::Stopped { reason, .. } => count(counts, &format!("stopped {reason}")),
        Event::Created(created) if !created.parents.is_empty() && !created.budget.is_none() => {
            count(counts, "a budget of a child");
        }
        _ => {}
    }
}

fn of_result(result: &CallResult, counts: &mut Counts) {
    if result.origin == ResultOrigin::Cut {
        count(counts, "a call cut");
    }
    let Ok(answer) = serde_json::from_str::<Value>(&result.content) else {
        return;
    };
    if let Some(end) = answer["ended_by"].as_str() {
        count(counts, &format!("a wait ended by {end}"));
    }
    if answer["fired_immediately"] == true {
        count(counts, "a watch fired at once");
    }
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    for (words, what) in [
        ("limit agents", "refused: agents"),
        ("limit depth", "refused: depth"),
        ("spawning is paused", "refused: paused"),
        ("a child cannot get", "refused: more than is left"),
    ] {
        if message.contains(words) {
            count(counts, what);
        }
    }
}
