//! `attache ls` and `attache tree`: sessions as a table, and as trees.

use std::collections::HashSet;

use attache_client::protocol::{SessionView, Status};
use serde_json::Value;

use crate::cli::StatusName;
use crate::fail::Failure;
use crate::find;
use crate::link::Link;
use crate::output::Output;
use crate::safe::in_line;
use crate::shape::{self, Money, Total};
use crate::tree_view;

pub(crate) async fn ls(
    status: Option<StatusName>,
    roots: bool,
    output: &Output,
) -> Result<u8, Failure> {
    let link = Link::daemon().await?;
    let mut sessions = link.client.sessions(None).await?;
    let totals = shape::totals(&sessions);
    if roots {
        // One whose parents are all gone stands by itself, as in the tree.
        let there: HashSet<String> = sessions.iter().map(|it| it.session_id.clone()).collect();
        let has_parent = |session: &SessionView| {
            let mut parents = session.parent_session_ids.iter();
            parents.any(|parent| there.contains(parent))
        };
        sessions.retain(|session| !has_parent(session));
    }
    sessions
        .retain(|session| status.is_none_or(|status| status.as_str() == session.status.as_str()));
    let shown = |session: &SessionView| {
        let mut value = shape::session(session);
        if let Some(total) = totals.get(&session.session_id) {
            total.put(&mut value);
        }
        value
    };
    let value = Value::Array(sessions.iter().map(shown).collect());
    output.data(&value, || {
        sessions
            .iter()
            .map(|session| row(session, totals.get(&session.session_id), output))
            .collect()
    });
    Ok(0)
}

fn row(session: &SessionView, total: Option<&Total>, output: &Output) -> String {
    let id = tree_view::short(&session.session_id);
    let status = tree_view::status(session, output.has_colours());
    let outcome = session.outcome.as_deref().unwrap_or("-");
    let unread = match session.unread {
        0 => String::new(),
        count => format!("  {count} unread"),
    };
    // What runs says what it waits for in the tree.
    let fault = session
        .note
        .as_deref()
        .filter(|_| session.status != Status::Running);
    let fault = fault.map_or(String::new(), |note| format!("  {}", in_line(note)));
    let whole = total.and_then(|total| total.money.shown());
    let money = match (Money::of(session).shown(), whole) {
        (None, None) => String::new(),
        (Some(own), None) => format!("  {own}"),
        (own, Some(whole)) => {
            let own = own.unwrap_or_else(|| "?".to_owned());
            format!("  {own} (tree {whole})")
        }
    };
    format!(
        "{id}  {status}  {outcome:<11}  {}  {}  {}{money}{unread}{fault}\n",
        session.created_at.get(..19).unwrap_or(&session.created_at),
        in_line(&session.model),
        in_line(&session.name)
    )
}

pub(crate) async fn tree(id: Option<&str>, all: bool, output: &Output) -> Result<u8, Failure> {
    let link = Link::daemon().await?;
    let root = match id {
        Some(id) => Some(find::session(&link.client, id).await?.session_id),
        None => None,
    };
    let rows = link.client.sessions(root.as_deref()).await?;
    if output.is_json() {
        let mut trees = shape::trees(&rows);
        output.value(&match root {
            Some(_) => trees.pop().unwrap_or(Value::Null),
            None => Value::Array(trees),
        });
    } else {
        let lines = tree_view::lines(&rows, output.has_colours(), all);
        output.text(
            &lines
                .iter()
                .map(|line| format!("{line}\n"))
                .collect::<String>(),
        );
    }
    Ok(0)
}
