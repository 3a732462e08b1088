//! Starting programs and taking the time: the only file here that touches processes and the clock. It starts what it is
//! told and reports how it ended; it does not decide what to run.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::failure::Failure;

/// The directory that holds the workspace manifest.
///
/// Read when the program runs, not when it is built: a build folder may be shared by several checkouts.
pub(crate) fn root() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR")
        .map(PathBuf::from)
        .and_then(|own| own.parent().map(PathBuf::from))
        .unwrap_or_else(|| PathBuf::from("."))
}

/// A call of the same cargo that started this program.
pub(crate) fn cargo(args: &[&str]) -> Call {
    let program = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    Call::new(&program, "cargo", args)
}

/// A call of another program, found on the PATH.
pub(crate) fn program(name: &str, args: &[&str]) -> Call {
    Call::new(name, name, args)
}

/// One program with its arguments, not yet started.
pub(crate) struct Call {
    command: Command,
    shown: String,
}

impl Call {
    fn new(program: &str, name: &str, args: &[&str]) -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "the automation starts compilers and test runners; nothing of a session runs here"
        )]
        let mut command = Command::new(program);
        command.args(args).current_dir(root());
        let shown = std::iter::once(name)
            .chain(args.iter().copied())
            .collect::<Vec<_>>()
            .join(" ");
        Self { command, shown }
    }

    /// Adds one environment variable.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs in another folder.
    pub(crate) fn within(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Starts it, and gives it with its first line of output; it is ended when that is dropped.
    pub(crate) fn start(mut self) -> Result<(Running, String), Failure> {
        println!("$ {} &", self.shown);
        let start = |source| Failure::Start {
            program: self.shown.clone(),
            source,
        };
        let child = self.command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut running = Running(child.spawn().map_err(start)?);
        let mut line = String::new();
        if let Some(out) = running.0.stdout.take() {
            BufReader::new(out).read_line(&mut line).map_err(start)?;
        }
        Ok((running, line.trim().to_owned()))
    }

    /// Says what it runs, lets the output through, and fails when the program does.
    pub(crate) fn run(mut self) -> Result<(), Failure> {
        println!("$ {}", self.shown);
        match self.command.status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(Failure::Exit {
                program: self.shown,
                code: status.code(),
            }),
            Err(source) => Err(Failure::Start {
                program: self.shown,
                source,
            }),
        }
    }

    /// Runs quietly and gives back what the program wrote, whether or not it succeeded.
    pub(crate) fn capture(mut self) -> Result<Output, Failure> {
        self.command
            .stdin(Stdio::null())
            .output()
            .map_err(|source| Failure::Start {
                program: self.shown,
                source,
            })
    }

    /// Runs quietly and gives back standard output; a failure shows standard error first.
    pub(crate) fn read(self) -> Result<String, Failure> {
        let shown = self.shown.clone();
        let output = self.capture()?;
        if !output.status.success() {
            eprint!("{}", String::from_utf8_lossy(&output.stderr));
            return Err(Failure::Exit {
                program: shown,
                code: output.status.code(),
            });
        }
        String::from_utf8(output.stdout).map_err(|bad| Failure::Answer {
            program: shown,
            why: bad.to_string(),
        })
    }
}

/// A program that runs beside us.
pub(crate) struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// Whether a program of this name lies in a folder of the PATH.
pub(crate) fn on_path(name: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(name).is_file()))
}

/// Whether we may install system packages.
pub(crate) fn is_root() -> bool {
    program("id", &["-u"])
        .read()
        .is_ok_and(|uid| uid.trim() == "0")
}

/// A running measurement of elapsed time.
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    pub(crate) fn start() -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "the time that a build step took is shown to a person and decides nothing"
        )]
        Self(Instant::now())
    }

    /// The time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
