//! The command line: subcommands over the client library, and `serve`, which starts a host.
//! What a session does is not decided here, and nothing is stored from here.

mod cli;
mod clock;
mod command;
mod fail;
mod find;
mod interrupts;
mod link;
mod mcp;
mod modals;
mod notify;
mod output;
mod places;
mod safe;
mod shape;
mod talk;
mod tree_fold;
mod tree_view;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::Cli;
use crate::output::Output;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are answers; everything else is a usage error. Where standard
            // output is closed there is nobody left to tell.
            let _printed = error.print();
            return ExitCode::from(if error.use_stderr() { fail::USAGE } else { 0 });
        }
    };
    let output = Output::new(cli.json());
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(fault) => {
            return output.failure(&fail::Failure::internal(format!("no runtime: {fault}")));
        }
    };
    let done = runtime.block_on(command::run(cli, &output));
    let done = done.and_then(|code| output.finish().map(|()| code));
    let code = match done {
        Ok(code) => ExitCode::from(code),
        Err(failure) => output.failure(&failure),
    };
    // A read of standard input may still block a thread of the runtime.
    runtime.shutdown_background();
    code
}
