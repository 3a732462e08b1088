//! The rules of an agent session as pure values: commands in, events out.
//!
//! [`decide()`] says what a [`Command`] does to a [`State`]; [`State::apply`] folds the events that
//! it answers with; [`Summary::of`] is the part from which status is computed. There is no clock,
//! no randomness, no file, no task and no wire word in here: time and fresh ids are arguments, and
//! the shell around this crate commits the decisions and carries out their effects.

mod birth;
mod budget;
mod code;
mod command;
mod cost;
mod decide;
mod event;
mod id;
mod json;
mod ledger;
mod lineage;
mod mail;
mod modal;
mod outcome;
mod picture;
mod queue;
mod receipt;
mod settings;
mod state;
mod summary;
mod text;
mod time;
mod turn;
mod usage;

pub use birth::{Birth, NewSession};
pub use budget::{
    Bill, Bounds, Budget, BudgetChange, BudgetError, Due, Limit, Payer, Refusal, dues, grant,
    is_nearly_spent, may_spawn, spent,
};
pub use code::{Category, ErrorCode};
pub use command::{Answer, Command, Decision, Effect, Expect, Rejected, Starts};
pub use cost::{Cost, Spent};
pub use decide::{decide, decide_within, notice_header};
pub use event::{CallResult, Created, Event, ResultOrigin, Stamped};
pub use id::{
    CallId, Epoch, Generation, Ids, ItemId, ModalId, Position, QueueId, SessionId, TurnId, WatchId,
};
pub use json::{Json, NotJson};
pub use ledger::{
    ARGUMENTS_CHARS, CallOutcome, CallReport, DETAIL_CHARS, Digest, LEDGER_CALLS, Ledger,
    LedgerEntry, LedgerFold, NESTED_CALLS, NestedCall,
};
pub use lineage::{Child, Parent, Watch, Watcher};
pub use mail::{Mail, MailBody, MailId, NewMail, Notice, Told};
pub use modal::{
    MODAL_CHOICE, MODAL_CHOICES, MODAL_CHOICES_BYTES, MODAL_TEXT, Modal, ModalAnswer, ModalKind,
    ModalState, OPEN_MODALS,
};
pub use outcome::{EndReason, Outcome, StopReason};
pub use picture::Picture;
pub use queue::{Immediacy, Origin, Queue, QueuedItem};
pub use receipt::{Reason, Receipt, Stage, receipts};
pub use settings::{Holder, SESSION_NAME_CHARS, SWITCHED_OFF, Setting, Settings};
pub use state::State;
pub use summary::{RowView, Settled, SideEffects, Status, Summary, Unread, is_settled, status};
pub use text::{RESULT_PREVIEW_CHARS, preview};
pub use time::{Clock, Timestamp};
pub use turn::{Cut, NewCall, OpenCall, OpenTurn, StepText};
pub use usage::Usage;
