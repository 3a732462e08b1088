//! The route `/attach`: the attach protocol over a WebSocket, for whoever brings a token.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use attache_engine::EngineError;
use attache_session::ErrorCode;
use http::header::{AUTHORIZATION, HeaderValue, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use tokio::io::{AsyncRead, AsyncWrite};
use yawc::{Options, WebSocket};

use super::site::{Body, Incoming, Place, Route, short, unauthorised};
use super::{pulse, socket};
use crate::connection;
use crate::host::Host;
use crate::tokens::Bearer;

/// The subprotocol.
const PROTOCOL: &str = "attache.v1";

/// What stands before a token in the list of subprotocols, where a browser can set no header.
const BEARER: &str = "attache.bearer.";

/// See the module.
struct Attach {
    host: Host,
    options: Options,
}

impl Host {
    /// The attach protocol as a route.
    #[must_use]
    pub fn attach_route(&self) -> Arc<dyn Route> {
        Arc::new(Attach {
            host: self.clone(),
            options: socket::options(),
        })
    }
}

impl Attach {
    fn bearer(&self, headers: &HeaderMap) -> Option<Bearer> {
        self.host.0.tokens.bearer(&brought(headers)?)
    }
}

/// The token that headers bring: the one header that is for it, or else a subprotocol.
fn brought(headers: &HeaderMap) -> Option<Vec<u8>> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    match (values.next(), values.next()) {
        (Some(only), None) => {
            let (scheme, token) = only.as_bytes().split_at_checked(SCHEME.len())?;
            scheme.eq_ignore_ascii_case(SCHEME).then(|| token.to_vec())
        }
        (Some(_), Some(_)) => None,
        (None, _) => {
            let token = protocols(headers).find_map(|it| it.strip_prefix(BEARER))?;
            Some(token.as_bytes().to_vec())
        }
    }
}

/// The scheme of a token in its header.
const SCHEME: &[u8] = b"bearer ";

/// Subprotocols that the other end speaks.
fn protocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let lines = lines.filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim)
}

impl Route for Attach {
    fn knows(&self, headers: &HeaderMap) -> bool {
        self.bearer(headers).is_some()
    }

    fn answer<'a>(
        &'a self,
        request: Request<Incoming>,
    ) -> Pin<Box<dyn Future<Output = Response<Body>> + Send + 'a>> {
        Box::pin(async move { self.upgrade(request) })
    }
}

impl Attach {
    /// Changes the protocol of a connection; what follows is served beside the listener.
    fn upgrade(&self, mut request: Request<Incoming>) -> Response<Body> {
        let headers = request.headers();
        // It may have been revoked since it was known.
        let Some(bearer) = self.bearer(headers) else {
            return unauthorised();
        };
        let is_upgrade = headers
            .get(UPGRADE)
            .is_some_and(|it| it.as_bytes().eq_ignore_ascii_case(b"websocket"));
        if request.method() != Method::GET || !is_upgrade {
            return short(StatusCode::UPGRADE_REQUIRED, "this is a WebSocket");
        }
        let speaks = protocols(headers).any(|it| it == PROTOCOL);
        if !speaks && headers.contains_key(SEC_WEBSOCKET_PROTOCOL) {
            let text = "the subprotocol here is attache.v1";
            return short(StatusCode::BAD_REQUEST, text);
        }
        let place = request.extensions().get::<Place>().cloned();
        let upgraded = WebSocket::upgrade_with_options(&mut request, self.options.clone());
        let Ok((response, socket)) = upgraded else {
            return short(
                StatusCode::BAD_REQUEST,
                "this is no request for a WebSocket",
            );
        };
        let host = self.host.clone();
        tokio::spawn(async move {
            if let Ok(socket) = socket.await {
                host.serve_socket(socket, bearer).await;
            }
            drop(place);
        });
        let mut response = response.map(BodyExt::boxed);
        if speaks {
            let spoken = HeaderValue::from_static(PROTOCOL);
            response
                .headers_mut()
                .insert(SEC_WEBSOCKET_PROTOCOL, spoken);
        }
        response
    }
}

impl Host {
    /// Serves a WebSocket until its other end is gone or its token is revoked.
    async fn serve_socket<S>(&self, socket: WebSocket<S>, bearer: Bearer)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let Bearer { grant, mut revoked } = bearer;
        let (incoming, outgoing, heard) = socket::ways(socket);
        let pulse = outgoing.clone();
        let cut = async move {
            tokio::select! {
                // The other end of it goes with the token.
                _gone = revoked.changed() => {
                    let text = "the token of this connection was revoked";
                    Some(EngineError::new(ErrorCode::NotPermitted, text))
                }
                () = pulse::vanished(&pulse, &heard) => None,
            }
        };
        let host = self.clone();
        let number = connection::number();
        let serving = connection::converse(host, number, grant, incoming, None, outgoing, cut);
        self.connected(serving).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_in_its_header_or_as_a_subprotocol() {
        for (authorization, protocol, token) in [
            (Some("Bearer a"), None, Some("a")),
            (Some("bEARER a"), None, Some("a")),
            (Some("Basic a"), None, None),
            (Some("a"), None, None),
            (None, Some("attache.v1, attache.bearer.b"), Some("b")),
            (None, Some("attache.bearer.b,attache.v1"), Some("b")),
            (None, Some("attache.v1"), None),
            (Some("Bearer a"), Some("attache.bearer.b"), Some("a")),
            // Who says two things is not given the choice.
            (Some("Basic a"), Some("attache.bearer.b"), None),
            (None, None, None),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(value) = authorization {
                headers.insert(AUTHORIZATION, value.parse().unwrap());
            }
            if let Some(value) = protocol {
                headers.insert(SEC_WEBSOCKET_PROTOCOL, value.parse().unwrap());
            }
            let expected = token.map(|token| token.as_bytes().to_vec());
            assert_eq!(
                brought(&headers),
                expected,
                "{authorization:?} {protocol:?}"
            );
        }
        let mut twice = HeaderMap::new();
        for _ in 0..2 {
            twice.append(AUTHORIZATION, "Bearer a".parse().unwrap());
        }
        assert_eq!(brought(&twice), None);
    }
}
