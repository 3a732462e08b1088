//! A session as viewers see it: its row, and its queues.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a session is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// A turn is in flight, or input waits that starts one.
    Running,
    /// Nothing is in flight.
    Idle,
    /// It has no epoch.
    Stopped,
    /// Nothing is in flight, and the last run went wrong.
    Error,
}

impl Status {
    /// The stable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Idle => "idle",
            Self::Stopped => "stopped",
            Self::Error => "error",
        }
    }
}

/// Token counts; null is "not reported".
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct UsageView {
    /// Tokens of the prompts, cached ones included.
    pub input_tokens: Option<u64>,
    /// Tokens of the answers.
    pub output_tokens: Option<u64>,
    /// Prompt tokens read from a cache.
    pub cache_read_tokens: Option<u64>,
    /// Prompt tokens written to a cache.
    pub cache_write_tokens: Option<u64>,
    /// Tokens of reasoning.
    pub reasoning_tokens: Option<u64>,
}

/// A session's row. Times are RFC 3339, UTC, with six fraction digits.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SessionView {
    /// Its id.
    pub session_id: String,
    /// Its name among its siblings.
    pub name: String,
    /// What it does.
    pub status: Status,
    /// What came of the last run: `succeeded`, `failed`, `interrupted`, `cancelled`, `timed-out` or
    /// `out-of-budget`.
    pub outcome: Option<String>,
    /// How the last run ended.
    pub end_reason: Option<String>,
    /// The name of its agent definition.
    pub agent: String,
    /// Its model as `PROVIDER/MODEL`.
    pub model: String,
    /// Where its tools work.
    pub working_directory: String,
    /// Its parents, the spawner first.
    pub parent_session_ids: Vec<String>,
    /// The root of its tree.
    pub root_session_id: String,
    /// When it was born.
    pub created_at: String,
    /// When something last happened in it.
    pub last_activity_at: String,
    /// All tokens so far.
    pub usage: UsageView,
    /// What it cost; null is unknown.
    pub cost_usd: Option<f64>,
    /// Whether some calls' cost is unknown: then it cost at least what is known.
    pub cost_at_least: bool,
    /// Tokens of the newest prompt.
    pub context_tokens: Option<u64>,
    /// Last non-empty text of the last run, cut.
    pub result_preview: Option<String>,
    /// Whether that text is from before the run's last step, which said nothing.
    pub result_is_earlier: bool,
    /// What calls that the end of the last run cut may have done: `none` or `maybe`; null for a run that came to its own end.
    pub side_effects: Option<String>,
    /// The tool that runs now, or what else it is doing.
    pub action: Option<String>,
    /// What its run waits for instead of going on: a retry, its turn at the provider.
    pub note: Option<String>,
    /// Input that waits in its queues.
    pub queued: u32,
    /// Mail that lies unread: input and notices.
    pub unread: u32,
    /// Running sessions whose end it awaits.
    pub waiting_for: Vec<String>,
    /// Its ownership generation.
    pub generation: u64,
    /// Whether nothing is spawned in its tree until somebody lets it go on.
    pub paused: bool,
    /// Whether it goes on when its last viewer has left.
    pub continue_in_background: bool,
    /// How many of its own questions to a person are open.
    pub asks: u32,
}

/// When a queue's input may be taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Immediacy {
    /// At a tool boundary, and at a turn's start.
    Immediate,
    /// At a turn's start.
    Queue,
    /// Never, until it is released.
    Held,
}

/// Who wrote an item of input.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case"
)]
#[serde(deny_unknown_fields)]
pub enum InputOrigin {
    /// A person or a program.
    Viewer {},
    /// Another session.
    Session {
        /// That session.
        session_id: String,
    },
    /// A notice that a session has settled.
    Notice {
        /// The session that it tells of.
        session_id: String,
        /// The notice's own id: that of the registration which it answers.
        notice_id: String,
        /// What that session said last, cut; its own words.
        result_preview: Option<String>,
        /// Whether that is from before its last step, which said nothing.
        result_is_earlier: bool,
    },
}

/// An item that waits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct QueueItemView {
    /// Its id.
    pub item_id: String,
    /// Its revision.
    pub revision: u32,
    /// Its text, cut where it is very long.
    pub text: String,
    /// Who wrote it.
    pub origin: InputOrigin,
}

/// A queue with what waits in it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct QueueView {
    /// `immediate`, `default` or `custom-N`.
    pub queue_id: String,
    /// Its name.
    pub name: String,
    /// When its input may be taken.
    pub immediacy: Immediacy,
    /// Its revision.
    pub revision: u32,
    /// How many items wait in it.
    pub waiting: u32,
    /// Its items, first one first; of a long queue the first ones.
    pub items: Vec<QueueItemView>,
}
