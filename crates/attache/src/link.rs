//! How a command reaches a host: the daemon, which is started on demand, a host elsewhere, or one inside this very process.
//! All are talked to in the same frames.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use attache_client::protocol::FromHost;
use attache_client::{Client, ClientError, ConnectError, Elsewhere, HostPlace, Streams, look};
use attache_host::{Host, HostConfig, HostError, Settings, Storage};

use crate::cli;
use crate::clock;
use crate::fail::{Failure, NOT_FOUND};
use crate::mcp;
use crate::output::Output;
use crate::places::{PROGRAM, Places};

/// The script of `attache demo`.
const DEMO_SCRIPT: &str = include_str!("demo.yaml");

/// The host elsewhere that the command line names. Nothing is set where it is this user's daemon.
static ELSEWHERE: OnceLock<Elsewhere> = OnceLock::new();

/// The variable that names it too.
const HOST: &str = "ATTACHE_HOST";

/// The variable with its token.
const TOKEN: &str = "ATTACHE_TOKEN";

/// Takes to heart which host is meant, once and before any command. The answer is whether it is one elsewhere.
pub(crate) fn choose(named: cli::Elsewhere) -> Result<bool, Failure> {
    let cli::Elsewhere {
        host,
        token_file,
        host_cert,
    } = named;
    let Some(host) = host.or_else(|| variable(HOST)) else {
        return match (token_file, host_cert) {
            (None, None) => Ok(false),
            (Some(_), _) => Err(Failure::usage("--token-file is for a --host elsewhere")),
            (_, Some(_)) => Err(Failure::usage("--host-cert is for a --host elsewhere")),
        };
    };
    let token = match token_file {
        Some(file) => Some(token_of(&file)?),
        None => variable(TOKEN),
    };
    let elsewhere = Elsewhere::at(&host, token, host_cert, PROGRAM, &clock::id());
    let elsewhere = elsewhere.map_err(Failure::usage)?;
    // Nobody else sets it.
    let _first = ELSEWHERE.set(elsewhere);
    Ok(true)
}

/// A variable that is set to something.
fn variable(name: &str) -> Option<String> {
    let value = std::env::var(name).ok()?.trim().to_owned();
    (!value.is_empty()).then_some(value)
}

fn token_of(file: &Path) -> Result<String, Failure> {
    let fault = |why: &str| Failure::usage(format!("the token file {}: {why}", file.display()));
    let read = std::fs::read_to_string(file).map_err(|why| fault(&why.to_string()))?;
    match read.trim() {
        "" => Err(fault("there is nothing in it")),
        token => Ok(token.to_owned()),
    }
}

/// Whether commands talk to a host elsewhere.
pub(crate) fn is_elsewhere() -> bool {
    ELSEWHERE.get().is_some()
}

/// Where the host is that commands talk to.
pub(crate) fn place() -> Result<HostPlace, Failure> {
    match ELSEWHERE.get() {
        Some(elsewhere) => Ok(HostPlace::Elsewhere(Box::new(elsewhere.clone()))),
        None => Ok(HostPlace::Here(Box::new(Places::find()?.daemon()?))),
    }
}

/// A connection, and the host when it lives in this process.
pub(crate) struct Link {
    pub(crate) client: Client,
    streams: Streams,
    /// Frames that came beside an answer, as many as came until then.
    kept: VecDeque<FromHost>,
    host: Option<Host>,
}

impl Link {
    /// Reaches the daemon, and starts it when there is none.
    pub(crate) async fn daemon() -> Result<Self, Failure> {
        let place = place()?;
        let (client, streams) = place.connect_or_start().await?;
        Ok(Self {
            client,
            streams,
            kept: VecDeque::new(),
            host: None,
        })
    }

    /// Reaches the daemon if one runs.
    pub(crate) async fn running_daemon() -> Result<Option<Self>, Failure> {
        let place = place()?;
        match place.connect().await {
            Ok((client, streams)) => Ok(Some(Self {
                client,
                streams,
                kept: VecDeque::new(),
                host: None,
            })),
            Err(ConnectError::None(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Reaches the daemon if one runs, and otherwise opens a host in this process: nothing is left running for a command
    /// that sessions have no part in.
    pub(crate) async fn daemon_or_in_process() -> Result<Self, Failure> {
        match Self::running_daemon().await? {
            Some(link) => Ok(link),
            None => Self::in_process().await,
        }
    }

    /// Opens a host in this process.
    pub(crate) async fn in_process() -> Result<Self, Failure> {
        let places = Places::find()?;
        let host = open_host(&places, Serving::default()).await?;
        let (near, far) = tokio::io::duplex(256 * 1024);
        let served = host.clone();
        tokio::spawn(async move { served.serve(far).await });
        let (client, streams) = Client::greet(near, PROGRAM, &clock::id()).await?;
        Ok(Self {
            client,
            streams,
            kept: VecDeque::new(),
            host: Some(host),
        })
    }

    /// The next frame of the streams that this connection follows; none when it has ended.
    pub(crate) async fn next(&mut self) -> Option<FromHost> {
        match self.kept.pop_front() {
            Some(frame) => Some(frame),
            None => self.streams.next().await,
        }
    }

    /// Waits for an answer while frames go on to come; they are kept. Without that a full stream
    /// would stand before the answer.
    pub(crate) async fn beside<T>(&mut self, answer: impl Future<Output = T>) -> T {
        tokio::pin!(answer);
        let mut open = true;
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => return answer,
                frame = self.streams.next(), if open => match frame {
                    Some(frame) => self.kept.push_back(frame),
                    None => open = false,
                },
            }
        }
    }

    /// Comes back to a host elsewhere whose connection was lost, and tells a person meanwhile. Any other error, and the end of
    /// a host of this machine, with which all ends that ran there, comes back as it is.
    pub(crate) async fn again(
        &mut self,
        error: ClientError,
        output: &Output,
    ) -> Result<Result<(), ClientError>, Failure> {
        match error {
            ClientError::Gone(reason) if is_elsewhere() => {
                output.note(&format!(
                    "attache: the connection is lost ({reason}); looking for the host"
                ));
                (self.client, self.streams) = look(place()?, false).await?;
                output.note("attache: the host is there again");
                Ok(Ok(()))
            }
            error => Ok(Err(error)),
        }
    }

    /// Ends a host of this process in good order.
    pub(crate) async fn close(self) {
        let Self {
            client,
            streams,
            kept: _,
            host,
        } = self;
        // Nothing more is asked: the host need not wait for it.
        drop((client, streams));
        if let Some(host) = host {
            host.shutdown("the command has ended").await;
        }
    }
}

/// What a host may be told beside its places.
#[derive(Clone, Debug, Default)]
pub(crate) struct Serving {
    /// Where sessions are kept; none is the state folder.
    pub(crate) storage: Option<Storage>,
    /// The name of the profile that owns sessions; none is `user@machine`.
    pub(crate) profile: Option<String>,
}

/// Opens a host.
pub(crate) async fn open_host(places: &Places, serving: Serving) -> Result<Host, Failure> {
    let Serving { storage, profile } = serving;
    let config = HostConfig {
        storage: storage.unwrap_or_else(|| Storage::Folder(places.state.clone())),
        state_folder: places.state.clone(),
        settings_file: Some(places.settings_file()),
        definitions: Some(places.definitions()),
        toolsets: attache_tools::built_in(),
        scripts: vec![("demo".to_owned(), DEMO_SCRIPT.to_owned())],
        environment: attache_host::environment(environment(), &key_variables()),
        identity: attache_host::identity(user(), computer(), profile),
        program: PROGRAM.to_owned(),
        doors: mcp::doors(),
    };
    Host::open(config).await.map_err(|error| match error {
        HostError::Engine(error) => {
            let failure = Failure::new(NOT_FOUND, error.code.as_str(), error.message.clone());
            match error.code.hint() {
                Some(hint) => failure.with_hint(hint),
                None => failure,
            }
        }
        HostError::Settings(error) => Failure::usage(error.to_string()),
        HostError::Tokens(error) => Failure::new(NOT_FOUND, "storage-corrupt", error.to_string()),
    })
}

/// The login of the user whom this process belongs to, whatever the variables of its starter say: the
/// same after each restart.
fn user() -> String {
    let number = rustix::process::getuid().as_raw();
    let listed = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    login(&listed, number)
        .or_else(|| ["USER", "LOGNAME"].into_iter().find_map(variable))
        .unwrap_or_else(|| format!("uid-{number}"))
}

/// The name of a user in the list of users.
fn login(listed: &str, number: u32) -> Option<String> {
    let number = number.to_string();
    listed.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        (fields.nth(1) == Some(number.as_str())).then(|| name.to_owned())
    })
}

fn computer() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

/// Variables that hold the keys of configured providers.
pub(crate) fn key_variables() -> Vec<String> {
    // Settings that do not load are told of by whoever needs them.
    let Ok(places) = Places::find() else {
        return Vec::new();
    };
    let none = attache_host::environment(BTreeMap::new(), &[]);
    Settings::load(Some(&places.settings_file()), None, &none)
        .map(|settings| settings.providers)
        .unwrap_or_default()
        .into_iter()
        .filter_map(|provider| provider.key_variable().map(str::to_owned))
        .collect()
}

/// Variables of this program that say nothing to a host.
const OURS: [&str; 4] = ["ATTACHE_HOME", "ATTACHE_NOTIFY", HOST, TOKEN];

/// Variables that a session may need; which of them are taken is the host's business. A host elsewhere is told none: keys of
/// this machine stay here, and its own are there.
pub(crate) fn environment() -> BTreeMap<String, String> {
    if is_elsewhere() {
        return BTreeMap::new();
    }
    let keys = key_variables();
    let wanted = |name: &str| {
        (name.starts_with("ATTACHE_") && !OURS.contains(&name))
            || name.ends_with("_API_KEY")
            || name.ends_with("_BASE_URL")
            || matches!(
                name,
                "AZURE_OPENAI_ENDPOINT" | "OLLAMA_HOST" | "PATH" | "LANG" | "LC_ALL"
            )
            || keys.iter().any(|known| known == name)
    };
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| wanted(name))
        .collect()
}

/// The folder in which a session is started: the one that is named, or the current one.
pub(crate) fn folder_for(named: Option<&Path>) -> Result<PathBuf, Failure> {
    match (named, ELSEWHERE.get()) {
        (Some(folder), Some(_)) if folder.is_absolute() => Ok(folder.to_owned()),
        (_, Some(elsewhere)) => Err(Failure::usage(format!(
            "a new session works in a folder of {}: name it with --dir, from the root on",
            elsewhere.address()
        ))),
        (Some(folder), None) => folder.canonicalize().map_err(|fault| {
            Failure::usage(format!(
                "the folder {} cannot be used: {fault}",
                folder.display()
            ))
        }),
        (None, None) => working_directory(),
    }
}

/// The current folder.
pub(crate) fn working_directory() -> Result<PathBuf, Failure> {
    std::env::current_dir()
        .and_then(|folder| folder.canonicalize())
        .map_err(|fault| Failure::usage(format!("the current folder cannot be used: {fault}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_found_by_its_number() {
        let listed =
            "root:x:0:0:root:/root:/bin/sh\n:x:5::\nada:x:1000:1000::/home/ada:/bin/sh\nx\n";
        assert_eq!(login(listed, 0).as_deref(), Some("root"));
        assert_eq!(login(listed, 1000).as_deref(), Some("ada"));
        assert_eq!(login(listed, 5), None);
        assert_eq!(login(listed, 7), None);
        assert_eq!(login("", 0), None);
    }
}
