//! What tools need of the sessions around them, as a trait that the engine implements. Each
//! question names its caller, and whoever answers checks what that caller may reach.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use attache_session::{
    BudgetChange, CallId, EndReason, ErrorCode, ItemId, Ledger, ModalAnswer, ModalKind, Outcome,
    Picture, Receipt, RowView, SessionId, Status, Timestamp, Told, TurnId,
};
use serde_json::Value;

use crate::bounded::ResultPage;
use crate::tool::ToolError;

/// Who asks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// The session.
    pub session: SessionId,
    /// Its turn.
    pub turn: TurnId,
    /// The call.
    pub call: CallId,
}

/// An answer under way.
pub type PortFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, PortError>> + Send + 'a>>;

/// Why a question is not answered.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{code}: {message}")]
pub struct PortError {
    /// The stable code.
    pub code: ErrorCode,
    /// What happened, to what; safe to show.
    pub message: String,
}

impl PortError {
    /// An error.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

impl From<PortError> for ToolError {
    fn from(error: PortError) -> Self {
        Self::new(error.code, error.message)
    }
}

/// A child to be created.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CreateChild {
    /// An inline definition (an object) or the name of a known one (a string); none is the
    /// caller's own as it was started.
    pub definition: Option<Value>,
    /// First input.
    pub initial_message: Option<String>,
    /// Name among its siblings.
    pub name: Option<String>,
    /// Where it works, inside the caller's working directory; none is the caller's.
    pub working_directory: Option<String>,
    /// Values of the definition's parameters.
    pub parameters: Vec<(String, String)>,
    /// Limits of the child and all below it: parts of what is left of the caller's.
    pub budget: BudgetChange,
}

/// A child that exists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChildCreated {
    /// Its id.
    pub session: SessionId,
    /// What it does.
    pub status: Status,
    /// When it was born.
    pub created_at: Timestamp,
}

/// Which children are asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListChildren {
    /// Only those of this status.
    pub status: Option<Status>,
    /// Descendants of every depth.
    pub recursive: bool,
    /// At most this many.
    pub limit: usize,
    /// Only those that come after this one.
    pub after: Option<SessionId>,
}

/// A session as a list shows it.
#[derive(Clone, PartialEq, Debug)]
pub struct SessionInfo {
    /// Its id.
    pub session: SessionId,
    /// What it does.
    pub status: Status,
    /// What is stored of it.
    pub row: RowView,
}

/// Something that still streams.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunningItem {
    /// `assistant` or `tool`.
    pub role: &'static str,
    /// Its text so far, or the tool's name; not yet cut.
    pub text: String,
}

/// A session in detail.
#[derive(Clone, PartialEq, Debug)]
pub struct SessionDetail {
    /// Its id.
    pub session: SessionId,
    /// What it does.
    pub status: Status,
    /// What is stored of it.
    pub row: RowView,
    /// What streams now.
    pub running_items: Vec<RunningItem>,
    /// Running children whose end it awaits.
    pub waiting_for: Vec<SessionId>,
    /// Where the newest input has got to that the caller sent.
    pub receipts: Vec<Receipt>,
}

impl SessionDetail {
    /// What came of the last run.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        self.row.outcome()
    }

    /// How the last run ended.
    #[must_use]
    pub fn end_reason(&self) -> Option<EndReason> {
        self.row.end_reason()
    }
}

/// Which events are asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventQuery {
    /// Only later ones.
    pub after: Option<Timestamp>,
    /// Names of event types; empty is all.
    pub event_types: Vec<String>,
    /// Only events that contain this.
    pub search: Option<String>,
    /// At most this many.
    pub limit: usize,
}

/// A stable item of a history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventView {
    /// Its time: the cursor.
    pub at: Timestamp,
    /// `user`, `assistant`, `tool_call`, `tool_result` or `diagnostic`.
    pub event_type: &'static str,
    /// `user`, `assistant`, `tool` or `system`.
    pub role: &'static str,
    /// Its whole text: what was said, a call with its arguments, a result.
    pub text: Arc<str>,
    /// The child that a tool call created, or the session that a notice tells of.
    pub about: Option<SessionId>,
    /// What the session of a notice said; its own words.
    pub told: Option<Told>,
    /// Pictures that a result has beside its text, told of without their bytes.
    pub pictures: Vec<Picture>,
}

/// A page of events, oldest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventPage {
    /// The events.
    pub events: Vec<EventView>,
    /// How many match altogether.
    pub total_matching: u64,
    /// Where the next page begins; none at the end.
    pub next_cursor: Option<Timestamp>,
}

/// What a wait is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitFor {
    /// The first new output.
    Output,
    /// That the session has settled.
    Settled,
}

/// Why a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitEnd {
    /// There is new output.
    Output,
    /// The session has settled.
    Settled,
    /// The time ran out.
    Timeout,
    /// The waiter itself has steering input.
    Steered,
    /// The session is stopped.
    Stopped,
    /// The session, or one below it, asks a person.
    NeedsAttention,
}

impl WaitEnd {
    /// The stable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Output => "output",
            Self::Settled => "settled",
            Self::Timeout => "timeout",
            Self::Steered => "steered",
            Self::Stopped => "stopped",
            Self::NeedsAttention => "needs-attention",
        }
    }
}

/// What a wait came to.
#[derive(Clone, PartialEq, Debug)]
pub struct Waited {
    /// Why it ended.
    pub ended_by: WaitEnd,
    /// The session now.
    pub detail: SessionDetail,
    /// What joined its history since the call.
    pub new_events: EventPage,
}

/// What a registration came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Watching {
    /// The session had settled, and the notice is in the caller's queue.
    pub fired_immediately: bool,
}

/// An entity as `get_current_session` shows it.
#[derive(Clone, PartialEq, Debug)]
pub struct SessionEntity {
    /// Its id.
    pub entity_id: String,
    /// Changes with each change of it.
    pub concurrency_tag: String,
    /// When it was last changed.
    pub modified_time: Timestamp,
    /// Names the last change.
    pub change_id: String,
    /// What it says, in kebab-case.
    pub data: Value,
}

/// What a session can know of itself. What cannot be found is none.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SessionContext {
    /// Its own entity.
    pub agent_session: Option<SessionEntity>,
    /// The raw list of its parents, from the host where it gives one, else from its entity.
    pub parent_ids: Vec<String>,
    /// Those of them that could be found, in the same order.
    pub parents: Vec<SessionEntity>,
    /// The pair of user and machine that owns it.
    pub profile: Option<SessionEntity>,
    /// The user.
    pub user: Option<SessionEntity>,
    /// The machine.
    pub computer: Option<SessionEntity>,
    /// The definition that it was started with.
    pub definition: Option<SessionEntity>,
}

/// A question to a person.
#[derive(Clone, PartialEq, Debug)]
pub struct AskPerson {
    /// The tool that asks.
    pub tool: Arc<str>,
    /// The arguments of its call: the answer is to these and to nothing else.
    pub arguments: String,
    /// What is asked for.
    pub kind: ModalKind,
    /// The question.
    pub text: String,
    /// What belongs to it.
    pub body: Option<String>,
    /// Answers to choose from.
    pub choices: Vec<String>,
    /// Whether another answer than those is one too.
    pub free: bool,
    /// The JSON schema that a form's values fit.
    pub schema: Option<Value>,
}

/// What came of a question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Asked {
    /// A person has answered.
    Answered {
        /// The answer.
        answer: ModalAnswer,
        /// The program by which it came.
        by: Arc<str>,
    },
    /// Nobody has answered in time.
    Expired,
    /// It was put to the parent agent, which answers with a message.
    Parent,
}

/// The sessions around a caller. An id that is not the caller's own, a child's or a descendant's is
/// answered exactly as an unknown one.
pub trait Sessions: Send + Sync {
    /// Creates a child.
    fn create<'a>(&'a self, caller: &'a Caller, new: CreateChild) -> PortFuture<'a, ChildCreated>;

    /// Lists children, oldest first.
    fn list<'a>(
        &'a self,
        caller: &'a Caller,
        query: ListChildren,
    ) -> PortFuture<'a, Vec<SessionInfo>>;

    /// Shows one session.
    fn get<'a>(&'a self, caller: &'a Caller, session: SessionId) -> PortFuture<'a, SessionDetail>;

    /// The tool calls of a session's last run, or of the one that runs now; none when it has had no run, or nothing is
    /// known of it.
    fn ledger<'a>(
        &'a self,
        caller: &'a Caller,
        session: SessionId,
    ) -> PortFuture<'a, Option<Ledger>>;

    /// Sends input to a child.
    fn send<'a>(
        &'a self,
        caller: &'a Caller,
        session: SessionId,
        text: String,
        immediate: bool,
    ) -> PortFuture<'a, ItemId>;

    /// Ends the runs of a session and of all its descendants; with `dispose`, gives up the
    /// caller's hold too. The answer is whether it ran.
    fn stop<'a>(
        &'a self,
        caller: &'a Caller,
        session: SessionId,
        dispose: bool,
    ) -> PortFuture<'a, bool>;

    /// Reads a history.
    fn read_events<'a>(
        &'a self,
        caller: &'a Caller,
        session: SessionId,
        query: EventQuery,
    ) -> PortFuture<'a, EventPage>;

    /// Reads on in a long result of a call of the caller's own; `cursor` counts characters. None for a call that has
    /// no result.
    fn read_result<'a>(
        &'a self,
        caller: &'a Caller,
        call: String,
        cursor: u64,
    ) -> PortFuture<'a, Option<ResultPage>>;

    /// Waits for a session.
    fn wait<'a>(
        &'a self,
        caller: &'a Caller,
        session: SessionId,
        wait_for: WaitFor,
        timeout: Duration,
        events: usize,
    ) -> PortFuture<'a, Waited>;

    /// Registers to be told when a session has settled.
    fn on_complete<'a>(
        &'a self,
        caller: &'a Caller,
        session: SessionId,
        message: Option<String>,
    ) -> PortFuture<'a, Watching>;

    /// Holds a session that a child or the caller once created; the answer is whether the caller
    /// held it already.
    fn acquire<'a>(
        &'a self,
        caller: &'a Caller,
        session: SessionId,
    ) -> PortFuture<'a, (bool, SessionDetail)>;

    /// Asks a person, or whom the caller's definition puts in that place, and waits for what comes of it.
    fn ask<'a>(&'a self, caller: &'a Caller, ask: AskPerson) -> PortFuture<'a, Asked>;

    /// What the caller can know of itself.
    fn context<'a>(&'a self, caller: &'a Caller) -> PortFuture<'a, SessionContext>;

    /// Where the caller's tools work.
    fn working_directory(&self, caller: &Caller) -> Option<PathBuf>;
}
