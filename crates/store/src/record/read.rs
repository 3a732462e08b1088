//! From records to events, leniently: what cannot be understood is kept as it is.

use std::sync::Arc;

use attache_session::{
    CallResult, Cut, EndReason, Epoch, Event, Holder, Immediacy, ItemId, Json, ResultOrigin,
    SessionId, Stamped, StopReason, Timestamp, TurnId, WatchId,
};
use serde::Deserialize;

use super::event::*;
use super::modal::ModalSetRecord;
use super::parts::{Count, PictureRecord, immediacy_of, queue_of};
use super::{Opened, Unusable};
use crate::check::READER;

/// The reader that a stored record needs.
pub(crate) fn needs(body: &str) -> u32 {
    Opened::of(body).map_or(0, |opened| opened.min_reader.small())
}

/// A stored event.
pub(crate) fn decode_event(
    at: Timestamp,
    body: &str,
    text: Option<&str>,
) -> Result<Stamped, Unusable> {
    let opened = Opened::of(body)?;
    let needs = opened.min_reader.small();
    if needs > READER {
        return Err(Unusable::TooNew(needs));
    }
    let event = known(&opened, text.unwrap_or_default()).unwrap_or_else(|| Event::Unknown {
        kind: opened.kind.as_ref().into(),
        body: Json::from_checked(body),
    });
    Ok(Stamped {
        at,
        observed: opened.observed.map(Timestamp),
        event,
    })
}

/// A stored event for showing: pictures are only told of, and one that needs a newer reader is kept
/// like any other that is not understood.
pub(crate) fn show_event(
    at: Timestamp,
    body: &str,
    text: Option<&str>,
) -> Result<Stamped, Unusable> {
    match decode_event(at, body, text).map(told) {
        Err(Unusable::TooNew(_)) => {
            let opened = Opened::of(body)?;
            Ok(Stamped {
                at,
                observed: opened.observed.map(Timestamp),
                event: Event::Unknown {
                    kind: opened.kind.as_ref().into(),
                    body: Json::from_checked(body),
                },
            })
        }
        other => other,
    }
}

/// An event as a page for showing has it: with its pictures told of and not there, since a page of
/// them would be large and nobody shows their bytes.
pub(crate) fn told(mut stamped: Stamped) -> Stamped {
    if let Event::CallEnded { result, .. } = &mut stamped.event {
        for picture in &mut result.images {
            *picture = picture.told();
        }
    }
    stamped
}

/// The event, if its kind is known and its fields fit.
fn known(opened: &Opened<'_>, text: &str) -> Option<Event> {
    let fields = opened.fields();
    Some(match opened.kind.as_ref() {
        "created" => {
            let record: CreatedRecord = read(fields)?;
            Event::Created(Arc::new(record.value()))
        }
        "started" => {
            let EpochRecord { epoch } = read(fields)?;
            Event::Started {
                epoch: Epoch(epoch),
            }
        }
        "stopped" => {
            let StoppedRecord { reason, waited_for } = read(fields)?;
            let waited_for = waited_for.iter();
            Event::Stopped {
                reason: StopReason::parse(&reason)?,
                waited_for: waited_for.filter_map(|it| Holder::parse(it)).collect(),
            }
        }
        "queued" => {
            let QueuedRecord { queue, item, text } = read(fields)?;
            Event::Queued {
                queue: queue_of(&queue)?,
                item: item.value(text),
            }
        }
        "edited" => {
            let EditedRecord {
                item,
                revision,
                text,
            } = read(fields)?;
            Event::Edited {
                item: ItemId(item),
                revision: revision.small(),
                text,
            }
        }
        "withdrawn" => {
            let WithdrawnRecord { item } = read(fields)?;
            Event::Withdrawn { item: ItemId(item) }
        }
        "acknowledged" => {
            let AcknowledgedRecord { queue, item } = read(fields)?;
            Event::Acknowledged {
                queue: queue_of(&queue)?,
                item: item.value(text.into()),
            }
        }
        "moved" => {
            let MovedRecord {
                item,
                queue,
                before,
            } = read(fields)?;
            Event::Moved {
                item: ItemId(item),
                queue: queue_of(&queue)?,
                before: before.map(ItemId),
            }
        }
        "queue-set" => {
            let QueueSetRecord {
                queue,
                name,
                immediacy,
                before_hold,
            } = read(fields)?;
            Event::QueueSet {
                queue: queue_of(&queue)?,
                name,
                immediacy: Immediacy::parse(&immediacy)?,
                before_hold: immediacy_of(before_hold.as_deref())?,
            }
        }
        "queue-deleted" => {
            let QueueDeletedRecord { queue } = read(fields)?;
            Event::QueueDeleted {
                queue: queue_of(&queue)?,
            }
        }
        "turn-started" => {
            let TurnRecord { turn } = read(fields)?;
            Event::TurnStarted { turn: number(turn) }
        }
        "consumed" => {
            let ConsumedRecord { turn, queue, item } = read(fields)?;
            Event::Consumed {
                turn: number(turn),
                queue: queue_of(&queue)?,
                item: item.value(text.into()),
            }
        }
        "said" => {
            let SaidRecord { turn, step } = read(fields)?;
            Event::Said {
                turn: number(turn),
                step: step.value(text.into()),
            }
        }
        "compacted" => {
            let CompactedRecord {
                cut_turn,
                cut_steps,
                step,
                restated,
                before,
            } = read(fields)?;
            Event::Compacted {
                cut: Cut {
                    turn: number(cut_turn),
                    steps: cut_steps.small(),
                },
                step: step.value(text.into()),
                restated,
                before: before.map(|count| count.0),
            }
        }
        "call-started" => {
            let CallStartedRecord { turn, call } = read(fields)?;
            Event::CallStarted {
                turn: number(turn),
                call: call.value(text),
            }
        }
        "call-ended" => {
            let CallEndedRecord {
                turn,
                call,
                is_error,
                spawned,
                cut,
                images,
                took_micros,
                report,
            } = read(fields)?;
            let origin = if cut {
                ResultOrigin::Cut
            } else {
                ResultOrigin::Tool
            };
            Event::CallEnded {
                turn: number(turn),
                result: CallResult {
                    call,
                    content: text.into(),
                    is_error,
                    spawned: spawned.map(SessionId),
                    origin,
                    images: images.into_iter().map(PictureRecord::value).collect(),
                    took_micros: took_micros.map(|Count(micros)| micros),
                    report: report.map(|report| Arc::new(report.value())),
                },
            }
        }
        "turn-ended" => {
            let TurnEndedRecord {
                turn,
                reason,
                result,
            } = read(fields)?;
            Event::TurnEnded {
                turn: number(turn),
                reason: EndReason::parse(&reason)?,
                result,
            }
        }
        "bounds-set" => {
            let BoundsSetRecord { bounds } = read(fields)?;
            Event::BoundsSet {
                bounds: Arc::new(bounds.value()),
            }
        }
        "settings-set" => {
            let record: SettingsSetRecord = read(fields)?;
            Event::SettingsSet {
                settings: Arc::new(record.value()),
            }
        }
        "modal-set" => {
            let record: ModalSetRecord = read(fields)?;
            let (modal, state) = record.value()?;
            Event::ModalSet {
                modal: Arc::new(modal),
                state,
            }
        }
        "noted" => {
            let NotedRecord { code } = read(fields)?;
            Event::Noted {
                code,
                text: text.into(),
            }
        }
        "watch-set" => {
            let WatchSetRecord { watch, target } = read(fields)?;
            Event::WatchSet {
                watch: WatchId(watch),
                target: SessionId(target),
            }
        }
        "watch-ended" => {
            let WatchRecord { watch } = read(fields)?;
            Event::WatchEnded {
                watch: WatchId(watch),
            }
        }
        "watcher-added" => {
            let WatcherAddedRecord {
                watch,
                session,
                message,
            } = read(fields)?;
            Event::WatcherAdded {
                watch: WatchId(watch),
                session: SessionId(session),
                message,
            }
        }
        "watcher-removed" => {
            let WatchRecord { watch } = read(fields)?;
            Event::WatcherRemoved {
                watch: WatchId(watch),
            }
        }
        "child-held" => {
            let ChildRecord { child, call } = read(fields)?;
            Event::ChildHeld {
                child: SessionId(child),
                call,
            }
        }
        "child-released" => {
            let ChildRecord { child, call: _ } = read(fields)?;
            Event::ChildReleased {
                child: SessionId(child),
            }
        }
        "parent-holds" => {
            let ParentRecord { parent } = read(fields)?;
            Event::ParentHolds {
                parent: SessionId(parent),
            }
        }
        "parent-released" => {
            let ParentRecord { parent } = read(fields)?;
            Event::ParentReleased {
                parent: SessionId(parent),
            }
        }
        "sent" => {
            let SentRecord { to, item } = read(fields)?;
            Event::Sent {
                to: SessionId(to),
                item: ItemId(item),
            }
        }
        _ => return None,
    })
}

fn read<'a, T: Deserialize<'a>>(fields: &'a str) -> Option<T> {
    serde_json::from_str(fields).ok()
}

fn number(turn: Count) -> TurnId {
    TurnId(turn.small())
}
