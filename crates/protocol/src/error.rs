//! Errors on the wire: a stable code, a text that is safe to show, and an id to find the rest by.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An error.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[error("{message}")]
pub struct WireError {
    /// The stable code.
    pub code: String,
    /// `invalid`, `not-found`, `conflict`, `refused`, `unavailable`, `timeout` or `internal`.
    pub category: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// What happened, to what.
    pub message: String,
    /// What to do next: fixed text for each code.
    pub hint: Option<String>,
    /// The revision that an item or a queue has, where a change was made against another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_revision: Option<u32>,
    /// Names this very error in the host's log.
    pub correlation_id: String,
}
