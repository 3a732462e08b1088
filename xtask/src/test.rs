//! `cargo xtask test`: every test of the workspace, in one command. It brings the runner and the few system programs
//! that tests call, then runs unit and integration tests, the walks of clients in other languages, and the examples in
//! the documentation.
//!
//! The runner's closing line stays the last thing that a test program printed: the output of the documentation examples
//! is shown only when one of them fails.

use crate::attach;
use crate::failure::Failure;
use crate::mcp;
use crate::metadata;
use crate::shell::{self, cargo, program};

/// Programs that tests start, the Debian package that brings each, and what for.
const SYSTEM_PROGRAMS: &[(&str, &str, &str)] = &[
    (
        "strace",
        "strace",
        "one walk checks that each acknowledgement follows a sync of the log",
    ),
    (
        "python3",
        "python3-venv",
        "a viewer is written in it, and the official Python SDK delegates over the MCP door",
    ),
    (
        "npm",
        "npm",
        "the official TypeScript SDK delegates over the MCP door",
    ),
];

/// Features that only tests switch on: the suite that every store passes, and the points at which a process kills itself.
pub(crate) const TEST_FEATURES: &str =
    "attache/fault,attache-store/conformance,attache-store/fault";

/// Runs the command; `args` go to the runner.
pub(crate) fn run(args: &[String]) -> Result<(), Failure> {
    println!(
        "test: unit and integration tests by cargo-nextest, clients in other languages, then the examples in the docs"
    );
    bring_runner()?;
    bring_system_programs();
    runner(args).run()?;
    if args.is_empty() {
        mcp::clients(&[])?;
        attach::clients(&[])?;
        doc_examples()
    } else {
        println!("test: other clients and the examples in the docs run only without arguments");
        Ok(())
    }
}

fn runner(args: &[String]) -> shell::Call {
    let mut call = vec!["nextest", "run", "--cargo-profile", "ci"];
    if !names_packages(args) {
        call.extend(["--workspace", "--features", TEST_FEATURES]);
    }
    call.extend(args.iter().map(String::as_str));
    cargo(&call)
}

/// Whether the arguments choose packages; `--workspace` would silently win over them.
fn names_packages(args: &[String]) -> bool {
    args.iter()
        .take_while(|arg| *arg != "--")
        .any(|arg| arg == "--package" || arg.starts_with("--package=") || arg.starts_with("-p"))
}

fn bring_runner() -> Result<(), Failure> {
    let there = cargo(&["nextest", "--version"])
        .capture()
        .is_ok_and(|output| output.status.success());
    if there {
        return Ok(());
    }
    println!("test: cargo-nextest is missing, installing it");
    cargo(&["install", "cargo-nextest", "--locked"]).run()
}

/// Installs what is missing when we may, and otherwise says how to; a test that needs it then fails and names it.
fn bring_system_programs() {
    for (name, package, why) in SYSTEM_PROGRAMS {
        if shell::on_path(name) {
            continue;
        }
        if shell::on_path("apt-get") && shell::is_root() && install(package).is_ok() {
            continue;
        }
        println!("test: `{name}` is missing ({why}); install it: apt-get install {package}");
    }
}

fn install(package: &str) -> Result<(), Failure> {
    let install = || {
        program(
            "apt-get",
            &["install", "--yes", "--no-install-recommends", package],
        )
        .env("DEBIAN_FRONTEND", "noninteractive")
        .run()
    };
    // A fresh machine has no package lists, so the first try may fail for that reason alone.
    install().or_else(|_| {
        program("apt-get", &["update"]).run()?;
        install()
    })
}

/// Compiles and runs the examples of each package that has a library; a program without one has no such examples.
fn doc_examples() -> Result<(), Failure> {
    let libraries: Vec<String> = metadata::packages()?
        .into_iter()
        .filter(|package| package.has_library)
        .map(|package| package.name)
        .collect();
    if libraries.is_empty() {
        return Ok(());
    }
    let mut call = vec!["test", "--quiet", "--doc", "--profile", "ci"];
    for name in &libraries {
        call.extend(["--package", name]);
    }
    let output = cargo(&call).capture()?;
    if output.status.success() {
        println!(
            "test: examples in the docs of {} libraries hold",
            libraries.len()
        );
        return Ok(());
    }
    print!("{}", String::from_utf8_lossy(&output.stdout));
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    Err(Failure::Exit {
        program: "cargo test --doc".to_owned(),
        code: output.status.code(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_packages_are_seen() {
        let args = |list: &[&str]| list.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>();
        assert!(names_packages(&args(&["-p", "attache-session"])));
        assert!(names_packages(&args(&["-pattache-session"])));
        assert!(names_packages(&args(&["--package=attache-session"])));
        assert!(!names_packages(&args(&["wait_"])));
        assert!(!names_packages(&args(&["--", "-p"])));
    }
}
