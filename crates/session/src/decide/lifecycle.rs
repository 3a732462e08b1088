//! Rules for epochs: start, stop, and what an earlier life of the host left open.

use super::Draft;
use super::run::{close, tell_self};
use crate::command::{Answer, Effect, Rejected};
use crate::event::Event;
use crate::id::{Epoch, Ids, SessionId};
use crate::mail::MailBody;
use crate::outcome::StopReason;
use crate::settings::Holder;
use crate::turn::StepText;

/// Starts an epoch; what waited in the queues is then consumed once.
pub(super) fn start(draft: &mut Draft, epoch: Epoch) -> Result<Answer, Rejected> {
    if draft.state.is_live() {
        return Ok(Answer::Unchanged);
    }
    draft.push(Event::Started { epoch });
    Ok(Answer::Done)
}

/// Ends the epoch in the one order there is: the turn, the own registrations, the record that it
/// is stopped, then word to the children that it held. Watchers are told by the common step.
pub(super) fn stop(
    draft: &mut Draft,
    reason: StopReason,
    waited_for: &[Holder],
    partial: Option<&StepText>,
    ids: &mut dyn Ids,
) {
    if !draft.state.is_live() {
        return;
    }
    let ends = reason.ends_runs_as();
    if let Some(open) = &draft.state.turn {
        let turn = open.id;
        // While calls are open no model speaks: what was streamed is on record with them.
        let partial = partial.filter(|_| open.calls.is_empty());
        close(draft, ends, partial, None);
        draft
            .effects
            .push(Effect::CancelTurn { turn, reason: ends });
    }
    // A host that ends takes nothing back from anybody: after its restart the children are still
    // held and the registrations still stand.
    let for_good = !matches!(reason, StopReason::HostShutdown | StopReason::HostRestart);
    if for_good {
        give_up_watches(draft);
    } else {
        // The run that it asked to be told of is over; the input waits for the next start.
        tell_self(draft, ids);
    }
    draft.push(Event::Stopped {
        reason,
        waited_for: waited_for.to_vec(),
    });
    if for_good {
        let held: Vec<_> = draft
            .state
            .children
            .iter()
            .filter(|(child, _)| child.held)
            .map(|(child, _)| child.id)
            .collect();
        for child in held {
            draft.push(Event::ChildReleased { child });
            draft.post(child, MailBody::Release { reason });
        }
    }
}

/// Ends the epoch with the parents that end, unless another one holds the session.
pub(super) fn end_with(
    draft: &mut Draft,
    parents: &[SessionId],
    partial: Option<&StepText>,
    ids: &mut dyn Ids,
) -> Answer {
    if !draft.state.is_live() || draft.state.is_held_beside(parents) {
        return Answer::Unchanged;
    }
    stop(draft, StopReason::ParentEnded, &[], partial, ids);
    Answer::Done
}

/// Ends the epoch of a session that nobody looks at, unless it is to go on or something holds it. An active turn does not.
pub(super) fn stop_unviewed(
    draft: &mut Draft,
    held_by: &[Holder],
    waited_for: &[Holder],
    partial: Option<&StepText>,
    ids: &mut dyn Ids,
) -> Answer {
    if !draft.state.ends_unviewed(held_by) {
        return Answer::Unchanged;
    }
    stop(draft, StopReason::LastViewerLeft, waited_for, partial, ids);
    Answer::Done
}

/// Ends the session's own registrations: those on others, and that on itself.
pub(super) fn give_up_watches(draft: &mut Draft) {
    let me = draft.state.id;
    for watch in draft.state.watches.clone() {
        draft.push(Event::WatchEnded { watch: watch.id });
        if watch.target != me {
            draft.post(watch.target, MailBody::Unwatch { watch: watch.id });
        }
    }
    for watcher in draft.state.watchers.clone() {
        if watcher.session == me {
            draft.push(Event::WatcherRemoved {
                watch: watcher.watch,
            });
        }
    }
}

/// Writes down that the epoch in the log belongs to an earlier life of the host.
pub(super) fn recover(
    draft: &mut Draft,
    partial: Option<&StepText>,
    ids: &mut dyn Ids,
) -> Result<Answer, Rejected> {
    if !draft.state.is_live() {
        return Ok(Answer::Unchanged);
    }
    stop(draft, StopReason::HostRestart, &[], partial, ids);
    draft
        .effects
        .retain(|effect| !matches!(effect, Effect::CancelTurn { .. }));
    Ok(Answer::Done)
}
