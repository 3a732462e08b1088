//! The project's own automation, run as `cargo xtask COMMAND`. It holds the repository to its rules and runs its tests;
//! it depends on nothing of ours, so that it builds in seconds and judges the other crates from outside.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line program for developers talks to its terminal"
)]

mod attach;
mod bench;
mod ci;
mod failure;
mod foreign;
mod mcp;
mod metadata;
mod opinion;
mod shell;
mod soak;
mod test;
mod tidy;

use std::process::ExitCode;

use failure::Failure;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  tidy [RULE ...]      hold the repository to its written rules; without a name, all of them
  test [ARGS ...]      run every test; the arguments go to cargo-nextest
  attach-clients       the attach protocol with a viewer in Python, two of ours, a pulled connection and a killed daemon
  mcp-clients          the MCP door with the official SDKs of Python and TypeScript
  mcp-agents           the MCP door driven by Copilot CLI and Codex, with a model that is a stub
  mcp-conformance      the MCP door against the official conformance suite
  opinion              another library's reading of the recorded replies, and its catalogue, against ours
  bench [TARGET ...]   figures against the goals of docs/performance.md; `--list` names the targets
  soak [engine|attach] [--seeds N] [--from N] [--minutes M]
                       a simulation over many seeds, with how often each fault and race occurred: the engine's, or that of
                       both ends of the attach protocol
  ci                   everything that a change has to pass, cheap steps first
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((command, rest)) = args.split_first() else {
        eprint!("{USAGE}");
        return ExitCode::from(2);
    };
    let done = match command.as_str() {
        "tidy" => tidy::run(rest),
        "test" => test::run(rest),
        "attach-clients" => attach::clients(rest),
        "mcp-clients" => mcp::clients(rest),
        "mcp-agents" => mcp::agents(rest),
        "mcp-conformance" => mcp::conformance(rest),
        "opinion" => opinion::run(rest),
        "bench" => bench::run(rest),
        "soak" => soak::run(rest),
        "ci" => ci::run(rest),
        "help" | "--help" | "-h" => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        other => Err(Failure::Usage {
            why: format!("no command `{other}`"),
        }),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            if let Failure::Usage { .. } = failure {
                eprint!("\n{USAGE}");
                return ExitCode::from(2);
            }
            ExitCode::FAILURE
        }
    }
}
