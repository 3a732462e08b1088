//! `attache show`: one session in full: its row, what waits for it, and its newest history.

use std::fmt::Display;

use attache_client::protocol::{Answer, Command, ReceiptView};
use attache_client::{Client, ClientError, Mirror};
use serde_json::Value;

use super::events::line;
use super::{budget, detach, ledger, look, session};
use crate::fail::Failure;
use crate::output::Output;
use crate::safe::in_line;
use crate::shape::{self, Total};

pub(crate) async fn show(id: &str, with_ledger: bool, output: &Output) -> Result<u8, Failure> {
    let (mut link, found) = session(id).await?;
    look(&link.client, &found.session_id).await?;
    let mut mirror = Mirror::default();
    while mirror.session.is_none() {
        match link.next().await {
            Some(frame) => drop(mirror.apply(frame)),
            None => {
                let why = "the stream ended before it began".to_owned();
                return Err(ClientError::Gone(why).into());
            }
        }
    }
    detach(&mut link, &found.session_id).await?;
    let session = mirror.session.as_ref().unwrap_or(&found);
    let mut value = shape::session(session);
    value["continue_in_background"] = session.continue_in_background.into();
    value["root_session_id"] = session.root_session_id.clone().into();
    value["ownership_generation"] = session.generation.into();
    value["waiting_for"] = session.waiting_for.clone().into();
    value["unread"] = session.unread.into();
    value["result_is_earlier"] = session.result_is_earlier.into();
    value["side_effects"] = session.side_effects.clone().into();
    let rows = link.client.sessions(Some(&session.session_id)).await?;
    let total = Total::of_tree(&rows);
    total.put(&mut value);
    let (limits, paused) = budget::of(&link.client, &session.session_id).await?;
    value["limits"] = budget::shape(&limits);
    value["paused"] = paused.into();
    let receipts = receipts(&link.client, &session.session_id).await?;
    value["receipts"] = receipts.iter().map(shape::receipt).collect();
    let calls = if with_ledger {
        let calls = ledger::of(&link.client, &session.session_id).await?;
        value["ledger"] = ledger::shape(calls.as_ref());
        Some(calls)
    } else {
        None
    };
    value["queues"] = Value::Array(mirror.queues.iter().map(shape::queue).collect());
    value["events"] = Value::Array(mirror.items.iter().map(shape::item).collect());
    output.data(&value, || {
        let mut text = String::new();
        if let Value::Object(members) = &value {
            for (name, member) in members {
                if matches!(
                    name.as_str(),
                    "events" | "queues" | "usage" | "tree_usage" | "limits" | "receipts" | "ledger"
                ) {
                    continue;
                }
                let shown = match member {
                    Value::String(text) => in_line(text).into_owned(),
                    Value::Null => "-".to_owned(),
                    other => other.to_string(),
                };
                text.push_str(&row(name, &shown));
            }
        }
        text.push_str(&row("usage", &value["usage"]));
        if let Some(total) = total.shown() {
            text.push_str(&row("with its sub-agents", &total));
        }
        for limit in &limits {
            text.push_str(&row("limit", &budget::line(limit)));
        }
        for queue in mirror.queues.iter().filter(|queue| !queue.items.is_empty()) {
            for item in &queue.items {
                text.push_str(&row(&format!("waits in {}", queue.name), &item.text));
            }
        }
        for receipt in receipts
            .iter()
            .filter(|receipt| receipt.state != "consumed")
        {
            let reason = receipt
                .reason
                .as_deref()
                .map(|reason| format!(" ({reason})"));
            let state = format!("{}{}", receipt.state, reason.unwrap_or_default());
            let preview = in_line(&receipt.preview);
            text.push_str(&row("input", &format_args!("{preview}  {state}")));
        }
        if let Some(calls) = &calls {
            text.push_str(&ledger::lines(calls.as_ref()));
        }
        text.push('\n');
        text.extend(mirror.items.iter().map(line));
        text
    });
    Ok(0)
}

/// A line with a name and what belongs to it, which begins in the same column where the name leaves room.
fn row(name: &str, shown: &dyn Display) -> String {
    format!("{name:<23} {shown}\n")
}

/// Where the newest input of a session has got to.
async fn receipts(client: &Client, id: &str) -> Result<Vec<ReceiptView>, Failure> {
    let session_id = id.to_owned();
    match client.ask(Command::GetReceipts { session_id }).await? {
        Answer::Receipts { receipts } => Ok(receipts),
        _ => Err(ClientError::Unexpected.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::row;

    #[test]
    fn no_name_runs_into_what_belongs_to_it() {
        for (name, line) in [
            ("agent", "agent                   demo\n"),
            ("continue_in_background", "continue_in_background  demo\n"),
            (
                "waits in a queue with a long name",
                "waits in a queue with a long name demo\n",
            ),
        ] {
            assert_eq!(row(name, &"demo"), line);
        }
    }
}
