//! The records of events, one for each kind. What they are made of and how they are read is in
//! `write` and `read` beside this.

use std::borrow::Cow;
use std::sync::Arc;

use attache_session::{CallId, Created, Json, SessionId, Settings};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::parts::{
    BoundsRecord, BudgetRecord, CallRecord, Count, ItemRecord, PictureRecord, StepRecord,
};
use super::report::ReportRecord;

#[derive(Serialize, Deserialize)]
pub(super) struct CreatedRecord {
    #[serde(default)]
    pub(super) name: Arc<str>,
    #[serde(default)]
    pub(super) agent: Arc<str>,
    #[serde(default = "object")]
    pub(super) definition: Arc<str>,
    #[serde(default)]
    pub(super) model: Arc<str>,
    #[serde(default)]
    pub(super) working_directory: Arc<str>,
    pub(super) root: Uuid,
    #[serde(default)]
    pub(super) parents: Vec<Uuid>,
    #[serde(default)]
    pub(super) takes_input: bool,
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub(super) runs_turns: bool,
    #[serde(default)]
    pub(super) owning_profile: Uuid,
    #[serde(default = "object")]
    pub(super) executor_bindings: Arc<str>,
    #[serde(default)]
    pub(super) trust: Option<(Uuid, Count)>,
    #[serde(default)]
    pub(super) continue_in_background: bool,
    #[serde(default, skip_serializing_if = "BudgetRecord::is_none")]
    pub(super) budget: BudgetRecord,
}

/// A session of a time before this could be told runs turns.
pub(super) fn yes() -> bool {
    true
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference"
)]
pub(super) fn is_yes(value: &bool) -> bool {
    *value
}

fn object() -> Arc<str> {
    "{}".into()
}

#[derive(Serialize, Deserialize)]
pub(super) struct EpochRecord {
    pub(super) epoch: Uuid,
}

#[derive(Serialize, Deserialize)]
pub(super) struct StoppedRecord<'a> {
    #[serde(borrow)]
    pub(super) reason: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) waited_for: Vec<String>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct QueuedRecord {
    pub(super) queue: String,
    pub(super) item: ItemRecord,
    #[serde(default)]
    pub(super) text: Arc<str>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct EditedRecord {
    pub(super) item: Uuid,
    #[serde(default)]
    pub(super) revision: Count,
    #[serde(default)]
    pub(super) text: Arc<str>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct WithdrawnRecord {
    pub(super) item: Uuid,
}

#[derive(Serialize, Deserialize)]
pub(super) struct AcknowledgedRecord {
    pub(super) queue: String,
    pub(super) item: ItemRecord,
}

#[derive(Serialize, Deserialize)]
pub(super) struct MovedRecord {
    pub(super) item: Uuid,
    pub(super) queue: String,
    #[serde(default)]
    pub(super) before: Option<Uuid>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct QueueSetRecord {
    pub(super) queue: String,
    #[serde(default)]
    pub(super) name: Arc<str>,
    pub(super) immediacy: String,
    #[serde(default)]
    pub(super) before_hold: Option<String>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct QueueDeletedRecord {
    pub(super) queue: String,
}

#[derive(Serialize, Deserialize)]
pub(super) struct TurnRecord {
    pub(super) turn: Count,
}

#[derive(Serialize, Deserialize)]
pub(super) struct ConsumedRecord {
    #[serde(default)]
    pub(super) turn: Count,
    pub(super) queue: String,
    pub(super) item: ItemRecord,
}

#[derive(Serialize, Deserialize)]
pub(super) struct SaidRecord {
    #[serde(default)]
    pub(super) turn: Count,
    pub(super) step: StepRecord,
}

#[derive(Serialize, Deserialize)]
pub(super) struct CallStartedRecord {
    #[serde(default)]
    pub(super) turn: Count,
    pub(super) call: CallRecord,
}

#[derive(Serialize, Deserialize)]
pub(super) struct CallEndedRecord {
    #[serde(default)]
    pub(super) turn: Count,
    pub(super) call: CallId,
    #[serde(default)]
    pub(super) is_error: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) spawned: Option<Uuid>,
    #[serde(default)]
    pub(super) cut: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) images: Vec<PictureRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) took_micros: Option<Count>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) report: Option<ReportRecord>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct TurnEndedRecord {
    #[serde(default)]
    pub(super) turn: Count,
    pub(super) reason: String,
    #[serde(default)]
    pub(super) result: Option<Arc<str>>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct CompactedRecord {
    pub(super) cut_turn: Count,
    #[serde(default)]
    pub(super) cut_steps: Count,
    pub(super) step: StepRecord,
    #[serde(default)]
    pub(super) restated: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) before: Option<Count>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct BoundsSetRecord {
    #[serde(default)]
    pub(super) bounds: BoundsRecord,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct SettingsSetRecord {
    pub(super) continue_in_background: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) switched_off: Vec<Arc<str>>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct NotedRecord {
    #[serde(default)]
    pub(super) code: Arc<str>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct WatchSetRecord {
    pub(super) watch: Uuid,
    pub(super) target: Uuid,
}

#[derive(Serialize, Deserialize)]
pub(super) struct WatchRecord {
    pub(super) watch: Uuid,
}

#[derive(Serialize, Deserialize)]
pub(super) struct WatcherAddedRecord {
    pub(super) watch: Uuid,
    pub(super) session: Uuid,
    #[serde(default)]
    pub(super) message: Option<Arc<str>>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct ChildRecord {
    pub(super) child: Uuid,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) call: Option<CallId>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct ParentRecord {
    pub(super) parent: Uuid,
}

#[derive(Serialize, Deserialize)]
pub(super) struct SentRecord {
    pub(super) to: Uuid,
    pub(super) item: Uuid,
}

impl SettingsSetRecord {
    pub(super) fn of(settings: &Settings) -> Self {
        let Settings {
            continue_in_background,
            name,
            model,
            switched_off,
        } = settings.clone();
        Self {
            continue_in_background,
            name,
            model,
            switched_off,
        }
    }

    pub(super) fn value(self) -> Settings {
        let Self {
            continue_in_background,
            name,
            model,
            switched_off,
        } = self;
        Settings {
            continue_in_background,
            name,
            model,
            switched_off,
        }
    }
}

impl CreatedRecord {
    pub(super) fn of(created: &Created) -> Self {
        let Created {
            name,
            agent,
            definition,
            model,
            working_directory,
            root,
            parents,
            takes_input,
            runs_turns,
            owning_profile,
            executor_bindings,
            trust,
            continue_in_background,
            budget,
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
            runs_turns: *runs_turns,
            owning_profile: *owning_profile,
            executor_bindings: executor_bindings.shared(),
            trust: trust.map(|(profile, tag)| (profile, Count(tag))),
            continue_in_background: *continue_in_background,
            budget: BudgetRecord::of(budget),
        }
    }

    pub(super) fn value(self) -> Created {
        let Self {
            name,
            agent,
            definition,
            model,
            working_directory,
            root,
            parents,
            takes_input,
            runs_turns,
            owning_profile,
            executor_bindings,
            trust,
            continue_in_background,
            budget,
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
            runs_turns,
            owning_profile,
            executor_bindings: Json::from_checked(executor_bindings),
            trust: trust.map(|(profile, tag)| (profile, tag.0)),
            continue_in_background,
            budget: budget.value(),
        }
    }
}
