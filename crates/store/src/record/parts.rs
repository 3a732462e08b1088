//! Parts that several records have, each with its two conversions.

use std::collections::BTreeMap;
use std::sync::Arc;

use attache_session::{
    Bounds, Budget, CallId, Cost, Immediacy, ItemId, Json, Limit, NewCall, Origin, Picture,
    QueueId, QueuedItem, SessionId, StepText, Told, Usage, WatchId,
};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

/// A number that counts: what is below zero or beyond the range reads as the nearest that is not.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Count(pub(super) u64);

impl Count {
    pub(super) fn small(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }
}

impl From<u32> for Count {
    fn from(number: u32) -> Self {
        Self(u64::from(number))
    }
}

impl Serialize for Count {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(self.0)
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = Count;

            fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                to.write_str("a number")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Count, E> {
                Ok(Count(number))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Count, E> {
                Ok(Count(u64::try_from(number).unwrap_or(0)))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Count, E> {
                // The cast takes the nearest number of the range, and 0 for none.
                Ok(Count(number as u64))
            }
        }
        from.deserialize_any(Number)
    }
}

/// Limits by name, in the units of the counters. A limit of another version is passed over.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct BudgetRecord(BTreeMap<String, Count>);

impl BudgetRecord {
    pub(super) fn of(budget: &Budget) -> Self {
        let limits = budget.iter();
        Self(
            limits
                .map(|(limit, most)| (limit.as_str().to_owned(), Count(most)))
                .collect(),
        )
    }

    pub(super) fn value(self) -> Budget {
        let mut budget = Budget::NONE;
        for (name, Count(most)) in self.0 {
            if let Some(limit) = Limit::parse(&name) {
                budget.set(limit, Some(most));
            }
        }
        budget
    }

    pub(super) fn is_none(&self) -> bool {
        self.0.is_empty()
    }
}

/// What binds a tree.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct BoundsRecord {
    #[serde(skip_serializing_if = "BudgetRecord::is_none")]
    budget: BudgetRecord,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    paused: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    told: Vec<String>,
}

impl BoundsRecord {
    pub(super) fn of(bounds: &Bounds) -> Self {
        let Bounds {
            budget,
            paused,
            told,
        } = bounds;
        Self {
            budget: BudgetRecord::of(budget),
            paused: *paused,
            told: told.iter().map(|limit| limit.as_str().to_owned()).collect(),
        }
    }

    pub(super) fn value(self) -> Bounds {
        let Self {
            budget,
            paused,
            told,
        } = self;
        Bounds {
            budget: budget.value(),
            paused,
            told: told.iter().filter_map(|name| Limit::parse(name)).collect(),
        }
    }

    pub(super) fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// A queue by name.
pub(super) fn queue_name(queue: QueueId) -> String {
    match queue {
        QueueId::Immediate => "immediate".to_owned(),
        QueueId::Default => "default".to_owned(),
        QueueId::Custom(number) => format!("custom-{number}"),
    }
}

/// The queue of a name.
pub(super) fn queue_of(name: &str) -> Option<QueueId> {
    match name {
        "immediate" => Some(QueueId::Immediate),
        "default" => Some(QueueId::Default),
        _ => {
            let number = name.strip_prefix("custom-")?.parse().ok()?;
            Some(QueueId::Custom(number))
        }
    }
}

/// An immediacy by name; none is none, an unknown one is no value.
pub(super) fn immediacy_of(name: Option<&str>) -> Option<Option<Immediacy>> {
    match name {
        None => Some(None),
        Some(name) => Immediacy::parse(name).map(Some),
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum OriginRecord {
    Viewer {},
    Session {
        id: Uuid,
    },
    Notice {
        about: Uuid,
        watch: Uuid,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        told: Option<ToldRecord>,
    },
}

/// What another session said.
#[derive(Serialize, Deserialize)]
pub(super) struct ToldRecord {
    #[serde(default)]
    text: Arc<str>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    earlier: bool,
}

impl ToldRecord {
    pub(super) fn of(told: &Told) -> Self {
        let Told { text, earlier } = told;
        Self {
            text: Arc::clone(text),
            earlier: *earlier,
        }
    }

    pub(super) fn value(self) -> Told {
        let Self { text, earlier } = self;
        Told { text, earlier }
    }
}

impl OriginRecord {
    pub(super) fn of(origin: &Origin) -> Self {
        match origin {
            Origin::Viewer => Self::Viewer {},
            Origin::Session(SessionId(id)) => Self::Session { id: *id },
            Origin::Notice { about, watch, told } => Self::Notice {
                about: about.0,
                watch: watch.0,
                told: told.as_ref().map(ToldRecord::of),
            },
        }
    }

    fn value(self) -> Origin {
        match self {
            Self::Viewer {} => Origin::Viewer,
            Self::Session { id } => Origin::Session(SessionId(id)),
            Self::Notice { about, watch, told } => Origin::Notice {
                about: SessionId(about),
                watch: WatchId(watch),
                told: told.map(ToldRecord::value),
            },
        }
    }
}

/// A queued item without its text.
#[derive(Serialize, Deserialize)]
pub(super) struct ItemRecord {
    id: Uuid,
    #[serde(default)]
    revision: Count,
    origin: OriginRecord,
}

impl ItemRecord {
    pub(super) fn of(item: &QueuedItem) -> (Self, &Arc<str>) {
        let QueuedItem {
            id,
            revision,
            text,
            origin,
        } = item;
        let record = Self {
            id: id.0,
            revision: (*revision).into(),
            origin: OriginRecord::of(origin),
        };
        (record, text)
    }

    pub(super) fn value(self, text: Arc<str>) -> Arc<QueuedItem> {
        let Self {
            id,
            revision,
            origin,
        } = self;
        Arc::new(QueuedItem {
            id: ItemId(id),
            revision: revision.small(),
            text,
            origin: origin.value(),
        })
    }
}

#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
pub(super) struct UsageRecord {
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Count>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Count>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_read: Option<Count>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_write: Option<Count>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Count>,
}

impl UsageRecord {
    pub(super) fn of(usage: &Usage) -> Self {
        let Usage {
            input,
            output,
            cache_read,
            cache_write,
            reasoning,
        } = usage;
        Self {
            input: input.map(Count),
            output: output.map(Count),
            cache_read: cache_read.map(Count),
            cache_write: cache_write.map(Count),
            reasoning: reasoning.map(Count),
        }
    }

    pub(super) fn value(self) -> Usage {
        let Self {
            input,
            output,
            cache_read,
            cache_write,
            reasoning,
        } = self;
        Usage {
            input: input.map(|count| count.0),
            output: output.map(|count| count.0),
            cache_read: cache_read.map(|count| count.0),
            cache_write: cache_write.map(|count| count.0),
            reasoning: reasoning.map(|count| count.0),
        }
    }
}

/// What a step cost.
#[derive(Serialize, Deserialize)]
struct CostRecord {
    #[serde(default)]
    usd_nanos: Count,
    #[serde(default)]
    prices: Arc<str>,
}

/// What a step said, without its text.
#[derive(Serialize, Deserialize)]
pub(super) struct StepRecord {
    #[serde(default)]
    reasoning: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    opaque: Option<Arc<str>>,
    #[serde(default)]
    usage: UsageRecord,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cost: Option<CostRecord>,
    #[serde(default)]
    model: Arc<str>,
    #[serde(default)]
    incomplete: bool,
}

impl StepRecord {
    pub(super) fn of(step: &StepText) -> (Self, &Arc<str>) {
        let StepText {
            text,
            reasoning,
            opaque,
            usage,
            cost,
            model,
            incomplete,
        } = step;
        let record = Self {
            reasoning: Arc::clone(reasoning),
            opaque: opaque.as_ref().map(Json::shared),
            usage: UsageRecord::of(usage),
            cost: cost.as_ref().map(|cost| CostRecord {
                usd_nanos: Count(cost.usd_nanos),
                prices: Arc::clone(&cost.prices),
            }),
            model: Arc::clone(model),
            incomplete: *incomplete,
        };
        (record, text)
    }

    pub(super) fn value(self, text: Arc<str>) -> StepText {
        let Self {
            reasoning,
            opaque,
            usage,
            cost,
            model,
            incomplete,
        } = self;
        StepText {
            text,
            reasoning,
            opaque: opaque.map(Json::from_checked),
            usage: usage.value(),
            cost: cost.map(|CostRecord { usd_nanos, prices }| Cost {
                usd_nanos: usd_nanos.0,
                prices,
            }),
            model,
            incomplete,
        }
    }
}

/// A tool call; its arguments stand behind its name in the text.
#[derive(Serialize, Deserialize)]
pub(super) struct CallRecord {
    id: CallId,
    #[serde(default)]
    name: Arc<str>,
    #[serde(default = "yes")]
    changes_state: bool,
}

/// Unknown counts as changing.
fn yes() -> bool {
    true
}

impl CallRecord {
    pub(super) fn of(call: &NewCall) -> Self {
        let NewCall {
            id,
            name,
            arguments: _,
            changes_state,
        } = call;
        Self {
            id: Arc::clone(id),
            name: Arc::clone(name),
            changes_state: *changes_state,
        }
    }

    pub(super) fn value(self, text: &str) -> NewCall {
        let Self {
            id,
            name,
            changes_state,
        } = self;
        let arguments = text
            .strip_prefix(&*name)
            .and_then(|rest| rest.strip_prefix('\n'))
            .unwrap_or(text);
        NewCall {
            id,
            arguments: arguments.into(),
            name,
            changes_state,
        }
    }
}

/// A picture of a result.
#[derive(Serialize, Deserialize)]
pub(super) struct PictureRecord {
    #[serde(default)]
    media_type: Arc<str>,
    #[serde(default)]
    bytes: Count,
    #[serde(default)]
    base64: Arc<str>,
}

impl PictureRecord {
    pub(super) fn of(picture: &Picture) -> Self {
        let Picture {
            media_type,
            base64,
            bytes,
        } = picture;
        Self {
            media_type: Arc::clone(media_type),
            bytes: Count(*bytes),
            base64: Arc::clone(base64),
        }
    }

    pub(super) fn value(self) -> Picture {
        let Self {
            media_type,
            bytes,
            base64,
        } = self;
        Picture {
            media_type,
            base64,
            bytes: bytes.0,
        }
    }
}
