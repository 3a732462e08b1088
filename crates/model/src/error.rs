//! The one error that a model request ends with. Sorting of providers' answers into it is in `fault`.

use std::time::Duration;

/// Longest text in a [`ModelError`] that is not ours, in bytes; a hint of ours may follow it.
pub const MESSAGE_LIMIT: usize = 600;

/// Why a request or its stream failed. Safe to show: no key and no header is in it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// What kind of failure this is.
    pub kind: ErrorKind,
    /// The HTTP status, or the status-like code of an error inside a stream.
    pub status: Option<u16>,
    /// What happened and what to do; bounded by [`MESSAGE_LIMIT`].
    pub message: String,
    /// How long the provider asks us to wait, as it said it, without a cap.
    pub retry_after: Option<Duration>,
    /// Whether the same request may succeed later.
    pub retryable: bool,
}

impl ModelError {
    /// An error of `kind` with that kind's usual answer to "may be retried".
    pub fn new(kind: ErrorKind, message: impl AsRef<str>) -> Self {
        Self {
            kind,
            status: None,
            message: crate::text::clipped(message.as_ref(), MESSAGE_LIMIT),
            retry_after: None,
            retryable: kind.usually_retryable(),
        }
    }

    /// The same error with a status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }
}

/// Kinds of failure. Each asks for a different reaction of the caller.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ErrorKind {
    /// The key is missing, wrong, or may not do this.
    Auth,
    /// No answer came: connection refused, name unknown, TLS failure, gateway without a server behind it.
    Unreachable,
    /// The provider asks us to come back later.
    Overloaded,
    /// The provider refused this request (a 400 and its like) or failed on it (a 500, then retryable).
    Refused,
    /// The provider does not have this model.
    ModelUnknown,
    /// The request is larger than the model's context.
    ContextOverflow,
    /// The stream ended before the reply was finished.
    Truncated,
    /// The answer, or the next piece of it, did not come in time.
    Stalled,
    /// What came is not what the dialect prescribes.
    Malformed,
    /// No rule of the script fits the request.
    ScriptUnmatched,
    /// The caller gave up the request.
    Cancelled,
}

impl ErrorKind {
    fn usually_retryable(self) -> bool {
        match self {
            Self::Unreachable | Self::Overloaded | Self::Truncated | Self::Stalled => true,
            Self::Auth
            | Self::Refused
            | Self::ModelUnknown
            | Self::ContextOverflow
            | Self::Malformed
            | Self::ScriptUnmatched
            | Self::Cancelled => false,
        }
    }

    /// The kind in one stable word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Unreachable => "unreachable",
            Self::Overloaded => "overloaded",
            Self::Refused => "refused",
            Self::ModelUnknown => "model_unknown",
            Self::ContextOverflow => "context_overflow",
            Self::Truncated => "truncated",
            Self::Stalled => "stalled",
            Self::Malformed => "malformed",
            Self::ScriptUnmatched => "script_unmatched",
            Self::Cancelled => "cancelled",
        }
    }
}
