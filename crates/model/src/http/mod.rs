//! The thin shell between a decoder and the network: one client for the process, the answer's status and head, and the two timers of this crate: patience for usage after the model has stopped, and the pace of a fast reply. It does not retry.

mod client;
mod endpoint;
mod pace;

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use reqwest::Response;
use reqwest::header::HeaderMap;
use tokio::time::Instant;

pub use self::client::HttpClient;
use self::client::causes;
pub(crate) use self::client::is_loopback;
pub(crate) use self::endpoint::Endpoint;
use self::pace::Pace;
use crate::clock;
use crate::delta::{Delta, Deltas};
use crate::dialect::{Decoder, Phase, truncated};
use crate::error::{ErrorKind, ModelError};
use crate::gate::Gate;
use crate::model::{BoxFuture, Model, ModelStream, StreamStep};
use crate::request::Request;
use crate::sse::SseReader;
use crate::terms::{ProviderTerms, Terms};

/// How long usage may take after the model has stopped, when no terminal event comes.
const USAGE_PATIENCE: Duration = Duration::from_secs(2);

/// Pieces of a body that are taken together at most, so that one reply does not keep the others waiting.
const TOGETHER: usize = 1_024;

/// One model of an [`Endpoint`].
pub(crate) struct HttpModel {
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) id: Arc<str>,
    pub(crate) client: Arc<HttpClient>,
    pub(crate) gate: Arc<Gate>,
}

impl Model for HttpModel {
    fn start(&self, mut request: Request) -> Box<dyn ModelStream> {
        if request.model.is_empty() {
            request.model = Arc::clone(&self.id);
        }
        let endpoint = Arc::clone(&self.endpoint);
        let client = Arc::clone(&self.client);
        let decoder = endpoint.dialect.decoder();
        let opening = Box::pin(open(Arc::clone(&endpoint), client, request));
        Box::new(HttpStream {
            endpoint,
            state: State::Opening(opening),
            decoder,
            sse: SseReader::new(),
            pace: Pace::default(),
            held: false,
        })
    }

    fn provider(&self) -> &str {
        &self.endpoint.provider
    }

    fn id(&self) -> &str {
        &self.id
    }

    fn terms(&self) -> Terms {
        let ProviderTerms {
            patience,
            retries,
            limits: _,
        } = self.endpoint.terms;
        Terms {
            patience,
            retries,
            gate: Some(Arc::clone(&self.gate)),
            reminders: self.endpoint.quirks.reminders,
        }
    }
}

struct HttpStream {
    endpoint: Arc<Endpoint>,
    state: State,
    decoder: Box<dyn Decoder>,
    sse: SseReader,
    pace: Pace,
    /// Something has come that is not told of yet; it stays so when the future that waits is dropped.
    held: bool,
}

enum State {
    Opening(BoxFuture<'static, Result<Opened, ModelError>>),
    Reading {
        opened: Opened,
        usage_until: Option<Instant>,
    },
    Over(StreamStep),
}

/// An answer whose head has come. Dropping it closes the connection.
struct Opened {
    response: Response,
    notices: Vec<String>,
}

impl ModelStream for HttpStream {
    fn next<'a>(&'a mut self, out: &'a mut Deltas) -> BoxFuture<'a, StreamStep> {
        Box::pin(self.steps(out))
    }
}

impl HttpStream {
    /// A step, and those that follow it at once: whoever shows deltas is woken once for all that is there, instead of once
    /// for each. Only a reply that is faster than any screen is waited for, see [`Pace`].
    async fn steps(&mut self, out: &mut Deltas) -> StreamStep {
        let mut step = StreamStep::Bytes;
        if !self.held {
            step = self.step(out).await;
            if step != StreamStep::Bytes || out.is_empty() {
                return step;
            }
            self.held = true;
        }
        if let Some(until) = self.pace.came(clock::now()) {
            tokio::time::sleep_until(until).await;
        }
        for _ in 1..TOGETHER {
            // The connection is read by a task of its own, which gives one piece of the body at a time.
            tokio::task::yield_now().await;
            match at_once(self.step(out)).await {
                Some(next) => step = next,
                None => break,
            }
            if step != StreamStep::Bytes {
                break;
            }
        }
        self.held = false;
        self.pace.told(clock::now());
        step
    }

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
            *usage_until = Some(clock::now() + USAGE_PATIENCE);
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

/// What a future gives without waiting.
async fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

async fn open(
    endpoint: Arc<Endpoint>,
    client: Arc<HttpClient>,
    request: Request,
) -> Result<Opened, ModelError> {
    let url = endpoint.url(&request.model)?;
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
    if response.status().is_success() && is_event_stream(response.headers()) {
        return Ok(Opened {
            response,
            notices: encoded.notices,
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
