//! The listener: where it may listen, how many connections it holds, and TLS before anything is read. What is served is the
//! site's.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::site::{HEAD, Place, Site, Way};
use super::tls::Tls;

/// Connections at once; more wait to be accepted.
const CONNECTIONS: usize = 256;

/// How long the listener rests after a fault, for example too many open files.
const RETRY: Duration = Duration::from_millis(20);

/// Why there is no listener.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// Others could reach the address, and read what is said.
    #[error(
        "others can reach {0}: give a certificate with --tls-cert and --tls-key, or listen on an address of this machine alone, like 127.0.0.1:7433"
    )]
    NoTls(SocketAddr),
    /// Others could reach the address, and none could be let in.
    #[error(
        "others can reach {0}, and there is no token to let one of them in: make one with `attache token create`"
    )]
    NoToken(SocketAddr),
    /// The certificate or its key cannot be used.
    #[error("TLS cannot be had from {}: {why}", .path.display())]
    Tls {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The operating system said no.
    #[error("cannot listen on {address}: {fault}")]
    Io {
        /// The address.
        address: SocketAddr,
        /// What the operating system says.
        #[source]
        fault: io::Error,
    },
}

/// Where a listener is wanted, and what it has.
#[derive(Clone)]
pub struct Listen {
    /// The address; port 0 is any that is free.
    pub address: SocketAddr,
    /// Its certificate; none is plain HTTP.
    pub tls: Option<Tls>,
    /// Whether there is a token that would let somebody in.
    pub has_tokens: bool,
}

/// Whether an address may be listened on. One of this machine alone always may.
///
/// # Errors
///
/// [`WebError`] when others can reach it without TLS, or without a token that would let one of them in.
pub fn may_listen(address: SocketAddr, has_tls: bool, has_tokens: bool) -> Result<(), WebError> {
    match (has_tls, has_tokens) {
        _ if address.ip().to_canonical().is_loopback() => Ok(()),
        (false, _) => Err(WebError::NoTls(address)),
        (true, false) => Err(WebError::NoToken(address)),
        (true, true) => Ok(()),
    }
}

/// An address to listen on, as people write it.
///
/// # Errors
///
/// A text that says what it must be.
pub fn listen_address(text: &str) -> Result<SocketAddr, String> {
    match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    }
    .parse()
    .map_err(|_fault| "must be an address with a port, like 127.0.0.1:7433".to_owned())
}

/// A host's name without a port.
///
/// # Errors
///
/// A text that says what it must be.
pub fn host_name(text: &str) -> Result<String, String> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '.' | '_');
    if !text.is_empty() && text.len() <= 253 && text.chars().all(is_plain) {
        Ok(text.to_owned())
    } else {
        Err("must be the name of a host without a port, like box.example".to_owned())
    }
}

/// See the module.
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
}

impl Listener {
    /// Opens it.
    ///
    /// # Errors
    ///
    /// [`WebError`] when it may not listen there, or cannot.
    pub async fn bind(listen: Listen) -> Result<Self, WebError> {
        let Listen {
            address,
            tls,
            has_tokens,
        } = listen;
        may_listen(address, tls.is_some(), has_tokens)?;
        let fault = |fault| WebError::Io { address, fault };
        let socket = TcpListener::bind(address).await.map_err(fault)?;
        let address = socket.local_addr().map_err(fault)?;
        Ok(Self {
            socket,
            address,
            tls: tls.map(|Tls(acceptor)| acceptor),
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves a site until `stop` ends; then what is open is cut.
    pub async fn serve(self, site: Site, stop: impl Future<Output = ()>) {
        let site = Arc::new(site);
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        let mut open = JoinSet::new();
        tokio::pin!(stop);
        loop {
            // Those that have ended leave nothing behind.
            while open.try_join_next().is_some() {}
            let accepted = async {
                // The semaphore is never closed.
                let place = Arc::clone(&room).acquire_owned().await.ok();
                (place, self.socket.accept().await)
            };
            tokio::select! {
                biased;
                () = &mut stop => break,
                (place, accepted) = accepted => match accepted {
                    Ok((stream, _)) => {
                        let place = place.map(Place::new);
                        let serving = serve(Arc::clone(&site), stream, self.tls.clone(), place);
                        open.spawn(serving);
                    }
                    Err(_) => tokio::time::sleep(RETRY).await,
                },
            }
        }
        site.end();
        open.shutdown().await;
    }
}

/// Serves one connection.
async fn serve(site: Arc<Site>, stream: TcpStream, tls: Option<TlsAcceptor>, place: Option<Place>) {
    // One that is gone already needs no answer.
    let Ok(ours) = stream.local_addr() else {
        return;
    };
    // A delta must not wait for the next one. Where that cannot be had, it is slower and nothing else.
    let _at_once = stream.set_nodelay(true);
    let way = Way {
        ours: ours.ip(),
        tls: tls.is_some(),
        place,
    };
    match tls {
        None => site.serve_by(stream, way).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = tokio::time::timeout(HEAD, tls.accept(stream)).await {
                site.serve_by(stream, way).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_let_near_only_by_tls_and_with_a_token() {
        for (address, tls, tokens, may) in [
            ("127.0.0.1:1", false, false, true),
            ("127.8.8.8:1", false, false, true),
            ("[::1]:1", false, false, true),
            ("[::ffff:127.0.0.1]:1", false, false, true),
            ("0.0.0.0:1", false, true, false),
            ("0.0.0.0:1", true, false, false),
            ("0.0.0.0:1", true, true, true),
            ("[::]:1", true, false, false),
            ("192.0.2.7:1", false, true, false),
            ("192.0.2.7:1", true, true, true),
        ] {
            let allowed = may_listen(address.parse().unwrap(), tls, tokens).is_ok();
            assert_eq!(allowed, may, "{address} {tls} {tokens}");
        }
    }
}
