//! What a turn is: the loop of model steps and tool calls as a pure machine, the tool trait, the
//! toolset registry, and the ports through which tools reach sessions.
//!
//! No tool, viewer, frame or store is known here. Whoever drives a [`Turn`] starts the requests and
//! tools that it asks for, and tells it what came of them.

pub mod asking;
mod bounded;
mod budgets;
mod compaction;
mod definition;
mod history;
mod pictures;
mod port;
mod prompt;
mod stall;
mod tool;
mod toolset;
mod turn;

pub use bounded::{PAGE_CHARS, READ_RESULT, RESULT_CHARS, ResultPage, page as result_page};
pub use budgets::budget_of;
pub use compaction::{Measure, Plan, SUMMARISE, budget, plan as compaction_plan};
pub use definition::{
    Definition, DefinitionError, Limits, MarkdownDialect, Parameter, ParameterError, Questions,
    SubAgent, field_line,
};
pub use history::History;
pub use port::{
    AskPerson, Asked, Caller, ChildCreated, CreateChild, EventPage, EventQuery, EventView,
    ListChildren, PortError, PortFuture, RunningItem, SessionContext, SessionDetail, SessionEntity,
    SessionInfo, Sessions, WaitEnd, WaitFor, Waited, Watching,
};
pub use prompt::system_prompt;
pub use stall::{Doing, OnStall, StallWatch};
pub use tool::{CallContext, Cancel, Tool, ToolError, ToolFuture, ToolOutcome};
pub use toolset::{Toolbelt, Toolset, ToolsetError, Toolsets};
pub use turn::{Input, Output, SUMMARY_REQUEST, ToolStart, Turn, TurnConfig};

/// What tools need of the neighbouring crates, so that they need no edge to them.
pub mod session {
    pub use attache_session::{
        BudgetChange, CallId, CallReport, EndReason, ErrorCode, ItemId, Json, Ledger, LedgerEntry,
        ModalAnswer, ModalKind, NestedCall, Outcome, Picture, Receipt, RowView, SessionId,
        SideEffects, Status, Timestamp, Told, TurnId, Usage, preview,
    };
}

/// How a tool is offered to a model.
pub mod offer {
    pub use attache_model::{Json, ToolSpec};
}
