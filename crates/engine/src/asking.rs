//! One question to a model, seen through: its turn in the provider's line, the limits in time, and the tries again. What
//! the limits are and when to try again is decided in `agent`; here are the clock and the waiting.

use std::pin::Pin;
use std::sync::Arc;

use attache_agent::asking::{Again, Watch, again, is_progress, reason, seconds, verdict};
use attache_model::{
    BoxFuture, Delta, Deltas, ErrorKind, GateClosed, Model, ModelError, ModelStream, Pass, Request,
    StreamStep, Terms, Verdict,
};
use tokio::time::{Instant, Sleep};

use crate::clock;
use crate::live::Note;

/// Bytes of a request's text that are about one token; good enough to keep a rate.
const BYTES_A_TOKEN: usize = 4;

/// What came of waiting.
pub(crate) enum Asked {
    /// What is being waited for has changed; none is the reply itself.
    Note(Option<Note>),
    /// The reply goes on, or there was a sign of life.
    Bytes,
    /// The reply is finished.
    End,
    /// It will not be finished.
    Failed(ModelError),
}

/// See the module. Dropping it ends the request and gives its place up.
pub(crate) struct Asking {
    model: Arc<dyn Model>,
    request: Request,
    tokens: u64,
    terms: Terms,
    /// Failures so far.
    failures: u32,
    /// Something of the reply has been seen.
    seen: bool,
    /// What it was last said to wait for.
    noted: bool,
    state: State,
    /// The moment that its times are counted from.
    begun: Instant,
    /// A number from 0 up to 1 of its own, so that many do not try at the same moment.
    spread: f64,
}

enum State {
    Beginning,
    InLine(BoxFuture<'static, Result<Pass, GateClosed>>),
    Asking {
        stream: Box<dyn ModelStream>,
        watch: Watch,
        timer: Pin<Box<Sleep>>,
        pass: Option<Pass>,
    },
    Pausing {
        until: Instant,
    },
    Over,
}

impl Asking {
    pub(crate) fn new(model: Arc<dyn Model>, request: Request, spread: f64) -> Self {
        Self {
            terms: model.terms(),
            tokens: (request.text_len() / BYTES_A_TOKEN) as u64,
            model,
            request,
            failures: 0,
            seen: false,
            noted: false,
            state: State::Beginning,
            begun: clock::instant(),
            spread,
        }
    }

    /// Waits for what comes next. The future may be dropped and `next` called again: nothing is lost.
    pub(crate) async fn next(&mut self, out: &mut Deltas) -> Asked {
        loop {
            match &mut self.state {
                State::Beginning => {
                    if let Some(note) = self.begin() {
                        return note;
                    }
                }
                State::InLine(passing) => match passing.await {
                    Ok(pass) => {
                        self.ask(Some(pass));
                        if let Some(note) = self.quiet() {
                            return note;
                        }
                    }
                    Err(closed) => {
                        self.state = State::Over;
                        let error = ModelError::new(ErrorKind::Unreachable, closed.to_string());
                        return Asked::Failed(error);
                    }
                },
                State::Asking {
                    stream,
                    watch,
                    timer,
                    pass,
                } => {
                    let step = tokio::select! {
                        biased;
                        step = stream.next(out) => step,
                        // Not set anew for each piece: when it is due, it is looked whether patience really is over.
                        () = timer.as_mut() => {
                            let until = self.begun + watch.until();
                            if until > clock::instant() {
                                timer.as_mut().reset(until);
                                continue;
                            }
                            StreamStep::Failed(watch.over())
                        }
                    };
                    if matches!(step, StreamStep::Bytes | StreamStep::End) {
                        // What a dropped wait has left there counts too; what was given out is no longer there.
                        let came = out.as_slice();
                        let progress = came.iter().any(is_progress);
                        watch.sign(clock::instant() - self.begun, progress);
                        self.seen |= progress;
                        let until = self.begun + watch.until();
                        if until < timer.deadline() {
                            timer.as_mut().reset(until);
                        }
                        if let (Some(pass), Some(tokens)) = (pass, tokens(came)) {
                            pass.used(tokens);
                        }
                    }
                    match step {
                        StreamStep::Bytes => return Asked::Bytes,
                        StreamStep::End => {
                            self.leave(Verdict::Up);
                            self.state = State::Over;
                            return Asked::End;
                        }
                        StreamStep::Failed(error) => {
                            let came = out.as_slice();
                            self.seen |= came.iter().any(is_progress);
                            return self.failed(error);
                        }
                    }
                }
                State::Pausing { until } => {
                    tokio::time::sleep_until(*until).await;
                    self.state = State::Beginning;
                    if let Some(note) = self.quiet() {
                        return note;
                    }
                }
                State::Over => std::future::pending().await,
            }
        }
    }

    fn begin(&mut self) -> Option<Asked> {
        let Some(gate) = &self.terms.gate else {
            self.ask(None);
            return None;
        };
        match gate.try_pass(self.tokens) {
            Ok(pass) => {
                self.ask(Some(pass));
                None
            }
            // What it waits for is asked when somebody looks.
            Err(_standing) => {
                let passing = Arc::clone(gate).pass_in_turn(self.tokens);
                self.state = State::InLine(Box::pin(passing));
                self.noted = true;
                Some(Asked::Note(Some(Note::Line(Arc::clone(gate)))))
            }
        }
    }

    fn ask(&mut self, pass: Option<Pass>) {
        let now = clock::instant();
        let watch = Watch::new(self.terms.patience, now - self.begun);
        self.state = State::Asking {
            stream: self.model.start(self.request.clone()),
            timer: Box::pin(tokio::time::sleep_until(self.begun + watch.until())),
            watch,
            pass,
        };
    }

    /// Nothing is waited for any more but the reply.
    fn quiet(&mut self) -> Option<Asked> {
        std::mem::take(&mut self.noted).then_some(Asked::Note(None))
    }

    fn failed(&mut self, error: ModelError) -> Asked {
        self.leave(verdict(&error));
        self.failures += 1;
        let why = reason(&error);
        match again(
            error,
            self.failures,
            self.seen,
            self.terms.retries,
            self.spread,
        ) {
            Again::No(error) => {
                self.state = State::Over;
                Asked::Failed(error)
            }
            Again::After(wait) => {
                self.state = State::Pausing {
                    until: clock::instant() + wait,
                };
                self.noted = true;
                let note = format!("retrying in {}: {why}", seconds(wait));
                Asked::Note(Some(Note::Text(note.into())))
            }
        }
    }

    fn leave(&mut self, verdict: Verdict) {
        if let State::Asking {
            pass: Some(pass), ..
        } = &mut self.state
        {
            pass.judge(verdict);
        }
    }
}

/// How many tokens a reply has taken in all, if these pieces tell.
fn tokens(came: &[Delta]) -> Option<u64> {
    came.iter().rev().find_map(|delta| match delta {
        Delta::Usage(usage) => Some(usage.input? + usage.output.unwrap_or(0)),
        _ => None,
    })
}
