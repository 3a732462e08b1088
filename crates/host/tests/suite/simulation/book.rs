//! What all viewers of a world write down together: which commands were given and what became of each, how often everything
//! occurred, and what was wrong.

use std::collections::BTreeMap;

use attache_engine::EngineHandle;
use attache_protocol::{Answer, Command, FromHost, WireError, decode};
use attache_session::{Event, Position, SessionId};

use super::planted::Bug;

/// How often each thing occurred.
pub(crate) type Counts = BTreeMap<String, u64>;

/// What came of a command: its answer, or the code of its error.
pub(crate) type Came = Result<Answer, String>;

/// A command that a viewer gave.
pub(crate) struct Given {
    pub(crate) command: Command,
    pub(crate) read_only: bool,
    /// What its viewer heard, once.
    pub(crate) heard: Option<Came>,
    /// All that the host said of it, over whichever connection, in that order.
    pub(crate) said: Vec<Came>,
}

/// See the module.
pub(crate) struct Book {
    pub(crate) engine: EngineHandle,
    pub(crate) given: BTreeMap<String, Given>,
    pub(crate) counts: Counts,
    pub(crate) wrong: Vec<String>,
    pub(crate) bug: Option<Bug>,
    next: u32,
}

impl Book {
    pub(crate) fn new(engine: EngineHandle, bug: Option<Bug>) -> Self {
        Self {
            engine,
            given: BTreeMap::new(),
            counts: Counts::new(),
            wrong: Vec::new(),
            bug,
            next: 0,
        }
    }

    pub(crate) fn count(&mut self, what: &str) {
        *self.counts.entry(what.to_owned()).or_default() += 1;
    }

    pub(crate) fn wrong(&mut self, what: String) {
        self.wrong.push(what);
    }

    /// A text that nobody has said before.
    pub(crate) fn fresh(&mut self, begin: &str) -> String {
        self.next += 1;
        format!("{begin}{}", self.next)
    }

    pub(crate) fn log(&self, session: SessionId) -> Vec<Event> {
        let items = self.engine.log(session, Position(0), usize::MAX).unwrap();
        items.into_iter().map(|item| item.event.event).collect()
    }

    /// The epoch that a session has now, as it is written on the wire.
    pub(crate) fn epoch(&self, session: &str) -> Option<String> {
        let log = self.log(session.parse().unwrap());
        let last = log.iter().rev().find_map(|event| match event {
            Event::Started { epoch } => Some(Some(epoch.to_string())),
            Event::Stopped { .. } => Some(None),
            _ => None,
        });
        last.flatten()
    }

    /// The host wrote a line. Answers are noted, whether they arrive or not.
    pub(crate) fn host_wrote(&mut self, line: &[u8]) {
        let is_answer = [&br#"{"type":"answer""#[..], br#"{"type":"operation-error""#];
        if !is_answer.iter().any(|begin| line.starts_with(begin)) {
            return;
        }
        let (id, came) = match decode::<FromHost>(line.trim_ascii_end()) {
            Ok(FromHost::Answer { command_id, body }) => (command_id, Ok(*body)),
            Ok(FromHost::OperationError {
                command_id: Some(id),
                error,
            }) => (id, Err(told(&error))),
            _ => return,
        };
        let Some(given) = self.given.get_mut(&id) else {
            return;
        };
        if !given.said.is_empty() && takes_effect_once(&given.command) {
            *self
                .counts
                .entry("a repeat answered".to_owned())
                .or_default() += 1;
        }
        given.said.push(came);
    }
}

pub(crate) fn told(error: &WireError) -> String {
    error.code.clone()
}

/// Commands that change something: the host applies them once for each id.
pub(crate) fn takes_effect_once(command: &Command) -> bool {
    matches!(
        command,
        Command::Enqueue { .. }
            | Command::EditItem { .. }
            | Command::RemoveItem { .. }
            | Command::MoveItem { .. }
            | Command::CreateQueue { .. }
            | Command::ConfigureQueue { .. }
            | Command::DeleteQueue { .. }
            | Command::StartSession { .. }
            | Command::Interrupt { .. }
            | Command::Terminate { .. }
    )
}
