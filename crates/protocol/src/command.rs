//! What a viewer can ask; what it is answered is in `answer`. Commands that change something carry ids in the frame, and are
//! applied once.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::history::HistoryQuery;
use crate::modal::ModalAnswer;
use crate::session::Immediacy;
use crate::slash::Typed;
use crate::token::TokenScope;

/// A request.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case"
)]
#[serde(deny_unknown_fields)]
pub enum Command {
    /// Create a root session; answered by `session`.
    CreateSession(Box<NewSession>),
    /// Put input into a queue; answered by `accepted`.
    Enqueue {
        /// The session.
        session_id: String,
        /// Where it waits.
        queue: QueueRef,
        /// The text.
        text: String,
        /// Start the session if it is stopped, with these variables.
        start: bool,
        /// Variables of the viewer's surroundings for a start.
        environment: BTreeMap<String, String>,
    },
    /// Give a waiting item another text; answered by `done`.
    EditItem {
        /// The session.
        session_id: String,
        /// The item.
        item_id: String,
        /// Its new text.
        text: String,
        /// The item's revision as the viewer knows it; another one is a `revision-conflict` that names it.
        expected_revision: u32,
    },
    /// Take a waiting item back; answered by `done`.
    RemoveItem {
        /// The session.
        session_id: String,
        /// The item.
        item_id: String,
        /// The item's revision as the viewer knows it.
        expected_revision: u32,
    },
    /// Put a waiting item elsewhere; answered by `done`.
    MoveItem {
        /// The session.
        session_id: String,
        /// The item.
        item_id: String,
        /// The queue to put it into.
        queue_id: String,
        /// The item of that queue to put it before; none is the end.
        before_item_id: Option<String>,
        /// The item's revision as the viewer knows it.
        expected_revision: u32,
    },
    /// Make a queue; answered by `queue-made`.
    CreateQueue {
        /// The session.
        session_id: String,
        /// Its name; one is made up when there is none.
        name: Option<String>,
        /// When its input may be taken.
        immediacy: Immediacy,
    },
    /// Set, hold or release a queue; answered by `done`.
    ConfigureQueue {
        /// The session.
        session_id: String,
        /// The queue.
        queue_id: String,
        /// `held` holds it, any other sets it; none releases it to what it was before.
        immediacy: Option<Immediacy>,
        /// The queue's revision as the viewer knows it.
        expected_revision: u32,
    },
    /// Delete an empty queue that is none of the two which every session has; answered by `done`.
    DeleteQueue {
        /// The session.
        session_id: String,
        /// The queue.
        queue_id: String,
        /// The queue's revision as the viewer knows it.
        expected_revision: u32,
    },
    /// Start a stopped session; answered by `done`.
    StartSession {
        /// The session.
        session_id: String,
        /// Variables of the viewer's surroundings.
        environment: BTreeMap<String, String>,
    },
    /// End the current run; answered by `done` with whether it ran.
    Interrupt {
        /// The session.
        session_id: String,
        /// Its descendants too.
        tree: bool,
    },
    /// Cut the conversation for the model now, with a summary that the model makes; answered by `done`. The history stays.
    Compact {
        /// The session.
        session_id: String,
        /// Variables of the viewer's surroundings.
        environment: BTreeMap<String, String>,
    },
    /// The limits that stand at a session, and what is used of them; answered by `budget`.
    GetBudget {
        /// The session.
        session_id: String,
    },
    /// Where the newest input of a session has got to; answered by `receipts`.
    GetReceipts {
        /// The session.
        session_id: String,
    },
    /// Set or lift limits of a session's tree; answered by `done`.
    SetBudget {
        /// The session.
        session_id: String,
        /// As in a new session; empty changes none.
        budget: String,
        /// Whether nothing is spawned in its tree from now on; none leaves it as it is.
        paused: Option<bool>,
    },
    /// End the epoch now; answered by `done` with whether there was one.
    Terminate {
        /// The session.
        session_id: String,
    },
    /// Delete a stopped session; answered by `done`.
    Delete {
        /// The session.
        session_id: String,
    },
    /// Find sessions by the end of their id; answered by `sessions`.
    Resolve {
        /// A full id, or at least 6 characters from its end.
        text: String,
    },
    /// Rows of all sessions, of all roots, or of one tree in order of birth; answered by
    /// `sessions`.
    ListSessions {
        /// A session whose tree is asked for; none for all.
        root_session_id: Option<String>,
        /// Only rows after this one: the last of a page that has more.
        after_session_id: Option<String>,
    },
    /// One session's row; answered by `session`.
    GetSession {
        /// The session.
        session_id: String,
    },
    /// The tool calls of a session's last run, or of the one that runs now; answered by `ledger`.
    GetLedger {
        /// The session.
        session_id: String,
    },
    /// A page of a history; answered by `history`.
    PageHistory {
        /// The session.
        session_id: String,
        /// Which part.
        query: HistoryQuery,
    },
    /// A part of the whole text of an item of which a page shows only the beginning; answered by
    /// `text`.
    ReadText {
        /// The session.
        session_id: String,
        /// The item's position.
        position: u64,
        /// Bytes of the text that are known already.
        offset: u64,
    },
    /// Wait; answered by `session` when it has settled, by the error `timeout` code otherwise.
    Wait {
        /// The session.
        session_id: String,
        /// How far the wait goes.
        reach: Reach,
        /// Seconds at most; none is no limit.
        timeout_seconds: Option<u64>,
    },
    /// Attach to a session, which starts nothing: answered by `attached`, then a snapshot unless the answer says that the
    /// stream goes on where the viewer stood, then deltas.
    Attach {
        /// The session.
        session_id: String,
        /// The attachment that the viewer had before its connection was lost; none attaches anew.
        resume: Option<Resume>,
        /// Whether this viewer changes nothing: commands that would are refused as `not-permitted`. Left out it may.
        #[serde(default)]
        read_only: bool,
    },
    /// The same, and start the session first if it is stopped. An epoch that is just being ended is over before the next one
    /// starts.
    StartOrAttach {
        /// The session.
        session_id: String,
        /// The attachment that the viewer had before its connection was lost; none attaches anew.
        resume: Option<Resume>,
        /// Variables of the viewer's surroundings for a start.
        environment: BTreeMap<String, String>,
    },
    /// End an attachment at once; answered by `done`. The last viewer's leaving ends the session unless it continues in the
    /// background or something else holds it.
    Detach {
        /// The session.
        session_id: String,
    },
    /// Whether a session runs at this host; answered by `runtime`. One that may not be seen is as one that is not there.
    QueryStatus {
        /// The session.
        session_id: String,
    },
    /// Carry out what a person typed behind a slash; answered by `slash`, or by `done` where it takes its time.
    SlashCommand {
        /// The session.
        session_id: String,
        /// The whole line. One that is no command is answered so, and does nothing.
        text: String,
    },
    /// Answer an open question; answered by `done`. The first answer counts: a later one, and one to a question that is not
    /// asked any more, is `already-settled`.
    RespondModal {
        /// Who asks, as the question names it.
        session_id: String,
        /// The question.
        modal_id: String,
        /// The answer.
        answer: ModalAnswer,
    },
    /// Whether a session goes on when its last viewer has left; answered by `done`. Switched off with nobody looking on it
    /// ends at once, unless something else holds it.
    SetRetention {
        /// The session.
        session_id: String,
        /// Whether it goes on.
        continue_in_background: bool,
    },
    /// Whether the model is offered a tool, from the session's next run on; answered by `done`.
    SetToolEnabled {
        /// The session.
        session_id: String,
        /// The tool's name.
        tool: String,
        /// Whether it is offered.
        enabled: bool,
    },
    /// Watch rows: answered by `done`, then a snapshot of the tree, then deltas.
    WatchTree {
        /// A session whose tree is watched; none for all.
        root_session_id: Option<String>,
    },
    /// Agent definitions that can be named; answered by `agents`.
    ListAgents {
        /// The folder from which they are seen.
        working_directory: String,
    },
    /// What the host is and does; answered by `host`.
    HostStatus {},
    /// Make a token for viewers elsewhere; answered by `token-made`.
    CreateToken {
        /// Its name, which no other has; one is made up when there is none.
        name: Option<String>,
        /// What its bearer may do.
        scope: TokenScope,
        /// The session to which, with all below it, its bearer is confined; none is every session.
        session_id: Option<String>,
    },
    /// The tokens that there are; answered by `tokens`.
    ListTokens {},
    /// Take a token back, which ends its connections; answered by `done` with whether there was one.
    RevokeToken {
        /// Its name or its id.
        token: String,
    },
}

impl Command {
    /// Attaches anew, to look and to act.
    #[must_use]
    pub fn attach(session_id: impl Into<String>) -> Self {
        Self::Attach {
            session_id: session_id.into(),
            resume: None,
            read_only: false,
        }
    }

    /// Attaches anew, to look only.
    #[must_use]
    pub fn look(session_id: impl Into<String>) -> Self {
        Self::Attach {
            session_id: session_id.into(),
            resume: None,
            read_only: true,
        }
    }

    /// The session that it changes; none for one that only asks, or that makes a new session.
    #[must_use]
    pub fn changes(&self) -> Option<&str> {
        match self {
            Self::Enqueue { session_id, .. }
            | Self::EditItem { session_id, .. }
            | Self::RemoveItem { session_id, .. }
            | Self::MoveItem { session_id, .. }
            | Self::CreateQueue { session_id, .. }
            | Self::ConfigureQueue { session_id, .. }
            | Self::DeleteQueue { session_id, .. }
            | Self::StartSession { session_id, .. }
            | Self::Interrupt { session_id, .. }
            | Self::Compact { session_id, .. }
            | Self::SetBudget { session_id, .. }
            | Self::RespondModal { session_id, .. }
            | Self::SetRetention { session_id, .. }
            | Self::SetToolEnabled { session_id, .. }
            | Self::StartOrAttach { session_id, .. }
            | Self::Terminate { session_id }
            | Self::Delete { session_id } => Some(session_id),
            Self::SlashCommand { session_id, text } => {
                Typed::of(text).changes().then_some(session_id)
            }
            Self::CreateSession(_)
            | Self::GetBudget { .. }
            | Self::GetReceipts { .. }
            | Self::Resolve { .. }
            | Self::ListSessions { .. }
            | Self::GetSession { .. }
            | Self::GetLedger { .. }
            | Self::PageHistory { .. }
            | Self::ReadText { .. }
            | Self::Wait { .. }
            | Self::Attach { .. }
            | Self::Detach { .. }
            | Self::QueryStatus { .. }
            | Self::WatchTree { .. }
            | Self::ListAgents { .. }
            | Self::HostStatus {}
            | Self::CreateToken { .. }
            | Self::ListTokens {}
            | Self::RevokeToken { .. } => None,
        }
    }
}

/// A root session that is to be created.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct NewSession {
    /// The id that it gets, a UUIDv7 made by the viewer: a repeat creates nothing new.
    pub session_id: String,
    /// Name of an agent definition; none is the built-in one.
    pub agent: Option<String>,
    /// The model as `PROVIDER/MODEL`; none is the definition's or the configured one.
    pub model: Option<String>,
    /// Values of the definition's parameters.
    pub parameters: BTreeMap<String, String>,
    /// An absolute folder.
    pub working_directory: String,
    /// Its name for people.
    pub name: Option<String>,
    /// First input.
    pub first_message: Option<String>,
    /// Variables of the viewer's surroundings: providers' keys and addresses, and our own.
    pub environment: BTreeMap<String, String>,
    /// Whether it goes on when this connection ends.
    pub detached: bool,
    /// Limits of its tree as `KEY=VALUE,…`: `concurrent`, `agents`, `depth`, `tokens`, `usd`, `wall` (seconds),
    /// `tool-calls`; `none` lifts one.
    pub budget: Option<String>,
}

/// An attachment to which a viewer comes back. When it was let go meanwhile, or its epoch is over, the command is refused as
/// `unknown-session`, and the viewer attaches anew.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Resume {
    /// What `attached` named it.
    pub attachment: String,
    /// Where the viewer stands; none asks for a snapshot.
    pub place: Option<StreamPlace>,
}

/// A place in a session's stream.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct StreamPlace {
    /// The epoch as the viewer knows it.
    pub epoch: Option<String>,
    /// The number of the frame that the viewer wants next.
    pub sequence: u64,
}

/// A queue of a session.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case"
)]
#[serde(deny_unknown_fields)]
pub enum QueueRef {
    /// Steers a running turn.
    Immediate {},
    /// Waits for the end of the run.
    Default {},
    /// A custom queue, made if there is none of this name.
    Named {
        /// Its name.
        name: String,
        /// Whether a queue that is made for it is held.
        held: bool,
    },
}

/// How far a wait goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// The session itself.
    Itself,
    /// It and all its descendants.
    Tree,
}
