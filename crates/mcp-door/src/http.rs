//! The server over HTTP: whoever brings the token. The listener is another's, who has looked at names and pages before:
//! nothing here knows of sockets.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, header};
use http_body::Body;
use http_body_util::combinators::BoxBody;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};

use crate::door::{Door, Roots};
use crate::handler::McpClient;
use crate::seat::Seat;
use crate::token::Token;

/// Largest body: the largest text that a tool takes, with room for its escapes.
const BODY: usize = 8 * 1024 * 1024;

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
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_max_request_body_bytes(BODY);
        Self {
            service: Service::new(client, Arc::default(), config),
            token,
        }
    }

    /// Whether these headers bring the token.
    #[must_use]
    pub fn knows(&self, headers: &HeaderMap) -> bool {
        let brought = headers.get(header::AUTHORIZATION);
        brought.is_some_and(|brought| self.token.is_brought_by(brought.as_bytes()))
    }

    /// Answers a request of somebody who brought the token.
    pub async fn answer<B>(&self, request: Request<B>) -> Response<BoxBody<Bytes, Infallible>>
    where
        B: Body + Send + 'static,
        B::Error: std::fmt::Display,
    {
        self.service.handle(request).await
    }

    /// Ends what is open: its listener ends.
    pub fn end(&self) {
        self.service.config.cancellation_token.cancel();
    }
}
