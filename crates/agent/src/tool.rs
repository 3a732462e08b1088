//! What a tool is to a turn: how it is offered, whether it changes state, and how it is called.
//! A failure that can be expected is a result that the model can act on, never the end of a turn.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use attache_model::ToolSpec;
use attache_session::{CallReport, ErrorCode, Picture, SessionId};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::port::{Caller, Sessions};

/// A tool that a model can call.
pub trait Tool: Send + Sync {
    /// Its name, its description and the closed schema of its arguments.
    fn spec(&self) -> &ToolSpec;

    /// Whether a call may change something outside. Such a call starts only once it is on record;
    /// what is not known to be harmless counts as changing.
    fn changes_state(&self) -> bool {
        true
    }

    /// Whether the same call may well be made again and again, because waiting or looking once more is what it is for.
    fn may_repeat(&self) -> bool {
        false
    }

    /// Whether a call only looks after the work, such as looking for one's sub-agents: where a ledger has no room for
    /// all calls of a run, such ones are left out first.
    fn is_bookkeeping(&self) -> bool {
        false
    }

    /// Whether a call does nothing but wait for other sessions: a turn that only waits holds no place that they may need.
    fn waits(&self) -> bool {
        false
    }

    /// Checks arguments before a call, for a tool that only passes them on: a server's, say. Others check them
    /// themselves, where they also adjust.
    ///
    /// # Errors
    ///
    /// A text for the model that says what to mend.
    fn check(&self, _arguments: &Value) -> Result<(), String> {
        Ok(())
    }

    /// Calls it. `arguments` is a JSON object; whether it fits the schema is checked by the tool.
    fn call<'a>(&'a self, context: CallContext, arguments: Value) -> ToolFuture<'a>;
}

/// A call under way. Dropping it must leave nothing running.
pub type ToolFuture<'a> = Pin<Box<dyn Future<Output = ToolOutcome> + Send + 'a>>;

/// Where a call comes from and what it may use.
#[derive(Clone)]
pub struct CallContext {
    /// The session, turn and call.
    pub caller: Caller,
    /// The session's working directory, as it was recorded.
    pub working_directory: PathBuf,
    /// The sessions that the caller may reach.
    pub sessions: Arc<dyn Sessions>,
    /// Ends the call early.
    pub cancel: Cancel,
}

/// Tells a call that its turn ends.
#[derive(Clone, Debug)]
pub struct Cancel(watch::Receiver<bool>);

impl Cancel {
    /// A token and what sets it; a token whose setter is gone counts as set.
    #[must_use]
    pub fn new() -> (watch::Sender<bool>, Self) {
        let (set, token) = watch::channel(false);
        (set, Self(token))
    }

    /// Whether it is set.
    #[must_use]
    pub fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is set.
    pub async fn cancelled(&self) {
        let mut token = self.0.clone();
        // A setter that is gone can never set it: the turn is over.
        let _gone = token.wait_for(|set| *set).await;
    }
}

/// What a call comes to.
#[derive(Clone, PartialEq, Debug)]
pub struct ToolOutcome {
    /// What the model reads: JSON text, or plain text where the tool's contract says so.
    pub content: String,
    /// Whether it tells of a failure.
    pub is_error: bool,
    /// The session that the call created.
    pub spawned: Option<SessionId>,
    /// Pictures that the model is shown with it, in order. The turn records PNG, JPEG, GIF and WebP, each of at most 5
    /// MiB of base64, and at most 8 of them and 10 MiB together; what is left out is named in the content.
    pub images: Vec<Picture>,
    /// What the ledger is told of it beside that, and no model reads. It is cut to its bounds before it is recorded.
    pub report: Option<CallReport>,
}

impl ToolOutcome {
    /// A success that says `value`.
    #[must_use]
    pub fn json(value: &Value) -> Self {
        Self {
            content: value.to_string(),
            is_error: false,
            spawned: None,
            images: Vec::new(),
            report: None,
        }
    }

    /// The same with the session that the call created.
    #[must_use]
    pub fn with_spawned(mut self, session: SessionId) -> Self {
        self.spawned = Some(session);
        self
    }

    /// The same with one more picture.
    #[must_use]
    pub fn with_image(mut self, picture: Picture) -> Self {
        self.images.push(picture);
        self
    }

    /// The same with what the ledger is told.
    #[must_use]
    pub fn with_report(mut self, report: CallReport) -> Self {
        self.report = Some(report);
        self
    }
}

/// A failure that can be expected.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ToolError {
    /// The stable code.
    pub code: ErrorCode,
    /// What happened, to what; safe to show.
    pub message: String,
    /// What to do next; the code's own hint when there is none.
    pub hint: Option<String>,
}

impl ToolError {
    /// A failure with the code's own hint.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: None,
        }
    }

    /// Arguments that do not fit.
    #[must_use]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidArguments, message)
    }

    /// The same failure with another hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The object that the model reads: `{"error": {"code", "message", "hint"}}`.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let hint = self.hint.as_deref().or(self.code.hint());
        json!({ "error": { "code": self.code.as_str(), "message": self.message, "hint": hint } })
    }
}

impl From<ToolError> for ToolOutcome {
    fn from(error: ToolError) -> Self {
        Self {
            content: error.to_value().to_string(),
            is_error: true,
            spawned: None,
            images: Vec::new(),
            report: None,
        }
    }
}
