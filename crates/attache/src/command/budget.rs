//! `budget`, `pause` and `resume`: what a session's tree may use, and whether it may grow.

use attache_client::Client;
use attache_client::protocol::{Answer, Command, LimitView};
use serde_json::{Value, json};

use super::control::told;
use super::{done, session};
use crate::fail::Failure;
use crate::output::Output;
use crate::tree_view::short;

pub(crate) async fn budget(id: &str, change: Option<&str>, output: &Output) -> Result<u8, Failure> {
    let (link, session) = session(id).await?;
    let session_id = session.session_id;
    if let Some(change) = change {
        let ask = Command::SetBudget {
            session_id: session_id.clone(),
            budget: change.to_owned(),
            paused: None,
        };
        done(&link.client, ask).await?;
    }
    let (limits, paused) = of(&link.client, &session_id).await?;
    let value = json!({ "session_id": session_id, "limits": shape(&limits), "paused": paused });
    output.data(&value, || {
        let mut text = short(&session_id).to_string();
        text.push_str(if paused { " (paused)\n" } else { "\n" });
        if limits.is_empty() {
            text.push_str("  no limits\n");
        }
        for limit in &limits {
            text.push_str(&format!("  {}\n", line(limit)));
        }
        text
    });
    Ok(0)
}

pub(crate) async fn pause(id: &str, paused: bool, output: &Output) -> Result<u8, Failure> {
    let (link, session) = session(id).await?;
    let ask = Command::SetBudget {
        session_id: session.session_id.clone(),
        budget: String::new(),
        paused: Some(paused),
    };
    let changed = done(&link.client, ask).await?;
    let (what, otherwise) = if paused {
        (
            "is paused: no sub-agent is created in its tree",
            "was paused already",
        )
    } else {
        ("may create sub-agents again", "was not paused")
    };
    told(output, &session.session_id, what, changed, otherwise);
    Ok(0)
}

/// The limits that stand at a session, and whether its tree is paused.
pub(crate) async fn of(client: &Client, id: &str) -> Result<(Vec<LimitView>, bool), Failure> {
    let session_id = id.to_owned();
    match client.ask(Command::GetBudget { session_id }).await? {
        Answer::Budget { limits, paused } => Ok((limits, paused)),
        _ => Err(Failure::internal("an answer of another kind")),
    }
}

/// Limits as JSON: money in dollars, time in seconds; what is not counted is null.
pub(crate) fn shape(limits: &[LimitView]) -> Value {
    let one = |it: &LimitView| json!({ "limit": it.limit, "used": it.used, "most": it.most });
    limits.iter().map(one).collect()
}

/// A limit for people.
pub(crate) fn line(limit: &LimitView) -> String {
    let LimitView { limit, used, most } = limit;
    let shown = |amount: &f64| match limit.as_str() {
        "usd" => format!("${amount:.2}"),
        "wall" => format!("{amount:.0} s"),
        _ => format!("{amount:.0}"),
    };
    match used {
        Some(used) => format!("{limit:<12} {} of {}", shown(used), shown(most)),
        None => format!("{limit:<12} {}", shown(most)),
    }
}
