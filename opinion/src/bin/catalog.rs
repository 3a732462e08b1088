//! Writes the table of models from the other library's catalogue. What is in it is decided in the library beside this.

use std::process::ExitCode;

#[expect(
    clippy::print_stderr,
    reason = "a command for developers talks to its terminal"
)]
fn main() -> ExitCode {
    let path = attache_opinion::path();
    match std::fs::write(&path, attache_opinion::table()) {
        Ok(()) => {
            eprintln!("catalog: {} is written", path.display());
            ExitCode::SUCCESS
        }
        Err(fault) => {
            eprintln!("catalog: {} cannot be written: {fault}", path.display());
            ExitCode::FAILURE
        }
    }
}
