//! Finds the daemon of a state folder, and starts one when there is none; a host elsewhere is called.
//!
//! Who finds no socket, or a dead one, takes the start lock, looks again, and only then starts the
//! program: of many that come at once, one starts it. A host that hangs up before it greets counts
//! as none: it is leaving.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use attache_protocol::OpenDoor;
use rustix::fs::FlockOperation;
use tokio::io::{BufReader, ReadHalf, WriteHalf};
use tokio::net::UnixStream;

use crate::client::{Client, ClientError, Streams};
use crate::elsewhere::Elsewhere;

/// A host: the daemon of this machine's user, or one elsewhere.
#[derive(Clone, Debug)]
pub enum HostPlace {
    /// The daemon of a state folder, which is started when there is none.
    Here(Box<Place>),
    /// A listener that is called by its address. Nothing is started there.
    Elsewhere(Box<Elsewhere>),
}

impl HostPlace {
    /// Connects to the host that runs.
    ///
    /// # Errors
    ///
    /// [`ConnectError::None`] when no daemon runs here, others when a host does not talk to us.
    pub async fn connect(&self) -> Result<(Client, Streams), ConnectError> {
        match self {
            Self::Here(place) => connect(place).await,
            Self::Elsewhere(elsewhere) => elsewhere.connect().await,
        }
    }

    /// Connects to the host, and starts it when it is ours and there is none.
    ///
    /// # Errors
    ///
    /// [`ConnectError`] when it cannot be started or does not talk to us.
    pub async fn connect_or_start(&self) -> Result<(Client, Streams), ConnectError> {
        match self {
            Self::Here(place) => connect_or_start(place).await,
            Self::Elsewhere(elsewhere) => elsewhere.connect().await,
        }
    }

    /// The viewer's name and version.
    pub(crate) fn program(&self) -> &str {
        match self {
            Self::Here(place) => &place.program,
            Self::Elsewhere(elsewhere) => &elsewhere.program,
        }
    }

    /// What the viewer's command ids begin with.
    pub(crate) fn run(&self) -> &str {
        match self {
            Self::Here(place) => &place.run,
            Self::Elsewhere(elsewhere) => &elsewhere.run,
        }
    }
}

/// Where a daemon is, and how it is started.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its socket.
    pub socket: PathBuf,
    /// A second place to look at: a daemon with another runtime folder has its socket elsewhere, and
    /// leaves a link to it here.
    pub beside: PathBuf,
    /// Its state folder.
    pub state_folder: PathBuf,
    /// The program that is started, with its arguments.
    pub command: (PathBuf, Vec<OsString>),
    /// The environment that it is started with: nothing else is handed over.
    pub environment: Vec<(String, OsString)>,
    /// The viewer's name and version.
    pub program: String,
    /// Makes the viewer's command ids unique.
    pub run: String,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No daemon runs.
    #[error("no daemon runs for the state folder {}", .0.display())]
    None(PathBuf),
    /// The daemon refused to talk.
    #[error("{0}")]
    Refused(#[from] ClientError),
    /// A daemon is there and says nothing.
    #[error(
        "the daemon of the state folder {} does not answer; `daemon.lock` there names its process",
        .0.display()
    )]
    Silent(PathBuf),
    /// A daemon could not be started.
    #[error("the daemon could not be started: {0}")]
    Start(String),
    /// A host elsewhere cannot be reached now.
    #[error("{host} cannot be reached: {why}")]
    Unreachable {
        /// Its address.
        host: String,
        /// Why.
        why: String,
    },
    /// A host elsewhere does not let this viewer in.
    #[error("{host} does not let this viewer in: {why}")]
    NoEntry {
        /// Its address.
        host: String,
        /// Why.
        why: String,
    },
    /// A host elsewhere does not prove that it is what it is called.
    #[error("{host} is not trusted: {why}")]
    Trust {
        /// Its address.
        host: String,
        /// Why.
        why: String,
    },
    /// The operating system said no.
    #[error("the daemon cannot be reached: {0}")]
    Io(#[from] io::Error),
}

/// How long a daemon may take from its start to its first greeting.
const START: Duration = Duration::from_secs(5);

/// How long a daemon may take to greet: a busy one greets at once all the same.
pub(crate) const GREETING: Duration = Duration::from_secs(10);

/// How much of its log is repeated, in bytes.
const WORDS: u64 = 2_048;

/// How often a starting daemon is looked for.
const LOOK: Duration = Duration::from_millis(2);

/// Connects to the daemon that runs.
///
/// # Errors
///
/// [`ConnectError::None`] when none runs, others when it does not talk to us.
async fn connect(place: &Place) -> Result<(Client, Streams), ConnectError> {
    match connect_to(place, &place.socket).await {
        // The link is followed here: its own path may be too long for a socket.
        Err(ConnectError::None(_)) if place.beside != place.socket => {
            let beside = std::fs::read_link(&place.beside);
            connect_to(
                place,
                &beside.unwrap_or_else(|_no_link| place.beside.clone()),
            )
            .await
        }
        other => other,
    }
}

async fn connect_to(place: &Place, socket: &Path) -> Result<(Client, Streams), ConnectError> {
    let none = || ConnectError::None(place.state_folder.clone());
    let stream = match UnixStream::connect(socket).await {
        Ok(stream) => stream,
        Err(fault) => {
            return Err(match fault.kind() {
                io::ErrorKind::NotFound
                | io::ErrorKind::ConnectionRefused
                | io::ErrorKind::ConnectionReset => none(),
                _ => fault.into(),
            });
        }
    };
    let greeting = Client::greet(stream, &place.program, &place.run);
    match tokio::time::timeout(GREETING, greeting).await {
        Ok(Ok(connected)) => Ok(connected),
        Ok(Err(ClientError::Gone(_))) => Err(none()),
        Ok(Err(refused)) => Err(refused.into()),
        Err(_silent) => Err(ConnectError::Silent(place.state_folder.clone())),
    }
}

/// Opens a door of another protocol at the daemon that runs.
///
/// # Errors
///
/// [`ConnectError`] when none runs, or when it refuses.
pub async fn open_door(
    place: &Place,
    open: OpenDoor,
) -> Result<(BufReader<ReadHalf<UnixStream>>, WriteHalf<UnixStream>), ConnectError> {
    let none = |_fault| ConnectError::None(place.state_folder.clone());
    let stream = match UnixStream::connect(&place.socket).await {
        Ok(stream) => stream,
        Err(fault) => {
            let beside = std::fs::read_link(&place.beside).map_err(|_no_link| none(fault))?;
            UnixStream::connect(beside).await.map_err(none)?
        }
    };
    match tokio::time::timeout(GREETING, Client::open_door(stream, open)).await {
        Ok(opened) => Ok(opened?),
        Err(_silent) => Err(ConnectError::Silent(place.state_folder.clone())),
    }
}

/// Connects to the daemon, and starts it when there is none.
///
/// # Errors
///
/// [`ConnectError`] when it cannot be started or does not talk to us.
async fn connect_or_start(place: &Place) -> Result<(Client, Streams), ConnectError> {
    match connect(place).await {
        Err(ConnectError::None(_)) => {}
        other => return other,
    }
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&place.state_folder)?;
    let path = place.state_folder.join("start.lock");
    let lock = tokio::task::spawn_blocking(move || take(&path))
        .await
        .map_err(|fault| ConnectError::Start(fault.to_string()))??;
    // Another one may have started it while we stood in line. A daemon that is just leaving holds
    // the store a little longer: then the first try fails and the second one succeeds.
    let mut last = String::new();
    for _ in 0..2 {
        match connect(place).await {
            Err(ConnectError::None(_)) => {}
            other => return other,
        }
        match start(place).await {
            Ok(connected) => {
                drop(lock);
                return Ok(connected);
            }
            Err(why) => last = why,
        }
    }
    drop(lock);
    Err(ConnectError::Start(last))
}

fn take(path: &Path) -> io::Result<File> {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)?;
    rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
    Ok(file)
}

/// Starts the program and waits until it greets.
async fn start(place: &Place) -> Result<(Client, Streams), String> {
    let log_path = place.state_folder.join("daemon.log");
    let log = File::options()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&log_path);
    let log = log.map_err(|fault| format!("{}: {fault}", log_path.display()))?;
    let said_before = log.metadata().map_or(0, |known| known.len());
    let (program, arguments) = &place.command;
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that may start the daemon"
    )]
    let mut command = tokio::process::Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(place.environment.iter().map(|(name, value)| (name, value)))
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::from(log))
        .kill_on_drop(false);
    let mut child = command
        .spawn()
        .map_err(|fault| format!("{}: {fault}", program.display()))?;
    let greeted = async {
        loop {
            match connect(place).await {
                Ok(connected) => return Ok(connected),
                Err(ConnectError::None(_)) => tokio::time::sleep(LOOK).await,
                Err(other) => return Err(other.to_string()),
            }
        }
    };
    tokio::select! {
        connected = greeted => connected,
        ended = child.wait() => {
            let how = ended.map_or_else(|fault| fault.to_string(), |status| status.to_string());
            Err(match last_words(&log_path, said_before) {
                Some(words) => words,
                None => format!("it ended at once ({how}); see {}", log_path.display()),
            })
        }
        () = tokio::time::sleep(START) => {
            Err(format!("it did not answer within {} s; see {}", START.as_secs(), log_path.display()))
        }
    }
}

/// What a daemon that ended at once wrote into its log: why.
fn last_words(log: &Path, from: u64) -> Option<String> {
    let mut file = File::open(log).ok()?;
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut text = String::new();
    file.take(WORDS).read_to_string(&mut text).ok()?;
    let words = text.trim().strip_prefix("attache: ").unwrap_or(text.trim());
    (!words.is_empty()).then(|| words.to_owned())
}
