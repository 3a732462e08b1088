//! The way to a host elsewhere: a WebSocket that carries the same frames, with a token, over TLS where the address says so.
//! It is made into a stream of lines here, so that all above it is the same for a host of this machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use attache_protocol::FRAME_LIMIT;
use futures_util::{SinkExt, StreamExt};
use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls_platform_verifier::Verifier;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use url::Url;
use yawc::{Frame, HttpRequest, OpCode, Options, WebSocket, WebSocketError};

use crate::client::{Client, ClientError, Streams};
use crate::daemon::{ConnectError, GREETING};

/// The path of the attach protocol on a listener.
const PATH: &str = "/attach";

/// The port of a listener whose address names none.
const PORT: u16 = 7433;

/// How long nothing may come. The host asks every 30 seconds whether its viewer is still there, so one that is silent for
/// longer than this is gone, or the way to it is.
const SILENCE: Duration = Duration::from_secs(90);

/// Bytes that wait between the socket and its reader.
const BUFFER: usize = 64 * 1024;

/// A host elsewhere, and what lets one in there.
#[derive(Clone)]
pub struct Elsewhere {
    url: Url,
    token: Option<String>,
    certificates: Option<PathBuf>,
    /// The viewer's name and version.
    pub program: String,
    /// Makes the viewer's command ids unique.
    pub run: String,
}

/// A token is not told to whoever prints this.
impl std::fmt::Debug for Elsewhere {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Elsewhere")
            .field("url", &self.url.as_str())
            .field("certificates", &self.certificates)
            .finish_non_exhaustive()
    }
}

impl Elsewhere {
    /// A host by its address: `wss://NAME[:PORT]` or `ws://…`, with nothing behind it or the path `/attach`. Port 7433 where
    /// none is named. `certificates` is a PEM file with what vouches for the host beside what this system trusts.
    ///
    /// # Errors
    ///
    /// A text that says what is wrong with the address. One without TLS is taken for this machine only: a token would be
    /// read by whoever is on the way.
    pub fn at(
        address: &str,
        token: Option<String>,
        certificates: Option<PathBuf>,
        program: &str,
        run: &str,
    ) -> Result<Self, String> {
        let mut url = Url::parse(address).map_err(|fault| {
            format!("{address} is no address of a host ({fault}): wss://NAME[:PORT]")
        })?;
        let is_ours = matches!(url.scheme(), "ws" | "wss")
            && url.host().is_some()
            && matches!(url.path(), "" | "/" | PATH)
            && url.query().is_none()
            && url.fragment().is_none();
        if !is_ours {
            return Err(format!(
                "{address} is no address of a host: wss://NAME[:PORT]"
            ));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("an address holds no token: histories and logs would keep it".to_owned());
        }
        if url.scheme() == "ws" && !is_loopback(&url) {
            return Err(format!(
                "{address} is another machine and has no TLS, so that its token could be read on the way: use wss://"
            ));
        }
        // What the scheme has as its own port is not told apart from none; ours is the one that is meant.
        if url.port().is_none() && !names_port(address) {
            // A URL with a host takes a port.
            let _set = url.set_port(Some(PORT));
        }
        url.set_path(PATH);
        Ok(Self {
            url,
            token,
            certificates,
            program: program.to_owned(),
            run: run.to_owned(),
        })
    }

    /// The address, for people.
    #[must_use]
    pub fn address(&self) -> &str {
        self.url
            .as_str()
            .strip_suffix(PATH)
            .unwrap_or(self.url.as_str())
    }

    /// Connects, and greets the host.
    pub(crate) async fn connect(&self) -> Result<(Client, Streams), ConnectError> {
        let reached = async {
            let stream = self.lines().await?;
            match Client::greet(stream, &self.program, &self.run).await {
                // One that hangs up before it greets is just leaving: another may come in its place.
                Err(ClientError::Gone(why)) => Err(self.unreachable(&why)),
                greeted => Ok(greeted?),
            }
        };
        match timeout(GREETING, reached).await {
            Ok(reached) => reached,
            Err(_silent) => Err(self.unreachable("it does not answer")),
        }
    }

    /// A stream of lines to and from the host.
    async fn lines(&self) -> Result<DuplexStream, ConnectError> {
        let name = self.url.host_str().unwrap_or_default();
        // An address of IPv6 stands in brackets in a URL and nowhere else.
        let name = name.trim_start_matches('[').trim_end_matches(']');
        let port = self.url.port_or_known_default().unwrap_or(PORT);
        let stream = TcpStream::connect((name, port)).await;
        let stream = stream.map_err(|fault| self.unreachable(&fault.to_string()))?;
        // A line that is typed goes at once.
        let _set = stream.set_nodelay(true);
        if self.url.scheme() == "ws" {
            return self.upgraded(stream).await;
        }
        let config = self.tls().map_err(|why| ConnectError::Trust {
            host: self.address().to_owned(),
            why,
        })?;
        let named = ServerName::try_from(name.to_owned());
        let named = named.map_err(|fault| self.unreachable(&fault.to_string()))?;
        let secured = TlsConnector::from(Arc::new(config))
            .connect(named, stream)
            .await;
        match secured {
            Ok(secured) => self.upgraded(secured).await,
            Err(fault)
                if fault
                    .get_ref()
                    .is_some_and(<dyn std::error::Error + Send + Sync>::is::<rustls::Error>) =>
            {
                Err(ConnectError::Trust {
                    host: self.address().to_owned(),
                    why: fault.to_string(),
                })
            }
            Err(fault) => Err(self.unreachable(&fault.to_string())),
        }
    }

    fn tls(&self) -> Result<ClientConfig, String> {
        let provider = Arc::new(ring::default_provider());
        let extra = self.certificates.as_deref().map(certificates).transpose()?;
        let verifier =
            Verifier::new_with_extra_roots(extra.unwrap_or_default(), Arc::clone(&provider));
        let verifier = verifier.map_err(|fault| fault.to_string())?;
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|fault| fault.to_string())?;
        // It is the verifier of the platform, and only that its roots are more is unusual.
        Ok(config
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth())
    }

    async fn upgraded<S>(&self, stream: S) -> Result<DuplexStream, ConnectError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let mut request = HttpRequest::builder();
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
            if request.headers_ref().is_none() {
                return Err(self.no_entry("the token has characters that no token has"));
            }
        }
        let options = Options::default()
            .with_limits(FRAME_LIMIT + 1, FRAME_LIMIT + 1)
            .with_utf8()
            .with_low_latency_compression();
        let socket = WebSocket::handshake_with_request(self.url.clone(), stream, options, request);
        match socket.await {
            Ok(socket) => {
                let (near, far) = tokio::io::duplex(BUFFER);
                tokio::spawn(carry(socket, far));
                Ok(near)
            }
            Err(WebSocketError::InvalidStatusCode(401)) => Err(self.no_entry(match &self.token {
                Some(_) => "it does not know the token",
                None => "it asks for a token",
            })),
            Err(WebSocketError::InvalidStatusCode(403)) => Err(self.no_entry(
                "it is not served under this name; `attache serve --allow-host NAME` there adds it",
            )),
            Err(WebSocketError::InvalidStatusCode(code)) => Err(self.no_entry(&format!(
                "it answered with HTTP status {code}: no host listens there, or one of another version"
            ))),
            Err(fault) => Err(self.unreachable(&fault.to_string())),
        }
    }

    fn unreachable(&self, why: &str) -> ConnectError {
        ConnectError::Unreachable {
            host: self.address().to_owned(),
            why: why.to_owned(),
        }
    }

    fn no_entry(&self, why: &str) -> ConnectError {
        ConnectError::NoEntry {
            host: self.address().to_owned(),
            why: why.to_owned(),
        }
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// Whether a port stands in an address, be it the one that its scheme has anyway.
fn names_port(address: &str) -> bool {
    let authority = address.split("://").nth(1).unwrap_or_default();
    let authority = authority.split('/').next().unwrap_or_default();
    let behind = authority.rsplit(']').next().unwrap_or_default();
    behind.contains(':')
}

/// Certificates of a PEM file.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let fault = |why: String| format!("{}: {why}", path.display());
    let read = CertificateDer::pem_file_iter(path).map_err(|why| fault(why.to_string()))?;
    let read: Result<Vec<_>, _> = read.collect();
    let read = read.map_err(|why| fault(why.to_string()))?;
    if read.is_empty() {
        return Err(fault("there is no certificate in it".to_owned()));
    }
    Ok(read)
}

/// Carries lines to the socket as messages, and messages back as lines, until either end is gone.
async fn carry<S>(socket: WebSocket<S>, lines: DuplexStream)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (mut out, mut messages) = socket.split();
    let (read, mut write) = tokio::io::split(lines);
    // The answers to the host's questions wait in the socket for whoever writes next.
    let (asked, mut is_asked) = mpsc::channel::<()>(1);
    let up = async {
        let mut read = BufReader::new(read);
        let mut line = Vec::new();
        loop {
            // What was read of a line is kept in it when the other branch is taken.
            let sent = tokio::select! {
                biased;
                count = read.read_until(b'\n', &mut line) => match count {
                    Ok(1..) if line.ends_with(b"\n") => {
                        line.pop();
                        out.send(Frame::text(std::mem::take(&mut line))).await
                    }
                    _ => break,
                },
                Some(()) = is_asked.recv() => out.flush().await,
            };
            if sent.is_err() {
                return;
            }
        }
        // It says goodbye; whether anybody hears it is no matter.
        let _left = out.close().await;
    };
    let down = async {
        while let Ok(Some(message)) = timeout(SILENCE, messages.next()).await {
            match message.opcode() {
                OpCode::Text => {
                    let mut line = Vec::from(message.into_payload());
                    line.push(b'\n');
                    if write.write_all(&line).await.is_err() {
                        return;
                    }
                }
                OpCode::Ping => {
                    // One question that waits is enough.
                    let _told = asked.try_send(());
                }
                OpCode::Close => return,
                _ => {}
            }
        }
    };
    tokio::select! {
        () = up => {}
        () = down => {}
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;
    use yawc::Role;

    use super::*;

    fn at(address: &str) -> Result<String, String> {
        let elsewhere = Elsewhere::at(address, Some("secret".to_owned()), None, "test", "t")?;
        assert!(!format!("{elsewhere:?}").contains("secret"));
        Ok(elsewhere.url.to_string())
    }

    #[test]
    fn an_address_is_a_name_and_perhaps_a_port() {
        let table = [
            ("wss://box.example", "wss://box.example:7433/attach"),
            ("wss://box.example/", "wss://box.example:7433/attach"),
            ("wss://box.example/attach", "wss://box.example:7433/attach"),
            // The port that the scheme has by itself, when it is asked for.
            ("wss://box.example:443", "wss://box.example/attach"),
            ("wss://box.example:99", "wss://box.example:99/attach"),
            ("wss://[2001:db8::1]", "wss://[2001:db8::1]:7433/attach"),
            ("ws://localhost:1", "ws://localhost:1/attach"),
            ("ws://127.0.0.1", "ws://127.0.0.1:7433/attach"),
            ("ws://[::1]:80", "ws://[::1]/attach"),
        ];
        for (address, url) in table {
            assert_eq!(at(address).as_deref(), Ok(url), "{address}");
        }
        for (address, why) in [
            ("box.example", "no address"),
            ("https://box.example", "no address"),
            ("wss://box.example/other", "no address"),
            ("wss://box.example/?token=x", "no address"),
            ("wss://box.example/#x", "no address"),
            ("wss://", "no address"),
            ("ws://box.example", "no TLS"),
            ("ws://192.168.0.1", "no TLS"),
            ("wss://secret@box.example", "holds no token"),
        ] {
            let refused = at(address).unwrap_err();
            assert!(refused.contains(why), "{address}: {refused}");
        }
    }

    /// Both ends of a WebSocket that is carried: the lines of the viewer, and the host's socket.
    fn carried() -> (DuplexStream, WebSocket<DuplexStream>) {
        let (near, far) = tokio::io::duplex(BUFFER);
        let (lines, carried) = tokio::io::duplex(BUFFER);
        let of = |io, role| WebSocket::from_stream(io, role, Options::default()).unwrap();
        tokio::spawn(carry(of(near, Role::Client), carried));
        (lines, of(far, Role::Server))
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_that_is_silent_for_ninety_seconds_is_gone() {
        let (mut lines, mut host) = carried();
        // It is asked whether it is there, answers, and hears nothing more.
        host.send(Frame::ping(Vec::new())).await.unwrap();
        let answer = host.next().await.unwrap();
        assert_eq!(answer.opcode(), OpCode::Pong);
        let second = Duration::from_secs(1);
        let mut byte = [0];
        let early = timeout(SILENCE - second, lines.read(&mut byte)).await;
        assert!(early.is_err());
        let end = timeout(2 * second, lines.read(&mut byte)).await;
        assert_eq!(end.unwrap().unwrap(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn lines_are_messages_and_whoever_leaves_says_goodbye() {
        let (mut lines, mut host) = carried();
        lines.write_all(b"{\"a\":1}\n{\"b\"").await.unwrap();
        assert_eq!(&host.next().await.unwrap().payload()[..], b"{\"a\":1}");
        // A question in the middle of a line takes nothing of it.
        host.send(Frame::ping(Vec::new())).await.unwrap();
        assert_eq!(host.next().await.unwrap().opcode(), OpCode::Pong);
        lines.write_all(b":2}\n").await.unwrap();
        assert_eq!(&host.next().await.unwrap().payload()[..], b"{\"b\":2}");
        host.send(Frame::text("{\"c\":3}")).await.unwrap();
        let mut line = [0; 8];
        lines.read_exact(&mut line).await.unwrap();
        assert_eq!(&line, b"{\"c\":3}\n");
        drop(lines);
        assert_eq!(host.next().await.unwrap().opcode(), OpCode::Close);
    }
}
