//! Rules for the turn: steps, calls, results, steering, the end. A step of a turn that is not the
//! current one is refused, whatever it says.

use std::sync::Arc;

use super::Draft;
use super::lifecycle::give_up_watches;
use super::mail::push_notice;
use super::modals::withdraw;
use crate::command::{Answer, Effect, Rejected};
use crate::event::{CallResult, Event, ResultOrigin};
use crate::id::{Ids, TurnId, WatchId};
use crate::mail::MailBody;
use crate::outcome::EndReason;
use crate::queue::takeable;
use crate::turn::{Cut, NewCall, StepText};

pub(super) fn record_step(
    draft: &mut Draft,
    turn: TurnId,
    step: &StepText,
    calls: &[NewCall],
) -> Result<Answer, Rejected> {
    current(draft, turn)?;
    draft.push(Event::Said {
        turn,
        step: step.clone(),
    });
    for call in calls {
        draft.push(Event::CallStarted {
            turn,
            call: call.clone(),
        });
    }
    Ok(Answer::Done)
}

/// The boundary at which steering is taken is the moment in which the last open call has its
/// result: the input stands right behind the results in the history.
pub(super) fn record_results(
    draft: &mut Draft,
    turn: TurnId,
    results: &[CallResult],
) -> Result<Answer, Rejected> {
    current(draft, turn)?;
    for result in results {
        let open = draft
            .state
            .turn
            .as_ref()
            .is_some_and(|open| open.calls.iter().any(|call| call.id == result.call));
        if !open {
            return Err(Rejected::UnknownCall {
                call: Arc::clone(&result.call),
            });
        }
        withdraw(draft, |modal| modal.call == result.call);
        draft.push(Event::CallEnded {
            turn,
            result: result.clone(),
        });
    }
    let boundary = draft
        .state
        .turn
        .as_ref()
        .is_some_and(|open| open.calls.is_empty());
    let ready = if boundary {
        takeable(&draft.state.queues, Some(turn))
    } else {
        Vec::new()
    };
    let items = ready.iter().map(|(_, item)| Arc::clone(item)).collect();
    for (queue, item) in ready {
        draft.push(Event::Consumed { turn, queue, item });
    }
    Ok(Answer::Steered { items })
}

pub(super) fn note(
    draft: &mut Draft,
    turn: TurnId,
    code: &Arc<str>,
    text: &Arc<str>,
) -> Result<Answer, Rejected> {
    current(draft, turn)?;
    draft.push(Event::Noted {
        code: Arc::clone(code),
        text: Arc::clone(text),
    });
    Ok(Answer::Done)
}

/// The run goes on: who holds the session decides what becomes of it.
pub(super) fn tell_parents(
    draft: &mut Draft,
    turn: TurnId,
    code: &Arc<str>,
    text: &Arc<str>,
    ids: &mut dyn Ids,
) -> Result<Answer, Rejected> {
    note(draft, turn, code, text)?;
    let holders = draft.state.parents.iter().filter(|parent| parent.holds);
    let holders: Vec<_> = holders.map(|parent| parent.id).collect();
    for parent in holders {
        draft.post(
            parent,
            MailBody::Report {
                watch: WatchId(ids.fresh()),
                text: Arc::clone(text),
            },
        );
    }
    Ok(Answer::Done)
}

/// A cut goes forward only, and never beyond what has been said.
pub(super) fn compact(
    draft: &mut Draft,
    turn: Option<TurnId>,
    cut: Cut,
    step: &StepText,
    restated: &Arc<str>,
    before: Option<u64>,
) -> Result<Answer, Rejected> {
    if let Some(turn) = turn {
        current(draft, turn)?;
    }
    if step.text.trim().is_empty() {
        return Err(Rejected::EmptyText);
    }
    let state = &draft.state;
    let end = match &state.turn {
        // A step whose calls are open stays with its results.
        Some(open) => Cut {
            turn: open.id,
            steps: open.steps - u32::from(!open.calls.is_empty()),
        },
        None => Cut {
            turn: TurnId(state.last_turn.0 + 1),
            steps: 0,
        },
    };
    if cut > end || cut <= state.cut {
        return Err(Rejected::BadCut);
    }
    draft.push(Event::Compacted {
        cut,
        step: step.clone(),
        restated: Arc::clone(restated),
        before,
    });
    Ok(Answer::Done)
}

pub(super) fn end_turn(
    draft: &mut Draft,
    turn: TurnId,
    reason: EndReason,
    step: Option<&StepText>,
    error: Option<&Arc<str>>,
    ids: &mut dyn Ids,
) -> Result<Answer, Rejected> {
    current(draft, turn)?;
    close(draft, reason, step, error);
    tell_self(draft, ids);
    Ok(Answer::Done)
}

pub(super) fn cancel(
    draft: &mut Draft,
    reason: EndReason,
    watches: bool,
) -> Result<Answer, Rejected> {
    if watches {
        give_up_watches(draft);
    }
    let Some(open) = &draft.state.turn else {
        return Ok(Answer::Unchanged);
    };
    draft.effects.push(Effect::CancelTurn {
        turn: open.id,
        reason,
    });
    Ok(Answer::Done)
}

/// Ends the open turn: one result for each call that has none, its last step, the end.
pub(super) fn close(
    draft: &mut Draft,
    reason: EndReason,
    step: Option<&StepText>,
    error: Option<&Arc<str>>,
) {
    let Some(open) = draft.state.turn.clone() else {
        return;
    };
    let turn = open.id;
    withdraw(draft, |_| true);
    for call in open.calls {
        let state = if call.changes_state {
            "; it may have taken effect"
        } else {
            "; it changes nothing"
        };
        let result = CallResult {
            call: call.id,
            content: format!("No result: the run ended first ({reason}){state}.").into(),
            is_error: true,
            spawned: None,
            origin: ResultOrigin::Cut,
            images: Vec::new(),
            took_micros: None,
            report: None,
        };
        draft.push(Event::CallEnded { turn, result });
    }
    // Behind the results: in a history nothing stands between a call and its result.
    if let Some(step) = step {
        draft.push(Event::Said {
            turn,
            step: step.clone(),
        });
    }
    let note = match (error, reason) {
        (Some(error), _) => Some(Arc::clone(error)),
        (None, EndReason::Interrupted) => Some("interrupted".into()),
        (None, EndReason::Cancelled) => Some("stopped".into()),
        (None, EndReason::HostRestart) => Some("the host ended during this run".into()),
        (None, _) => None,
    };
    if let Some(text) = note {
        draft.push(Event::Noted {
            code: reason.as_str().into(),
            text,
        });
    }
    let result = draft.state.turn.as_ref().and_then(|open| open.text.clone());
    draft.push(Event::TurnEnded {
        turn,
        reason,
        result,
    });
}

/// A session that asked to be told of its own end is told by input of its own.
pub(super) fn tell_self(draft: &mut Draft, ids: &mut dyn Ids) {
    let me = draft.state.id;
    for watcher in draft.state.watchers.clone() {
        if watcher.session != me {
            continue;
        }
        let notice = draft.notice(watcher.watch, watcher.message.as_ref());
        draft.push(Event::WatcherRemoved {
            watch: watcher.watch,
        });
        draft.push(Event::WatchEnded {
            watch: watcher.watch,
        });
        let text = super::mail::notice_text(me, &notice);
        push_notice(draft, me, watcher.watch, &text, notice.told.as_ref(), ids);
    }
}

fn current(draft: &Draft, turn: TurnId) -> Result<(), Rejected> {
    match &draft.state.turn {
        Some(open) if open.id == turn => Ok(()),
        _ => Err(Rejected::StaleTurn { turn }),
    }
}
