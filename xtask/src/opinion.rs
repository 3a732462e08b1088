//! `cargo xtask opinion`: the crate in `opinion/`, which is not of the workspace, held to its form and tested. What is
//! compared there is its own business.

use crate::failure::Failure;
use crate::{metadata, shell};

const MANIFEST: [&str; 2] = ["--manifest-path", "opinion/Cargo.toml"];

/// Runs the command.
pub(crate) fn run(args: &[String]) -> Result<(), Failure> {
    if let Some(arg) = args.first() {
        return Err(Failure::Usage {
            why: format!("`opinion` takes no arguments, and got `{arg}`"),
        });
    }
    println!(
        "opinion: the recorded replies are played to our decoders and to another library's, and what the two read \
         differently must be listed with its reason; the table of models must be what that library's catalogue says"
    );
    cargo(&["fmt"], &["--check"]).run()?;
    // Beside the workspace's build: it has other features, and would only be in its way.
    let target = metadata::target()?.join("opinion").display().to_string();
    cargo(&["test", "--quiet", "--locked"], &["--target-dir", &target]).run()
}

fn cargo(before: &[&str], behind: &[&str]) -> shell::Call {
    shell::cargo(&[before, &MANIFEST, behind].concat())
}
