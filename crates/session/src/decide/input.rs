//! Rules for queues and for what waits in them.

use std::sync::Arc;

use super::Draft;
use super::lineage::live;
use crate::command::{Answer, Rejected};
use crate::event::Event;
use crate::id::{Ids, ItemId, QueueId};
use crate::queue::{Immediacy, Origin, QueuedItem};

pub(super) fn enqueue(
    draft: &mut Draft,
    item: Option<ItemId>,
    queue: QueueId,
    text: &Arc<str>,
    origin: &Origin,
    ids: &mut dyn Ids,
) -> Result<Answer, Rejected> {
    is_text(text)?;
    if !draft
        .state
        .created
        .as_ref()
        .is_some_and(|created| created.takes_input && created.runs_turns)
    {
        return Err(Rejected::NoUserInput);
    }
    if *origin == Origin::Session(draft.state.id) {
        // The late word of a tool whose session has ended would start its next run with it.
        live(draft)?;
    }
    if draft.state.queue(queue).is_none() {
        return Err(Rejected::UnknownQueue);
    }
    let item = item.unwrap_or_else(|| ItemId(ids.fresh()));
    push_item(draft, item, queue, text, origin);
    Ok(Answer::Accepted { item })
}

/// Puts input at the end of a queue.
pub(super) fn push_item(
    draft: &mut Draft,
    id: ItemId,
    queue: QueueId,
    text: &Arc<str>,
    origin: &Origin,
) {
    let item = QueuedItem {
        id,
        revision: 0,
        text: Arc::clone(text),
        origin: origin.clone(),
    };
    draft.push(Event::Queued {
        queue,
        item: Arc::new(item),
    });
}

pub(super) fn edit(
    draft: &mut Draft,
    item: ItemId,
    text: &Arc<str>,
    expected: u32,
) -> Result<Answer, Rejected> {
    is_text(text)?;
    let revision = revision_of(draft, item, expected)? + 1;
    draft.push(Event::Edited {
        item,
        revision,
        text: Arc::clone(text),
    });
    Ok(Answer::Done)
}

pub(super) fn withdraw(draft: &mut Draft, item: ItemId, expected: u32) -> Result<Answer, Rejected> {
    revision_of(draft, item, expected)?;
    draft.push(Event::Withdrawn { item });
    Ok(Answer::Done)
}

/// A session that runs no turns is read from outside, and this says what was read.
pub(super) fn acknowledge(draft: &mut Draft, items: &[ItemId]) -> Result<Answer, Rejected> {
    if draft.state.runs_turns() {
        return Err(Rejected::RunsTurns);
    }
    let mut answer = Answer::Unchanged;
    for id in items {
        let waiting = draft.state.item(*id);
        let Some((queue, item)) = waiting.map(|(queue, item)| (queue.id, Arc::clone(item))) else {
            continue;
        };
        draft.push(Event::Acknowledged { queue, item });
        answer = Answer::Done;
    }
    Ok(answer)
}

pub(super) fn relocate(
    draft: &mut Draft,
    item: ItemId,
    queue: QueueId,
    before: Option<ItemId>,
    expected: u32,
) -> Result<Answer, Rejected> {
    revision_of(draft, item, expected)?;
    let target = draft.state.queue(queue).ok_or(Rejected::UnknownQueue)?;
    if let Some(before) = before
        && (before == item || !target.items.iter().any(|other| other.id == before))
    {
        return Err(Rejected::UnknownItem);
    }
    draft.push(Event::Moved {
        item,
        queue,
        before,
    });
    Ok(Answer::Done)
}

/// Longest name of a queue, in characters: it stands at the head of a list.
const QUEUE_NAME_CHARS: usize = 100;

pub(super) fn create_queue(
    draft: &mut Draft,
    name: Option<&Arc<str>>,
    immediacy: Immediacy,
) -> Result<Answer, Rejected> {
    let number = draft.state.next_queue;
    let queue = QueueId::Custom(number);
    let name = name
        .cloned()
        .unwrap_or_else(|| format!("queue {}", number + 1).into());
    if name.trim().is_empty() || name.chars().count() > QUEUE_NAME_CHARS {
        return Err(Rejected::QueueName {
            most: QUEUE_NAME_CHARS,
        });
    }
    let before_hold = (immediacy == Immediacy::Held).then_some(Immediacy::Queue);
    draft.push(Event::QueueSet {
        queue,
        name,
        immediacy,
        before_hold,
    });
    Ok(Answer::QueueMade { queue })
}

/// Holding remembers the immediacy, releasing restores it; setting another one forgets the hold.
pub(super) fn configure_queue(
    draft: &mut Draft,
    id: QueueId,
    immediacy: Option<Immediacy>,
    expected: Option<u32>,
) -> Result<Answer, Rejected> {
    let queue = draft.state.queue(id).ok_or(Rejected::UnknownQueue)?;
    if let Some(expected) = expected {
        same_revision(expected, queue.revision)?;
    }
    let (next, before_hold) = match (immediacy, queue.before_hold) {
        (None, Some(before)) => (before, None),
        (None, None) => return Err(Rejected::NotHeld),
        (Some(Immediacy::Held), before) => {
            (Immediacy::Held, Some(before.unwrap_or(queue.immediacy)))
        }
        (Some(next), _) => (next, None),
    };
    if next == queue.immediacy {
        return Ok(Answer::Unchanged);
    }
    let name = Arc::clone(&queue.name);
    draft.push(Event::QueueSet {
        queue: id,
        name,
        immediacy: next,
        before_hold,
    });
    Ok(Answer::Done)
}

pub(super) fn delete_queue(
    draft: &mut Draft,
    id: QueueId,
    expected: u32,
) -> Result<Answer, Rejected> {
    let QueueId::Custom(_) = id else {
        return Err(Rejected::BuiltInQueue);
    };
    let queue = draft.state.queue(id).ok_or(Rejected::UnknownQueue)?;
    same_revision(expected, queue.revision)?;
    if !queue.items.is_empty() {
        return Err(Rejected::QueueNotEmpty);
    }
    draft.push(Event::QueueDeleted { queue: id });
    Ok(Answer::Done)
}

fn revision_of(draft: &Draft, item: ItemId, expected: u32) -> Result<u32, Rejected> {
    let (_, item) = draft.state.item(item).ok_or(Rejected::UnknownItem)?;
    same_revision(expected, item.revision)?;
    Ok(item.revision)
}

fn same_revision(expected: u32, current: u32) -> Result<(), Rejected> {
    if expected == current {
        Ok(())
    } else {
        Err(Rejected::RevisionConflict { expected, current })
    }
}

/// Text with nothing but white space in it is no text, and neither is one with a NUL.
pub(super) fn is_text(text: &str) -> Result<(), Rejected> {
    if text.trim().is_empty() {
        Err(Rejected::EmptyText)
    } else if text.contains('\0') {
        Err(Rejected::NulText)
    } else {
        Ok(())
    }
}
