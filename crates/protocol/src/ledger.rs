//! The tool calls of a run as viewers see them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The calls of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LedgerView {
    /// How many calls the run has made.
    pub total: u64,
    /// At most 40 of them, oldest first: those that failed or were cut are kept first, then those that change state.
    pub calls: Vec<LedgerCallView>,
}

/// A call of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LedgerCallView {
    /// The tool; `NAME -> TARGET` where it only passed the call on.
    pub name: String,
    /// The beginning of its arguments on one line, at most 100 characters.
    pub arguments: String,
    /// SHA-256 of the arguments as the model wrote them, in hex.
    pub arguments_digest: String,
    /// SHA-256 of the result's whole text, in hex; none when the tool gave none.
    pub result_digest: Option<String>,
    /// What it came to.
    pub outcome: CallOutcome,
    /// How long it took, in microseconds; none when that is not known. Calls of one step run side by side.
    pub duration_micros: Option<u64>,
    /// Whether it may have changed something.
    pub changes_state: bool,
    /// What came of it, as the tool put it; at most 200 characters.
    pub detail: Option<String>,
    /// Calls that it made by itself, at most 15, oldest first.
    pub nested: Vec<NestedCallView>,
    /// How many those were.
    pub nested_total: u64,
}

/// A call that another call made by itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct NestedCallView {
    /// The tool.
    pub name: String,
    /// The beginning of its arguments on one line, at most 100 characters.
    pub arguments: String,
    /// What it came to: `ok` or `failed`.
    pub outcome: CallOutcome,
    /// Whether it may have changed something.
    pub changes_state: bool,
}

/// What a call came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CallOutcome {
    /// It did what it was for.
    Ok,
    /// It failed.
    Failed,
    /// It has no result: the run ended first. It may have taken effect.
    Cut,
    /// It has no result yet.
    Running,
}

impl CallOutcome {
    /// The stable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Cut => "cut",
            Self::Running => "running",
        }
    }
}
