//! A session's summary as it is stored, in two parts: what hardly ever changes, and what does with
//! most appends. And the streamed text of a turn in flight.

use std::sync::Arc;

use attache_session::{
    EndReason, Epoch, SessionId, SideEffects, Spent, StopReason, Summary, Timestamp, TurnId,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::event::is_yes;
use super::parts::{BoundsRecord, Count, StepRecord, UsageRecord};
use super::{Opened, Unusable, seal};
use crate::read::Partial;

/// The part of a summary that hardly ever changes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Fixed {
    name: Arc<str>,
    agent: Arc<str>,
    model: Arc<str>,
    working_directory: Arc<str>,
    takes_input: bool,
    #[serde(skip_serializing_if = "is_yes")]
    runs_turns: bool,
    created_at: i64,
}

impl Default for Fixed {
    fn default() -> Self {
        Self {
            name: Arc::default(),
            agent: Arc::default(),
            model: Arc::default(),
            working_directory: Arc::default(),
            takes_input: false,
            runs_turns: true,
            created_at: 0,
        }
    }
}

impl Fixed {
    /// Whether a summary still says the same.
    pub(crate) fn is_of(&self, summary: &Summary) -> bool {
        let Self {
            name,
            agent,
            model,
            working_directory,
            takes_input,
            runs_turns,
            created_at,
        } = self;
        *name == summary.name
            && *agent == summary.agent
            && *model == summary.model
            && *working_directory == summary.working_directory
            && *takes_input == summary.takes_input
            && *runs_turns == summary.runs_turns
            && *created_at == summary.created_at.0
    }

    /// This part of a summary.
    pub(crate) fn of(summary: &Summary) -> Self {
        Self {
            name: Arc::clone(&summary.name),
            agent: Arc::clone(&summary.agent),
            model: Arc::clone(&summary.model),
            working_directory: Arc::clone(&summary.working_directory),
            takes_input: summary.takes_input,
            runs_turns: summary.runs_turns,
            created_at: summary.created_at.0,
        }
    }
}

/// The rest, without the epoch, which the row has in a column of its own.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Changing<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parents: Vec<Uuid>,
    active: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<Count>,
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<Arc<str>>,
    #[serde(skip_serializing_if = "is_zero")]
    deliverable: Count,
    #[serde(skip_serializing_if = "is_zero")]
    queued: Count,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    watching: Vec<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Arc<str>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    earlier: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    side_effects: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    changing: bool,
    usage: UsageRecord,
    #[serde(skip_serializing_if = "Option::is_none")]
    usd_nanos: Option<Count>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    usd_at_least: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<Count>,
    #[serde(skip_serializing_if = "BoundsRecord::is_none")]
    bounds: BoundsRecord,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    background: bool,
    #[serde(skip_serializing_if = "is_zero")]
    asks: Count,
}

fn is_zero(count: &Count) -> bool {
    count.0 == 0
}

/// The fixed part as it is written.
pub(crate) fn encode_fixed(fixed: &Fixed) -> String {
    seal("fixed", None, fixed)
}

/// The changing part as it is written.
pub(crate) fn encode_summary(summary: &Summary) -> String {
    let Summary {
        name: _,
        agent: _,
        model: _,
        working_directory: _,
        takes_input: _,
        runs_turns: _,
        parents,
        created_at: _,
        last_activity_at,
        epoch: _,
        stop,
        turn,
        action,
        deliverable,
        queued,
        watching,
        end_reason,
        result,
        result_earlier,
        side_effects,
        changing,
        usage,
        spent,
        context_tokens,
        bounds,
        continue_in_background,
        asks,
    } = summary;
    let changing = Changing {
        parents: parents.iter().map(|parent| parent.0).collect(),
        active: last_activity_at.0,
        stop: stop.map(StopReason::as_str),
        turn: turn.map(|turn| turn.0.into()),
        action: action.clone(),
        deliverable: (*deliverable).into(),
        queued: (*queued).into(),
        watching: watching.iter().map(|target| target.0).collect(),
        end: end_reason.map(EndReason::as_str),
        result: result.clone(),
        earlier: *result_earlier,
        side_effects: side_effects.map(SideEffects::as_str),
        changing: *changing,
        usage: UsageRecord::of(usage),
        usd_nanos: spent.usd_nanos.map(Count),
        usd_at_least: spent.at_least,
        context: context_tokens.map(Count),
        bounds: BoundsRecord::of(bounds),
        background: *continue_in_background,
        asks: (*asks).into(),
    };
    seal("summary", None, changing)
}

/// A summary from its stored parts.
pub(crate) fn decode_summary(
    fixed: &str,
    summary: &str,
    epoch: Option<Epoch>,
) -> Result<Summary, Unusable> {
    let fixed = Opened::of(fixed)?;
    let Fixed {
        name,
        agent,
        model,
        working_directory,
        takes_input,
        runs_turns,
        created_at,
    } = serde_json::from_str(fixed.fields()).map_err(broken)?;
    let opened = Opened::of(summary)?;
    let Changing {
        parents,
        active,
        stop,
        turn,
        action,
        deliverable,
        queued,
        watching,
        end,
        result,
        earlier,
        side_effects,
        changing,
        usage,
        usd_nanos,
        usd_at_least,
        context,
        bounds,
        background,
        asks,
    } = serde_json::from_str(opened.fields()).map_err(broken)?;
    Ok(Summary {
        name,
        agent,
        model,
        working_directory,
        takes_input,
        runs_turns,
        parents: parents.into_iter().map(SessionId).collect(),
        created_at: Timestamp(created_at),
        last_activity_at: Timestamp(active),
        epoch,
        stop: stop.and_then(StopReason::parse),
        turn: turn.map(|turn| TurnId(turn.small())),
        action,
        deliverable: deliverable.small(),
        queued: queued.small(),
        watching: watching.into_iter().map(SessionId).collect(),
        end_reason: end.and_then(EndReason::parse),
        result,
        result_earlier: earlier,
        side_effects: side_effects.and_then(SideEffects::parse),
        changing,
        usage: usage.value(),
        spent: Spent {
            usd_nanos: usd_nanos.map(|count| count.0),
            at_least: usd_at_least,
        },
        context_tokens: context.map(|count| count.0),
        bounds: Arc::new(bounds.value()),
        continue_in_background: background,
        asks: asks.small(),
    })
}

/// The fixed part of a stored row.
impl Fixed {
    pub(crate) fn read(body: &str) -> Option<Self> {
        let opened = Opened::of(body).ok()?;
        serde_json::from_str(opened.fields()).ok()
    }
}

#[derive(Serialize, Deserialize)]
struct PartialRecord {
    turn: Count,
    step: StepRecord,
    #[serde(default)]
    text: Arc<str>,
}

/// Streamed text as it is written.
pub(crate) fn encode_partial(partial: &Partial) -> String {
    let Partial { turn, step } = partial;
    let (step, text) = StepRecord::of(step);
    let record = PartialRecord {
        turn: turn.0.into(),
        step,
        text: Arc::clone(text),
    };
    seal("partial", None, record)
}

/// Stored streamed text.
pub(crate) fn decode_partial(body: &str) -> Result<Partial, Unusable> {
    let opened = Opened::of(body)?;
    let PartialRecord { turn, step, text } =
        serde_json::from_str(opened.fields()).map_err(broken)?;
    Ok(Partial {
        turn: TurnId(turn.small()),
        step: step.value(text),
    })
}

fn broken(error: serde_json::Error) -> Unusable {
    Unusable::Broken(error.to_string())
}
