//! What a viewer is answered: one kind of answer for each kind of question, and the views that are in no other place. Answers
//! change nothing that is shown: that comes with the stream.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::history::HistoryPage;
use crate::ledger::LedgerView;
use crate::session::{InputOrigin, SessionView, Status};
use crate::token::TokenView;

/// What came of a command.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case"
)]
#[serde(deny_unknown_fields)]
pub enum Answer {
    /// It was done.
    Done {
        /// Whether that changed anything.
        changed: bool,
    },
    /// A viewer is attached.
    Attached {
        /// The attachment's name, which is a secret: it brings the viewer back after its connection was lost.
        attachment: String,
        /// Whether the stream goes on where the viewer stood; otherwise a snapshot follows.
        replays: bool,
    },
    /// Whether a session runs here.
    Runtime {
        /// That.
        runtime: Runtime,
    },
    /// What a person typed was carried out, or is no command.
    Slash {
        /// Whether there is such a command. Where there is none, the line is text for the agent.
        known: bool,
        /// What it says, for people.
        text: String,
    },
    /// Input was accepted: it is stored and cannot be lost.
    Accepted {
        /// The item.
        item_id: String,
        /// What the session does now.
        status: Status,
    },
    /// A queue was made.
    QueueMade {
        /// Its id.
        queue_id: String,
    },
    /// A session.
    Session {
        /// Its row.
        session: Box<SessionView>,
    },
    /// Sessions.
    Sessions {
        /// Their rows.
        sessions: Vec<SessionView>,
        /// Whether there are more that match.
        more: bool,
    },
    /// The tool calls of a run.
    Ledger {
        /// The calls; none when there has been no run, or nothing is known of it, which is another thing than no calls.
        ledger: Option<LedgerView>,
    },
    /// A page of a history.
    History {
        /// The page.
        page: HistoryPage,
    },
    /// A part of an item's text.
    Text {
        /// What stands at the offset that was asked for.
        text: String,
        /// Whether more follows.
        more: bool,
    },
    /// Agent definitions.
    Agents {
        /// Those that can be named, and those that do not load.
        agents: Vec<AgentView>,
    },
    /// What binds a session's tree.
    Budget {
        /// Its limits, in a fixed order.
        limits: Vec<LimitView>,
        /// Whether nothing is spawned in it.
        paused: bool,
    },
    /// Receipts.
    Receipts {
        /// Those of the newest items, oldest first.
        receipts: Vec<ReceiptView>,
    },
    /// The host.
    Host {
        /// What it is and does.
        host: HostView,
    },
    /// A token was made.
    TokenMade {
        /// The token.
        token: TokenView,
        /// What its bearer has to bring. It is told this once, and kept nowhere.
        secret: String,
    },
    /// Tokens.
    Tokens {
        /// Those that there are, oldest first.
        tokens: Vec<TokenView>,
    },
}

/// A limit of a session's tree. Money is in dollars, time in seconds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LimitView {
    /// Its name: `concurrent`, `agents`, `depth`, `tokens`, `usd`, `wall` or `tool-calls`.
    pub limit: String,
    /// What is used of it; null where that is not counted.
    pub used: Option<f64>,
    /// The most that may be used.
    pub most: f64,
}

/// Where an item of input has got to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ReceiptView {
    /// The item.
    pub item_id: String,
    /// Who wrote it.
    pub origin: InputOrigin,
    /// The beginning of its text.
    pub preview: String,
    /// `accepted`, `delivered`, `consumed` or `missed`.
    pub state: String,
    /// What there is to say of that: `withdrawn`, `session-stopped`, `run-ended-first` or `queue-held`.
    pub reason: Option<String>,
    /// The turn that took it.
    pub turn: Option<u32>,
    /// Its position in the history.
    pub position: Option<u64>,
}

/// An agent definition as a list shows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AgentView {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Its model; none is the caller's choice.
    pub model: Option<String>,
    /// Toolset kinds and tools.
    pub tools: Vec<String>,
    /// Names of its parameters.
    pub parameters: Vec<String>,
    /// Where it was found.
    pub source: String,
    /// Why it cannot be used; none when it can.
    pub error: Option<String>,
}

/// A host as it shows itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HostView {
    /// Its program and version.
    pub program: String,
    /// Its process.
    pub process_id: u32,
    /// Its state folder.
    pub state_folder: String,
    /// Sessions with an epoch.
    pub live_sessions: u64,
    /// Sessions at work.
    pub busy_sessions: u64,
}

/// Whether a session runs at a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Runtime {
    /// It has an epoch there.
    Running,
    /// It is stored there and stopped.
    NotRunning,
    /// It is not there, or may not be seen.
    Unavailable,
}
