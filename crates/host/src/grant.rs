//! What a connection may do, as pure rules: the scope that each command needs, and which sessions a command is about.
//! Whether a session lies where the connection may look is found out elsewhere.

use attache_engine::EngineError;
use attache_protocol::{Command, TokenScope};
use attache_session::{ErrorCode, SessionId};

/// What a connection was granted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Grant {
    /// What it may do.
    pub(crate) scope: TokenScope,
    /// The session at the top of all that it may see; none is every session. What lies below is told by spawners: a
    /// further parent does not widen it.
    pub(crate) subtree: Option<SessionId>,
}

/// What a command is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum About<'a> {
    /// One session.
    Session(&'a str),
    /// Rows of a listing: those of a session's tree, or of all, and perhaps only those after another one.
    Rows {
        root: Option<&'a str>,
        after: Option<&'a str>,
    },
    /// Sessions that match: those that may not be seen do not match.
    Matches,
    /// A session that does not exist yet, below no other.
    NewRoot,
    /// The host as a whole.
    Host,
    /// Who may come to the host.
    Tokens,
}

/// What a command asks of whoever gives it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Demand<'a> {
    pub(crate) scope: TokenScope,
    pub(crate) about: About<'a>,
}

/// The demand of a command. A new command has to say its own.
pub(crate) fn demand(command: &Command) -> Demand<'_> {
    use TokenScope::{Admin, Read, Write};
    let (scope, about) = match command {
        Command::CreateSession(_) => (Write, About::NewRoot),
        Command::Enqueue { session_id, .. }
        | Command::EditItem { session_id, .. }
        | Command::RemoveItem { session_id, .. }
        | Command::MoveItem { session_id, .. }
        | Command::CreateQueue { session_id, .. }
        | Command::ConfigureQueue { session_id, .. }
        | Command::DeleteQueue { session_id, .. }
        | Command::StartSession { session_id, .. }
        | Command::Interrupt { session_id, .. }
        | Command::Compact { session_id, .. }
        | Command::SetBudget { session_id, .. }
        | Command::Terminate { session_id }
        | Command::Delete { session_id }
        | Command::StartOrAttach { session_id, .. }
        | Command::RespondModal { session_id, .. }
        | Command::SetRetention { session_id, .. }
        | Command::SetToolEnabled { session_id, .. } => (Write, About::Session(session_id)),
        Command::SlashCommand { session_id, .. } if command.changes().is_some() => {
            (Write, About::Session(session_id))
        }
        Command::SlashCommand { session_id, .. }
        | Command::GetBudget { session_id }
        | Command::GetReceipts { session_id }
        | Command::GetSession { session_id }
        | Command::GetLedger { session_id }
        | Command::PageHistory { session_id, .. }
        | Command::ReadText { session_id, .. }
        | Command::Wait { session_id, .. }
        | Command::Attach { session_id, .. }
        | Command::Detach { session_id }
        | Command::QueryStatus { session_id } => (Read, About::Session(session_id)),
        Command::Resolve { .. } => (Read, About::Matches),
        Command::ListSessions {
            root_session_id,
            after_session_id,
        } => (
            Read,
            About::Rows {
                root: root_session_id.as_deref(),
                after: after_session_id.as_deref(),
            },
        ),
        Command::WatchTree { root_session_id } => (
            Read,
            About::Rows {
                root: root_session_id.as_deref(),
                after: None,
            },
        ),
        Command::ListAgents { .. } | Command::HostStatus {} => (Read, About::Host),
        Command::CreateToken { .. } | Command::ListTokens {} | Command::RevokeToken { .. } => {
            (Admin, About::Tokens)
        }
    };
    Demand { scope, about }
}

impl Demand<'_> {
    /// The sessions that are named.
    pub(crate) fn sessions(&self) -> impl Iterator<Item = &str> {
        let named = match self.about {
            About::Session(session) => [Some(session), None],
            About::Rows { root, after } => [root, after],
            About::Matches | About::NewRoot | About::Host | About::Tokens => [None, None],
        };
        named.into_iter().flatten()
    }
}

impl Grant {
    /// The grant of the user whose host it is.
    pub(crate) const OWNER: Self = Self {
        scope: TokenScope::Admin,
        subtree: None,
    };

    /// Whether it covers a demand, as far as that does not depend on where a session lies. This is told before anything
    /// is said of sessions, so that a refusal says nothing of them.
    ///
    /// # Errors
    ///
    /// `not-permitted` when it does not.
    pub(crate) fn covers(&self, demand: &Demand<'_>) -> Result<(), EngineError> {
        let refused = |text: String| Err(EngineError::new(ErrorCode::NotPermitted, text));
        if self.scope < demand.scope {
            return refused(format!(
                "that needs a token of scope {}, and this one has {}",
                demand.scope.as_str(),
                self.scope.as_str()
            ));
        }
        match demand.about {
            About::NewRoot | About::Tokens if self.subtree.is_some() => refused(
                "this token is for the sessions below one, and that is not among them".into(),
            ),
            About::Session(_)
            | About::Rows { .. }
            | About::Matches
            | About::NewRoot
            | About::Host
            | About::Tokens => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use attache_protocol::{HistoryQuery, Immediacy, ModalAnswer, NewSession, QueueRef, Reach};
    use std::collections::BTreeMap;

    const ID: &str = "01931f2e-0000-7000-8000-000000000001";

    fn new_session() -> NewSession {
        NewSession {
            session_id: ID.to_owned(),
            agent: None,
            model: None,
            parameters: BTreeMap::new(),
            working_directory: "/".to_owned(),
            name: None,
            first_message: None,
            environment: BTreeMap::new(),
            detached: true,
            budget: None,
        }
    }

    /// Every command once.
    fn commands() -> Vec<Command> {
        let session_id = || ID.to_owned();
        let text = || "x".to_owned();
        vec![
            Command::CreateSession(Box::new(new_session())),
            Command::Enqueue {
                session_id: session_id(),
                queue: QueueRef::Default {},
                text: text(),
                start: false,
                environment: BTreeMap::new(),
            },
            Command::EditItem {
                session_id: session_id(),
                item_id: text(),
                text: text(),
                expected_revision: 1,
            },
            Command::RemoveItem {
                session_id: session_id(),
                item_id: text(),
                expected_revision: 1,
            },
            Command::MoveItem {
                session_id: session_id(),
                item_id: text(),
                queue_id: text(),
                before_item_id: None,
                expected_revision: 1,
            },
            Command::CreateQueue {
                session_id: session_id(),
                name: None,
                immediacy: Immediacy::Held,
            },
            Command::ConfigureQueue {
                session_id: session_id(),
                queue_id: text(),
                immediacy: None,
                expected_revision: 1,
            },
            Command::DeleteQueue {
                session_id: session_id(),
                queue_id: text(),
                expected_revision: 1,
            },
            Command::StartSession {
                session_id: session_id(),
                environment: BTreeMap::new(),
            },
            Command::Interrupt {
                session_id: session_id(),
                tree: true,
            },
            Command::Compact {
                session_id: session_id(),
                environment: BTreeMap::new(),
            },
            Command::GetBudget {
                session_id: session_id(),
            },
            Command::GetReceipts {
                session_id: session_id(),
            },
            Command::SetBudget {
                session_id: session_id(),
                budget: text(),
                paused: None,
            },
            Command::Terminate {
                session_id: session_id(),
            },
            Command::Delete {
                session_id: session_id(),
            },
            Command::Resolve { text: text() },
            Command::ListSessions {
                root_session_id: Some(session_id()),
                after_session_id: Some(text()),
            },
            Command::GetSession {
                session_id: session_id(),
            },
            Command::GetLedger {
                session_id: session_id(),
            },
            Command::PageHistory {
                session_id: session_id(),
                query: HistoryQuery {
                    after: None,
                    kinds: Vec::new(),
                    search: None,
                    limit: 1,
                    newest: true,
                },
            },
            Command::ReadText {
                session_id: session_id(),
                position: 1,
                offset: 0,
            },
            Command::Wait {
                session_id: session_id(),
                reach: Reach::Tree,
                timeout_seconds: None,
            },
            Command::attach(ID),
            Command::Detach {
                session_id: session_id(),
            },
            Command::QueryStatus {
                session_id: session_id(),
            },
            Command::StartOrAttach {
                session_id: session_id(),
                resume: None,
                environment: BTreeMap::new(),
            },
            Command::SlashCommand {
                session_id: session_id(),
                text: "/terminate".to_owned(),
            },
            Command::SlashCommand {
                session_id: session_id(),
                text: "/help".to_owned(),
            },
            Command::RespondModal {
                session_id: session_id(),
                modal_id: "m".to_owned(),
                answer: ModalAnswer {
                    accepted: false,
                    text: None,
                    content: None,
                },
            },
            Command::SetRetention {
                session_id: session_id(),
                continue_in_background: true,
            },
            Command::SetToolEnabled {
                session_id: session_id(),
                tool: text(),
                enabled: true,
            },
            Command::WatchTree {
                root_session_id: None,
            },
            Command::ListAgents {
                working_directory: text(),
            },
            Command::HostStatus {},
            Command::CreateToken {
                name: None,
                scope: TokenScope::Read,
                session_id: None,
            },
            Command::ListTokens {},
            Command::RevokeToken { token: text() },
        ]
    }

    fn grant(scope: TokenScope, subtree: bool) -> Grant {
        let subtree = subtree.then(|| ID.parse().unwrap());
        Grant { scope, subtree }
    }

    /// How many of all commands are covered.
    fn covered(grant: Grant) -> usize {
        let commands = commands();
        let covered = commands
            .iter()
            .filter(|command| grant.covers(&demand(command)).is_ok());
        covered.count()
    }

    #[test]
    fn each_scope_has_what_those_before_it_have_and_its_own() {
        for (scope, subtree, count) in [
            (TokenScope::Read, false, 16),
            (TokenScope::Read, true, 16),
            (TokenScope::Write, false, 35),
            // No new root.
            (TokenScope::Write, true, 34),
            (TokenScope::Admin, false, 38),
            // None is made like that; it could make no token.
            (TokenScope::Admin, true, 34),
        ] {
            assert_eq!(covered(grant(scope, subtree)), count, "{scope:?} {subtree}");
        }
        assert_eq!(covered(Grant::OWNER), commands().len());
    }

    #[test]
    fn what_changes_a_session_needs_more_than_reading_and_names_the_session() {
        for command in commands() {
            let demand = demand(&command);
            if let Some(session) = command.changes() {
                assert_eq!(demand.scope, TokenScope::Write, "{command:?}");
                assert_eq!(demand.about, About::Session(session), "{command:?}");
            }
        }
    }

    #[test]
    fn every_session_that_a_command_names_is_looked_at() {
        for command in commands() {
            let written = serde_json::to_string(&command).unwrap();
            let named = written.matches(ID).count();
            let looked = demand(&command);
            let looked = looked.sessions().filter(|session| *session == ID).count();
            // A new one is below nothing, and is covered only where all may be seen.
            let new = usize::from(matches!(command, Command::CreateSession(_)));
            assert_eq!(looked + new, named, "{written}");
        }
    }

    #[test]
    fn a_refusal_says_which_scope_is_missing() {
        let refused = grant(TokenScope::Read, false).covers(&demand(&Command::ListTokens {}));
        let refused = refused.unwrap_err();
        assert_eq!(refused.code, ErrorCode::NotPermitted);
        assert!(refused.message.contains("scope admin"), "{refused:?}");
    }
}
