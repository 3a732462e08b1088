//! Ways to a host's site: over a wire in memory, and over a true one with or without TLS.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use attache_host::web::{Listen, Listener, Site, Tls};
use attache_host::{Channel, Host};
use attache_protocol::{Answer, Command, TokenScope};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderName, HeaderValue, Request};

use crate::kit::Line;

/// Makes a token, as the host's user does.
pub(crate) async fn token(host: &Host, scope: TokenScope, session: Option<&str>) -> String {
    let mut owner = Line::to(host).await;
    let create = Command::CreateToken {
        name: None,
        scope,
        session_id: session.map(str::to_owned),
    };
    match owner.ask(create).await.unwrap() {
        Answer::TokenMade { secret, .. } => secret,
        other => panic!("{other:?}"),
    }
}

/// The near end of a connection to a host's site, in memory.
pub(crate) fn wire(host: &Host) -> DuplexStream {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let site = Arc::new(Site::new(&[]).with("/attach", host.attach_route()));
    tokio::spawn(async move { site.serve(theirs, IpAddr::V4(Ipv4Addr::LOCALHOST)).await });
    ours
}

/// A request for a WebSocket, with more headers.
pub(crate) fn request(uri: &str, more: &[(&'static str, &str)]) -> Request<()> {
    let mut request = uri.into_client_request().unwrap();
    for (name, value) in more {
        let value = HeaderValue::from_str(value).unwrap();
        let headers = request.headers_mut();
        headers.insert(HeaderName::from_static(name), value);
    }
    request
}

/// Asks for a WebSocket over a wire; the status where there is none to be had.
pub(crate) async fn knock(
    wire: impl Channel + 'static,
    request: Request<()>,
) -> Result<WebSocketStream<Box<dyn Channel>>, u16> {
    let wire: Box<dyn Channel> = Box::new(wire);
    match tokio_tungstenite::client_async(request, wire).await {
        Ok((socket, _)) => Ok(socket),
        Err(Error::Http(refused)) => Err(refused.status().as_u16()),
        Err(other) => panic!("{other}"),
    }
}

/// A connection with a token, in memory.
pub(crate) async fn socket(host: &Host, secret: &str) -> Line {
    let bearer = format!("Bearer {secret}");
    let request = request("ws://localhost/attach", &[("authorization", &bearer)]);
    Line::over(knock(wire(host), request).await.unwrap()).await
}

/// What answers a request, as it came: its head and its body.
pub(crate) async fn answer(host: &Host, request: &str) -> String {
    let mut wire = wire(host);
    wire.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return text;
            }
        }
        assert!(wire.read_buf(&mut bytes).await.unwrap() > 0, "{text}");
    }
}

/// A listener of this machine, which ends with it.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    _stop: oneshot::Sender<()>,
}

pub(crate) async fn listen(host: &Host, tls: Option<Tls>) -> Served {
    let listen = Listen {
        address: "127.0.0.1:0".parse().unwrap(),
        tls,
        has_tokens: host.has_tokens(),
    };
    let listener = Listener::bind(listen).await.unwrap();
    let address = listener.address();
    let site = Site::new(&[]).with("/attach", host.attach_route());
    let (stop, stopped) = oneshot::channel();
    tokio::spawn(listener.serve(site, async move { drop(stopped.await) }));
    Served {
        address,
        _stop: stop,
    }
}

impl Served {
    /// A connection with a token over a true wire.
    pub(crate) async fn socket(&self, secret: &str) -> Line {
        let bearer = format!("Bearer {secret}");
        let uri = format!("ws://{}/attach", self.address);
        let wire = TcpStream::connect(self.address).await.unwrap();
        let request = request(&uri, &[("authorization", &bearer)]);
        Line::over(knock(wire, request).await.unwrap()).await
    }
}
