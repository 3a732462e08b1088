//! JSON that we carry and do not interpret: arguments, definitions, provider extras.

use std::fmt;
use std::sync::Arc;

/// JSON text that whoever made it has checked. Cheap to clone; never re-modelled here.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Json(Arc<str>);

/// The text is not JSON; the reason is the parser's.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not JSON: {reason}")]
pub struct NotJson {
    /// What the parser said, with line and column.
    pub reason: String,
}

impl Json {
    /// Wraps text that is known to be JSON: it came from a serialiser or passed a parser.
    #[must_use]
    pub fn from_checked(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The shared text.
    #[must_use]
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }

    /// `{}`.
    #[must_use]
    pub fn empty_object() -> Self {
        Self("{}".into())
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
