//! What a listener serves, on one connection at a time: who has no business here is turned away first, then who brings
//! nothing that a route knows, and only then a route is asked.

use std::convert::Infallible;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderValue, WWW_AUTHENTICATE};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::OwnedSemaphorePermit;

use super::guard::Guard;

pub use hyper::body::Incoming;

/// How long a client may take to send the head of a request, or to agree on TLS.
pub(super) const HEAD: Duration = Duration::from_secs(10);

/// The body of an answer.
pub type Body = BoxBody<Bytes, Infallible>;

/// What answers below one path.
pub trait Route: Send + Sync {
    /// Whether these headers bring what this route lets in. How long it takes to see that says nothing of what would.
    fn knows(&self, headers: &HeaderMap) -> bool;

    /// Answers a request that brought it.
    fn answer<'a>(
        &'a self,
        request: Request<Incoming>,
    ) -> Pin<Box<dyn Future<Output = Response<Body>> + Send + 'a>>;

    /// The listener ends: what is open has to end too.
    fn end(&self) {}
}

/// A place among the connections of a listener. Whoever goes on with a connection by other means keeps it.
#[derive(Clone)]
pub(super) struct Place(
    #[expect(dead_code, reason = "it is given back when it is dropped")] Arc<OwnedSemaphorePermit>,
);

impl Place {
    pub(super) fn new(permit: OwnedSemaphorePermit) -> Self {
        Self(Arc::new(permit))
    }
}

/// See the module.
pub struct Site {
    guard: Guard,
    routes: Vec<(&'static str, Arc<dyn Route>)>,
}

/// How a connection came.
#[derive(Clone)]
pub(super) struct Way {
    /// Our own address that was called.
    pub(super) ours: IpAddr,
    /// Whether by TLS.
    pub(super) tls: bool,
    pub(super) place: Option<Place>,
}

impl Site {
    /// A site that is called by these names too, beside the address of its listener and the names of this machine.
    #[must_use]
    pub fn new(names: &[String]) -> Self {
        Self {
            guard: Guard::new(names),
            routes: Vec::new(),
        }
    }

    /// The same with a route at a path.
    #[must_use]
    pub fn with(mut self, path: &'static str, route: Arc<dyn Route>) -> Self {
        self.routes.push((path, route));
        self
    }

    /// Serves one connection that came to this address of ours without TLS, until its end or its change of protocol.
    pub async fn serve<S>(self: &Arc<Self>, stream: S, ours: IpAddr)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let way = Way {
            ours,
            tls: false,
            place: None,
        };
        self.serve_by(stream, way).await;
    }

    pub(super) async fn serve_by<S>(self: &Arc<Self>, stream: S, way: Way)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let service = service_fn(move |request| {
            let (site, way) = (Arc::clone(self), way.clone());
            async move { Ok::<_, Infallible>(site.answer(request, way).await) }
        });
        // A client that is gone has nobody to tell. Answers that refuse are the same at any time: they have no date.
        let _served = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .auto_date_header(false)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades()
            .await;
    }

    async fn answer(&self, mut request: Request<Incoming>, way: Way) -> Response<Body> {
        let Way { ours, tls, place } = way;
        if !self
            .guard
            .lets_in(request.headers(), request.uri(), ours, tls)
        {
            let text = "this page, or the name that it calls this host by, is not let in";
            return short(StatusCode::FORBIDDEN, text);
        }
        // All are asked each time, whatever the path: who is not known learns nothing of it.
        let (mut here, mut is_known) = (None, false);
        for (path, route) in &self.routes {
            let knows = route.knows(request.headers());
            is_known |= knows;
            if *path == request.uri().path() {
                here = Some((route, knows));
            }
        }
        match here {
            Some((route, true)) => {
                if let Some(place) = place {
                    request.extensions_mut().insert(place);
                }
                route.answer(request).await
            }
            None if is_known => short(StatusCode::NOT_FOUND, "there is nothing here"),
            Some((_, false)) | None => unauthorised(),
        }
    }

    pub(super) fn end(&self) {
        for (_, route) in &self.routes {
            route.end();
        }
    }
}

/// The one answer to whoever is not known.
pub(super) fn unauthorised() -> Response<Body> {
    let mut refused = short(
        StatusCode::UNAUTHORIZED,
        "a bearer token is needed: `attache token create` makes one",
    );
    let challenge = HeaderValue::from_static("Bearer");
    refused.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    refused
}

pub(super) fn short(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *response.status_mut() = status;
    response
}
