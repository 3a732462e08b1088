//! A model without intelligence: it answers with the last thing the user said. For trying out and for tests.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::delta::{Delta, Deltas, StopReason};
use crate::message::{Message, Part};
use crate::model::{BoxFuture, Model, ModelStream, StreamStep};
use crate::request::Request;
use crate::usage::Usage;

/// Into about how many pieces an answer is cut.
const PIECES: usize = 4;

/// The model `echo/NAME`; the name means nothing.
#[derive(Clone, Debug)]
pub struct Echo {
    id: Arc<str>,
}

impl Echo {
    /// An echo under a name.
    pub fn new(id: &str) -> Self {
        Self { id: id.into() }
    }
}

impl Model for Echo {
    fn start(&self, request: Request) -> Box<dyn ModelStream> {
        let text = last_user_text(&request.messages).unwrap_or_default();
        let usage = estimate(&request, text.chars().count());
        let size = text.chars().count().div_ceil(PIECES).max(1);
        let mut deltas: VecDeque<Delta> = pieces(&text, size)
            .map(|piece| Delta::Text(piece.to_owned()))
            .collect();
        deltas.extend([Delta::Stop(StopReason::EndTurn), Delta::Usage(usage)]);
        Box::new(EchoStream { deltas })
    }

    fn provider(&self) -> &str {
        "echo"
    }

    fn id(&self) -> &str {
        &self.id
    }
}

struct EchoStream {
    deltas: VecDeque<Delta>,
}

impl ModelStream for EchoStream {
    fn next<'a>(&'a mut self, out: &'a mut Deltas) -> BoxFuture<'a, StreamStep> {
        let step = match self.deltas.pop_front() {
            Some(delta) => {
                out.push(delta);
                StreamStep::Bytes
            }
            None => StreamStep::End,
        };
        Box::pin(std::future::ready(step))
    }
}

/// The text of the last user message, its parts joined by LF.
pub(crate) fn last_user_text(messages: &[Message]) -> Option<String> {
    messages.iter().rev().find_map(|message| match message {
        Message::User(parts) => Some(text_of(parts)),
        _ => None,
    })
}

/// The text parts, joined by LF.
pub(crate) fn text_of(parts: &[Part]) -> String {
    let mut out = String::new();
    for part in parts {
        if let Part::Text(text) = part {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(text);
        }
    }
    out
}

/// `text` in pieces of `size` characters, the last one shorter.
pub(crate) fn pieces(text: &str, size: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest
            .char_indices()
            .nth(size)
            .map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Usage as if a token were four characters.
pub(crate) fn estimate(request: &Request, answer_chars: usize) -> Usage {
    let mut chars = request
        .system
        .as_deref()
        .map_or(0, |system| system.chars().count());
    for message in &request.messages {
        chars += match message {
            Message::User(parts) | Message::Assistant(parts) => parts
                .iter()
                .map(|part| match part {
                    Part::Text(text) | Part::Reasoning { text, .. } => text.chars().count(),
                    Part::Call(call) => call.arguments.chars().count(),
                    Part::Image { .. } => 0,
                })
                .sum::<usize>(),
            Message::Tool(results) => results
                .iter()
                .map(|result| result.content.chars().count())
                .sum(),
        };
    }
    let tokens = |chars: usize| Some(chars.div_ceil(4) as u64);
    Usage {
        input: tokens(chars),
        output: tokens(answer_chars),
        ..Usage::default()
    }
}
