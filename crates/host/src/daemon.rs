//! The daemon's life on its unix socket: bound under another name and renamed when the store is
//! open, so that whoever can connect is served; the name is taken away first when it leaves.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};

use crate::host::Host;

/// Why a daemon cannot listen.
#[derive(Debug, thiserror::Error)]
#[error("the socket {} cannot be opened: {fault}", .path.display())]
pub struct DaemonError {
    /// The socket.
    pub path: PathBuf,
    /// What the operating system says.
    #[source]
    pub fault: io::Error,
}

/// When a daemon leaves by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Idle {
    /// Never: somebody runs it in the foreground.
    Stay,
    /// When nothing has needed it for this long.
    After(Duration),
}

/// A daemon that listens.
pub struct Daemon {
    host: Host,
    listener: UnixListener,
    /// The number of the user whose daemon it is: nobody else is served, whatever the modes of files let through.
    owner: u32,
    path: PathBuf,
    /// The name under which those find it who would look elsewhere.
    link: Option<PathBuf>,
}

/// How long a daemon waits before it accepts again after a fault, and for late connections at its end.
const RETRY: Duration = Duration::from_millis(20);

/// How often an idle daemon looks whether it is still idle.
const LOOK: Duration = Duration::from_secs(1);

impl Daemon {
    /// Opens the socket. The store is held already, so no other daemon uses this path. `link` is a
    /// second name for it, for those whose runtime folder is another one; it is left out when it
    /// cannot be made.
    ///
    /// # Errors
    ///
    /// [`DaemonError`] when the socket cannot be made.
    pub fn bind(host: Host, path: &Path, link: &Path) -> Result<Self, DaemonError> {
        let fault = |fault| DaemonError {
            path: path.to_path_buf(),
            fault,
        };
        let fresh = path.with_extension(format!("{}.new", std::process::id()));
        // One of an earlier process of this number; it may not be there.
        let _removed = std::fs::remove_file(&fresh);
        let listener = UnixListener::bind(&fresh).map_err(fault)?;
        std::fs::set_permissions(&fresh, std::fs::Permissions::from_mode(0o600)).map_err(fault)?;
        std::fs::rename(&fresh, path).map_err(fault)?;
        let linked = link != path && {
            // A socket or a link of an earlier daemon, which has ended: the store is ours.
            let _removed = std::fs::remove_file(link);
            std::os::unix::fs::symlink(path, link).is_ok()
        };
        Ok(Self {
            host,
            listener,
            owner: rustix::process::geteuid().as_raw(),
            path: path.to_path_buf(),
            link: linked.then(|| link.to_path_buf()),
        })
    }

    /// Serves until `stop` ends with its reason, or until it is idle for long enough.
    pub async fn run(self, stop: impl Future<Output = String>, idle: Idle) {
        tokio::pin!(stop);
        let mut quiet = Duration::ZERO;
        let reason = loop {
            tokio::select! {
                reason = &mut stop => break reason,
                accepted = self.listener.accept() => {
                    quiet = Duration::ZERO;
                    match accepted {
                        Ok((stream, _)) if self.is_of_owner(&stream) => {
                            let host = self.host.clone();
                            tokio::spawn(async move { host.serve(stream).await });
                        }
                        // Closed without a word.
                        Ok(_of_another) => {}
                        // Too many open files, say: trying at once would only burn time.
                        Err(_) => tokio::time::sleep(RETRY).await,
                    }
                }
                () = tokio::time::sleep(LOOK), if idle != Idle::Stay => {
                    quiet = if self.host.is_idle() { quiet + LOOK } else { Duration::ZERO };
                    if let Idle::After(limit) = idle && quiet >= limit {
                        break "nothing was asked of it for a while".to_owned();
                    }
                }
            }
        };
        // The name goes first: a client that comes now starts a new daemon.
        for name in self.link.iter().chain([&self.path]) {
            let _removed = std::fs::remove_file(name);
        }
        self.host.shutdown(&reason).await;
        self.drain().await;
    }

    /// Tells those who connected just before the name was gone.
    async fn drain(&self) {
        while let Ok(Ok((stream, _))) = tokio::time::timeout(RETRY, self.listener.accept()).await {
            if self.is_of_owner(&stream) {
                self.host.serve(stream).await;
            }
        }
    }

    /// Whether the other end belongs to the user whose daemon this is, as the kernel tells.
    fn is_of_owner(&self, stream: &UnixStream) -> bool {
        stream
            .peer_cred()
            .is_ok_and(|peer| peer.uid() == self.owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use crate::{Doors, HostConfig, Storage, environment, identity};

    #[tokio::test]
    async fn only_the_user_whose_daemon_it_is_is_served() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        for (more, served) in [(0, true), (1, false)] {
            let host = Host::open(HostConfig {
                storage: Storage::Memory,
                state_folder: folder.path().to_path_buf(),
                settings_file: None,
                definitions: None,
                toolsets: attache_tools::built_in(),
                scripts: Vec::new(),
                environment: environment(BTreeMap::new(), &[]),
                identity: identity("ada".to_owned(), "engine".to_owned(), None),
                program: "tests".to_owned(),
                doors: Doors::new(),
            });
            let mut daemon = Daemon::bind(host.await.unwrap(), &socket, &socket).unwrap();
            daemon.owner += more;
            let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
            let stopped = async move {
                drop(stopped.await);
                "tests end".to_owned()
            };
            let running = tokio::spawn(daemon.run(stopped, Idle::Stay));
            let mut stream = UnixStream::connect(&socket).await.unwrap();
            let hello = b"{\"type\":\"hello\",\"version\":1,\"features\":[],\"program\":\"t\"}\n";
            // It may be closed before.
            let _said = stream.write_all(hello).await;
            let answered = stream.read_u8().await.is_ok();
            assert_eq!(answered, served);
            drop((stop, stream));
            running.await.unwrap();
        }
    }
}
