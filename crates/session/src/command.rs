//! The closed list of all that can be asked of a session, what comes of it, and why it can be
//! refused.

use std::sync::Arc;

use uuid::Uuid;

use crate::birth::{Birth, NewSession};
use crate::budget::{BudgetChange, Limit};
use crate::event::{CallResult, Stamped};
use crate::id::{CallId, Epoch, ItemId, ModalId, QueueId, SessionId, TurnId, WatchId};
use crate::mail::{Mail, MailId, NewMail, Notice};
use crate::modal::{Modal, ModalAnswer};
use crate::outcome::{EndReason, StopReason};
use crate::queue::{Immediacy, Origin, QueuedItem};
use crate::settings::{Holder, Setting};
use crate::turn::{Cut, NewCall, StepText};

/// What can be asked of a session. Every command is decided by [`crate::decide()`].
#[derive(Clone, PartialEq, Debug)]
pub enum Command {
    /// Accept input.
    Enqueue {
        /// The id to give it; a fresh one when there is none.
        item: Option<ItemId>,
        /// Where it waits.
        queue: QueueId,
        /// The text; not empty.
        text: Arc<str>,
        /// Who wrote it.
        origin: Origin,
    },
    /// Give a waiting item another text.
    Edit {
        /// The item.
        item: ItemId,
        /// Its new text; not empty.
        text: Arc<str>,
        /// The revision that the change was made against.
        expected: u32,
    },
    /// Take a waiting item back.
    Withdraw {
        /// The item.
        item: ItemId,
        /// The revision that the change was made against.
        expected: u32,
    },
    /// Take into the history what waits in a session that runs no turns. An item that does not wait
    /// (any more) is passed over, so that a repeat does no harm.
    Acknowledge {
        /// The items.
        items: Vec<ItemId>,
    },
    /// Put a waiting item elsewhere.
    Move {
        /// The item.
        item: ItemId,
        /// The queue to put it into.
        queue: QueueId,
        /// The item of that queue to put it before; none is the end.
        before: Option<ItemId>,
        /// The item's revision that the change was made against.
        expected: u32,
    },
    /// Make a custom queue.
    CreateQueue {
        /// Its name; a number is made up when there is none.
        name: Option<Arc<str>>,
        /// Its immediacy.
        immediacy: Immediacy,
    },
    /// Set, hold or release a queue.
    ConfigureQueue {
        /// The queue.
        queue: QueueId,
        /// `Held` holds it, any other sets it; none releases it to what it was before.
        immediacy: Option<Immediacy>,
        /// The queue's revision that the change was made against.
        expected: Option<u32>,
    },
    /// Delete an empty custom queue.
    DeleteQueue {
        /// The queue.
        queue: QueueId,
        /// The queue's revision that the change was made against.
        expected: u32,
    },
    /// Start an epoch if there is none.
    Start {
        /// The epoch to start.
        epoch: Epoch,
    },
    /// Record what the model said in a step, and the calls that it makes.
    RecordStep {
        /// The turn that speaks; refused when it is not the current one.
        turn: TurnId,
        /// What was said.
        step: StepText,
        /// Its calls.
        calls: Vec<NewCall>,
    },
    /// Record results of calls. With the last open call, steering input is taken.
    RecordResults {
        /// The turn; refused when it is not the current one.
        turn: TurnId,
        /// The results.
        results: Vec<CallResult>,
    },
    /// Record a note for people; the model never sees it.
    Note {
        /// The turn; refused when it is not the current one.
        turn: TurnId,
        /// A stable code.
        code: Arc<str>,
        /// A safe text.
        text: Arc<str>,
    },
    /// Cut the conversation for the model.
    Compact {
        /// The turn that needs it; none when somebody asks for it from outside.
        turn: Option<TurnId>,
        /// Where; not behind the newest step.
        cut: Cut,
        /// The summary, and what making it took; not empty.
        step: StepText,
        /// What is said again beside it.
        restated: Arc<str>,
        /// Tokens of the prompt before, as far as known.
        before: Option<u64>,
    },
    /// Set or lift limits of the tree below, or pause it.
    SetBounds {
        /// The limits.
        change: BudgetChange,
        /// Whether nothing is spawned from now on; none leaves it as it is.
        paused: Option<bool>,
    },
    /// Change a setting.
    Set {
        /// Which, and to what.
        setting: Setting,
    },
    /// A limit that stands here is nearly used up; the session is told of it once.
    NearlySpent {
        /// The limit.
        limit: Limit,
        /// What is used.
        used: u64,
        /// The limit's value when that was found.
        most: u64,
    },
    /// The parents that hold the session are told something of its turn: that it makes no progress, or what it asks them.
    TellParents {
        /// The turn; refused when it is not the current one.
        turn: TurnId,
        /// A stable code, under which the session's own people read it too.
        code: Arc<str>,
        /// What the host says of it.
        text: Arc<str>,
    },
    /// Put a question to a person.
    RaiseModal {
        /// The question.
        modal: Arc<Modal>,
    },
    /// Answer one; the first answer counts.
    AnswerModal {
        /// The question.
        modal: ModalId,
        /// The answer.
        answer: ModalAnswer,
        /// The program of the viewer that gives it, for people.
        by: Arc<str>,
    },
    /// Nobody has answered a question in time.
    ExpireModal {
        /// The question.
        modal: ModalId,
    },
    /// Input that this session sent will never be read; it is told so.
    Undeliverable {
        /// The item.
        item: ItemId,
        /// The session that it was sent to.
        to: SessionId,
        /// Its text.
        text: Arc<str>,
    },
    /// End the turn.
    EndTurn {
        /// The turn; refused when it is not the current one.
        turn: TurnId,
        /// How it ended.
        reason: EndReason,
        /// The last step, if it has not been recorded.
        step: Option<StepText>,
        /// A safe text for people when it went wrong.
        error: Option<Arc<str>>,
    },
    /// End the current run; what was streamed stays, queues stay, children go on.
    Cancel {
        /// [`EndReason::Interrupted`] or [`EndReason::Cancelled`].
        reason: EndReason,
        /// Give up the registrations on other sessions too: a tree that is ended as a whole must not
        /// be woken by what its own members tell each other of that end.
        watches: bool,
    },
    /// End the epoch now.
    Stop {
        /// Why.
        reason: StopReason,
        /// What the open turn has streamed so far.
        partial: Option<StepText>,
    },
    /// End the epoch because nobody looks on any more, unless it is to go on by itself or something holds it.
    StopUnviewed {
        /// What holds it from outside of its own state: descendants at work, notices that lie unread.
        held_by: Vec<Holder>,
        /// What held it since its last viewer left.
        waited_for: Vec<Holder>,
        /// What the open turn has streamed so far.
        partial: Option<StepText>,
    },
    /// End the epoch with parents that end, unless another one holds it.
    EndWith {
        /// Parents that end, or that have no epoch.
        parents: Vec<SessionId>,
        /// What the open turn has streamed so far.
        partial: Option<StepText>,
    },
    /// Record that an earlier life of the host was cut, before anything else happens.
    Recover {
        /// Text of the open turn that was checkpointed.
        partial: Option<StepText>,
    },
    /// Create a child.
    Spawn {
        /// The tool call that asks; a repeat of it returns the same child.
        call: Option<CallId>,
        /// The child.
        child: Box<NewSession>,
    },
    /// Hold a session as its further parent, or hold a released child again.
    Acquire {
        /// The session.
        child: SessionId,
    },
    /// Give up the hold on a child.
    Release {
        /// The child.
        child: SessionId,
    },
    /// Send input to another session.
    Send {
        /// The receiver.
        to: SessionId,
        /// The epoch that the receiver was seen in; it must still be in it.
        epoch: Epoch,
        /// The item's id there.
        item: ItemId,
        /// The text; not empty.
        text: Arc<str>,
        /// For the `immediate` queue.
        immediate: bool,
    },
    /// Ask to be told when a session has settled.
    Watch {
        /// The registration.
        watch: WatchId,
        /// The session.
        target: SessionId,
        /// The text to be told; none is the default line.
        message: Option<Arc<str>>,
        /// What to say at once because the target has settled.
        settled: Option<Notice>,
    },
    /// Take mail.
    Take {
        /// What lies unread, oldest first.
        mail: Vec<Mail>,
        /// Whether a viewer holds the runtime, so that the last parent's leaving ends nothing.
        viewed: bool,
        /// The senders that are live. Word of a hold that has outlived its sender's epoch
        /// starts nothing: after a restart of the host nothing starts by itself.
        living: Vec<SessionId>,
    },
}

/// Which turns may start. Input that may start none stays in its queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Starts {
    /// All.
    #[default]
    All,
    /// One that reads notices and nothing else: a tree is being ended, and what its members tell each
    /// other of that is read, but sets nothing off.
    Notices,
    /// None: the host ends.
    None,
}

/// What the store checks inside the transaction, beside the fence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Expect {
    /// No mail lies unread for the appending session but what this append takes.
    NoOtherMail,
    /// A session is in this epoch.
    Epoch {
        /// The session.
        session: SessionId,
        /// The epoch.
        epoch: Epoch,
    },
    /// An entity has this concurrency tag.
    EntityTag {
        /// The entity.
        entity: Uuid,
        /// The tag.
        tag: u64,
    },
}

/// What must happen after the events are durable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Run this turn.
    RunTurn {
        /// The turn.
        turn: TurnId,
    },
    /// Make this turn end; a token, so it needs no durability.
    CancelTurn {
        /// The turn.
        turn: TurnId,
        /// How it ends.
        reason: EndReason,
    },
    /// Another session has mail.
    Wake {
        /// The session.
        session: SessionId,
    },
}

/// What the caller of a command is told.
#[derive(Clone, PartialEq, Debug)]
pub enum Answer {
    /// It was done.
    Done,
    /// It was so already.
    Unchanged,
    /// Input was accepted.
    Accepted {
        /// The item.
        item: ItemId,
    },
    /// A queue was made.
    QueueMade {
        /// The queue.
        queue: QueueId,
    },
    /// Results were recorded, and this input joined the turn after them.
    Steered {
        /// The input, in order.
        items: Vec<Arc<QueuedItem>>,
    },
    /// A child exists.
    Child {
        /// The child.
        child: SessionId,
    },
    /// The watched session had settled, and the notice is in the queue.
    FiredAtOnce,
}

/// What a command does.
#[derive(Clone, PartialEq, Debug)]
pub struct Decision {
    /// Events to append.
    pub events: Vec<Stamped>,
    /// Mail to write in the same append.
    pub mail: Vec<NewMail>,
    /// Mail that the same append takes.
    pub taken: Vec<MailId>,
    /// Sessions that the same append brings to the world.
    pub births: Vec<Birth>,
    /// Children to link to this session in the same append.
    pub links: Vec<SessionId>,
    /// What the store must find true.
    pub expects: Vec<Expect>,
    /// What must happen once it is durable.
    pub effects: Vec<Effect>,
    /// What the caller is told once it is durable.
    pub answer: Answer,
}

/// Why a command was refused. Nothing has changed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Rejected {
    /// Text with nothing in it.
    #[error("the text is empty")]
    EmptyText,
    /// Text with the character NUL, which no terminal shows and no file of text has.
    #[error("the text holds the character NUL")]
    NulText,
    /// A queue's name with nothing in it, or a long one.
    #[error("a queue's name has 1 to {most} characters")]
    QueueName {
        /// The most that it may have.
        most: usize,
    },
    /// The session takes no input.
    #[error("the session takes no input")]
    NoUserInput,
    /// What waits for the session is read by its turns, and by nobody else.
    #[error("the session reads its input in turns of its own")]
    RunsTurns,
    /// The queue does not exist.
    #[error("there is no such queue")]
    UnknownQueue,
    /// The item is not waiting: it was taken, taken back, or never existed.
    #[error("the item is not waiting in a queue")]
    UnknownItem,
    /// The change was made against another revision.
    #[error("changed since: the revision is {current}, not {expected}")]
    RevisionConflict {
        /// The revision that the change was made against.
        expected: u32,
        /// The revision that it has.
        current: u32,
    },
    /// One of the two queues that each session has.
    #[error("the `immediate` and `default` queues stay")]
    BuiltInQueue,
    /// The queue still holds input.
    #[error("the queue is not empty")]
    QueueNotEmpty,
    /// A queue is released that is not held.
    #[error("the queue is not held")]
    NotHeld,
    /// A step of a turn that is not the current one.
    #[error("turn {} is not the current one", .turn.0)]
    StaleTurn {
        /// The turn that was named.
        turn: TurnId,
    },
    /// A cut that is behind the newest step, or not behind the last cut.
    #[error("the conversation cannot be cut there")]
    BadCut,
    /// A result for a call that is not open.
    #[error("call {call} is not open")]
    UnknownCall {
        /// The call.
        call: CallId,
    },
    /// The session is stopped.
    #[error("the session is stopped")]
    Stopped,
    /// The session is not a child of this one.
    #[error("not a child of this session")]
    NotAChild,
    /// The session was given up and not acquired since.
    #[error("this session gave up its hold on the child")]
    Disposed,
    /// A question that cannot be put.
    #[error("{why}")]
    NoQuestion {
        /// Why.
        why: &'static str,
    },
    /// More questions than fit are open.
    #[error("{most} questions of this session are open; answer one of them first")]
    TooManyQuestions {
        /// The most that may be open.
        most: usize,
    },
    /// An answer that is none to its question.
    #[error("{why}")]
    NoAnswer {
        /// Why.
        why: &'static str,
    },
    /// The question was answered, was not answered in time, or is not asked any more; or it never was.
    #[error("there is no such open question: it was answered, or it is not asked any more")]
    AlreadySettled,
    /// A session's name with nothing in it, or a long one.
    #[error("a session's name has 1 to {most} characters")]
    SessionName {
        /// The most that it may have.
        most: usize,
    },
    /// A model without a name.
    #[error("the model has no name")]
    ModelName,
    /// Another tool cannot be switched off.
    #[error("at most {most} tools can be switched off")]
    TooManySwitchedOff {
        /// The most.
        most: usize,
    },
    /// A session can't be its own parent or an ancestor's parent.
    #[error("a session cannot hold itself or its ancestor")]
    Circle,
}
