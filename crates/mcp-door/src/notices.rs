//! Which notices a result shows, which of them count as read with it, and how one looks.

use attache_engine::{EngineError, EngineHandle, WaitingNotice};
use attache_session::{EndReason, ItemId, Outcome, SessionId};
use serde_json::{Value, json};

/// Notices that a result shows. Older ones are in the root's resource.
pub(crate) const SHOWN: usize = 20;

/// How a call has read a child.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Read {
    /// Nothing of a child was read.
    Nothing,
    /// The child was read as it stood at the call.
    Now(SessionId),
    /// The child was read up to its end.
    ToItsEnd(SessionId),
}

/// What becomes of the notices that wait.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sorted {
    /// Shown in this result, oldest first.
    pub(crate) shown: Vec<WaitingNotice>,
    /// Moved into the history of the root.
    pub(crate) read: Vec<ItemId>,
}

/// Sorts the notices that wait after a call, oldest first. `before` are those that waited before it:
/// one that came meanwhile may tell of more than the call has read. A notice that is read by this very
/// call is shown with it, for the last time: it may carry a text that the client chose.
pub(crate) fn sort(waiting: Vec<WaitingNotice>, before: &[ItemId], read: Read) -> Sorted {
    let mut sorted = Sorted::default();
    let pushed = waiting.len().saturating_sub(SHOWN);
    for (place, notice) in waiting.into_iter().enumerate() {
        let was_read = match read {
            Read::Nothing => false,
            Read::Now(child) => notice.about == child && before.contains(&notice.item),
            Read::ToItsEnd(child) => notice.about == child,
        };
        if was_read || place < pushed {
            sorted.read.push(notice.item);
        }
        if place >= pushed {
            sorted.shown.push(notice);
        }
    }
    sorted
}

/// A notice as a client sees it: the host's facts, and what the child said under a name of its own.
pub(crate) fn shown(engine: &EngineHandle, notice: &WaitingNotice) -> Result<Value, EngineError> {
    let row = match engine.row(notice.about) {
        Ok(row) => Some(row),
        // It may have been removed since.
        Err(error) if error.code == attache_session::ErrorCode::UnknownSession => None,
        Err(error) => return Err(error),
    };
    let view = row.as_ref().map(|row| &row.view);
    let said = notice.told.as_ref();
    Ok(json!({
        "id": notice.item.to_string(),
        "session_id": notice.about.to_string(),
        "status": row.as_ref().map(|row| row.status.as_str()),
        "outcome": view.and_then(|view| view.outcome()).map(Outcome::as_str),
        "end_reason": view.and_then(|view| view.end_reason()).map(EndReason::as_str),
        "message": &*notice.text,
        "from_child": {
            "result_preview": said.map(|said| &*said.text),
            "result_is_earlier": said.is_some_and(|said| said.earlier),
        },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn notice(number: u128, about: u128) -> WaitingNotice {
        WaitingNotice {
            told: None,
            item: ItemId(Uuid::from_u128(number)),
            about: SessionId(Uuid::from_u128(about)),
            text: "told".into(),
        }
    }

    fn ids(numbers: impl IntoIterator<Item = u128>) -> Vec<ItemId> {
        numbers
            .into_iter()
            .map(|it| ItemId(Uuid::from_u128(it)))
            .collect()
    }

    #[test]
    fn reading_a_child_reads_its_notices() {
        let child = SessionId(Uuid::from_u128(7));
        let waiting = || vec![notice(1, 7), notice(2, 8), notice(3, 7)];
        for (read, gone) in [
            (Read::Nothing, ids([])),
            (Read::Now(child), ids([1])),
            (Read::ToItsEnd(child), ids([1, 3])),
        ] {
            let sorted = sort(waiting(), &ids([1, 2]), read);
            assert_eq!(sorted.read, gone, "{read:?}");
            assert_eq!(sorted.shown, waiting(), "shown for the last time");
        }
    }

    #[test]
    fn newer_ones_push_the_oldest_out() {
        let waiting: Vec<_> = (0..23).map(|number| notice(number, 7)).collect();
        let sorted = sort(waiting.clone(), &[], Read::Nothing);
        assert_eq!(sorted.read, ids(0..3));
        assert_eq!(sorted.shown, waiting[3..]);
        let all = sort(waiting, &[], Read::ToItsEnd(SessionId(Uuid::from_u128(7))));
        assert_eq!(all.read, ids(0..23));
    }
}
