//! Tokens as the wire shows them: who may come from another machine, and what for. Their secrets are told once, when they
//! are made, and stand in no view.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a token lets its bearer do. Each has what those before it have.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum TokenScope {
    /// Look at sessions and follow them.
    Read,
    /// Create, change and delete sessions: what runs in them runs as the user whose host it is.
    Write,
    /// Make, list and revoke tokens.
    Admin,
}

impl TokenScope {
    /// Its name, as it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

/// A token.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TokenView {
    /// Its id.
    pub token_id: String,
    /// Its name, which no other token has.
    pub name: String,
    /// What its bearer may do.
    pub scope: TokenScope,
    /// The session below which all lies that its bearer may see, itself among it; none is every session.
    pub session_id: Option<String>,
    /// When it was made.
    pub created_at: String,
}
