//! The daemon's life on its unix socket: bound under another name and renamed when the store is
//! open, so that whoever can connect is served; the name is taken away first when it leaves.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::UnixListener;

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
                        Ok((stream, _)) => {
                            let host = self.host.clone();
                            tokio::spawn(async move { host.serve(stream).await });
                        }
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
            self.host.serve(stream).await;
        }
    }
}
