//! From a matched rule to the beats of a reply. Pure: waiting is done by the stream in `mod`.

use std::collections::VecDeque;
use std::time::Duration;

use super::matching::Match;
use super::render::{Value, Values};
use super::script::{Action, Arguments};
use crate::delta::{Delta, StopReason};
use crate::dialect::truncated;
use crate::echo::{estimate, pieces};
use crate::error::{ErrorKind, ModelError};
use crate::message::{Message, Part};
use crate::request::Request;

/// Characters of arguments in one delta.
const ARGUMENTS_PIECE: usize = 32;

/// One beat of a reply.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Beat {
    Emit(Delta),
    Wait(Duration),
    /// A sign of life without content.
    Ping,
    Fail(ModelError),
    /// Nothing, for ever.
    Hang,
}

/// The beats of a rule's reply.
pub(super) fn play(script: &str, found: &Match<'_>, request: &Request) -> VecDeque<Beat> {
    let mut player = Player {
        beats: VecDeque::new(),
        first_call: request.messages.iter().map(calls_of).sum(),
        calls: 0,
        chars: 0,
        over: false,
    };
    let mut usage = Some(None);
    let mut stop = None;
    for action in &found.rule.reply {
        let done = match action {
            Action::Usage(given) => {
                usage = given.map(Some);
                Ok(())
            }
            Action::Stop(word) => {
                stop = Some(stop_reason(word));
                Ok(())
            }
            other => player.act(other, &found.values),
        };
        if let Err(what) = done {
            let message = format!("script {script:?}, {}: {what}", found.rule.name);
            player.end(Beat::Fail(ModelError::new(
                ErrorKind::ScriptUnmatched,
                message,
            )));
        }
        if player.over {
            return player.beats;
        }
    }
    let usual = if player.calls > 0 {
        StopReason::ToolCalls
    } else {
        StopReason::EndTurn
    };
    player.emit(Delta::Stop(stop.unwrap_or(usual)));
    if let Some(given) = usage {
        let usage = given.unwrap_or_else(|| estimate(request, player.chars));
        player.emit(Delta::Usage(usage));
    }
    player.beats
}

fn calls_of(message: &Message) -> usize {
    match message {
        Message::Assistant(parts) => parts
            .iter()
            .filter(|part| matches!(part, Part::Call(_)))
            .count(),
        _ => 0,
    }
}

fn stop_reason(word: &str) -> StopReason {
    match word {
        "end_turn" => StopReason::EndTurn,
        "tool_calls" => StopReason::ToolCalls,
        "length" => StopReason::Length,
        "refusal" => StopReason::Refusal,
        "content_filter" => StopReason::ContentFilter,
        other => StopReason::Other(other.to_owned()),
    }
}

struct Player {
    beats: VecDeque<Beat>,
    /// Calls in the conversation so far, so that ids never repeat.
    first_call: usize,
    calls: usize,
    chars: usize,
    over: bool,
}

impl Player {
    fn emit(&mut self, delta: Delta) {
        self.beats.push_back(Beat::Emit(delta));
    }

    fn end(&mut self, beat: Beat) {
        self.beats.push_back(beat);
        self.over = true;
    }

    fn act(&mut self, action: &Action, values: &Values) -> Result<(), String> {
        match action {
            Action::Text { text, piece, every } => {
                let text = text.render(values)?;
                self.say(pieces(&text, *piece), *every, Delta::Text);
            }
            Action::Chunks { chunks, every } => {
                let chunks = chunks
                    .iter()
                    .map(|chunk| chunk.render(values))
                    .collect::<Result<Vec<_>, _>>()?;
                self.say(chunks.iter().map(String::as_str), *every, Delta::Text);
            }
            Action::Reasoning { text, piece, every } => {
                let text = text.render(values)?;
                self.say(pieces(&text, *piece), *every, Delta::Reasoning);
            }
            Action::Call {
                name,
                arguments,
                for_each,
                cut_after,
            } => {
                let items = match for_each.as_ref().map(|list| values.get(list)) {
                    None => vec![None],
                    Some(Some(Value::List(items))) => items.iter().cloned().map(Some).collect(),
                    Some(Some(Value::Text(one))) => vec![Some(one.clone())],
                    Some(Some(Value::Number(count))) => {
                        (0..*count).map(|n| Some(n.to_string())).collect()
                    }
                    Some(None) => Vec::new(),
                };
                for (at, item) in items.into_iter().enumerate() {
                    let mut values = values.clone();
                    if let Some(item) = item {
                        values.insert("item".to_owned(), Value::Text(item));
                        values.insert("index".to_owned(), Value::Number(at as u64));
                    }
                    let arguments = match arguments {
                        Arguments::Json(template) => template.render(&values)?.to_string(),
                        Arguments::Raw(template) => template.render(&values)?,
                    };
                    self.call(name.render(&values)?, &arguments, *cut_after);
                    if self.over {
                        return Ok(());
                    }
                }
            }
            Action::Delay(wait) => self.beats.push_back(Beat::Wait(*wait)),
            Action::Error {
                kind,
                status,
                retry_after,
                retryable,
                message,
            } => {
                let mut error = ModelError::new(*kind, message.render(values)?);
                error.status = *status;
                error.retry_after = *retry_after;
                error.retryable = retryable.unwrap_or(error.retryable);
                self.end(Beat::Fail(error));
            }
            Action::Cut => self.end(Beat::Fail(truncated())),
            Action::Silence => self.end(Beat::Hang),
            Action::Ping => self.beats.push_back(Beat::Ping),
            // Said at the end, whatever their place.
            Action::Usage(_) | Action::Stop(_) => {}
        }
        Ok(())
    }

    fn say<'t>(
        &mut self,
        texts: impl Iterator<Item = &'t str>,
        every: Duration,
        delta: fn(String) -> Delta,
    ) {
        for text in texts {
            if !every.is_zero() {
                self.beats.push_back(Beat::Wait(every));
            }
            self.chars += text.chars().count();
            self.emit(delta(text.to_owned()));
        }
    }

    fn call(&mut self, name: String, arguments: &str, cut_after: Option<usize>) {
        let index = self.calls;
        self.calls += 1;
        self.chars += arguments.chars().count();
        let id = format!("call_{}", self.first_call + self.calls);
        self.emit(Delta::CallStarted { index, id, name });
        let end = cut_after
            .and_then(|chars| arguments.char_indices().nth(chars))
            .map_or(arguments.len(), |(at, _)| at);
        for fragment in pieces(&arguments[..end], ARGUMENTS_PIECE) {
            self.emit(Delta::CallArguments {
                index,
                fragment: fragment.to_owned(),
            });
        }
        if cut_after.is_some() {
            self.end(Beat::Fail(truncated()));
        }
    }
}
