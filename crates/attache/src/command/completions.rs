//! `attache completions`: the completion script of a shell.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::fail::Failure;
use crate::output::Output;

pub(crate) fn completions(shell: Shell, output: &Output) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "attache", &mut script);
    let script = String::from_utf8(script)
        .map_err(|fault| Failure::internal(format!("the script is not text: {fault}")))?;
    output.text(&script);
    Ok(0)
}
