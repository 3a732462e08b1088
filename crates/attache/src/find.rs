//! Which session a person means: a full id, or at least 6 characters of its end. What names none, or
//! more than one, is answered with what it may have meant.

use attache_client::protocol::{Answer, Command, SessionView};
use attache_client::{Client, ClientError};

use crate::fail::{Failure, NOT_FOUND};
use crate::safe::in_line;

/// Most candidates that are listed.
const MOST: usize = 5;

/// So many characters at the end of an id are rarely shared by chance.
const SHARED: usize = 4;

/// The session of an id or of an id's end.
pub(crate) async fn session(client: &Client, text: &str) -> Result<SessionView, Failure> {
    let resolve = Command::Resolve {
        text: text.to_owned(),
    };
    match client.ask(resolve).await {
        Ok(Answer::Sessions { mut sessions, more }) => match sessions.pop() {
            Some(only) if sessions.is_empty() && !more => Ok(only),
            last => {
                sessions.extend(last);
                let message = format!(
                    "{text:?} is the end of several session ids:\n{}",
                    listed(sessions.iter(), more)
                );
                let failure = Failure::new(NOT_FOUND, "unknown-session", message);
                Err(failure.with_hint("Type more characters."))
            }
        },
        Ok(_) => Err(ClientError::Unexpected.into()),
        Err(ClientError::Refused(refused)) if refused.code == "unknown-session" => {
            let rows = client.sessions(None).await?;
            let near = near(text, &rows);
            let mut failure = Failure::from(*refused);
            if !near.is_empty() {
                let listed = listed(near.iter().copied().take(MOST), near.len() > MOST);
                failure.message = format!("{}; near it:\n{listed}", failure.message);
            }
            Err(failure)
        }
        Err(error) => Err(error.into()),
    }
}

/// Sessions that somebody may have meant, newest first: those of that name, those whose id begins or
/// ends so; without any, those whose id ends in the same few characters.
fn near<'a>(text: &str, rows: &'a [SessionView]) -> Vec<&'a SessionView> {
    let text = text.trim().to_lowercase();
    if text.is_empty() {
        return Vec::new();
    }
    let newest = || rows.iter().rev();
    let so = |row: &&SessionView| {
        let id = &row.session_id;
        row.name.to_lowercase() == text || id.ends_with(&text) || id.starts_with(&text)
    };
    let exact: Vec<_> = newest().filter(so).collect();
    if !exact.is_empty() {
        return exact;
    }
    let alike = |row: &&SessionView| {
        let ends = text.bytes().rev().zip(row.session_id.bytes().rev());
        ends.take_while(|(typed, real)| typed == real).count() >= SHARED
    };
    newest().filter(alike).collect()
}

fn listed<'a>(sessions: impl Iterator<Item = &'a SessionView>, more: bool) -> String {
    let mut lines: Vec<String> = sessions
        .map(|session| format!("  {}  {}", session.session_id, in_line(&session.name)))
        .collect();
    if more {
        lines.push("  and more".to_owned());
    }
    lines.join("\n")
}
