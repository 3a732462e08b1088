//! A turn that makes room: before the context's limit is reached, and when the provider says that it was. At most two
//! tries without an answer in between; then the run ends and the session goes on with the next message.

use std::sync::Arc;

use attache_model::{Assembler, ErrorKind, Message, ModelError, stated_limit};
use attache_session::{Cut, EndReason, Event, StepText};

use super::{Output, Phase, Turn, TurnConfig};
use crate::compaction::{self, Measure};
use crate::history::History;

/// Tries without an answer in between.
const TRIES: u32 = 2;

/// The share of a conversation that a cut in time has to take away to be worth a request: one in so many parts.
const WORTH: usize = 5;

/// What stands in the place of a picture when a summary was asked for in vain before.
const NOT_IN_SUMMARY: &str = "There is no room for it.";

pub(super) struct Room {
    limit: Option<u64>,
    at: f64,
    measure: Measure,
    /// Bytes of what every request says: instructions and tools.
    fixed: usize,
    /// Bytes of the request that is under way.
    asked: usize,
    /// Tokens of the newest prompt that was counted.
    counted: Option<u64>,
    /// Tries since the last answer.
    tries: u32,
    last_cut: Cut,
}

impl Room {
    pub(super) fn new(config: &TurnConfig, history: &History) -> Self {
        let tools = config.tools.offered();
        Self {
            fixed: config.system.len() + tools.text_len(),
            limit: config.context_limit,
            at: config.compact_at,
            measure: Measure::default(),
            asked: 0,
            counted: None,
            tries: 0,
            last_cut: history.last_cut(),
        }
    }

    /// A request of so many bytes goes out.
    pub(super) fn asked(&mut self, bytes: usize) {
        self.asked = bytes;
    }

    /// It was answered; this is how many tokens it had.
    pub(super) fn answered(&mut self, tokens: Option<u64>) {
        self.tries = 0;
        if let Some(tokens) = tokens {
            self.counted = Some(tokens);
            self.measure.learn(self.asked, tokens);
        }
    }
}

impl Turn {
    /// Makes room before a request that would come too close to the limit; none when there is no need, or no way.
    pub(super) fn make_room_in_time(&mut self, messages: &[Message]) -> Option<Vec<Output>> {
        let limit = self.room.limit?;
        let said: usize = messages.iter().map(Message::text_len).sum();
        let tokens = self.room.measure.tokens(self.room.fixed + said);
        if (tokens as f64) < limit as f64 * self.room.at || self.room.tries >= TRIES {
            return None;
        }
        self.summarise(said, said / WORTH, usize::MAX)
    }

    /// Makes room after a request that did not fit; the limit that the error names is believed.
    pub(super) fn make_room(&mut self, error: &str) -> Vec<Output> {
        if let Some(stated) = stated_limit(error) {
            let known = self.room.limit.unwrap_or(u64::MAX);
            self.room.limit = Some(stated.min(known));
        }
        let begun = if self.room.tries < TRIES {
            let too_long = self.room.asked.saturating_sub(self.room.fixed);
            self.summarise(too_long, 0, too_long)
        } else {
            None
        };
        begun.unwrap_or_else(|| self.no_room(error))
    }

    /// Begins a cut of a conversation of `now` bytes that takes at least `least` of them away; none when there is none.
    /// `most` bytes did not fit, whatever is known of the limit: tokens of one text have more bytes than those of another.
    fn summarise(&mut self, now: usize, least: usize, most: usize) -> Option<Vec<Output>> {
        let fixed = self.room.fixed;
        let limit = self.room.limit.map(|limit| self.room.measure.bytes(limit));
        let limit = limit.map(|limit| limit.saturating_sub(fixed).max(limit / 4).min(most));
        let (keep, room) = compaction::budget(limit, now, self.room.tries);
        let plan = compaction::plan(&self.history, self.room.last_cut, keep, room)?;
        if plan.freed < least {
            return None;
        }
        self.room.tries += 1;
        let mut messages = plan.messages;
        if self.room.tries > 1 {
            // What a server takes of a body is no matter of tokens.
            for message in &mut messages {
                message.leave_pictures_out(NOT_IN_SUMMARY);
            }
        }
        self.phase = Phase::Summarising {
            answer: Assembler::new(),
            cut: plan.cut,
            request: plan.request,
        };
        let request = self.request(messages, false);
        self.room.asked = request.text_len();
        Some(vec![Output::Summarise(Box::new(request))])
    }

    pub(super) fn summarised(&mut self) -> Vec<Output> {
        let Phase::Summarising {
            answer,
            cut,
            request,
        } = std::mem::replace(&mut self.phase, Phase::Ended)
        else {
            return Vec::new();
        };
        let completion = answer.finish();
        let step = StepText {
            opaque: None,
            ..self.step_of(&completion, false)
        };
        if step.text.trim().is_empty() {
            return self.make_room("the model gave no summary");
        }
        self.phase = Phase::RecordingCut {
            cut,
            summary: Arc::clone(&step.text),
        };
        vec![Output::RecordCompaction {
            cut,
            step,
            request,
            before: self.room.counted,
        }]
    }

    pub(super) fn summary_failed(&mut self, error: &ModelError) -> Vec<Output> {
        if let Phase::Summarising { answer, .. } = &mut self.phase
            && let Some(request) = self.pictures.refused(error)
        {
            *answer = Assembler::new();
            return self.again_without_pictures(request, error, Output::Summarise);
        }
        if error.kind == ErrorKind::ContextOverflow {
            return self.make_room(&error.message);
        }
        self.phase = Phase::Ended;
        vec![Output::End {
            reason: EndReason::ProviderError,
            step: None,
            error: Some(format!("no room could be made in the context: {}", error.message).into()),
        }]
    }

    pub(super) fn cut_recorded(&mut self, restated: &Arc<str>) -> Vec<Output> {
        let Phase::RecordingCut { cut, summary } =
            std::mem::replace(&mut self.phase, Phase::Waiting)
        else {
            return Vec::new();
        };
        self.room.last_cut = cut;
        self.history.push(&Event::Compacted {
            cut,
            step: StepText {
                text: summary,
                ..StepText::default()
            },
            restated: Arc::clone(restated),
            before: None,
        });
        self.ask()
    }

    fn no_room(&mut self, error: &str) -> Vec<Output> {
        self.phase = Phase::Ended;
        let tries = match self.room.tries {
            0 => "nothing of it can be cut off".to_owned(),
            tries => format!("cutting it did not help ({tries} tries)"),
        };
        vec![Output::End {
            reason: EndReason::ProviderError,
            step: None,
            error: Some(
                format!(
                    "the conversation does not fit into the model's context, and {tries}: {error}"
                )
                .into(),
            ),
        }]
    }
}
