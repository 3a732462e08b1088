//! A deterministic model that plays a script: for demos, for tests, and for trying a definition out without spending
//! money. The language is described in `docs/scripted.md`. It knows only the request; nothing is read from files here.

mod matching;
mod play;
mod render;
mod script;
mod written;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use self::matching::View;
use self::play::Beat;
use self::script::Script;
pub use self::script::ScriptError;
use crate::clock;
use crate::delta::Deltas;
use crate::error::{ErrorKind, ModelError};
use crate::model::{BoxFuture, Model, ModelStream, StreamStep};
use crate::request::Request;
use crate::text::clipped;

/// A model that plays a script. Clones share its kept counters.
#[derive(Clone)]
pub struct Scripted(Arc<Inner>);

struct Inner {
    name: String,
    script: Script,
    kept: Mutex<BTreeMap<String, u64>>,
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripted")
            .field("name", &self.0.name)
            .finish_non_exhaustive()
    }
}

impl Scripted {
    /// Reads a script, YAML or JSON. `name` is what errors call it.
    ///
    /// # Errors
    /// When the text is not a script, with the line.
    pub fn from_text(name: &str, text: &str) -> Result<Self, ScriptError> {
        let script = Script::parse(name, text)?;
        Ok(Self(Arc::new(Inner {
            name: name.to_owned(),
            script,
            kept: Mutex::default(),
        })))
    }

    fn beats(&self, request: &Request) -> VecDeque<Beat> {
        let Inner { name, script, kept } = &*self.0;
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let view = View::new(script, request, &kept);
        let Some(found) = view.find(script) else {
            return VecDeque::from([Beat::Fail(unmatched(name, &view))]);
        };
        let beats = play::play(name, &found, request);
        for (counter, more) in &found.rule.add {
            let count = kept.entry(counter.clone()).or_default();
            *count = count.saturating_add(*more);
        }
        beats
    }
}

fn unmatched(name: &str, view: &View<'_>) -> ModelError {
    let user = clipped(view.user(), 80);
    let message = format!(
        "script {name:?}: no rule fits this request (last user text {user:?}, step {step}, {results}). \
         Add a rule with `when: {{user: '…', step: {step}}}` and a reply, or one without `when` as the last",
        step = view.step,
        results = view.results_in_words(),
    );
    ModelError::new(ErrorKind::ScriptUnmatched, message)
}

impl Model for Scripted {
    fn start(&self, request: Request) -> Box<dyn ModelStream> {
        Box::new(ScriptedStream {
            beats: self.beats(&request),
            wait_until: None,
        })
    }

    fn provider(&self) -> &str {
        "scripted"
    }

    fn id(&self) -> &str {
        &self.0.name
    }
}

struct ScriptedStream {
    beats: VecDeque<Beat>,
    /// The end of the wait that is the first beat.
    wait_until: Option<Instant>,
}

impl ModelStream for ScriptedStream {
    fn next<'a>(&'a mut self, out: &'a mut Deltas) -> BoxFuture<'a, StreamStep> {
        Box::pin(self.step(out))
    }
}

impl ScriptedStream {
    /// A beat is taken only when nothing is awaited any more, so that the future may be dropped.
    async fn step(&mut self, out: &mut Deltas) -> StreamStep {
        loop {
            match self.beats.front() {
                None => return StreamStep::End,
                Some(Beat::Fail(error)) => return StreamStep::Failed(error.clone()),
                Some(Beat::Hang) => std::future::pending().await,
                Some(Beat::Wait(wait)) => {
                    let until = *self.wait_until.get_or_insert_with(|| clock::now() + *wait);
                    tokio::time::sleep_until(until).await;
                    self.wait_until = None;
                    self.beats.pop_front();
                }
                Some(Beat::Ping | Beat::Emit(_)) => {
                    if let Some(Beat::Emit(delta)) = self.beats.pop_front() {
                        out.push(delta);
                    }
                    return StreamStep::Bytes;
                }
            }
        }
    }
}
