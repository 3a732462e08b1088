//! From events to their records. Every field is named, so that a new one cannot be forgotten.

use std::borrow::Cow;
use std::sync::Arc;

use attache_session::{CallResult, Event, ResultOrigin, Stamped};

use super::event::*;
use super::modal::ModalSetRecord;
use super::parts::{
    BoundsRecord, CallRecord, Count, ItemRecord, PictureRecord, StepRecord, queue_name,
};
use super::report::ReportRecord;
use super::{Opened, Unusable, seal};

/// An event as it is written; only an unknown one that is not the record it says it is has none.
/// The text that a search reads is not in it: that is [`searchable`](crate::kind::searchable).
pub(crate) fn encode_event(stamped: &Stamped) -> Result<Cow<'_, str>, Unusable> {
    let Stamped {
        at: _,
        observed,
        event,
    } = stamped;
    let observed = observed.map(|observed| observed.0);
    let kind = event.kind();
    let body = match event {
        Event::Created(created) => seal(kind, observed, CreatedRecord::of(created)),
        Event::Started { epoch } => seal(kind, observed, EpochRecord { epoch: epoch.0 }),
        Event::Stopped { reason, waited_for } => {
            let record = StoppedRecord {
                reason: Cow::Borrowed(reason.as_str()),
                waited_for: waited_for.iter().map(|it| it.as_str().to_owned()).collect(),
            };
            seal(kind, observed, record)
        }
        Event::Queued { queue, item } => {
            let (item, text) = ItemRecord::of(item);
            let record = QueuedRecord {
                queue: queue_name(*queue),
                item,
                text: Arc::clone(text),
            };
            seal(kind, observed, record)
        }
        Event::Edited {
            item,
            revision,
            text,
        } => {
            let record = EditedRecord {
                item: item.0,
                revision: (*revision).into(),
                text: Arc::clone(text),
            };
            seal(kind, observed, record)
        }
        Event::Withdrawn { item } => seal(kind, observed, WithdrawnRecord { item: item.0 }),
        Event::Acknowledged { queue, item } => {
            let (item, _) = ItemRecord::of(item);
            let queue = queue_name(*queue);
            seal(kind, observed, AcknowledgedRecord { queue, item })
        }
        Event::Moved {
            item,
            queue,
            before,
        } => {
            let record = MovedRecord {
                item: item.0,
                queue: queue_name(*queue),
                before: before.map(|before| before.0),
            };
            seal(kind, observed, record)
        }
        Event::QueueSet {
            queue,
            name,
            immediacy,
            before_hold,
        } => {
            let record = QueueSetRecord {
                queue: queue_name(*queue),
                name: Arc::clone(name),
                immediacy: immediacy.as_str().to_owned(),
                before_hold: before_hold.map(|before| before.as_str().to_owned()),
            };
            seal(kind, observed, record)
        }
        Event::QueueDeleted { queue } => {
            let queue = queue_name(*queue);
            seal(kind, observed, QueueDeletedRecord { queue })
        }
        Event::TurnStarted { turn } => {
            let turn = turn.0.into();
            seal(kind, observed, TurnRecord { turn })
        }
        Event::Consumed { turn, queue, item } => {
            let (item, _) = ItemRecord::of(item);
            let record = ConsumedRecord {
                turn: turn.0.into(),
                queue: queue_name(*queue),
                item,
            };
            seal(kind, observed, record)
        }
        Event::Said { turn, step } => {
            let (step, _) = StepRecord::of(step);
            let turn = turn.0.into();
            seal(kind, observed, SaidRecord { turn, step })
        }
        Event::Compacted {
            cut,
            step,
            restated,
            before,
        } => {
            let (step, _) = StepRecord::of(step);
            let record = CompactedRecord {
                cut_turn: cut.turn.0.into(),
                cut_steps: cut.steps.into(),
                step,
                restated: Arc::clone(restated),
                before: before.map(Count),
            };
            seal(kind, observed, record)
        }
        Event::CallStarted { turn, call } => {
            let call = CallRecord::of(call);
            let turn = turn.0.into();
            seal(kind, observed, CallStartedRecord { turn, call })
        }
        Event::CallEnded { turn, result } => {
            let CallResult {
                call,
                content: _,
                is_error,
                spawned,
                origin,
                images,
                took_micros,
                report,
            } = result;
            let record = CallEndedRecord {
                turn: turn.0.into(),
                call: Arc::clone(call),
                is_error: *is_error,
                spawned: spawned.map(|spawned| spawned.0),
                cut: match origin {
                    ResultOrigin::Tool => false,
                    ResultOrigin::Cut => true,
                },
                images: images.iter().map(PictureRecord::of).collect(),
                took_micros: took_micros.map(Count),
                report: report.as_deref().map(ReportRecord::of),
            };
            seal(kind, observed, record)
        }
        Event::TurnEnded {
            turn,
            reason,
            result,
        } => {
            let record = TurnEndedRecord {
                turn: turn.0.into(),
                reason: reason.as_str().to_owned(),
                result: result.clone(),
            };
            seal(kind, observed, record)
        }
        Event::BoundsSet { bounds } => {
            let bounds = BoundsRecord::of(bounds);
            seal(kind, observed, BoundsSetRecord { bounds })
        }
        Event::SettingsSet { settings } => seal(kind, observed, SettingsSetRecord::of(settings)),
        Event::ModalSet { modal, state } => seal(kind, observed, ModalSetRecord::of(modal, state)),
        Event::Noted { code, text: _ } => {
            let code = Arc::clone(code);
            seal(kind, observed, NotedRecord { code })
        }
        Event::WatchSet { watch, target } => {
            let record = WatchSetRecord {
                watch: watch.0,
                target: target.0,
            };
            seal(kind, observed, record)
        }
        Event::WatchEnded { watch } | Event::WatcherRemoved { watch } => {
            seal(kind, observed, WatchRecord { watch: watch.0 })
        }
        Event::WatcherAdded {
            watch,
            session,
            message,
        } => {
            let record = WatcherAddedRecord {
                watch: watch.0,
                session: session.0,
                message: message.clone(),
            };
            seal(kind, observed, record)
        }
        Event::ChildHeld { child, call } => {
            let record = ChildRecord {
                child: child.0,
                call: call.clone(),
            };
            seal(kind, observed, record)
        }
        Event::ChildReleased { child } => {
            let record = ChildRecord {
                child: child.0,
                call: None,
            };
            seal(kind, observed, record)
        }
        Event::ParentHolds { parent } | Event::ParentReleased { parent } => {
            seal(kind, observed, ParentRecord { parent: parent.0 })
        }
        Event::Sent { to, item } => {
            let record = SentRecord {
                to: to.0,
                item: item.0,
            };
            seal(kind, observed, record)
        }
        Event::Unknown { kind, body } => {
            let opened = Opened::of(body.as_str())?;
            if opened.kind != **kind {
                let text = format!("a record of kind {} says that it is {kind}", opened.kind);
                return Err(Unusable::Broken(text));
            }
            return Ok(Cow::Borrowed(body.as_str()));
        }
    };
    Ok(Cow::Owned(body))
}
