//! `attache agents`: the definitions that can be named, and those that do not load.

use attache_client::ClientError;
use attache_client::protocol::{Answer, Command};
use serde_json::Value;

use crate::fail::Failure;
use crate::link::{self, Link};
use crate::output::Output;
use crate::safe::in_line;
use crate::shape;

pub(crate) async fn agents(output: &Output) -> Result<u8, Failure> {
    let link = Link::daemon().await?;
    // Of a host elsewhere those of no project are listed.
    let folder = match link::is_elsewhere() {
        true => "/".to_owned(),
        false => link::working_directory()?.display().to_string(),
    };
    let answer = link
        .client
        .ask(Command::ListAgents {
            working_directory: folder,
        })
        .await?;
    let Answer::Agents { agents } = answer else {
        return Err(ClientError::Unexpected.into());
    };
    let value = Value::Array(agents.iter().map(shape::agent).collect());
    output.data(&value, || {
        let width = agents
            .iter()
            .map(|agent| agent.name.chars().count())
            .max()
            .unwrap_or(0);
        agents
            .iter()
            .map(|agent| match &agent.error {
                None => format!(
                    "{:width$}  {}  ({})\n",
                    agent.name,
                    in_line(&agent.description),
                    in_line(&agent.source)
                ),
                Some(error) => format!("{:width$}  does not load: {error}\n", agent.name),
            })
            .collect()
    });
    Ok(0)
}
