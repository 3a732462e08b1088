//! A house of one's own for each test: state folder, settings, working folder, and the binary in it.
//! Whatever daemon was started there ends with it.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// See the module.
pub(crate) struct House {
    folder: TempDir,
    variables: Vec<(String, String)>,
}

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    /// The one JSON document that was printed.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|fault| panic!("{fault}: {self:?}"))
    }

    /// The objects that were printed, one a line.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|f| panic!("{f}: {line}")))
            .collect()
    }

    /// The same, which must have ended well.
    pub(crate) fn well(self) -> Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }
}

impl House {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["state", "config", "work"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self {
            folder,
            variables: Vec::new(),
        }
    }

    /// The same with a variable for every command.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The state folder.
    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// The working folder.
    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// The user's settings folder.
    pub(crate) fn config(&self) -> PathBuf {
        self.folder.path().join("config/attache")
    }

    /// Puts a file into the working folder.
    pub(crate) fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.work().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// A command in this house, not yet started.
    pub(crate) fn command(&self, arguments: &[impl AsRef<OsStr>]) -> Command {
        self.command_of(Path::new(env!("CARGO_BIN_EXE_attache")), arguments)
    }

    /// The same with a copy of the program.
    #[expect(
        clippy::disallowed_methods,
        reason = "these tests walk the true binary"
    )]
    pub(crate) fn command_of(&self, program: &Path, arguments: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.work())
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.folder.path())
            .env("XDG_CONFIG_HOME", self.folder.path().join("config"))
            .env("ATTACHE_HOME", self.state())
            .env("USER", "ada")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, arguments: &[impl AsRef<OsStr>]) -> Ended {
        ended(self.command(arguments).output().unwrap())
    }

    /// The same with something on standard input.
    pub(crate) fn run_with(&self, arguments: &[&str], input: &[u8]) -> Ended {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A command that refuses its arguments reads no input.
        let _written = stdin.write_all(input);
        drop(stdin);
        ended(child.wait_with_output().unwrap())
    }

    /// Starts a command.
    pub(crate) fn spawn(&self, arguments: &[&str]) -> Child {
        self.command(arguments).spawn().unwrap()
    }

    /// The process of the daemon that runs, if one does.
    pub(crate) fn daemon(&self) -> Option<u32> {
        let report = self.run(&["doctor", "--json"]).json();
        let checks = report["checks"].as_array().unwrap();
        let daemon = checks
            .iter()
            .find(|check| check["name"] == "daemon")
            .unwrap();
        let detail = daemon["detail"].as_str().unwrap();
        detail
            .split("process ")
            .nth(1)?
            .split(',')
            .next()?
            .parse()
            .ok()
    }

    /// Kills the daemon as a crash would.
    pub(crate) fn crash(&self) {
        if let Some(process) = self.daemon() {
            signal(process, "KILL");
            until("the daemon is gone", || gone(process));
        }
    }

    /// Rows of all sessions.
    pub(crate) fn ls(&self) -> Vec<Value> {
        self.run(&["ls", "--json"])
            .well()
            .json()
            .as_array()
            .unwrap()
            .clone()
    }
}

impl Drop for House {
    fn drop(&mut self) {
        // The lock file names the process that holds the state folder.
        let holder = std::fs::read_to_string(self.state().join("daemon.lock")).unwrap_or_default();
        if let Ok(process) = holder.trim().parse::<u32>() {
            let of_ours = std::fs::read_to_string(format!("/proc/{process}/cmdline"))
                .is_ok_and(|line| line.contains("attache"));
            if of_ours {
                signal(process, "KILL");
            }
        }
    }
}

pub(crate) fn ended(output: Output) -> Ended {
    Ended {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Sends a signal to a process.
#[expect(
    clippy::disallowed_methods,
    reason = "these tests end processes as people do"
)]
pub(crate) fn signal(process: u32, name: &str) {
    // A process that has gone by itself needs no signal.
    let _sent = Command::new("kill")
        .args([&format!("-{name}"), &process.to_string()])
        .stderr(Stdio::null())
        .status();
}

/// Whether a process has ended.
pub(crate) fn gone(process: u32) -> bool {
    let path = format!("/proc/{process}/stat");
    // A process that has ended and was not waited for is a zombie of its parent.
    std::fs::read_to_string(path).map_or(true, |stat| stat.contains(") Z "))
}

/// Waits until something holds that another process brings about.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..2_000 {
        if holds() {
            return;
        }
        // Another process has to get on; there is nothing in this one to wait for.
        std::thread::park_timeout(std::time::Duration::from_millis(10));
    }
    panic!("waited for 20 s and more: {what}");
}
