//! Rules for what a session does to others: children, holds, registrations, sending. Each is an
//! event of its own and a mail; nothing here touches another session's log.

use std::sync::Arc;

use super::Draft;
use super::input::is_text;
use super::mail::{notice_text, push_notice};
use crate::birth::{Birth, NewSession};
use crate::command::{Answer, Effect, Expect, Rejected};
use crate::event::Event;
use crate::id::{CallId, Epoch, Ids, ItemId, SessionId, WatchId};
use crate::mail::{MailBody, Notice};
use crate::outcome::StopReason;

pub(super) fn spawn(
    draft: &mut Draft,
    call: Option<&CallId>,
    child: &NewSession,
    ids: &mut dyn Ids,
) -> Result<Answer, Rejected> {
    live(draft)?;
    if let Some(call) = call
        && let Some((made, _)) = draft
            .state
            .children
            .iter()
            .rev()
            .find(|(_, by)| by.as_ref() == Some(call))
    {
        return Ok(Answer::Child { child: made.id });
    }
    if child.id == draft.state.id {
        return Err(Rejected::Circle);
    }
    draft.push(Event::ChildHeld {
        child: child.id,
        call: call.cloned(),
    });
    draft.births.push(Birth::of(child, draft.clock.now(), ids));
    draft.links.push(child.id);
    draft.effects.push(Effect::Wake { session: child.id });
    Ok(Answer::Child { child: child.id })
}

/// That `child` is no ancestor is looked up by the store in the same transaction; here only what
/// the own state shows.
pub(super) fn acquire(draft: &mut Draft, child: SessionId) -> Result<Answer, Rejected> {
    live(draft)?;
    let state = &draft.state;
    if child == state.id || state.parents.iter().any(|parent| parent.id == child) {
        return Err(Rejected::Circle);
    }
    let known = state.child(child);
    // The mail goes out also when the hold stands: it is what starts a stopped child.
    if !known.is_some_and(|known| known.held) {
        draft.push(Event::ChildHeld { child, call: None });
        draft.links.push(child);
    }
    draft.post(child, MailBody::Hold);
    Ok(if known.is_some_and(|known| known.held) {
        Answer::Unchanged
    } else {
        Answer::Done
    })
}

pub(super) fn release(draft: &mut Draft, child: SessionId) -> Result<Answer, Rejected> {
    match draft.state.child(child) {
        None => Err(Rejected::NotAChild),
        Some(known) if !known.held => Ok(Answer::Unchanged),
        Some(_) => {
            draft.push(Event::ChildReleased { child });
            draft.post(
                child,
                MailBody::Release {
                    reason: StopReason::Disposed,
                },
            );
            Ok(Answer::Done)
        }
    }
}

pub(super) fn send(
    draft: &mut Draft,
    to: SessionId,
    epoch: Epoch,
    item: ItemId,
    text: &Arc<str>,
    immediate: bool,
) -> Result<Answer, Rejected> {
    live(draft)?;
    is_text(text)?;
    if draft.state.child(to).is_some_and(|child| !child.held) {
        return Err(Rejected::Disposed);
    }
    draft.push(Event::Sent { to, item });
    draft.expects.push(Expect::Epoch { session: to, epoch });
    draft.post(
        to,
        MailBody::Input {
            item,
            text: Arc::clone(text),
            immediate,
        },
    );
    Ok(Answer::Accepted { item })
}

pub(super) fn watch(
    draft: &mut Draft,
    watch: WatchId,
    target: SessionId,
    message: Option<&Arc<str>>,
    settled: Option<&Notice>,
    ids: &mut dyn Ids,
) -> Result<Answer, Rejected> {
    live(draft)?;
    let me = draft.state.id;
    if target == me {
        if draft.state.turn.is_none() {
            let notice = draft.notice(watch, message);
            return Ok(fire(draft, me, &notice, ids));
        }
        draft.push(Event::WatchSet { watch, target });
        draft.push(Event::WatcherAdded {
            watch,
            session: me,
            message: message.cloned(),
        });
        return Ok(Answer::Done);
    }
    if let Some(notice) = settled {
        return Ok(fire(draft, target, notice, ids));
    }
    draft.push(Event::WatchSet { watch, target });
    draft.post(
        target,
        MailBody::Watch {
            watch,
            message: message.cloned(),
        },
    );
    Ok(Answer::Done)
}

fn fire(draft: &mut Draft, about: SessionId, notice: &Notice, ids: &mut dyn Ids) -> Answer {
    let text = notice_text(about, notice);
    push_notice(draft, about, notice.watch, &text, notice.told.as_ref(), ids);
    Answer::FiredAtOnce
}

/// What a session does of its own accord, it does while it lives.
pub(super) fn live(draft: &Draft) -> Result<(), Rejected> {
    if draft.state.is_live() {
        Ok(())
    } else {
        Err(Rejected::Stopped)
    }
}
