//! Events as they are stored. The text that a search reads stands apart from the body.

use std::borrow::Cow;
use std::sync::Arc;

use attache_session::{
    CallId, CallResult, Created, EndReason, Epoch, Event, Immediacy, ItemId, Json, ResultOrigin,
    SessionId, Stamped, StopReason, Timestamp, TurnId, WatchId,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::parts::{CallRecord, Count, ItemRecord, StepRecord, immediacy_of, queue_name, queue_of};
use super::{Opened, Unusable, seal};
use crate::check::READER;
use crate::kind::stored_kind;

/// An event ready to be written.
#[derive(Debug)]
pub(crate) struct Encoded<'a> {
    /// Everything but the text.
    pub(crate) body: Cow<'a, str>,
    /// The text that a search reads.
    pub(crate) text: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
struct CreatedRecord {
    #[serde(default)]
    name: Arc<str>,
    #[serde(default)]
    agent: Arc<str>,
    #[serde(default = "object")]
    definition: Arc<str>,
    #[serde(default)]
    model: Arc<str>,
    #[serde(default)]
    working_directory: Arc<str>,
    root: Uuid,
    #[serde(default)]
    parents: Vec<Uuid>,
    #[serde(default)]
    takes_input: bool,
    #[serde(default)]
    owning_profile: Uuid,
    #[serde(default = "object")]
    executor_bindings: Arc<str>,
    #[serde(default)]
    trust: Option<(Uuid, Count)>,
    #[serde(default)]
    continue_in_background: bool,
}

fn object() -> Arc<str> {
    "{}".into()
}

#[derive(Serialize, Deserialize)]
struct EpochRecord {
    epoch: Uuid,
}

#[derive(Serialize, Deserialize)]
struct ReasonRecord<'a> {
    #[serde(borrow)]
    reason: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
struct QueuedRecord {
    queue: String,
    item: ItemRecord,
    #[serde(default)]
    text: Arc<str>,
}

#[derive(Serialize, Deserialize)]
struct EditedRecord {
    item: Uuid,
    #[serde(default)]
    revision: Count,
    #[serde(default)]
    text: Arc<str>,
}

#[derive(Serialize, Deserialize)]
struct WithdrawnRecord {
    item: Uuid,
}

#[derive(Serialize, Deserialize)]
struct MovedRecord {
    item: Uuid,
    queue: String,
    #[serde(default)]
    before: Option<Uuid>,
}

#[derive(Serialize, Deserialize)]
struct QueueSetRecord {
    queue: String,
    #[serde(default)]
    name: Arc<str>,
    immediacy: String,
    #[serde(default)]
    before_hold: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct QueueDeletedRecord {
    queue: String,
}

#[derive(Serialize, Deserialize)]
struct TurnRecord {
    turn: Count,
}

#[derive(Serialize, Deserialize)]
struct ConsumedRecord {
    #[serde(default)]
    turn: Count,
    queue: String,
    item: ItemRecord,
}

#[derive(Serialize, Deserialize)]
struct SaidRecord {
    #[serde(default)]
    turn: Count,
    step: StepRecord,
}

#[derive(Serialize, Deserialize)]
struct CallStartedRecord {
    #[serde(default)]
    turn: Count,
    call: CallRecord,
}

#[derive(Serialize, Deserialize)]
struct CallEndedRecord {
    #[serde(default)]
    turn: Count,
    call: CallId,
    #[serde(default)]
    is_error: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spawned: Option<Uuid>,
    #[serde(default)]
    cut: bool,
}

#[derive(Serialize, Deserialize)]
struct TurnEndedRecord {
    #[serde(default)]
    turn: Count,
    reason: String,
    #[serde(default)]
    result: Option<Arc<str>>,
}

#[derive(Serialize, Deserialize)]
struct NotedRecord {
    #[serde(default)]
    code: Arc<str>,
}

#[derive(Serialize, Deserialize)]
struct WatchSetRecord {
    watch: Uuid,
    target: Uuid,
}

#[derive(Serialize, Deserialize)]
struct WatchRecord {
    watch: Uuid,
}

#[derive(Serialize, Deserialize)]
struct WatcherAddedRecord {
    watch: Uuid,
    session: Uuid,
    #[serde(default)]
    message: Option<Arc<str>>,
}

#[derive(Serialize, Deserialize)]
struct ChildRecord {
    child: Uuid,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    call: Option<CallId>,
}

#[derive(Serialize, Deserialize)]
struct ParentRecord {
    parent: Uuid,
}

#[derive(Serialize, Deserialize)]
struct SentRecord {
    to: Uuid,
    item: Uuid,
}

/// An event as it is written; only an unknown one that is not the record it says it is has none.
pub(crate) fn encode_event(stamped: &Stamped) -> Result<Encoded<'_>, Unusable> {
    let Stamped {
        at: _,
        observed,
        event,
    } = stamped;
    let observed = observed.map(|observed| observed.0);
    let kind = stored_kind(event);
    let mut text = None;
    let body = match event {
        Event::Created(created) => seal(kind, observed, CreatedRecord::of(created)),
        Event::Started { epoch } => seal(kind, observed, EpochRecord { epoch: epoch.0 }),
        Event::Stopped { reason } => {
            let reason = Cow::Borrowed(reason.as_str());
            seal(kind, observed, ReasonRecord { reason })
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
            let (item, words) = ItemRecord::of(item);
            text = Some(Cow::Borrowed(&**words));
            let record = ConsumedRecord {
                turn: turn.0.into(),
                queue: queue_name(*queue),
                item,
            };
            seal(kind, observed, record)
        }
        Event::Said { turn, step } => {
            let (step, words) = StepRecord::of(step);
            text = Some(Cow::Borrowed(&**words));
            let turn = turn.0.into();
            seal(kind, observed, SaidRecord { turn, step })
        }
        Event::CallStarted { turn, call } => {
            let (call, words) = CallRecord::of(call);
            text = Some(Cow::Owned(words));
            let turn = turn.0.into();
            seal(kind, observed, CallStartedRecord { turn, call })
        }
        Event::CallEnded { turn, result } => {
            let CallResult {
                call,
                content,
                is_error,
                spawned,
                origin,
            } = result;
            text = Some(Cow::Borrowed(&**content));
            let record = CallEndedRecord {
                turn: turn.0.into(),
                call: Arc::clone(call),
                is_error: *is_error,
                spawned: spawned.map(|spawned| spawned.0),
                cut: match origin {
                    ResultOrigin::Tool => false,
                    ResultOrigin::Cut => true,
                },
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
        Event::Noted { code, text: words } => {
            text = Some(Cow::Borrowed(&**words));
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
            return Ok(Encoded {
                body: Cow::Borrowed(body.as_str()),
                text: None,
            });
        }
    };
    Ok(Encoded {
        body: Cow::Owned(body),
        text,
    })
}

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
            let ReasonRecord { reason } = read(fields)?;
            Event::Stopped {
                reason: StopReason::parse(&reason)?,
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

impl CreatedRecord {
    fn of(created: &Created) -> Self {
        let Created {
            name,
            agent,
            definition,
            model,
            working_directory,
            root,
            parents,
            takes_input,
            owning_profile,
            executor_bindings,
            trust,
            continue_in_background,
        } = created;
        Self {
            name: Arc::clone(name),
            agent: Arc::clone(agent),
            definition: definition.shared(),
            model: Arc::clone(model),
            working_directory: Arc::clone(working_directory),
            root: root.0,
            parents: parents.iter().map(|parent| parent.0).collect(),
            takes_input: *takes_input,
            owning_profile: *owning_profile,
            executor_bindings: executor_bindings.shared(),
            trust: trust.map(|(profile, tag)| (profile, Count(tag))),
            continue_in_background: *continue_in_background,
        }
    }

    fn value(self) -> Created {
        let Self {
            name,
            agent,
            definition,
            model,
            working_directory,
            root,
            parents,
            takes_input,
            owning_profile,
            executor_bindings,
            trust,
            continue_in_background,
        } = self;
        Created {
            name,
            agent,
            definition: Json::from_checked(definition),
            model,
            working_directory,
            root: SessionId(root),
            parents: parents.into_iter().map(SessionId).collect(),
            takes_input,
            owning_profile,
            executor_bindings: Json::from_checked(executor_bindings),
            trust: trust.map(|(profile, tag)| (profile, tag.0)),
            continue_in_background,
        }
    }
}
