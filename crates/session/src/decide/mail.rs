//! Rules for taking mail. What a stopped session cannot use stays unread: nothing starts it but a
//! start.

use std::sync::Arc;

use super::Draft;
use super::input::push_item;
use super::lifecycle::stop;
use crate::command::{Answer, Rejected};
use crate::event::Event;
use crate::id::{Epoch, Ids, ItemId, QueueId, SessionId, WatchId};
use crate::mail::{Mail, MailBody, Notice, Told};
use crate::outcome::{EndReason, StopReason};
use crate::queue::Origin;
use crate::summary::Status;
use crate::text::preview;

pub(super) fn take(
    draft: &mut Draft,
    mail: &[Mail],
    viewed: bool,
    living: &[SessionId],
    ids: &mut dyn Ids,
) -> Result<Answer, Rejected> {
    // Who holds it comes first: that may start the session that the rest is for, or end it.
    take_holds(draft, mail, viewed, living, ids);
    for letter in mail {
        take_one(draft, letter, ids);
    }
    Ok(if draft.taken.is_empty() {
        Answer::Unchanged
    } else {
        Answer::Done
    })
}

/// Takes all words of holds in their order, and only then looks at what they come to: a parent
/// that gave its hold up and took it again meanwhile has ended nothing.
fn take_holds(
    draft: &mut Draft,
    mail: &[Mail],
    viewed: bool,
    living: &[SessionId],
    ids: &mut dyn Ids,
) {
    let mut held = false;
    let mut left = None;
    for letter in mail {
        match &letter.body {
            MailBody::Hold => {
                draft.push(Event::ParentHolds {
                    parent: letter.from,
                });
                held |= living.contains(&letter.from);
            }
            MailBody::Release { reason } => {
                draft.push(Event::ParentReleased {
                    parent: letter.from,
                });
                left = Some(*reason);
            }
            _ => continue,
        }
        draft.taken.push(letter.id);
    }
    if draft.state.parents.iter().any(|parent| parent.holds) {
        if held && !draft.state.is_live() {
            draft.push(Event::Started {
                epoch: Epoch(ids.fresh()),
            });
        }
    } else if let Some(reason) = left
        && !viewed
    {
        let reason = match reason {
            StopReason::Disposed => StopReason::Disposed,
            _ => StopReason::ParentEnded,
        };
        stop(draft, reason, &[], None, ids);
    }
}

fn take_one(draft: &mut Draft, mail: &Mail, ids: &mut dyn Ids) {
    match &mail.body {
        MailBody::Hold | MailBody::Release { .. } => return,
        MailBody::Input {
            item,
            text,
            immediate,
        } => {
            let queue = if *immediate {
                QueueId::Immediate
            } else {
                QueueId::Default
            };
            push_item(draft, *item, queue, text, &Origin::Session(mail.from));
        }
        MailBody::Watch { watch, message } => {
            // The common step at the end of the decision answers at once where there is nothing to
            // wait for.
            draft.push(Event::WatcherAdded {
                watch: *watch,
                session: mail.from,
                message: message.clone(),
            });
        }
        MailBody::Unwatch { watch } => {
            if draft
                .state
                .watchers
                .iter()
                .any(|watcher| watcher.watch == *watch)
            {
                draft.push(Event::WatcherRemoved { watch: *watch });
            }
        }
        MailBody::Notice(notice) => {
            if draft
                .state
                .watches
                .iter()
                .any(|watch| watch.id == notice.watch)
            {
                if !draft.state.is_live() {
                    return;
                }
                draft.push(Event::WatchEnded {
                    watch: notice.watch,
                });
                let text = notice_text(mail.from, notice);
                push_notice(
                    draft,
                    mail.from,
                    notice.watch,
                    &text,
                    notice.told.as_ref(),
                    ids,
                );
            }
            // An answer to a registration that was given up tells nothing any more.
        }
        MailBody::Report { watch, text } => {
            // It tells of this moment: a session that is stopped has missed it.
            if draft.state.is_live() {
                push_notice(draft, mail.from, *watch, text, None, ids);
            }
        }
    }
    draft.taken.push(mail.id);
}

/// Tells the session that nobody will read what it sent. A stopped one finds it when it is started.
pub(super) fn undeliverable(
    draft: &mut Draft,
    item: ItemId,
    to: SessionId,
    text: &str,
    ids: &mut dyn Ids,
) -> Answer {
    let (shown, more) = preview(text, UNDELIVERED_CHARS);
    let more = if more { "…" } else { "" };
    let text = format!(
        "Your message {item} to session {to} was not read: the session was deleted. It said: {shown}{more}"
    );
    let watch = WatchId(ids.fresh());
    push_notice(draft, to, watch, &text.into(), None, ids);
    Answer::Done
}

/// Puts a notice about a session into the immediate queue: `text` is the host's or the watcher's, `told` what that session
/// said itself.
pub(super) fn push_notice(
    draft: &mut Draft,
    about: SessionId,
    watch: WatchId,
    text: &Arc<str>,
    told: Option<&Told>,
    ids: &mut dyn Ids,
) {
    let origin = Origin::Notice {
        about,
        watch,
        told: told.cloned(),
    };
    let item = ItemId(ids.fresh());
    push_item(draft, item, QueueId::Immediate, text, &origin);
}

/// Characters of a message that are told again when it was not read.
const UNDELIVERED_CHARS: usize = 200;

/// How the default text of a notice begins. A text that the watcher chose stands in its place, and for all of it.
#[must_use]
pub fn notice_header(about: SessionId) -> String {
    format!("Session {about} has settled;")
}

/// What the watcher reads. The header comes from here and names the session; a text of the
/// watcher's own choice follows in its place, never the watched session's text.
pub(crate) fn notice_text(about: SessionId, notice: &Notice) -> Arc<str> {
    if let Some(message) = &notice.message {
        return Arc::clone(message);
    }
    let status = match notice.outcome {
        _ if notice.stopped => Status::Stopped,
        Some(outcome) if outcome.is_error() => Status::Error,
        _ => Status::Idle,
    };
    let outcome = notice
        .outcome
        .map_or("none", crate::outcome::Outcome::as_str);
    let reason = notice.end_reason.map_or("none", EndReason::as_str);
    let without = match &notice.told {
        Some(_) => "",
        None => " It gave no output.",
    };
    let header = notice_header(about);
    format!(
        "{header} status: {status}, outcome: {outcome}, end reason: {reason}.{without} Its result is read with agent_session_get or agent_session_read_events."
    )
    .into()
}
