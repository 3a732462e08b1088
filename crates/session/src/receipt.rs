//! Receipts: where an item of input has got to, from the receiver's own record and the mail that lies unread for it. Nothing
//! is stored for them.

use std::sync::Arc;

use crate::event::{Event, Stamped};
use crate::id::{ItemId, Position, QueueId, SessionId, TurnId};
use crate::mail::{Mail, MailBody};
use crate::outcome::named;
use crate::queue::{Immediacy, Origin};
use crate::time::Timestamp;

named! {
    /// How far an item of input has come.
    Stage {
        /// It is on record and cannot be lost; the receiver has not looked yet.
        Accepted = "accepted",
        /// It waits in a queue of the receiver.
        Delivered = "delivered",
        /// A turn has taken it: it is part of the history.
        Consumed = "consumed",
        /// What it was meant for is over; the reason says why, and whether it still waits.
        Missed = "missed",
    }
}

named! {
    /// What there is to say beside the stage.
    Reason {
        /// It was taken back before a turn took it.
        Withdrawn = "withdrawn",
        /// The receiver is stopped; the item waits for its next start.
        SessionStopped = "session-stopped",
        /// The run that it was to steer ended before it could join: it went back into line.
        RunEndedFirst = "run-ended-first",
        /// Its queue is held.
        QueueHeld = "queue-held",
    }
}

/// The way of one item.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Receipt {
    /// The item.
    pub item: ItemId,
    /// Who wrote it.
    pub origin: Origin,
    /// Its text.
    pub text: Arc<str>,
    /// When the receiver put it into a queue; none before that.
    pub delivered_at: Option<Timestamp>,
    /// How far it has come.
    pub stage: Stage,
    /// What there is to say of that.
    pub reason: Option<Reason>,
    /// The queue that it waits in.
    pub queue: Option<QueueId>,
    /// The turn that took it; none where a program outside read it.
    pub turn: Option<TurnId>,
    /// Where it stands in the receiver's record.
    pub position: Option<Position>,
}

/// Receipts of the newest items, oldest first, at most `most`. `events` is the end of the receiver's record, in order; `live`
/// whether it has an epoch; `unread` its mail. `from` asks for what one session has sent.
#[must_use]
pub fn receipts<'a>(
    events: impl IntoIterator<Item = (Position, &'a Stamped)>,
    live: bool,
    unread: &[Mail],
    from: Option<SessionId>,
    most: usize,
) -> Vec<Receipt> {
    let mut found: Vec<Receipt> = Vec::new();
    let mut held: Vec<QueueId> = Vec::new();
    for (position, stamped) in events {
        if let Event::QueueSet {
            queue, immediacy, ..
        } = &stamped.event
        {
            held.retain(|other| other != queue);
            if *immediacy == Immediacy::Held {
                held.push(*queue);
            }
        }
        follow(&mut found, position, stamped);
    }
    found.retain(|receipt| !matches!(receipt.origin, Origin::Notice { .. }));
    for receipt in &mut found {
        settle(receipt, live, &held);
    }
    found.extend(unread.iter().filter_map(|mail| of_mail(mail, live)));
    if let Some(from) = from {
        found.retain(|receipt| receipt.origin == Origin::Session(from));
    }
    let surplus = found.len().saturating_sub(most);
    found.drain(..surplus);
    found
}

fn follow(found: &mut Vec<Receipt>, position: Position, stamped: &Stamped) {
    let known = |found: &mut Vec<Receipt>, item: ItemId| {
        found.iter().rposition(|receipt| receipt.item == item)
    };
    match &stamped.event {
        Event::Queued { queue, item } => found.push(Receipt {
            item: item.id,
            origin: item.origin.clone(),
            text: Arc::clone(&item.text),
            delivered_at: Some(stamped.at),
            stage: Stage::Delivered,
            reason: None,
            queue: Some(*queue),
            turn: None,
            position: None,
        }),
        Event::Moved { item, queue, .. } => {
            if let Some(place) = known(found, *item) {
                found[place].queue = Some(*queue);
            }
        }
        Event::Edited { item, text, .. } => {
            if let Some(place) = known(found, *item) {
                found[place].text = Arc::clone(text);
            }
        }
        Event::Withdrawn { item } => {
            if let Some(place) = known(found, *item) {
                found[place].stage = Stage::Missed;
                found[place].reason = Some(Reason::Withdrawn);
                found[place].queue = None;
            }
        }
        Event::Consumed { item, .. } | Event::Acknowledged { item, .. } => {
            let turn = match &stamped.event {
                Event::Consumed { turn, .. } => Some(*turn),
                _ => None,
            };
            // What was put into a queue before this part of the record is known by its end alone.
            let place = known(found, item.id).unwrap_or_else(|| {
                found.push(Receipt {
                    item: item.id,
                    origin: item.origin.clone(),
                    text: Arc::clone(&item.text),
                    delivered_at: None,
                    stage: Stage::Consumed,
                    reason: None,
                    queue: None,
                    turn: None,
                    position: None,
                });
                found.len() - 1
            });
            let receipt = &mut found[place];
            receipt.stage = Stage::Consumed;
            receipt.queue = None;
            receipt.turn = turn;
            receipt.position = Some(position);
        }
        Event::TurnEnded { .. } => {
            let waits = |receipt: &&mut Receipt| {
                receipt.stage == Stage::Delivered && receipt.queue == Some(QueueId::Immediate)
            };
            for receipt in found.iter_mut().filter(waits) {
                receipt.reason = Some(Reason::RunEndedFirst);
            }
        }
        _ => {}
    }
}

/// What stands at the end: an item that waits in a stopped session has missed it for now.
fn settle(receipt: &mut Receipt, live: bool, held: &[QueueId]) {
    if receipt.stage != Stage::Delivered {
        return;
    }
    if !live {
        receipt.stage = Stage::Missed;
        receipt.reason = Some(Reason::SessionStopped);
        return;
    }
    if receipt.queue.is_some_and(|queue| held.contains(&queue)) {
        receipt.reason = Some(Reason::QueueHeld);
    } else if receipt.reason == Some(Reason::RunEndedFirst) {
        receipt.stage = Stage::Missed;
    }
}

fn of_mail(mail: &Mail, live: bool) -> Option<Receipt> {
    let MailBody::Input { item, text, .. } = &mail.body else {
        return None;
    };
    Some(Receipt {
        item: *item,
        origin: Origin::Session(mail.from),
        text: Arc::clone(text),
        delivered_at: None,
        stage: Stage::Accepted,
        reason: (!live).then_some(Reason::SessionStopped),
        queue: None,
        turn: None,
        position: None,
    })
}
