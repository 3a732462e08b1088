//! The server over HTTP at `/mcp`: whoever brings the token, from this machine, and no page of a
//! browser that was led here by a foreign name.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::door::{Door, Roots};
use crate::handler::McpClient;
use crate::seat::Seat;
use crate::token::Token;

/// Where the server answers.
const PATH: &str = "/mcp";

/// Largest body: the largest text that a tool takes, with room for its escapes.
const BODY: usize = 8 * 1024 * 1024;

/// Connections at once; more wait to be accepted.
const CONNECTIONS: usize = 256;

/// How long a client may take to send the head of a request.
const HEAD: Duration = Duration::from_secs(10);

/// How long the listener rests after a fault, for example too many open files.
const RETRY: Duration = Duration::from_millis(20);

type Body = BoxBody<Bytes, Infallible>;
type Service = StreamableHttpService<McpClient, LocalSessionManager>;

/// The server over HTTP.
pub struct HttpDoor {
    service: Service,
    token: Token,
}

/// Makes a client for each session over HTTP, or for each request that stands alone.
pub fn clients(
    door: &Door,
    roots: Arc<dyn Roots>,
) -> impl Fn() -> McpClient + Send + Sync + 'static {
    let door = door.clone();
    let shared = Arc::new(Seat::shared(Arc::clone(&roots)));
    move || McpClient::over_http(&door, Arc::clone(&roots), &shared)
}

impl HttpDoor {
    /// A server for clients that bring `token`. `roots` makes the roots of those that have none.
    #[must_use]
    pub fn new(door: &Door, roots: Arc<dyn Roots>, token: Token) -> Self {
        let clients = clients(door, roots);
        let client = move || Ok(clients());
        let local = ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"];
        let config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(["localhost", "127.0.0.1", "::1"])
            .with_allowed_origins(local)
            .enforce_origin_validation()
            .with_max_request_body_bytes(BODY);
        Self {
            service: Service::new(client, Arc::default(), config),
            token,
        }
    }

    /// Serves a listener until `stop` ends; then what is open is cut.
    pub async fn serve(self, listener: TcpListener, stop: impl Future<Output = ()>) {
        let ended = self.service.config.cancellation_token.clone();
        let door = Arc::new(self);
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        let mut open = JoinSet::new();
        tokio::pin!(stop);
        loop {
            // Those that have ended leave nothing behind.
            while open.try_join_next().is_some() {}
            let accepted = async {
                // The semaphore is never closed.
                let place = Arc::clone(&room).acquire_owned().await.ok();
                (place, listener.accept().await)
            };
            tokio::select! {
                biased;
                () = &mut stop => break,
                (place, accepted) = accepted => match accepted {
                    Ok((stream, _)) => {
                        let door = Arc::clone(&door);
                        open.spawn(async move {
                            serve_connection(door, stream).await;
                            drop(place);
                        });
                    }
                    Err(_) => tokio::time::sleep(RETRY).await,
                },
            }
        }
        ended.cancel();
        open.shutdown().await;
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        // Who it is comes before what there is.
        let brought = request.headers().get(header::AUTHORIZATION);
        if !brought.is_some_and(|brought| self.token.is_brought_by(brought.as_bytes())) {
            let mut refused = short(
                StatusCode::UNAUTHORIZED,
                "a bearer token is needed: the file mcp-token in the state folder holds it",
            );
            let challenge = header::HeaderValue::from_static("Bearer");
            refused
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, challenge);
            return refused;
        }
        if request.uri().path() != PATH {
            return short(StatusCode::NOT_FOUND, "there is /mcp and nothing else");
        }
        self.service.handle(request).await
    }
}

async fn serve_connection(door: Arc<HttpDoor>, stream: TcpStream) {
    let service = service_fn(move |request| {
        let door = Arc::clone(&door);
        async move { Ok::<_, Infallible>(door.answer(request).await) }
    });
    // A client that is gone has nobody to tell.
    let _served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

fn short(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *response.status_mut() = status;
    response
}
