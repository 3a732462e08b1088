//! The subcommands, one file each, and what several of them need.

mod agents;
mod budget;
mod chat;
mod completions;
mod control;
mod demo;
mod doctor;
mod events;
mod follow;
mod ledger;
mod list;
mod mcp;
mod restart;
mod run;
mod send;
mod serve;
mod show;
mod token;
mod wait;

pub(crate) use follow::GAP;

use std::io::Read;

use attache_client::protocol::{Answer, Command as Ask, NewSession};
use attache_client::{Client, ClientError};

use crate::cli::{Choice, Cli, Command};
use crate::clock;
use crate::fail::{Failure, USAGE};
use crate::find;
use crate::link::{self, Link};
use crate::output::Output;

/// Longest text that is sent to a session, in bytes: what fits into a frame beside its envelope.
const TEXT_LIMIT: usize = 1024 * 1024 - 16 * 1024;

/// Runs a command; the answer is its exit code.
pub(crate) async fn run(cli: Cli, output: &Output) -> Result<u8, Failure> {
    let without_data = match &cli.command {
        None | Some(Command::Chat(_)) => {
            Some("chat is for people; use run, send and events with --json")
        }
        Some(Command::Attach(_)) => Some("attach is for people; use events --follow with --json"),
        Some(Command::Serve { .. }) => Some("serve prints no data; leave --json out"),
        Some(Command::Mcp(_)) => Some("mcp speaks a protocol of its own; leave --json out"),
        Some(Command::Completions { .. }) => Some("completions are a script; leave --json out"),
        Some(_) => None,
    };
    if let (true, Some(why)) = (output.is_json(), without_data) {
        return Err(Failure::usage(why));
    }
    if link::choose(cli.elsewhere)?
        && let Some(name) = only_here(cli.command.as_ref())
    {
        return Err(Failure::usage(format!(
            "{name} is for the daemon of this machine; leave --host out, and the variable ATTACHE_HOST"
        )));
    }
    match cli.command {
        None => {
            chat::chat(
                crate::cli::Chat {
                    id: None,
                    choice: Choice::default(),
                },
                output,
            )
            .await
        }
        Some(Command::Demo { dir }) => demo::demo(dir, output).await,
        Some(Command::Run(run)) => run::run(run, output).await,
        Some(Command::Chat(chat)) => chat::chat(chat, output).await,
        Some(Command::Attach(attach)) => chat::attach(attach, output).await,
        Some(Command::Serve {
            store,
            profile,
            web,
            on_demand,
        }) => {
            let serving = link::Serving {
                storage: store,
                profile,
            };
            serve::serve(serving, web, on_demand, output).await
        }
        Some(Command::Token { command }) => token::token(command, output).await,
        Some(Command::Mcp(mcp)) => mcp::mcp(mcp).await,
        Some(Command::Restart { now }) => restart::restart(now, output).await,
        Some(Command::Ls { status, roots }) => list::ls(status, roots, output).await,
        Some(Command::Tree { id, all }) => list::tree(id.as_deref(), all, output).await,
        Some(Command::Show { id, ledger }) => show::show(&id, ledger, output).await,
        Some(Command::Send(send)) => send::send(send, output).await,
        Some(Command::Wait {
            id,
            itself,
            timeout,
        }) => wait::wait(&id, itself, timeout, output).await,
        Some(Command::Events(events)) => events::events(events, output).await,
        Some(Command::Start { id }) => control::start(&id, output).await,
        Some(Command::Compact { id }) => control::compact(&id, output).await,
        Some(Command::Background { id, switch }) => control::background(&id, switch, output).await,
        Some(Command::Budget { id, change }) => {
            budget::budget(&id, change.as_deref(), output).await
        }
        Some(Command::Pause { id }) => budget::pause(&id, true, output).await,
        Some(Command::Resume { id }) => budget::pause(&id, false, output).await,
        Some(Command::Interrupt { id, tree }) => control::interrupt(&id, tree, output).await,
        Some(Command::Terminate { id }) => control::terminate(&id, output).await,
        Some(Command::Rm { id, yes }) => control::rm(&id, yes, output).await,
        Some(Command::Agents) => agents::agents(output).await,
        Some(Command::Doctor { model, offline }) => doctor::doctor(model, offline, output).await,
        Some(Command::Completions { shell }) => completions::completions(shell, output),
    }
}

/// The name of a command that a host elsewhere has no part in.
fn only_here(command: Option<&Command>) -> Option<&'static str> {
    match command {
        Some(Command::Demo { .. }) => Some("demo"),
        Some(Command::Serve { .. }) => Some("serve"),
        Some(Command::Restart { .. }) => Some("restart"),
        Some(Command::Mcp(_)) => Some("mcp"),
        Some(Command::Doctor { .. }) => Some("doctor"),
        Some(Command::Run(run)) if run.in_process => Some("run --in-process"),
        _ => None,
    }
}

/// A text of the command line, or of standard input.
fn text_of(text: &str) -> Result<String, Failure> {
    let text = if text == "-" {
        let mut bytes = Vec::new();
        std::io::stdin()
            .lock()
            .take(TEXT_LIMIT as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(|fault| Failure::usage(format!("standard input cannot be read: {fault}")))?;
        if bytes.len() > TEXT_LIMIT {
            return Err(too_large(&format!("more than {TEXT_LIMIT} bytes")));
        }
        String::from_utf8(bytes)
            .map_err(|_fault| Failure::usage("standard input is not UTF-8 text"))?
    } else {
        text.to_owned()
    };
    // What is sent is the text as JSON, where some characters take six bytes.
    let sent = serde_json::Value::from(text.as_str()).to_string().len();
    if sent > TEXT_LIMIT {
        return Err(too_large(&format!("{sent} bytes as it is sent")));
    }
    if text.trim().is_empty() {
        return Err(Failure::usage("the text is empty"));
    }
    if text.contains('\0') {
        return Err(Failure::usage("the text holds the character NUL"));
    }
    Ok(text)
}

fn too_large(size: &str) -> Failure {
    let message = format!("the text has {size}; at most {TEXT_LIMIT} are taken");
    Failure::new(USAGE, "text-too-large", message)
        .with_hint("Put larger content into a file and name it.")
}

/// A model as the daemon finds it: a script's path is the caller's, not the daemon's.
fn from_here(model: &str, working_directory: &std::path::Path) -> String {
    match model.strip_prefix("scripted/") {
        Some(path) if !link::is_elsewhere() && working_directory.join(path).is_file() => {
            format!("scripted/{}", working_directory.join(path).display())
        }
        _ => model.to_owned(),
    }
}

/// A new root session as the command line asks for it.
fn new_session(
    choice: &Choice,
    first_message: Option<String>,
    detached: bool,
) -> Result<NewSession, Failure> {
    let working_directory = link::folder_for(choice.dir.as_deref())?;
    let model = choice.model.as_deref();
    let model = model.map(|model| from_here(model, &working_directory));
    Ok(NewSession {
        session_id: clock::id(),
        agent: choice.agent.clone(),
        model,
        parameters: choice.parameters.iter().cloned().collect(),
        working_directory: working_directory.display().to_string(),
        name: None,
        first_message,
        environment: link::environment(),
        detached,
        budget: choice.budget.clone(),
    })
}

/// Attaches to a session for looking only: leaving it ends nothing.
async fn look(client: &Client, session_id: &str) -> Result<(), ClientError> {
    match client.ask(Ask::look(session_id)).await? {
        Answer::Attached { .. } => Ok(()),
        _ => Err(ClientError::Unexpected),
    }
}

/// Leaves a session at once: nobody waits for this viewer to come back.
async fn detach(link: &mut Link, session_id: &str) -> Result<(), Failure> {
    let client = link.client.clone();
    let ask = Ask::Detach {
        session_id: session_id.to_owned(),
    };
    match link.beside(client.ask(ask)).await {
        // With the host gone there is nothing to leave.
        Ok(_) | Err(ClientError::Gone(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Asks for something that is answered by `done`.
async fn done(client: &Client, ask: Ask) -> Result<bool, Failure> {
    match client.ask(ask).await? {
        Answer::Done { changed } => Ok(changed),
        _ => Err(ClientError::Unexpected.into()),
    }
}

/// The daemon, and a session of it that a person named.
async fn session(id: &str) -> Result<(Link, attache_client::protocol::SessionView), Failure> {
    let link = Link::daemon().await?;
    let session = find::session(&link.client, id).await?;
    Ok((link, session))
}
