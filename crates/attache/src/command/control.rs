//! `start`, `compact`, `background`, `interrupt`, `terminate` and `rm`: what is done to one session from outside.

use std::io::{BufRead, IsTerminal};

use attache_client::protocol::{Command, Status};
use serde_json::json;

use super::{done, session};
use crate::cli::Switch;
use crate::fail::Failure;
use crate::link;
use crate::output::Output;
use crate::safe::in_line;
use crate::tree_view::short;

pub(crate) async fn start(id: &str, output: &Output) -> Result<u8, Failure> {
    let (link, session) = session(id).await?;
    let session_id = session.session_id.clone();
    let ask = Command::StartSession {
        session_id,
        environment: link::environment(),
    };
    let changed = done(&link.client, ask).await?;
    let what = if session.status == Status::Stopped {
        "started"
    } else {
        "was not stopped; it now has variables of yours that it lacked"
    };
    told(
        output,
        &session.session_id,
        what,
        changed,
        "was not stopped",
    );
    Ok(0)
}

pub(crate) async fn compact(id: &str, output: &Output) -> Result<u8, Failure> {
    let (link, session) = session(id).await?;
    let session_id = session.session_id.clone();
    let environment = link::environment();
    let ask = Command::Compact {
        session_id,
        environment,
    };
    let changed = done(&link.client, ask).await?;
    told(
        output,
        &session.session_id,
        "was cut for its model; the history is all there",
        changed,
        "was not cut",
    );
    Ok(0)
}

pub(crate) async fn interrupt(id: &str, tree: bool, output: &Output) -> Result<u8, Failure> {
    let (link, session) = session(id).await?;
    let session_id = session.session_id.clone();
    let changed = done(&link.client, Command::Interrupt { session_id, tree }).await?;
    told(
        output,
        &session.session_id,
        "interrupted",
        changed,
        "was not running",
    );
    Ok(0)
}

pub(crate) async fn terminate(id: &str, output: &Output) -> Result<u8, Failure> {
    let (link, session) = session(id).await?;
    let session_id = session.session_id.clone();
    let changed = done(&link.client, Command::Terminate { session_id }).await?;
    told(
        output,
        &session.session_id,
        "terminated",
        changed,
        "was stopped already",
    );
    Ok(0)
}

pub(crate) async fn background(id: &str, switch: Switch, output: &Output) -> Result<u8, Failure> {
    let (link, session) = session(id).await?;
    let ask = Command::SetRetention {
        session_id: session.session_id.clone(),
        continue_in_background: switch == Switch::On,
    };
    let changed = done(&link.client, ask).await?;
    let (now, was) = match switch {
        Switch::On => (
            "goes on when nobody looks at it",
            "went on without viewers already",
        ),
        Switch::Off => (
            "ends when its last viewer has left",
            "ended with its last viewer already",
        ),
    };
    told(output, &session.session_id, now, changed, was);
    Ok(0)
}

pub(crate) async fn rm(id: &str, yes: bool, output: &Output) -> Result<u8, Failure> {
    let (link, session) = session(id).await?;
    if !yes {
        if !std::io::stdin().is_terminal() {
            return Err(Failure::usage(
                "deleting a session needs --yes where nobody can be asked",
            ));
        }
        let name = in_line(&session.name);
        output.note(&format!(
            "Delete session {} ({name}) with its history? [y/N]",
            session.session_id
        ));
        let mut answer = String::new();
        std::io::stdin()
            .lock()
            .read_line(&mut answer)
            .map_err(|fault| Failure::usage(format!("no answer: {fault}")))?;
        if !matches!(answer.trim(), "y" | "Y" | "yes") {
            return Err(Failure::usage("nothing was deleted"));
        }
    }
    let session_id = session.session_id.clone();
    done(&link.client, Command::Delete { session_id }).await?;
    told(output, &session.session_id, "deleted", true, "");
    Ok(0)
}

pub(crate) fn told(output: &Output, id: &str, what: &str, changed: bool, otherwise: &str) {
    let value = json!({ "session_id": id, "ok": true, "changed": changed });
    output.data(&value, || {
        let what = if changed { what } else { otherwise };
        format!("{} {what}\n", short(id))
    });
}
