//! The envelope: what each side says, and what a stream is made of.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answer::Answer;
use crate::command::Command;
use crate::detail::{
    AgentInformation, ChildView, OwnershipView, RetentionView, SessionDetail, ToolView,
    UsageTotals, ViewerView,
};
use crate::error::WireError;
use crate::history::{HistoryItem, RunningItem};
use crate::modal::{ModalEnd, ModalView};
use crate::session::{QueueView, SessionView};

/// The version that this crate speaks.
pub const VERSION: u32 = 1;

/// A frame of a viewer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "type",
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case"
)]
#[serde(deny_unknown_fields)]
pub enum FromViewer {
    /// The first frame: what the viewer speaks.
    Hello {
        /// The highest version that it speaks.
        version: u32,
        /// Optional parts that it understands.
        features: Vec<String>,
        /// Its name and version, for people.
        program: String,
    },
    /// The first frame of a connection that speaks another protocol from then on; it is answered by
    /// `hello` or `operation-error`.
    OpenDoor(Box<OpenDoor>),
    /// A request; it is answered by exactly one `answer` or `operation-error` of the same id. One whose answer was lost with
    /// its connection is said again under its id on a later one.
    Command {
        /// Made by the viewer; a command that changes something is applied once for each id.
        command_id: String,
        /// What is asked.
        body: Command,
    },
}

/// Which other protocol a connection is for, and what its user brings.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct OpenDoor {
    /// The version of this protocol that the other end speaks.
    pub version: u32,
    /// Its name and version, for people.
    pub program: String,
    /// The door, for example `mcp`.
    pub door: String,
    /// The agent definition of what is created there; none is the built-in one.
    pub agent: Option<String>,
    /// The model as `PROVIDER/MODEL`; none is the definition's, or what the settings name.
    pub model: Option<String>,
    /// An earlier root session to go on with.
    pub root_session_id: Option<String>,
    /// Absolute path in which sessions that are created there work.
    pub working_directory: String,
    /// Variables of the user's surroundings.
    pub environment: BTreeMap<String, String>,
}

/// A frame of a host.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "type",
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case"
)]
#[serde(deny_unknown_fields)]
pub enum FromHost {
    /// The answer to the viewer's first frame.
    Hello {
        /// The version that both speak.
        version: u32,
        /// The parts that both understand.
        features: Vec<String>,
        /// The host's name and version, for people.
        program: String,
    },
    /// A command was carried out.
    Answer {
        /// The command.
        command_id: String,
        /// What came of it.
        body: Box<Answer>,
    },
    /// A command was not carried out; nothing has changed.
    OperationError {
        /// The command; none when the frame could not be read so far.
        command_id: Option<String>,
        /// Why.
        error: WireError,
    },
    /// A stream begins, or begins anew: everything before it is in it.
    Snapshot(Box<Snapshot>),
    /// A stream goes on.
    Delta(Box<Delta>),
    /// The epoch of an attached session has ended; the stream ends with it.
    SessionTerminal {
        /// The session.
        session_id: String,
        /// The epoch that ended.
        epoch: Option<String>,
        /// Its number in the stream, as a delta has one.
        sequence: u64,
        /// Why: `terminated`, `disposed`, `parent-ended`, `host-shutdown`, `host-restart` or `last-viewer-left`.
        reason: String,
    },
    /// The host ends; what is stored stays. Nothing follows.
    GoingAway {
        /// Why, for people.
        reason: String,
    },
}

/// Which stream a snapshot or a delta belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stream {
    /// One attached session.
    Session,
    /// The rows of a tree, or of all sessions.
    Tree,
}

/// The start of a stream.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Snapshot {
    /// The stream.
    pub stream: Stream,
    /// The epoch of an attached session; none when it is stopped, or for a tree.
    pub epoch: Option<String>,
    /// The number that the next delta has.
    pub sequence: u64,
    /// The attached session, or the rows of the tree in order of birth.
    pub sessions: Vec<SessionView>,
    /// The newest page of the history, oldest first; empty for a tree.
    pub history: Vec<HistoryItem>,
    /// Whether the history has more before that page.
    pub more_history: bool,
    /// What streams now.
    pub running: Option<RunningItem>,
    /// Every queue; empty for a tree.
    pub queues: Vec<QueueView>,
    /// The rest of an attached session; none for a tree.
    pub detail: Option<Box<SessionDetail>>,
}

/// One step of a stream.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Delta {
    /// The stream.
    pub stream: Stream,
    /// The epoch of an attached session.
    pub epoch: Option<String>,
    /// Its number in the stream, without gaps. One that is known already changes nothing; where one is missing, the viewer
    /// attaches once more and gets a snapshot.
    pub sequence: u64,
    /// The session that it is about.
    pub session_id: String,
    /// True for what is never a record: a later record replaces it, or it goes with the epoch.
    pub live: bool,
    /// What changed.
    pub patch: Patch,
}

/// What changed, by topic: the new value of what it names.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "topic",
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case"
)]
#[serde(deny_unknown_fields)]
pub enum Patch {
    /// An item joined the history, behind all that are there; one whose position is known already changes nothing. An
    /// `assistant` item of the running turn has the whole of what streamed: the running item's text begins anew.
    ItemPut {
        /// The item.
        item: HistoryItem,
    },
    /// The running item's text goes on. A later turn or step begins a new running item, and text of an earlier one is passed
    /// over, as is what is known of a piece already. Where a piece is missing, a record brings the whole text.
    ItemText {
        /// The turn.
        turn: u32,
        /// The model request of the turn.
        step: u32,
        /// Where this piece begins in the item's text, in bytes.
        offset: u64,
        /// The piece.
        text: String,
    },
    /// A queue is now like this; one that was not known stands behind the others.
    QueuePut {
        /// The queue.
        queue: QueueView,
    },
    /// A queue is gone.
    QueueGone {
        /// The queue.
        queue_id: String,
    },
    /// The agent is now this.
    InformationPut {
        /// The agent.
        information: Box<AgentInformation>,
    },
    /// The session has used this so far.
    UsagePut {
        /// The totals.
        usage: UsageTotals,
    },
    /// The tools and their switches are now these.
    ToolsPut {
        /// All of them.
        tools: Vec<ToolView>,
    },
    /// A child is now like this: it joined, or it is held or given up.
    ChildPut {
        /// The child.
        child: ChildView,
    },
    /// A question to a person was raised, in the session or below it.
    ModalPut {
        /// The question.
        modal: Box<ModalView>,
    },
    /// A question to a person has ended.
    ModalGone {
        /// Who asked.
        asker_session_id: String,
        /// The question.
        modal_id: String,
        /// How it ended.
        end: ModalEnd,
    },
    /// These look on.
    ViewersPut {
        /// All of them.
        viewers: Vec<ViewerView>,
    },
    /// What happens when nobody looks on any more is now this.
    RetentionPut {
        /// The preference.
        retention: RetentionView,
    },
    /// The session is now that one's.
    OwnershipPut {
        /// The owner.
        ownership: OwnershipView,
    },
    /// The session's row is now like this.
    SessionPut {
        /// The row.
        session: Box<SessionView>,
    },
    /// A row of the tree is now like this; the latest wins.
    TreeRow {
        /// The row.
        session: Box<SessionView>,
    },
    /// A row of the tree is gone.
    TreeGone {},
}

impl FromViewer {
    /// A command frame.
    #[must_use]
    pub fn command(command_id: impl Into<String>, body: Command) -> Self {
        Self::Command {
            command_id: command_id.into(),
            body,
        }
    }
}

impl FromHost {
    /// An answer frame.
    #[must_use]
    pub fn answer(command_id: impl Into<String>, body: Answer) -> Self {
        Self::Answer {
            command_id: command_id.into(),
            body: Box::new(body),
        }
    }
}
