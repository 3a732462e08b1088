//! A model that says what a test tells it: a function of the request gives the pieces of the
//! reply, and gates hold the reply until the test opens them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use attache_engine::{EngineError, Environment, Models};
use attache_model::{
    BoxFuture, Delta, Deltas, Message, Model, ModelError, ModelFacts, ModelStream, Part, Request,
    StopReason, StreamStep, Terms, Usage,
};
use serde_json::Value;
use tokio::sync::watch;

/// Holds replies back until it is opened.
#[derive(Clone, Debug)]
pub struct Gate(Arc<watch::Sender<bool>>);

impl Default for Gate {
    fn default() -> Self {
        Self(Arc::new(watch::channel(false).0))
    }
}

impl Gate {
    /// Lets everybody through, now and later.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    /// Waits until it is open.
    pub async fn passed(&self) {
        let mut open = self.0.subscribe();
        open.wait_for(|open| *open)
            .await
            .expect("the gate lives as long as its waiters");
    }

    /// Waits until somebody stands before it.
    pub async fn reached(&self) {
        while self.0.receiver_count() == 0 {
            tokio::task::yield_now().await;
        }
    }
}

/// A piece of a reply.
#[derive(Clone, Debug)]
pub enum Piece {
    /// Text.
    Text(String),
    /// Reasoning.
    Reasoning(String),
    /// A tool call with its arguments as they are.
    Call(String, String),
    /// Token counts.
    Usage(Usage),
    /// Wait until the gate is open.
    Wait(Gate),
    /// Take this long.
    Pause(Duration),
    /// A sign of life that says nothing.
    Ping,
    /// The stream fails.
    Fail(ModelError),
    /// The model stops for this reason instead of the usual one.
    Stop(StopReason),
}

/// A reply of one text.
#[must_use]
pub fn text(text: &str) -> Vec<Piece> {
    vec![Piece::Text(text.to_owned())]
}

/// A reply of one call.
#[must_use]
pub fn call(name: &str, arguments: &Value) -> Vec<Piece> {
    vec![Piece::Call(name.to_owned(), arguments.to_string())]
}

type Say = dyn Fn(&Request) -> Vec<Piece> + Send + Sync;

/// See the module. It remembers every request that it got.
#[derive(Clone)]
pub struct Puppet {
    terms: Terms,
    facts: ModelFacts,
    say: Arc<Mutex<Arc<Say>>>,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Default for Puppet {
    fn default() -> Self {
        Self::new(|_| text("done"))
    }
}

impl Puppet {
    /// A puppet that says what `say` tells it.
    pub fn new(say: impl Fn(&Request) -> Vec<Piece> + Send + Sync + 'static) -> Self {
        Self {
            terms: Terms::default(),
            facts: ModelFacts::default(),
            say: Arc::new(Mutex::new(Arc::new(say))),
            requests: Arc::default(),
        }
    }

    /// The same puppet, asked in other ways.
    #[must_use]
    pub fn with_terms(mut self, terms: Terms) -> Self {
        self.terms = terms;
        self
    }

    /// The same puppet, of which this is known.
    #[must_use]
    pub fn with_facts(mut self, facts: ModelFacts) -> Self {
        self.facts = facts;
        self
    }

    /// Tells it what to say from now on.
    pub fn teach(&self, say: impl Fn(&Request) -> Vec<Piece> + Send + Sync + 'static) {
        *self.say.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(say);
    }

    /// All requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The text of the last user message of a request.
    #[must_use]
    pub fn last_user(request: &Request) -> String {
        request
            .messages
            .iter()
            .rev()
            .find_map(|message| match message {
                Message::User(parts) => Some(texts(parts)),
                _ => None,
            })
            .unwrap_or_default()
    }

    /// The text of the first user message of a request: the task of the session that asks.
    #[must_use]
    pub fn task(request: &Request) -> String {
        request
            .messages
            .iter()
            .find_map(|message| match message {
                Message::User(parts) => Some(texts(parts)),
                _ => None,
            })
            .unwrap_or_default()
    }

    /// Whether the newest message of a request holds tool results.
    #[must_use]
    pub fn after_tools(request: &Request) -> bool {
        matches!(request.messages.last(), Some(Message::Tool(_)))
    }

    /// How many messages with tool results a request has behind its last user message.
    #[must_use]
    pub fn rounds(request: &Request) -> usize {
        request
            .messages
            .iter()
            .rev()
            .take_while(|message| !matches!(message, Message::User(_)))
            .filter(|message| matches!(message, Message::Tool(_)))
            .count()
    }

    /// Results of the newest message that has any.
    #[must_use]
    pub fn results(request: &Request) -> Vec<String> {
        request
            .messages
            .iter()
            .rev()
            .find_map(|message| match message {
                Message::Tool(results) => Some(
                    results
                        .iter()
                        .map(|result| result.content.to_string())
                        .collect(),
                ),
                _ => None,
            })
            .unwrap_or_default()
    }
}

fn texts(parts: &[Part]) -> String {
    parts
        .iter()
        .filter_map(|part| match part {
            Part::Text(text) => Some(&**text),
            _ => None,
        })
        .collect()
}

impl Models for Puppet {
    fn resolve(
        &self,
        _name: &str,
        _environment: &Environment,
    ) -> Result<Arc<dyn Model>, EngineError> {
        Ok(Arc::new(self.clone()))
    }
}

impl Model for Puppet {
    fn start(&self, request: Request) -> Box<dyn ModelStream> {
        let say = Arc::clone(&self.say.lock().unwrap_or_else(PoisonError::into_inner));
        let pieces = say(&request);
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let number = requests.len();
        requests.push(request);
        Box::new(Reply {
            pieces: pieces.into(),
            number,
            calls: 0,
            stopped: false,
            pause: None,
        })
    }

    fn provider(&self) -> &'static str {
        "puppet"
    }

    fn id(&self) -> &'static str {
        "puppet"
    }

    fn terms(&self) -> Terms {
        self.terms.clone()
    }

    fn facts(&self) -> ModelFacts {
        self.facts.clone()
    }
}

struct Reply {
    pieces: VecDeque<Piece>,
    number: usize,
    calls: usize,
    stopped: bool,
    pause: Option<std::pin::Pin<Box<tokio::time::Sleep>>>,
}

impl ModelStream for Reply {
    fn next<'a>(&'a mut self, out: &'a mut Deltas) -> BoxFuture<'a, StreamStep> {
        Box::pin(async move {
            if let Some(Piece::Wait(gate)) = self.pieces.front() {
                gate.clone().passed().await;
                self.pieces.pop_front();
                return StreamStep::Bytes;
            }
            if let Some(Piece::Pause(time)) = self.pieces.front() {
                // Asked again after it was dropped, it waits for what is left.
                let sleep = self
                    .pause
                    .get_or_insert_with(|| Box::pin(tokio::time::sleep(*time)));
                sleep.await;
                self.pause = None;
                self.pieces.pop_front();
                return StreamStep::Bytes;
            }
            match self.pieces.pop_front() {
                Some(Piece::Text(text)) => out.push(Delta::Text(text)),
                Some(Piece::Reasoning(text)) => out.push(Delta::Reasoning(text)),
                Some(Piece::Call(name, arguments)) => {
                    let index = self.calls;
                    self.calls += 1;
                    let id = format!("call_{}_{index}", self.number);
                    out.push(Delta::CallStarted { index, id, name });
                    out.push(Delta::CallArguments {
                        index,
                        fragment: arguments,
                    });
                }
                Some(Piece::Usage(usage)) => out.push(Delta::Usage(usage)),
                Some(Piece::Fail(error)) => return StreamStep::Failed(error),
                Some(Piece::Stop(reason)) => {
                    self.stopped = true;
                    out.push(Delta::Stop(reason));
                }
                Some(Piece::Wait(_) | Piece::Pause(_) | Piece::Ping) => {}
                None => {
                    if !self.stopped {
                        let calls = self.calls > 0;
                        let reason = if calls {
                            StopReason::ToolCalls
                        } else {
                            StopReason::EndTurn
                        };
                        out.push(Delta::Stop(reason));
                    }
                    return StreamStep::End;
                }
            }
            StreamStep::Bytes
        })
    }
}
