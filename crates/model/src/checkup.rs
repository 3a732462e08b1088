//! A look at one model as somebody would use it: is it reached, is the key taken, is the model known, does an answer
//! stream. One request of a few tokens; it is not tried again, and it stands in no line.

use std::sync::Arc;
use std::time::Duration;

use crate::clock;
use crate::delta::{Delta, Deltas};
use crate::error::{ErrorKind, ModelError};
use crate::message::{Message, Part};
use crate::model::{Model, StreamStep};
use crate::request::{Options, Request, ToolSet};

/// How long the whole look may take.
const LIMIT: Duration = Duration::from_secs(30);

/// Tokens of the answer at most. Less than this some providers refuse.
const TOKENS: u32 = 16;

/// What was looked at, and how it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// `reachable`, `key`, `model` or `streaming`.
    pub what: &'static str,
    /// Whether it is as it should be.
    pub ok: bool,
    /// What was found.
    pub detail: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Finding {
    fn good(what: &'static str, detail: impl Into<String>) -> Self {
        Self {
            what,
            ok: true,
            detail: detail.into(),
            hint: None,
        }
    }

    fn bad(what: &'static str, detail: &str, hint: &str) -> Self {
        Self {
            what,
            ok: false,
            detail: detail.to_owned(),
            hint: Some(hint.to_owned()),
        }
    }
}

/// Asks a model for a word. The findings end with the first that is not as it should be.
pub async fn checkup(model: &Arc<dyn Model>) -> Vec<Finding> {
    let asked = tokio::time::timeout(LIMIT, ask(model)).await;
    let late = || {
        let text = format!("no whole answer came within {} seconds", LIMIT.as_secs());
        Err(ModelError::new(ErrorKind::Stalled, text))
    };
    judged(asked.unwrap_or_else(|_late| late()))
}

/// What a good answer was like.
struct Answer {
    first: Duration,
    said: bool,
    input: Option<u64>,
    output: Option<u64>,
}

async fn ask(model: &Arc<dyn Model>) -> Result<Answer, ModelError> {
    let request = Request {
        model: model.id().into(),
        system: None,
        messages: vec![Message::User(vec![Part::text(
            "Answer with the one word: ready",
        )])],
        tools: Arc::new(ToolSet::default()),
        tools_allowed: true,
        options: Arc::new(Options {
            max_output_tokens: Some(TOKENS),
            ..Options::default()
        }),
    };
    let begun = clock::now();
    let mut stream = model.start(request);
    let mut deltas = Deltas::new();
    let mut answer = Answer {
        first: Duration::ZERO,
        said: false,
        input: None,
        output: None,
    };
    loop {
        let step = stream.next(&mut deltas).await;
        for delta in deltas.drain() {
            match delta {
                Delta::Text(_) | Delta::Reasoning(_) => {
                    // What follows at once comes with it: how many pieces there were is not told apart.
                    if !answer.said {
                        answer.first = clock::now() - begun;
                    }
                    answer.said = true;
                }
                Delta::Usage(usage) => {
                    answer.input = usage.input.or(answer.input);
                    answer.output = usage.output.or(answer.output);
                }
                _ => {}
            }
        }
        match step {
            StreamStep::Bytes => {}
            StreamStep::End => return Ok(answer),
            StreamStep::Failed(error) => return Err(error),
        }
    }
}

fn judged(asked: Result<Answer, ModelError>) -> Vec<Finding> {
    let reached = || Finding::good("reachable", "it answers");
    let key = || Finding::good("key", "accepted");
    let error = match asked {
        Ok(answer) => {
            let model = Finding::good("model", "known");
            return vec![reached(), key(), model, streaming(&answer)];
        }
        Err(error) => error,
    };
    let text = error.message.as_str();
    match error.kind {
        ErrorKind::Unreachable => {
            let hint = "Start the server, or mend the address; `attache doctor` shows where it comes from.";
            vec![Finding::bad("reachable", text, hint)]
        }
        // What answers is no model server.
        ErrorKind::Malformed if error.status.is_some() => {
            let hint = "Something answers there, but no model server: mend the address.";
            vec![Finding::bad("reachable", text, hint)]
        }
        ErrorKind::Auth => {
            let hint = "Set the right key, or one that may use this model.";
            vec![reached(), Finding::bad("key", text, hint)]
        }
        ErrorKind::ModelUnknown => {
            let hint = "Use a model that this provider has, under the name that it goes by there.";
            vec![reached(), key(), Finding::bad("model", text, hint)]
        }
        ErrorKind::Overloaded => {
            let hint = "Try again later; the key's limits may be used up.";
            vec![reached(), key(), Finding::bad("streaming", text, hint)]
        }
        ErrorKind::Truncated | ErrorKind::Stalled | ErrorKind::Malformed => {
            let hint = "The server does not stream as this dialect prescribes: set another dialect or profile, or look \
                        at what stands between (a proxy that gathers answers, say).";
            vec![reached(), key(), Finding::bad("streaming", text, hint)]
        }
        _ => {
            let hint = "The provider refused even this small request; what it says tells why.";
            vec![reached(), key(), Finding::bad("model", text, hint)]
        }
    }
}

fn streaming(answer: &Answer) -> Finding {
    let tokens = match (answer.input, answer.output) {
        (Some(input), Some(output)) => format!("{input} tokens in, {output} out"),
        _ => "it does not count tokens".to_owned(),
    };
    let detail = if answer.said {
        let first = answer.first.as_secs_f64();
        format!("the first word after {first:.1} s; {tokens}")
    } else {
        format!("it works, though nothing was said; {tokens}")
    };
    Finding::good("streaming", detail)
}
