//! How a command ends: its exit code, and what a person is told when it did not do what was asked.

use attache_client::protocol::WireError;
use attache_client::{ClientError, ConnectError};

use crate::link;
use crate::tree_view::short;

/// The run failed.
pub(crate) const FAILED: u8 = 1;
/// The command line is wrong.
pub(crate) const USAGE: u8 = 2;
/// What it names is not there, or not available.
pub(crate) const NOT_FOUND: u8 = 3;
/// A rule forbids it.
pub(crate) const REFUSED: u8 = 4;
/// It took too long.
pub(crate) const TIMED_OUT: u8 = 5;
/// Interrupted by a person.
pub(crate) const INTERRUPTED: u8 = 130;

/// Why a command did not do what was asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Failure {
    /// The exit code.
    pub(crate) exit: u8,
    /// The stable code.
    pub(crate) code: String,
    /// The kind of the fault, of the seven that every door knows.
    pub(crate) category: Box<str>,
    /// Whether the same may succeed later.
    pub(crate) retryable: bool,
    /// What happened, to what.
    pub(crate) message: String,
    /// What to do next.
    pub(crate) hint: Option<String>,
    /// The host's name of this very error, if the host told it.
    pub(crate) correlation_id: Option<Box<str>>,
}

impl Failure {
    pub(crate) fn new(exit: u8, code: &str, message: impl Into<String>) -> Self {
        let category = match exit {
            USAGE => "invalid",
            NOT_FOUND if code == "unknown-session" => "not-found",
            NOT_FOUND => "unavailable",
            REFUSED => "refused",
            TIMED_OUT => "timeout",
            _ => "internal",
        };
        Self {
            exit,
            code: code.to_owned(),
            category: category.into(),
            retryable: matches!(exit, TIMED_OUT),
            message: message.into(),
            hint: None,
            correlation_id: None,
        }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(USAGE, "invalid-arguments", message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(FAILED, "internal", message)
    }

    /// The connection ended while a session was followed that is kept.
    pub(crate) fn lost(error: ClientError, session_id: &str) -> Self {
        match error {
            ClientError::Gone(_) => Self::from(error).with_hint(go_on(session_id)),
            _ => error.into(),
        }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// How to go on with a session whose run was cut by the end of the daemon.
pub(crate) fn go_on(session_id: &str) -> String {
    format!(
        "Session {session_id} is kept: `attache show {short}` has what it did, \
         `attache send {short} …` goes on with it.",
        short = short(session_id)
    )
}

impl From<WireError> for Failure {
    fn from(error: WireError) -> Self {
        let exit = match error.category.as_str() {
            // What a run would fail on.
            _ if error.code == "model-unknown" || error.code.starts_with("provider-") => FAILED,
            "invalid" => USAGE,
            "not-found" | "unavailable" => NOT_FOUND,
            "conflict" => NOT_FOUND,
            "refused" => REFUSED,
            "timeout" => TIMED_OUT,
            _ => FAILED,
        };
        let WireError {
            code,
            category,
            retryable,
            message,
            hint,
            current_revision: _,
            correlation_id,
        } = error;
        Self {
            exit,
            code,
            category: category.into(),
            retryable,
            message,
            hint,
            correlation_id: Some(correlation_id.into()),
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Refused(error) => (*error).into(),
            ClientError::Gone(reason) if link::is_elsewhere() => Self {
                retryable: true,
                ..Self::new(
                    NOT_FOUND,
                    "internal",
                    format!("the connection to the host is lost: {reason}"),
                )
                .with_hint(
                    "Run the command again: what was said has been kept there or has not arrived.",
                )
            },
            ClientError::Gone(reason) => Self::new(
                NOT_FOUND,
                "internal",
                format!("the daemon is gone: {reason}"),
            )
            .with_hint("Run the command again: a daemon is started on demand."),
            ClientError::Unexpected => Self::internal(error.to_string()),
        }
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Refused(error) => error.into(),
            ConnectError::Unreachable { .. } => Self {
                retryable: true,
                ..Self::new(NOT_FOUND, "internal", error.to_string()).with_hint(
                    "Is it running with `attache serve --listen`, and is the address right?",
                )
            },
            ConnectError::NoEntry { .. } => {
                Self::new(REFUSED, "not-permitted", error.to_string()).with_hint(
                    "`attache token create` there makes a token; it is read from ATTACHE_TOKEN or --token-file.",
                )
            }
            ConnectError::Trust { .. } => Self::new(REFUSED, "not-permitted", error.to_string())
                .with_hint("--host-cert names a PEM file with what vouches for it."),
            other => Self::new(NOT_FOUND, "internal", other.to_string()).with_hint(
                "`attache serve` runs the daemon in the foreground and says what is wrong.",
            ),
        }
    }
}
