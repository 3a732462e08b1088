//! The closed list of all that can have happened to a session: the only persisted truth.
//!
//! Events are few and fat. What a viewer sees is a projection of them, and what a model is sent is
//! another; neither is stored. A kind from a newer version is kept as [`Event::Unknown`] and passed
//! over.

use std::sync::Arc;

use uuid::Uuid;

use crate::budget::{Bounds, Budget};
use crate::id::{CallId, Epoch, ItemId, QueueId, SessionId, TurnId, WatchId};
use crate::json::Json;
use crate::ledger::CallReport;
use crate::modal::{Modal, ModalState};
use crate::outcome::{EndReason, StopReason};
use crate::picture::Picture;
use crate::queue::{Immediacy, QueuedItem};
use crate::settings::{Holder, Settings};
use crate::time::Timestamp;
use crate::turn::{Cut, NewCall, StepText};

/// An event with its time.
#[derive(Clone, PartialEq, Debug)]
pub struct Stamped {
    /// Strictly greater than that of the event before it: a cursor without ties.
    pub at: Timestamp,
    /// What the wall clock said, where `at` had to be moved by more than a second.
    pub observed: Option<Timestamp>,
    /// What happened.
    pub event: Event,
}

/// What a session is from its birth on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Created {
    /// Its name among its siblings, for people.
    pub name: Arc<str>,
    /// The name of the agent definition.
    pub agent: Arc<str>,
    /// The definition as it was started, parameters filled in.
    pub definition: Json,
    /// The model as `PROVIDER/MODEL`.
    pub model: Arc<str>,
    /// Absolute path in which its tools work.
    pub working_directory: Arc<str>,
    /// The root of its tree; itself for a root.
    pub root: SessionId,
    /// Its parents at birth, the spawner first; none for a root.
    pub parents: Vec<SessionId>,
    /// False for a session that takes no input from anybody.
    pub takes_input: bool,
    /// False for one that stands for a program outside: it holds children and is told of them, and no
    /// model ever speaks in it.
    pub runs_turns: bool,
    /// The entity of the profile that owns it; exactly one.
    pub owning_profile: Uuid,
    /// Where its components run; an empty array until placement exists.
    pub executor_bindings: Json,
    /// The trust profile that was asked for, and the revision that was expected.
    pub trust: Option<(Uuid, u64)>,
    /// Whether it goes on without viewers.
    pub continue_in_background: bool,
    /// The limits that it and all below it have from its birth on.
    pub budget: Budget,
}

/// Who wrote the result of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResultOrigin {
    /// The tool.
    Tool,
    /// Nobody: the call was cut, and the text says why.
    Cut,
}

/// The result of a tool call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallResult {
    /// The call.
    pub call: CallId,
    /// What the model reads.
    pub content: Arc<str>,
    /// Whether it tells of a failure.
    pub is_error: bool,
    /// The session that the call created.
    pub spawned: Option<SessionId>,
    /// Who wrote it.
    pub origin: ResultOrigin,
    /// Pictures that belong to it, in order; usually none.
    pub images: Vec<Picture>,
    /// How long the call ran, in microseconds, by a clock that never jumps: not until its result was on record, which
    /// may be later. None where nobody measured it.
    pub took_micros: Option<u64>,
    /// What the tool says of the call beside its result.
    pub report: Option<Arc<CallReport>>,
}

/// What happened to a session.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// It was born.
    Created(Arc<Created>),
    /// An epoch started: it is live.
    Started {
        /// The epoch.
        epoch: Epoch,
    },
    /// The epoch ended: it is stopped.
    Stopped {
        /// Why.
        reason: StopReason,
        /// What it went on for after its last viewer had left, and that was over by now.
        waited_for: Vec<Holder>,
    },
    /// Input was accepted into a queue, at its end.
    Queued {
        /// The queue.
        queue: QueueId,
        /// The item.
        item: Arc<QueuedItem>,
    },
    /// A waiting item got another text.
    Edited {
        /// The item.
        item: ItemId,
        /// Its revision from now on.
        revision: u32,
        /// Its text from now on.
        text: Arc<str>,
    },
    /// A waiting item was taken back.
    Withdrawn {
        /// The item.
        item: ItemId,
    },
    /// A waiting item went to another place.
    Moved {
        /// The item.
        item: ItemId,
        /// The queue that it is in from now on.
        queue: QueueId,
        /// The item that it stands before; none is the end.
        before: Option<ItemId>,
    },
    /// A queue was made or changed.
    QueueSet {
        /// The queue.
        queue: QueueId,
        /// Its name.
        name: Arc<str>,
        /// Its immediacy from now on.
        immediacy: Immediacy,
        /// What a release restores; set exactly while it is held.
        before_hold: Option<Immediacy>,
    },
    /// An empty custom queue was deleted.
    QueueDeleted {
        /// The queue.
        queue: QueueId,
    },
    /// A turn began.
    TurnStarted {
        /// The turn.
        turn: TurnId,
    },
    /// A turn took an item of input: it is a user item of the history from here on.
    Consumed {
        /// The turn.
        turn: TurnId,
        /// The queue that it waited in.
        queue: QueueId,
        /// The item.
        item: Arc<QueuedItem>,
    },
    /// What waited in a session that runs no turns was read by whom it stands for: it is part of the
    /// history from here on.
    Acknowledged {
        /// The queue that it waited in.
        queue: QueueId,
        /// The item.
        item: Arc<QueuedItem>,
    },
    /// The model spoke.
    Said {
        /// The turn.
        turn: TurnId,
        /// What it said, apart from calls.
        step: StepText,
    },
    /// The model called a tool, and the call is about to run.
    CallStarted {
        /// The turn.
        turn: TurnId,
        /// The call.
        call: NewCall,
    },
    /// A call has its result.
    CallEnded {
        /// The turn.
        turn: TurnId,
        /// The result.
        result: CallResult,
    },
    /// A turn ended.
    TurnEnded {
        /// The turn.
        turn: TurnId,
        /// How; what came of it follows from this.
        reason: EndReason,
        /// Last non-empty text of the run, cut to a preview.
        result: Option<Arc<str>>,
    },
    /// The conversation was cut for the model: what stands before the cut is told to it by a summary from here on. The
    /// history itself stays as it is.
    Compacted {
        /// Where.
        cut: Cut,
        /// The summary, and what making it took.
        step: StepText,
        /// What is said again beside the summary: the request that is being worked on, living children, open tasks.
        restated: Arc<str>,
        /// Tokens of the prompt before, as far as known.
        before: Option<u64>,
    },
    /// What binds its tree is this from here on: limits, a pause, and of what it has been told.
    BoundsSet {
        /// All of it.
        bounds: Arc<Bounds>,
    },
    /// Its settings are these from here on.
    SettingsSet {
        /// All of them.
        settings: Arc<Settings>,
    },
    /// A question to a person was raised, or came to its end.
    ModalSet {
        /// The question.
        modal: Arc<Modal>,
        /// How it stands from here on; an open one waits behind those that are open.
        state: ModalState,
    },
    /// A note for people: never sent to the model.
    Noted {
        /// A stable code, as in the list of errors, or the end reason that it explains.
        code: Arc<str>,
        /// A safe text.
        text: Arc<str>,
    },
    /// This session asked to be told when another one has settled.
    WatchSet {
        /// The registration.
        watch: WatchId,
        /// The session that is watched.
        target: SessionId,
    },
    /// A registration of this session ended: it was answered or given up.
    WatchEnded {
        /// The registration.
        watch: WatchId,
    },
    /// Another session (or this one) wants to be told when this one has settled.
    WatcherAdded {
        /// The registration.
        watch: WatchId,
        /// Who is told.
        session: SessionId,
        /// The text that it chose.
        message: Option<Arc<str>>,
    },
    /// A watcher was told, or no longer wants to be.
    WatcherRemoved {
        /// The registration.
        watch: WatchId,
    },
    /// This session has and holds a child: by creating or by acquiring it.
    ChildHeld {
        /// The child.
        child: SessionId,
        /// The tool call that created it.
        call: Option<CallId>,
    },
    /// This session gave up its hold on a child, which stays its child.
    ChildReleased {
        /// The child.
        child: SessionId,
    },
    /// A parent holds this session.
    ParentHolds {
        /// The parent.
        parent: SessionId,
    },
    /// A parent no longer holds this session.
    ParentReleased {
        /// The parent.
        parent: SessionId,
    },
    /// This session sent input to another one.
    Sent {
        /// The receiver.
        to: SessionId,
        /// The id of the item there.
        item: ItemId,
    },
    /// Something that this version does not know; kept as it was stored.
    Unknown {
        /// The kind's stored name.
        kind: Arc<str>,
        /// The stored body.
        body: Json,
    },
}

/// Names the kinds: one list for the names and for what they name, so that neither has a kind more.
macro_rules! kinds {
    ($($variant:ident = $name:literal,)*) => {
        impl Event {
            /// The names of all kinds that this version knows.
            pub const KINDS: &'static [&'static str] = &[$($name,)*];

            /// The stable name of its kind.
            #[must_use]
            pub fn kind(&self) -> &str {
                match self {
                    $(Self::$variant { .. } => $name,)*
                    Self::Unknown { kind, .. } => kind,
                }
            }
        }
    };
}

kinds! {
    Created = "created",
    Started = "started",
    Stopped = "stopped",
    Queued = "queued",
    Edited = "edited",
    Withdrawn = "withdrawn",
    Moved = "moved",
    QueueSet = "queue-set",
    QueueDeleted = "queue-deleted",
    TurnStarted = "turn-started",
    Consumed = "consumed",
    Acknowledged = "acknowledged",
    Said = "said",
    CallStarted = "call-started",
    CallEnded = "call-ended",
    TurnEnded = "turn-ended",
    Compacted = "compacted",
    BoundsSet = "bounds-set",
    SettingsSet = "settings-set",
    ModalSet = "modal-set",
    Noted = "noted",
    WatchSet = "watch-set",
    WatchEnded = "watch-ended",
    WatcherAdded = "watcher-added",
    WatcherRemoved = "watcher-removed",
    ChildHeld = "child-held",
    ChildReleased = "child-released",
    ParentHolds = "parent-holds",
    ParentReleased = "parent-released",
    Sent = "sent",
}
