//! The ledger of a run: what each of its tool calls was and came to. It is computed from the history whenever somebody
//! asks and is stored nowhere; the history keeps beside each result only what it would not tell by itself, a
//! [`CallReport`] and the time that the call took.
//!
//! A run whose beginning is not known has no ledger, and a run that made no calls has an empty one.

use std::cmp::Reverse;
use std::fmt;
use std::sync::Arc;

use crate::event::{CallResult, Event, ResultOrigin, Stamped};
use crate::id::CallId;
use crate::time::Timestamp;
use crate::turn::NewCall;

/// Most calls that a ledger shows; how many there were is told beside them.
pub const LEDGER_CALLS: usize = 40;

/// Most calls that are kept of those that one call made by itself.
pub const NESTED_CALLS: usize = 15;

/// Most characters of arguments in a ledger.
pub const ARGUMENTS_CHARS: usize = 100;

/// Most characters of a call's detail.
pub const DETAIL_CHARS: usize = 200;

/// Most characters of a tool's name in a ledger: no tool that exists has a longer one, but a model can write any.
const NAME_CHARS: usize = 64;

/// What a tool says of one of its calls, for the ledger and not for the model.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CallReport {
    /// The tool that was really called, where the called one only passes calls on.
    pub target: Option<Arc<str>>,
    /// What came of it, in a few words, such as `6 of 7 failed`.
    pub detail: Option<Arc<str>>,
    /// It failed, although what the model reads is no error.
    pub failed: bool,
    /// Calls that it made by itself, oldest first.
    pub nested: Vec<NestedCall>,
    /// How many those were, where more were made than are named.
    pub nested_total: u64,
}

/// A call that another call made by itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NestedCall {
    /// The tool.
    pub name: Arc<str>,
    /// Its arguments.
    pub arguments: Arc<str>,
    /// Whether it failed.
    pub failed: bool,
    /// Whether it may have changed something.
    pub changes_state: bool,
}

impl CallReport {
    /// The report as it is recorded: texts on one line and cut (names 64 characters, arguments 100, detail 200), at most
    /// 15 nested calls, those kept that a ledger would keep, and their true number. None when nothing is said.
    #[must_use]
    pub fn bounded(self) -> Option<Self> {
        let Self {
            target,
            detail,
            failed,
            nested,
            nested_total,
        } = self;
        let nested_total = nested_total.max(nested.len() as u64);
        let rank = |call: &NestedCall| rank(call.failed, call.changes_state, false);
        let nested = most_telling(nested, NESTED_CALLS, rank);
        let bounded = Self {
            target: target.and_then(|text| said(&text, NAME_CHARS)),
            detail: detail.and_then(|text| said(&text, DETAIL_CHARS)),
            failed,
            nested: nested.into_iter().map(NestedCall::bounded).collect(),
            nested_total,
        };
        (bounded != Self::default()).then_some(bounded)
    }
}

impl NestedCall {
    /// What it came to: ok or failed.
    #[must_use]
    pub fn outcome(&self) -> CallOutcome {
        if self.failed {
            CallOutcome::Failed
        } else {
            CallOutcome::Ok
        }
    }

    fn bounded(self) -> Self {
        Self {
            name: in_short(&self.name, NAME_CHARS),
            arguments: in_short(&self.arguments, ARGUMENTS_CHARS),
            ..self
        }
    }
}

/// A SHA-256 digest. It shows as 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Digest(pub [u8; 32]);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// What a call came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallOutcome {
    /// It did what it was for.
    Ok,
    /// It failed, by its result or by its report.
    Failed,
    /// It has no result: the run ended first. It may have taken effect.
    Cut,
    /// It has no result yet.
    Running,
}

impl CallOutcome {
    /// The stable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Cut => "cut",
            Self::Running => "running",
        }
    }
}

/// A call of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LedgerEntry {
    /// The tool as the model named it; with ` -> TARGET` behind it where it only passed the call on.
    pub name: Arc<str>,
    /// The beginning of its arguments, on one line, at most 100 characters; what is cut ends with `…`.
    pub arguments: Arc<str>,
    /// Digest of the arguments, byte for byte as the model wrote them.
    pub arguments_digest: Digest,
    /// Digest of the result's whole text, without its pictures; none when the tool gave none.
    pub result_digest: Option<Digest>,
    /// What it came to.
    pub outcome: CallOutcome,
    /// How long it took, in microseconds. Calls of one step run side by side: the sum may be more than the run took.
    /// None for a call that was cut or runs, and where that was not written down and cannot be told from the stamps.
    pub duration_micros: Option<u64>,
    /// Whether it, or a call that it made, may have changed something.
    pub changes_state: bool,
    /// What came of it, as the tool put it; at most 200 characters.
    pub detail: Option<Arc<str>>,
    /// Calls that it made by itself, oldest first, at most 15.
    pub nested: Vec<NestedCall>,
    /// How many those were.
    pub nested_total: u64,
}

/// The calls of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ledger {
    /// Oldest first. Of more than 40, the first to be kept are those that failed or were cut, then those that change
    /// state, then others, and last bookkeeping; of each kind the newest.
    pub calls: Vec<LedgerEntry>,
    /// How many calls the run has made.
    pub total: u64,
}

struct Draft {
    call: CallId,
    started: Timestamp,
    bookkeeping: bool,
    entry: LedgerEntry,
}

/// Reads a history, oldest first, and keeps of it what a ledger needs of the last run.
pub struct LedgerFold<B> {
    digest: fn(&[u8]) -> Digest,
    is_bookkeeping: B,
    run: Option<Run>,
}

#[derive(Default)]
struct Run {
    calls: Vec<Draft>,
    ended: bool,
    /// Something stands in it that this version does not know, and that may have been a call.
    strange: bool,
}

impl<B: Fn(&str) -> bool> LedgerFold<B> {
    /// Nothing is read yet. `digest` is SHA-256; `is_bookkeeping` says of a tool's name whether its calls only look
    /// after the work, so that they are the first to be left out.
    pub fn new(digest: fn(&[u8]) -> Digest, is_bookkeeping: B) -> Self {
        Self {
            digest,
            is_bookkeeping,
            run: None,
        }
    }

    /// Takes in the next event. The beginning of a turn begins a new ledger. Total: a history that says something odd
    /// is taken as far as it makes sense.
    pub fn push(&mut self, stamped: &Stamped) {
        if let Event::TurnStarted { .. } = stamped.event {
            self.run = Some(Run::default());
        }
        let Some(run) = &mut self.run else {
            return;
        };
        match &stamped.event {
            Event::CallStarted { call, .. } => run.calls.push(Draft {
                call: Arc::clone(&call.id),
                started: said_at(stamped),
                bookkeeping: (self.is_bookkeeping)(&call.name),
                entry: begun(call, self.digest),
            }),
            Event::CallEnded { result, .. } => {
                let open = |draft: &&mut Draft| {
                    draft.call == result.call && draft.entry.outcome == CallOutcome::Running
                };
                if let Some(draft) = run.calls.iter_mut().rev().find(open) {
                    draft.end(result, said_at(stamped), self.digest);
                }
            }
            Event::TurnEnded { .. } | Event::Stopped { .. } => run.ended = true,
            Event::Unknown { .. } => run.strange = true,
            _ => {}
        }
    }

    /// The ledger of the last run that was read. `in_flight` says whether a turn runs now: else a call without a result
    /// was cut. None when there was no run, or when nothing is known of its calls.
    pub fn finish(self, in_flight: bool) -> Option<Ledger> {
        let Run {
            mut calls,
            ended,
            strange,
        } = self.run?;
        if calls.is_empty() && strange {
            return None;
        }
        let total = calls.len() as u64;
        if ended || !in_flight {
            for draft in &mut calls {
                if draft.entry.outcome == CallOutcome::Running {
                    draft.entry.outcome = CallOutcome::Cut;
                }
            }
        }
        let calls = most_telling(calls, LEDGER_CALLS, |draft| {
            let failed = matches!(draft.entry.outcome, CallOutcome::Failed | CallOutcome::Cut);
            rank(failed, draft.entry.changes_state, draft.bookkeeping)
        });
        Some(Ledger {
            calls: calls.into_iter().map(|draft| draft.entry).collect(),
            total,
        })
    }
}

/// A call that has begun.
fn begun(call: &NewCall, digest: fn(&[u8]) -> Digest) -> LedgerEntry {
    LedgerEntry {
        name: in_short(&call.name, NAME_CHARS),
        arguments: in_short(&call.arguments, ARGUMENTS_CHARS),
        arguments_digest: digest(call.arguments.as_bytes()),
        result_digest: None,
        outcome: CallOutcome::Running,
        duration_micros: None,
        changes_state: call.changes_state,
        detail: None,
        nested: Vec::new(),
        nested_total: 0,
    }
}

impl Draft {
    fn end(&mut self, result: &CallResult, at: Timestamp, digest: fn(&[u8]) -> Digest) {
        let CallResult {
            call: _,
            content,
            is_error,
            spawned: _,
            origin,
            images: _,
            took_micros,
            report,
        } = result;
        let entry = &mut self.entry;
        if *origin == ResultOrigin::Cut {
            entry.outcome = CallOutcome::Cut;
            return;
        }
        let between = u64::try_from(at.0.saturating_sub(self.started.0)).ok();
        entry.result_digest = Some(digest(content.as_bytes()));
        entry.duration_micros = took_micros.or(between);
        entry.outcome = CallOutcome::Ok;
        if *is_error {
            entry.outcome = CallOutcome::Failed;
        }
        if let Some(report) = report {
            let CallReport {
                target,
                detail,
                failed,
                nested,
                nested_total,
            } = &**report;
            if let Some(target) = target {
                entry.name = format!("{} -> {target}", entry.name).into();
            }
            if *failed {
                entry.outcome = CallOutcome::Failed;
            }
            entry.detail.clone_from(detail);
            entry.changes_state |= nested.iter().any(|call| call.changes_state);
            entry.nested.clone_from(nested);
            entry.nested_total = *nested_total;
        }
    }
}

/// What the clock said when an event was stamped.
fn said_at(stamped: &Stamped) -> Timestamp {
    stamped.observed.unwrap_or(stamped.at)
}

/// The lower, the sooner a call is kept.
fn rank(failed: bool, changes_state: bool, bookkeeping: bool) -> u8 {
    match (failed, changes_state, bookkeeping) {
        (true, _, _) => 0,
        (false, true, _) => 1,
        (false, false, false) => 2,
        (false, false, true) => 3,
    }
}

/// At most `most` of what is there: the lowest ranks, of equal ones the last. The order stays.
fn most_telling<T>(mut items: Vec<T>, most: usize, rank: impl Fn(&T) -> u8) -> Vec<T> {
    if items.len() <= most {
        return items;
    }
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|at| (rank(&items[*at]), Reverse(*at)));
    let mut keep = vec![false; items.len()];
    for at in &order[..most] {
        keep[*at] = true;
    }
    let mut keep = keep.into_iter();
    items.retain(|_| keep.next() == Some(true));
    items
}

/// The same as [`in_short`]; none when nothing is said.
fn said(text: &str, limit: usize) -> Option<Arc<str>> {
    let text = in_short(text, limit);
    (!text.is_empty()).then_some(text)
}

/// A text on one line, of at most `limit` characters: runs of spaces and control characters are one space, none stands
/// at its ends, and what is cut ends with `…`.
fn in_short(text: &str, limit: usize) -> Arc<str> {
    let mut short = String::new();
    let (mut count, mut gap) = (0, false);
    for character in text.chars() {
        if character.is_whitespace() || character.is_control() {
            gap = count > 0;
            continue;
        }
        let more = 1 + usize::from(gap);
        if count + more > limit {
            if count == limit {
                short.pop();
            }
            short.push('…');
            break;
        }
        if gap {
            short.push(' ');
        }
        short.push(character);
        count += more;
        gap = false;
    }
    short.into()
}
