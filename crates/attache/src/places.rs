//! Where things lie: the state folder, the settings, the socket, and what a daemon is started with.

use std::ffi::OsString;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use attache_client::Place;
use etcetera::BaseStrategy;
use sha2::{Digest, Sha256};

use crate::clock;
use crate::fail::{Failure, NOT_FOUND};

/// Longest path that a unix socket is given; the operating system takes a few bytes more.
const SOCKET_PATH: usize = 100;

/// The name of the socket in a state folder.
const SOCKET: &str = "attache.sock";

/// Name and version, as peers are told.
pub(crate) const PROGRAM: &str = concat!("attache ", env!("CARGO_PKG_VERSION"));

/// Where things lie.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    /// State folder.
    pub(crate) state: PathBuf,
    /// Folder of the user's settings and definitions.
    pub(crate) config: PathBuf,
    /// The daemon's socket.
    pub(crate) socket: PathBuf,
    /// Where a daemon's socket, or a link to it, lies whatever its runtime folder is.
    pub(crate) beside: PathBuf,
}

impl Places {
    pub(crate) fn find() -> Result<Self, Failure> {
        let base = etcetera::choose_base_strategy()
            .map_err(|fault| Failure::usage(format!("there is no home folder: {fault}")))?;
        let state = match std::env::var_os("ATTACHE_HOME").filter(|home| !home.is_empty()) {
            Some(home) => absolute(Path::new(&home))?,
            None => absolute(&base.data_dir().join("attache"))?,
        };
        let config = base.config_dir().join("attache");
        let runtime = base.runtime_dir();
        Ok(Self {
            socket: socket(&state, runtime.as_deref())?,
            beside: state.join(SOCKET),
            state,
            config,
        })
    }

    pub(crate) fn settings_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    pub(crate) fn definitions(&self) -> PathBuf {
        self.config.join("agents")
    }

    /// How the daemon is found and started. It gets what it needs to find its own places and no
    /// more: what sessions need, their clients hand over.
    pub(crate) fn daemon(&self) -> Result<Place, Failure> {
        let program = std::env::current_exe()
            .map_err(|fault| Failure::internal(format!("the own program is not found: {fault}")))?;
        let mut environment: Vec<(String, OsString)> = Vec::new();
        for (name, value) in std::env::vars_os() {
            let Some(name) = name.to_str() else { continue };
            let wanted = name == "HOME"
                || name.starts_with("XDG_")
                || name == "ATTACHE_FAULT"
                || name.starts_with("ATTACHE_DAEMON__")
                || matches!(name, "USER" | "LOGNAME" | "RUST_BACKTRACE");
            if wanted {
                environment.push((name.to_owned(), value));
            }
        }
        environment.push(("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".into()));
        environment.push((
            "ATTACHE_HOME".to_owned(),
            self.state.clone().into_os_string(),
        ));
        Ok(Place {
            socket: self.socket.clone(),
            beside: self.beside.clone(),
            state_folder: self.state.clone(),
            command: (program, vec!["serve".into(), "--on-demand".into()]),
            environment,
            program: PROGRAM.to_owned(),
            run: clock::id(),
        })
    }
}

/// The one spelling of a path, links followed as far as it exists: two spellings of a state folder
/// are one folder with one daemon.
fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    let absolute = std::path::absolute(path)
        .map_err(|fault| Failure::usage(format!("ATTACHE_HOME {}: {fault}", path.display())))?;
    for there in absolute.ancestors() {
        if let Ok(real) = there.canonicalize() {
            // What does not exist yet has no links; nothing is left when all of it exists.
            let rest = absolute.strip_prefix(there).unwrap_or(Path::new(""));
            return Ok(real.components().chain(rest.components()).collect());
        }
    }
    Ok(absolute)
}

/// The socket lies in the runtime folder under a name made from the state folder, else in the state
/// folder itself; where that path is too long for a socket, in a private folder of the system's
/// folder for temporary files.
fn socket(state: &Path, runtime: Option<&Path>) -> Result<PathBuf, Failure> {
    let digest = Sha256::digest(state.as_os_str().as_encoded_bytes());
    let name: String = digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let path = match runtime.filter(|folder| folder.is_dir()) {
        Some(folder) => folder.join(format!("attache-{name}.sock")),
        None => state.join(SOCKET),
    };
    if path.as_os_str().len() <= SOCKET_PATH {
        return Ok(path);
    }
    let user = rustix::process::getuid().as_raw();
    let folder = std::env::temp_dir().join(format!("attache-{user}"));
    private(&folder)?;
    Ok(folder.join(format!("{name}.sock")))
}

/// Makes a folder for ourselves alone, or checks that it is one: in a place where everybody may
/// write, somebody else could have made it to listen.
fn private(folder: &Path) -> Result<(), Failure> {
    let refused = |why: String| {
        Failure::new(
            NOT_FOUND,
            "host-incompatible",
            format!("{}: {why}", folder.display()),
        )
        .with_hint("Set ATTACHE_HOME to a shorter path, or mend that folder.")
    };
    match std::fs::DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => Ok(()),
        Err(fault) if fault.kind() == std::io::ErrorKind::AlreadyExists => {
            let found =
                std::fs::symlink_metadata(folder).map_err(|fault| refused(fault.to_string()))?;
            let ours = found.uid() == rustix::process::getuid().as_raw();
            if found.is_dir() && ours && found.mode() & 0o077 == 0 {
                Ok(())
            } else {
                Err(refused("not a folder of ours alone".to_owned()))
            }
        }
        Err(fault) => Err(refused(fault.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_folder_has_one_spelling() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        std::fs::create_dir(real.join("state")).unwrap();
        std::os::unix::fs::symlink(real.join("state"), real.join("link")).unwrap();
        for (spelled, meant) in [
            ("state", "state"),
            ("state/", "state"),
            ("state/../link", "state"),
            ("link/new/folder", "state/new/folder"),
            ("none/below", "none/below"),
        ] {
            assert_eq!(
                absolute(&real.join(spelled)).unwrap(),
                real.join(meant),
                "{spelled}"
            );
        }
    }

    #[test]
    fn a_socket_path_is_never_too_long_and_follows_the_state_folder() {
        let short = socket(Path::new("/home/a/.local/share/attache"), None).unwrap();
        assert_eq!(
            short,
            Path::new("/home/a/.local/share/attache/attache.sock")
        );
        let deep = "/long".repeat(40);
        let one = socket(Path::new(&format!("{deep}/one")), None).unwrap();
        let two = socket(Path::new(&format!("{deep}/two")), None).unwrap();
        assert!(one.as_os_str().len() <= SOCKET_PATH && one != two);
        let runtime = std::env::temp_dir();
        let there = socket(Path::new("/state"), Some(&runtime)).unwrap();
        assert!(there.starts_with(&runtime));
    }
}
