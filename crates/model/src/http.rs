//! The thin shell between a decoder and the network: one client for the process, places in flight, the answer's status
//! and head, and the one timer of this crate (patience for usage after the model has stopped). It does not retry.

use std::collections::HashMap;
use std::error::Error as _;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, StatusCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::delta::{Delta, Deltas};
use crate::dialect::{Decoder, Dialect, Phase, truncated};
use crate::encode::Quirks;
use crate::error::{ErrorKind, ModelError};
use crate::fault;
use crate::model::{BoxFuture, Model, ModelStream, StreamStep};
use crate::provider::Secret;
use crate::request::Request;
use crate::sse::SseReader;

/// Requests in flight to one provider; more wait for a place.
const IN_FLIGHT: usize = 64;
/// Most bytes of an error body that are read.
const ERROR_BODY_LIMIT: usize = 64 * 1024;
/// How long usage may take after the model has stopped, when no terminal event comes.
const USAGE_PATIENCE: Duration = Duration::from_secs(2);
/// How long a connection may take to be made.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// The connections of the whole process. Made at first use; share one between all [`crate::Providers`].
#[derive(Default)]
pub struct HttpClient {
    /// For `http` on this machine: no trust roots are loaded and no proxy is asked.
    loopback: OnceLock<reqwest::Client>,
    /// For `http` elsewhere: no trust roots are loaded.
    plain: OnceLock<reqwest::Client>,
    /// For `https`.
    tls: OnceLock<reqwest::Client>,
    places: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").finish_non_exhaustive()
    }
}

impl HttpClient {
    /// A client that has not connected to anything and loaded nothing.
    pub fn new() -> Self {
        Self::default()
    }

    fn for_url(&self, url: &reqwest::Url) -> Result<reqwest::Client, ModelError> {
        let loopback = is_loopback(url);
        let (cell, make): (_, fn() -> Result<reqwest::Client, reqwest::Error>) =
            match (url.scheme(), loopback) {
                ("https", _) => (&self.tls, || builder(tls_with_roots()).build()),
                (_, true) => (&self.loopback, || {
                    builder(Some(tls_without_roots())).no_proxy().build()
                }),
                (_, false) => (&self.plain, || builder(Some(tls_without_roots())).build()),
            };
        if let Some(client) = cell.get() {
            return Ok(client.clone());
        }
        let client = make().map_err(|fault| {
            ModelError::new(
                ErrorKind::Unreachable,
                format!("no HTTP client could be made: {}", causes(&fault)),
            )
        })?;
        Ok(cell.get_or_init(|| client).clone())
    }

    /// The places of one provider, by name and address.
    pub(crate) fn places(&self, key: &str) -> Arc<Semaphore> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = places.get(key) {
            return Arc::clone(known);
        }
        places.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
        let semaphore = Arc::new(Semaphore::new(IN_FLIGHT));
        places.insert(key.to_owned(), Arc::clone(&semaphore));
        semaphore
    }
}

fn builder(tls: Option<rustls::ClientConfig>) -> reqwest::ClientBuilder {
    let builder = reqwest::Client::builder()
        .user_agent(concat!("attache/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_LIMIT)
        .tcp_nodelay(true)
        .pool_max_idle_per_host(IN_FLIGHT);
    match tls {
        Some(tls) => builder.tls_backend_preconfigured(tls),
        None => builder,
    }
}

/// `None`: the library makes its usual configuration, with the system's roots, from the provider installed here.
fn tls_with_roots() -> Option<rustls::ClientConfig> {
    // Fails when another part of the process has installed a provider already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    None
}

/// A configuration that trusts nobody and costs nothing, for clients that never speak TLS.
fn tls_without_roots() -> rustls::ClientConfig {
    rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider supports the default versions")
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth()
}

/// Whether an address is on this machine.
pub(crate) fn is_loopback(url: &reqwest::Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host.ends_with(".localhost")
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// A provider that is reached over HTTP, ready for requests.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) provider: Arc<str>,
    pub(crate) dialect: Dialect,
    pub(crate) base_url: String,
    /// Where to look when the address is wrong.
    pub(crate) base_url_from: String,
    pub(crate) api_key: Option<Secret>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) quirks: Quirks,
}

/// One model of an [`Endpoint`].
pub(crate) struct HttpModel {
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) id: Arc<str>,
    pub(crate) client: Arc<HttpClient>,
    pub(crate) places: Arc<Semaphore>,
}

impl Model for HttpModel {
    fn start(&self, request: Request) -> Box<dyn ModelStream> {
        let endpoint = Arc::clone(&self.endpoint);
        let (client, places) = (Arc::clone(&self.client), Arc::clone(&self.places));
        let decoder = endpoint.dialect.decoder();
        let opening = Box::pin(open(Arc::clone(&endpoint), client, places, request));
        Box::new(HttpStream {
            endpoint,
            state: State::Opening(opening),
            decoder,
            sse: SseReader::new(),
        })
    }

    fn provider(&self) -> &str {
        &self.endpoint.provider
    }

    fn id(&self) -> &str {
        &self.id
    }
}

struct HttpStream {
    endpoint: Arc<Endpoint>,
    state: State,
    decoder: Box<dyn Decoder>,
    sse: SseReader,
}

enum State {
    Opening(BoxFuture<'static, Result<Opened, ModelError>>),
    Reading {
        opened: Opened,
        usage_until: Option<Instant>,
    },
    Over(StreamStep),
}

/// An answer whose head has come. Dropping it closes the connection and gives the place back.
struct Opened {
    response: Response,
    notices: Vec<String>,
    _place: OwnedSemaphorePermit,
}

impl ModelStream for HttpStream {
    fn next<'a>(&'a mut self, out: &'a mut Deltas) -> BoxFuture<'a, StreamStep> {
        Box::pin(self.step(out))
    }
}

impl HttpStream {
    /// Every await is on something that keeps its progress in `self`, so that the future may be dropped at any of them.
    async fn step(&mut self, out: &mut Deltas) -> StreamStep {
        let read = match &mut self.state {
            State::Over(step) => return step.clone(),
            State::Opening(opening) => match opening.await {
                Ok(mut opened) => {
                    for notice in opened.notices.drain(..) {
                        out.push(Delta::Notice(notice));
                    }
                    self.state = State::Reading {
                        opened,
                        usage_until: None,
                    };
                    return StreamStep::Bytes;
                }
                Err(error) => return self.over(StreamStep::Failed(error)),
            },
            State::Reading {
                opened,
                usage_until: None,
            } => opened.response.chunk().await,
            State::Reading {
                opened,
                usage_until: Some(until),
            } => match tokio::time::timeout_at(*until, opened.response.chunk()).await {
                Ok(read) => read,
                Err(_) => Ok(None),
            },
        };
        match read {
            Ok(Some(bytes)) => self.take(&bytes, out),
            Ok(None) => self.end_of_bytes(out),
            Err(_) if self.decoder.phase() == Phase::Stopped => self.end_of_bytes(out),
            Err(fault) => {
                // The text of the decoder's own verdict (cut off) is less exact than the cause.
                let _ = self.decoder.end(out);
                let message = format!(
                    "the connection broke before the reply was finished: {}",
                    causes(&fault)
                );
                self.over(StreamStep::Failed(ModelError::new(
                    ErrorKind::Truncated,
                    message,
                )))
            }
        }
    }

    fn over(&mut self, step: StreamStep) -> StreamStep {
        // Drops the response: the connection is closed, or goes back to the pool when its answer was read to the end.
        self.state = State::Over(step.clone());
        step
    }

    fn take(&mut self, bytes: &[u8], out: &mut Deltas) -> StreamStep {
        self.sse.push(bytes);
        loop {
            match self.sse.next_event() {
                Ok(Some(event)) => self.decoder.push(event, out),
                Ok(None) => break,
                Err(fault) => {
                    let error = ModelError::new(ErrorKind::Malformed, fault.to_string());
                    return self.over(StreamStep::Failed(error));
                }
            }
            match self.decoder.phase() {
                Phase::Closed => return self.over(StreamStep::End),
                Phase::Failed => return self.failed(out),
                Phase::Open | Phase::Stopped => {}
            }
        }
        if self.decoder.phase() == Phase::Stopped
            && let State::Reading {
                usage_until: usage_until @ None,
                ..
            } = &mut self.state
        {
            *usage_until = Some(Instant::now() + USAGE_PATIENCE);
        }
        StreamStep::Bytes
    }

    fn end_of_bytes(&mut self, out: &mut Deltas) -> StreamStep {
        if let Some(event) = self.sse.finish() {
            self.decoder.push(event, out);
            if self.decoder.phase() == Phase::Failed {
                let StreamStep::Failed(error) = self.failed(out) else {
                    return StreamStep::End;
                };
                // Half an event is no sign of a wrong dialect.
                let error = if error.kind == ErrorKind::Malformed {
                    truncated()
                } else {
                    error
                };
                return self.over(StreamStep::Failed(error));
            }
        }
        match self.decoder.end(out) {
            Ok(()) => self.over(StreamStep::End),
            Err(error) => self.over(StreamStep::Failed(error)),
        }
    }

    /// The failure that the decoder pushed, as the step.
    fn failed(&mut self, out: &mut Deltas) -> StreamStep {
        let error = match out.pop_failed() {
            Some(error) => self.endpoint.named(error),
            None => truncated(),
        };
        self.over(StreamStep::Failed(error))
    }
}

async fn open(
    endpoint: Arc<Endpoint>,
    client: Arc<HttpClient>,
    places: Arc<Semaphore>,
    request: Request,
) -> Result<Opened, ModelError> {
    let place = places
        .acquire_owned()
        .await
        .map_err(|_| ModelError::new(ErrorKind::Cancelled, "the client is shutting down"))?;
    let url = endpoint.url()?;
    let client = client.for_url(&url)?;
    let encoded = endpoint.dialect.encode(&request, &endpoint.quirks);
    drop(request);
    let response = client
        .post(url)
        .headers(endpoint.header_map()?)
        .body(encoded.body)
        .send()
        .await
        .map_err(|fault| endpoint.not_sent(&fault))?;
    if response.status() == StatusCode::OK && is_event_stream(response.headers()) {
        return Ok(Opened {
            response,
            notices: encoded.notices,
            _place: place,
        });
    }
    Err(endpoint.refused(response).await)
}

/// Whether an answer may be a stream. A missing type is let through: the decoder will say.
fn is_event_stream(headers: &HeaderMap) -> bool {
    let Some(kind) = headers
        .get("content-type")
        .and_then(|kind| kind.to_str().ok())
    else {
        return true;
    };
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.is_empty()
        || !["text/html", "application/json"]
            .iter()
            .any(|other| kind.eq_ignore_ascii_case(other))
}

impl Endpoint {
    /// What tells one set of places from another.
    pub(crate) fn places_key(&self) -> String {
        format!("{} {}", self.provider, self.base_url)
    }

    fn url(&self) -> Result<reqwest::Url, ModelError> {
        let address = self.dialect.endpoint(&self.base_url);
        reqwest::Url::parse(&address).map_err(|fault| {
            ModelError::new(
                ErrorKind::Unreachable,
                format!(
                    "the base URL of provider {} is not a URL ({fault}): check {}",
                    self.provider, self.base_url_from
                ),
            )
        })
    }

    fn header_map(&self) -> Result<HeaderMap, ModelError> {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        headers.insert("accept", HeaderValue::from_static("text/event-stream"));
        let wrong = |what: &str| {
            ModelError::new(
                ErrorKind::Auth,
                format!(
                    "the {what} of provider {} has characters that cannot be sent",
                    self.provider
                ),
            )
        };
        match (self.dialect, &self.api_key) {
            (Dialect::OpenAiChat, Some(key)) => {
                headers.insert(
                    "authorization",
                    secret_value(&format!("Bearer {}", key.expose()))
                        .ok_or_else(|| wrong("key"))?,
                );
            }
            (Dialect::Anthropic, Some(key)) => {
                headers.insert(
                    "x-api-key",
                    secret_value(key.expose()).ok_or_else(|| wrong("key"))?,
                );
            }
            (_, None) => {}
        }
        if self.dialect == Dialect::Anthropic {
            headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
        }
        for (name, value) in &self.headers {
            let name = HeaderName::try_from(name.as_str()).map_err(|_| wrong("header names"))?;
            headers.insert(name, secret_value(value).ok_or_else(|| wrong("headers"))?);
        }
        Ok(headers)
    }

    /// The base URL without a user and password.
    fn shown_base(&self) -> String {
        match reqwest::Url::parse(&self.base_url) {
            Ok(mut url) => {
                let _ = url.set_username("");
                let _ = url.set_password(None);
                url.set_query(None);
                url.to_string()
            }
            Err(_) => "an invalid URL".to_owned(),
        }
    }

    fn not_sent(&self, fault: &reqwest::Error) -> ModelError {
        let message = format!(
            "{} cannot be reached at {} ({}): check that the server runs and that the address is right ({})",
            self.provider,
            self.shown_base(),
            causes(fault),
            self.base_url_from,
        );
        self.named(ModelError::new(ErrorKind::Unreachable, message))
    }

    /// The error that an answer amounts to which is not a stream.
    async fn refused(&self, mut response: Response) -> ModelError {
        let status = response.status().as_u16();
        let headers = std::mem::take(response.headers_mut());
        let mut body = Vec::new();
        while body.len() < ERROR_BODY_LIMIT
            && let Ok(Some(bytes)) = response.chunk().await
        {
            body.extend_from_slice(&bytes[..bytes.len().min(ERROR_BODY_LIMIT - body.len())]);
        }
        if response.status().is_redirection() {
            let message = format!(
                "{} answered with a redirect, which is not followed: check the address ({})",
                self.shown_base(),
                self.base_url_from
            );
            return ModelError::new(ErrorKind::Refused, message).with_status(status);
        }
        if response.status().is_success() {
            return self.not_a_stream(status, &body);
        }
        let mut error = fault::from_answer(status, &body);
        error.retry_after = wanted_wait(&headers);
        match error.kind {
            ErrorKind::Auth => {
                let hint = format!(" (check the key of provider {})", self.provider);
                error.message.push_str(&hint);
            }
            ErrorKind::ModelUnknown if status == 404 => {
                let hint = format!(
                    " (check the model's name and the address {})",
                    self.shown_base()
                );
                error.message.push_str(&hint);
            }
            _ => {}
        }
        self.named(error)
    }

    fn not_a_stream(&self, status: u16, body: &[u8]) -> ModelError {
        let complaint = serde_json::from_slice(body)
            .ok()
            .as_ref()
            .and_then(fault::Complaint::read)
            .map(|complaint| complaint.sort(None));
        if let Some(error) = complaint {
            return self.named(error);
        }
        let what = if body.trim_ascii_start().starts_with(b"<") {
            "a web page"
        } else {
            "an answer that is no stream"
        };
        let message = format!(
            "{} answered with {what} instead of a model's reply: check the address ({}); most servers want a base URL that ends with /v1",
            self.shown_base(),
            self.base_url_from,
        );
        ModelError::new(ErrorKind::Malformed, message).with_status(status)
    }

    /// Makes sure that the key is not in the text.
    fn named(&self, mut error: ModelError) -> ModelError {
        let secrets = self
            .api_key
            .iter()
            .map(Secret::expose)
            .chain(self.headers.iter().map(|(_, value)| value.as_str()));
        for secret in secrets.filter(|secret| secret.len() >= 6) {
            if error.message.contains(secret) {
                error.message = error.message.replace(secret, "***");
            }
        }
        error
    }
}

fn secret_value(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// How long the provider asks us to wait. Dates count from the provider's own clock when it tells it.
fn wanted_wait(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(millis) = text("retry-after-ms").and_then(|value| value.trim().parse().ok()) {
        return Some(Duration::from_millis(millis));
    }
    let now = text("date")
        .and_then(|date| httpdate::parse_http_date(date).ok())
        .unwrap_or_else(SystemTime::now);
    fault::retry_after(text("retry-after")?, now)
}

/// The deepest cause, which says more than "error sending request".
fn causes(fault: &reqwest::Error) -> String {
    if fault.is_timeout() {
        return "no connection in time".to_owned();
    }
    let mut cause = fault.source();
    while let Some(deeper) = cause.and_then(|cause| cause.source()) {
        cause = Some(deeper);
    }
    cause.map_or_else(
        || "no cause given".to_owned(),
        |cause| crate::text::clipped(&cause.to_string(), 200),
    )
}
