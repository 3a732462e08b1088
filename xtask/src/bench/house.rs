//! A folder with state, settings and working folder of its own, and the program in it: runs to their end, and daemons.
//! It knows how to start and stop; what is measured is others' business.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use super::process::{self, Memory};
use crate::failure::Failure;
use crate::metadata;
use crate::shell::Stopwatch;

/// How often a process is looked at while it runs; its peak is kept by the kernel, so that only the last look counts.
const LOOK: Duration = Duration::from_millis(2);

/// How long a daemon may take to serve.
const PATIENCE: Duration = Duration::from_secs(60);

/// The release build.
pub(super) struct Program {
    binary: PathBuf,
    folder: PathBuf,
}

impl Program {
    /// Where cargo puts it.
    pub(super) fn find() -> Result<Self, Failure> {
        let target = metadata::target()?;
        Ok(Self {
            binary: target.join("release/attache"),
            // Beside the build, not in a folder that may lie in memory.
            folder: target.join("tmp"),
        })
    }
}

/// See the module. It is removed when it is dropped.
pub(super) struct House {
    binary: PathBuf,
    folder: PathBuf,
    server: String,
}

/// What a run came to.
pub(super) struct Ran {
    /// From the start of the process to its first output.
    pub(super) first: Duration,
    /// From the start of the process to its end.
    pub(super) whole: Duration,
    pub(super) memory: Memory,
    pub(super) output: String,
}

static HOUSES: AtomicU32 = AtomicU32::new(0);

impl House {
    /// A fresh one, whose model server listens at `server`.
    pub(super) fn new(program: &Program, server: &str) -> Result<Self, Failure> {
        let number = HOUSES.fetch_add(1, Ordering::Relaxed);
        let folder = program
            .folder
            .join(format!("bench-{}-{number}", std::process::id()));
        for name in ["state", "config", "work"] {
            let path = folder.join(name);
            std::fs::create_dir_all(&path).map_err(|source| Failure::Read { path, source })?;
        }
        let path = folder.join("work/note.txt");
        std::fs::write(&path, "one line\n").map_err(|source| Failure::Read { path, source })?;
        Ok(Self {
            binary: program.binary.clone(),
            folder,
            server: server.to_owned(),
        })
    }

    pub(super) fn state(&self) -> PathBuf {
        self.folder.join("state")
    }

    pub(super) fn work(&self) -> PathBuf {
        self.folder.join("work")
    }

    /// Forgets all that is stored.
    pub(super) fn empty(&self) -> Result<(), Failure> {
        let path = self.state();
        std::fs::remove_dir_all(&path)
            .and_then(|()| std::fs::create_dir(&path))
            .map_err(|source| Failure::Read { path, source })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        #[expect(
            clippy::disallowed_methods,
            reason = "a benchmark runs the true program; nothing of a session runs here"
        )]
        let mut command = Command::new(&self.binary);
        command
            .args(arguments)
            .current_dir(self.work())
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", &self.folder)
            .env("XDG_CONFIG_HOME", self.folder.join("config"))
            .env("ATTACHE_HOME", self.state())
            .env("OPENAI_API_KEY", "sk-bench")
            .env("OPENAI_BASE_URL", &self.server)
            .env("USER", "bench")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn spawn(&self, arguments: &[&str]) -> Result<Child, Failure> {
        self.command(arguments)
            .spawn()
            .map_err(|source| Failure::Start {
                program: self.binary.display().to_string(),
                source,
            })
    }

    /// Runs a command to its end, which must be a good one.
    pub(super) fn run(&self, arguments: &[&str]) -> Result<Ran, Failure> {
        let watch = Stopwatch::start();
        let mut child = self.spawn(arguments)?;
        let ended = Arc::new(AtomicBool::new(false));
        let looks = look(child.id(), &ended);
        let read = |child: &mut Child| -> std::io::Result<(Duration, String)> {
            let mut output = [0; 1];
            let mut pipe = child.stdout.take().ok_or(std::io::ErrorKind::BrokenPipe)?;
            let read = pipe.read(&mut output)?;
            let first = watch.elapsed();
            let mut text = String::from_utf8_lossy(&output[..read]).into_owned();
            pipe.read_to_string(&mut text)?;
            Ok((first, text))
        };
        let read = read(&mut child);
        let mut fault = String::new();
        if let Some(mut pipe) = child.stderr.take() {
            // What it says is for people; a pipe that breaks ends with the process.
            let _read = pipe.read_to_string(&mut fault);
        }
        let status = child.wait();
        let whole = watch.elapsed();
        ended.store(true, Ordering::Relaxed);
        let memory = looks.join().unwrap_or_default();
        let shown = format!("attache {}", arguments.join(" "));
        match (read, status) {
            (Ok((first, output)), Ok(status)) if status.success() => Ok(Ran {
                first,
                whole,
                memory,
                output,
            }),
            (_, Ok(status)) => {
                eprint!("{fault}");
                Err(Failure::Exit {
                    program: shown,
                    code: status.code(),
                })
            }
            (_, Err(source)) => Err(Failure::Start {
                program: shown,
                source,
            }),
        }
    }

    /// Starts a daemon, and waits until it serves.
    pub(super) fn daemon(&self) -> Result<Daemon, Failure> {
        self.serve(&["serve"]).map(|(daemon, _)| daemon)
    }

    /// The same with a listener; where that is.
    pub(super) fn listening(&self) -> Result<(Daemon, String), Failure> {
        let (daemon, line) = self.serve(&["serve", "--listen", "127.0.0.1:0"])?;
        let address = line
            .split("://")
            .nth(1)
            .and_then(|rest| rest.split('/').next());
        let address = address.map(str::to_owned).ok_or_else(|| Failure::Answer {
            program: "attache serve --listen".to_owned(),
            why: format!("it names no address: {line}"),
        })?;
        Ok((daemon, address))
    }

    /// Starts a daemon, waits until it serves, and gives the first line that it says.
    fn serve(&self, arguments: &[&str]) -> Result<(Daemon, String), Failure> {
        let watch = Stopwatch::start();
        let mut child = self.spawn(arguments)?;
        // The line that says where it serves is written when it does.
        let mut line = String::new();
        if let Some(pipe) = child.stderr.take() {
            let mut pipe = BufReader::new(pipe);
            // A daemon that cannot start closes the pipe, and the connection below fails.
            let _read = pipe.read_line(&mut line);
            // Nobody reads on: what it says later must not block it.
            std::thread::spawn(move || std::io::copy(&mut pipe, &mut std::io::sink()));
        }
        let daemon = Daemon {
            child,
            socket: self.state().join("attache.sock"),
        };
        while watch.elapsed() < PATIENCE {
            if daemon.connect().is_ok() {
                return Ok((daemon, line));
            }
            std::thread::park_timeout(LOOK);
        }
        Err(Failure::Answer {
            program: "attache serve".to_owned(),
            why: format!("it does not serve: {line}"),
        })
    }

    /// Starts a daemon, and gives it back before it serves.
    pub(super) fn daemon_at_once(&self) -> Result<Daemon, Failure> {
        let mut child = self.spawn(&["serve"])?;
        if let Some(mut pipe) = child.stderr.take() {
            std::thread::spawn(move || std::io::copy(&mut pipe, &mut std::io::sink()));
        }
        Ok(Daemon {
            child,
            socket: self.state().join("attache.sock"),
        })
    }
}

impl Drop for House {
    fn drop(&mut self) {
        // What cannot be removed lies in a folder of the build, and goes with it.
        let _removed = std::fs::remove_dir_all(&self.folder);
    }
}

fn look(process: u32, ended: &Arc<AtomicBool>) -> std::thread::JoinHandle<Memory> {
    let ended = Arc::clone(ended);
    std::thread::spawn(move || {
        let mut last = Memory::default();
        while !ended.load(Ordering::Relaxed) {
            // A process that is ending has no memory any more.
            last = process::memory(process).unwrap_or(last);
            std::thread::park_timeout(LOOK);
        }
        last
    })
}

/// A daemon that runs; it is killed when it is dropped.
pub(super) struct Daemon {
    child: Child,
    socket: PathBuf,
}

impl Daemon {
    pub(super) fn process(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    /// A connection to it.
    pub(super) fn connect(&self) -> std::io::Result<UnixStream> {
        UnixStream::connect(&self.socket)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // One that has ended by itself cannot be killed, and needs not.
        let _killed = self.child.kill();
        let _waited = self.child.wait();
    }
}
