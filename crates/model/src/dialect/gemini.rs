//! The decoder of Gemini's streamGenerateContent. Parts come whole, without a terminal event: a stream that ends after a
//! reason to finish has ended well. Request bodies are in `encode`.

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::wire::{self, Count, Str, bytes};
use super::{Decoder, Phase, truncated};
use crate::delta::{Delta, Deltas, StopReason};
use crate::error::{ErrorKind, ModelError};
use crate::fault::Complaint;
use crate::json::Json;
use crate::text::{Mender, clipped};
use crate::usage::Usage;

/// Reads the events of one reply in Gemini's dialect.
#[derive(Debug)]
pub struct GeminiDecoder {
    phase: Phase,
    text: Mender,
    reasoning: Mender,
    /// Bytes of text that have gone out.
    text_bytes: usize,
    calls: usize,
    spoke: bool,
    /// The first reason to finish. It goes out last, because some servers send one with every event.
    stop: Option<StopReason>,
    noticed: bool,
    usage: Usage,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event<'a> {
    #[serde(borrow, default)]
    candidates: Option<Vec<Candidate<'a>>>,
    #[serde(borrow, default)]
    prompt_feedback: Option<PromptFeedback<'a>>,
    #[serde(default)]
    usage_metadata: Option<WireUsage>,
    #[serde(default)]
    error: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(default)]
    index: Count,
    #[serde(borrow, default)]
    content: Option<Content<'a>>,
    #[serde(borrow, default)]
    finish_reason: Option<Str<'a>>,
    #[serde(borrow, default)]
    finish_message: Option<Str<'a>>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow, default)]
    parts: Option<Vec<Part<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow, default)]
    text: Option<Str<'a>>,
    #[serde(default)]
    thought: Option<bool>,
    #[serde(borrow, default)]
    function_call: Option<FunctionCall<'a>>,
    #[serde(borrow, default, alias = "thought_signature")]
    thought_signature: Option<Str<'a>>,
}

#[derive(Deserialize)]
struct FunctionCall<'a> {
    #[serde(borrow, default)]
    id: Option<Str<'a>>,
    #[serde(borrow, default)]
    name: Option<Str<'a>>,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptFeedback<'a> {
    #[serde(borrow, default)]
    block_reason: Option<Str<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireUsage {
    #[serde(default)]
    prompt_token_count: Count,
    #[serde(default)]
    candidates_token_count: Count,
    #[serde(default)]
    thoughts_token_count: Count,
    #[serde(default)]
    cached_content_token_count: Count,
}

impl Default for GeminiDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl GeminiDecoder {
    /// A decoder at the start of a reply.
    pub fn new() -> Self {
        Self {
            phase: Phase::Open,
            text: Mender::default(),
            reasoning: Mender::default(),
            text_bytes: 0,
            calls: 0,
            spoke: false,
            stop: None,
            noticed: false,
            usage: Usage::default(),
        }
    }

    fn fail(&mut self, error: ModelError, out: &mut Deltas) {
        self.phase = Phase::Failed;
        out.push(Delta::Failed(error));
    }

    fn take(&mut self, event: Event<'_>, out: &mut Deltas) {
        if let Some(usage) = event.usage_metadata {
            self.take_usage(&usage, out);
        }
        if let Some(feedback) = event.prompt_feedback
            && let reason @ [_, ..] = bytes(&feedback.block_reason)
        {
            let reason = clipped(&String::from_utf8_lossy(reason), 64);
            out.push(Delta::Notice(format!(
                "the provider held the whole answer back: {reason}"
            )));
            self.stop.get_or_insert(StopReason::ContentFilter);
            self.phase = Phase::Stopped;
        }
        for candidate in event.candidates.into_iter().flatten() {
            // Only one answer is ever asked for.
            if matches!(candidate.index, Count(Some(1..))) {
                continue;
            }
            let parts = candidate.content.and_then(|content| content.parts);
            for part in parts.into_iter().flatten() {
                self.part(&part, out);
            }
            let reason = bytes(&candidate.finish_reason);
            if reason.is_empty() || reason == b"FINISH_REASON_UNSPECIFIED" {
                continue;
            }
            match verdict(reason) {
                Verdict::Stop(stop) => {
                    self.stop.get_or_insert(stop);
                    self.phase = Phase::Stopped;
                }
                Verdict::Failure(retryable) => {
                    self.release(out);
                    let said = candidate.finish_message.unwrap_or_default();
                    let message = format!(
                        "the provider gave the reply up ({}) {}",
                        String::from_utf8_lossy(reason),
                        said.text()
                    );
                    let mut error = ModelError::new(ErrorKind::Malformed, message.trim_end());
                    error.retryable = retryable;
                    return self.fail(error, out);
                }
            }
        }
    }

    fn part(&mut self, part: &Part<'_>, out: &mut Deltas) {
        let signature = bytes(&part.thought_signature);
        if let Some(call) = &part.function_call {
            self.release(out);
            self.call(call, out);
            self.sign(signature, || json!({"call": self.calls - 1}), out);
            return;
        }
        let Some(text) = &part.text else {
            if signature.is_empty() && !self.noticed {
                self.noticed = true;
                let notice = "a part that is neither text nor a call was passed over";
                out.push(Delta::Notice(notice.to_owned()));
            }
            return;
        };
        if part.thought == Some(true) {
            self.spoke |= !text.is_empty();
            self.reasoning.push(text.bytes(), out.reasoning_tail());
            if !signature.is_empty() {
                self.reasoning.finish(out.reasoning_tail());
            }
            out.drop_empty_tail();
            self.sign(signature, || json!("thought"), out);
        } else {
            self.spoke |= !text.is_empty();
            let from = self.text_bytes;
            let tail = out.text_tail();
            let before = tail.len();
            self.text.push(text.bytes(), tail);
            if !signature.is_empty() {
                self.text.finish(tail);
            }
            self.text_bytes += tail.len() - before;
            out.drop_empty_tail();
            self.sign(signature, || json!({"text": [from, self.text_bytes]}), out);
        }
    }

    /// Keeps the signature of a part, with the part that it goes back on.
    fn sign(&self, signature: &[u8], on: impl Fn() -> serde_json::Value, out: &mut Deltas) {
        if !signature.is_empty() {
            let signature = String::from_utf8_lossy(signature);
            let data = json!({"type": "thought_signature", "signature": signature, "on": on()});
            out.push(Delta::ReasoningOpaque(Json::from_value(&data)));
        }
    }

    fn call(&mut self, call: &FunctionCall<'_>, out: &mut Deltas) {
        let index = self.calls;
        self.calls += 1;
        self.spoke = true;
        let text = |field: &Option<Str<'_>>| {
            let text = field.as_ref().map(|text| text.text().into_owned());
            text.filter(|text| !text.is_empty())
        };
        out.push(Delta::CallStarted {
            index,
            id: text(&call.id).unwrap_or_else(|| format!("call_{index}")),
            name: text(&call.name).unwrap_or_default(),
        });
        if let Some(args) = call.args {
            out.arguments_tail(index).push_str(args.get());
            out.drop_empty_tail();
        }
    }

    fn take_usage(&mut self, wire: &WireUsage, out: &mut Deltas) {
        let thoughts = wire.thoughts_token_count.0;
        let answer = wire.candidates_token_count.0;
        let mut usage = self.usage;
        usage.merge(&Usage {
            input: wire.prompt_token_count.0,
            // Thoughts are counted apart on the wire.
            output: match (answer, thoughts) {
                (None, None) => None,
                (answer, thoughts) => {
                    Some(answer.unwrap_or(0).saturating_add(thoughts.unwrap_or(0)))
                }
            },
            cache_read: wire.cached_content_token_count.0,
            cache_write: None,
            reasoning: thoughts,
        });
        if usage != self.usage {
            self.usage = usage;
            out.push(Delta::Usage(usage));
        }
    }

    /// Pushes what was held back for its other half.
    fn release(&mut self, out: &mut Deltas) {
        self.reasoning.finish(out.reasoning_tail());
        out.drop_empty_tail();
        let tail = out.text_tail();
        let before = tail.len();
        self.text.finish(tail);
        self.text_bytes += tail.len() - before;
        out.drop_empty_tail();
    }

    /// Tells why the model stopped, now that nothing can follow.
    fn stop(&mut self, out: &mut Deltas) {
        self.release(out);
        if let Some(stop) = self.stop.take() {
            let stop = match stop {
                StopReason::EndTurn if self.calls > 0 => StopReason::ToolCalls,
                other => other,
            };
            out.push(Delta::Stop(stop));
        }
    }
}

enum Verdict {
    Stop(StopReason),
    /// Nothing usable came; whether another try may help.
    Failure(bool),
}

fn verdict(reason: &[u8]) -> Verdict {
    Verdict::Stop(match reason {
        b"STOP" => StopReason::EndTurn,
        b"MAX_TOKENS" => StopReason::Length,
        b"SAFETY"
        | b"RECITATION"
        | b"BLOCKLIST"
        | b"PROHIBITED_CONTENT"
        | b"SPII"
        | b"IMAGE_SAFETY"
        | b"IMAGE_PROHIBITED_CONTENT"
        | b"IMAGE_RECITATION" => StopReason::ContentFilter,
        // The model's call could not be read by the provider, which a new try may mend.
        b"MALFORMED_FUNCTION_CALL" | b"UNEXPECTED_TOOL_CALL" | b"MALFORMED_RESPONSE" => {
            return Verdict::Failure(true);
        }
        b"MISSING_THOUGHT_SIGNATURE" | b"TOO_MANY_TOOL_CALLS" => return Verdict::Failure(false),
        other => StopReason::Other(clipped(&String::from_utf8_lossy(other), 64)),
    })
}

impl Decoder for GeminiDecoder {
    fn push(&mut self, event: &[u8], out: &mut Deltas) {
        if matches!(self.phase, Phase::Closed | Phase::Failed) {
            return;
        }
        let event = event.trim_ascii();
        if event.is_empty() {
            return;
        }
        // Said by gateways that translate from another dialect.
        if event == b"[DONE]" {
            let whole = self.stop.is_some() || self.spoke;
            self.stop(out);
            if whole {
                self.phase = Phase::Closed;
            } else {
                self.fail(truncated(), out);
            }
            return;
        }
        match wire::read::<Event<'_>>(event) {
            Ok(read) if read.error.is_none() => self.take(read, out),
            Ok(_) | Err(_) => {
                let value = match wire::read_odd(event) {
                    Ok(value) => value,
                    Err(error) => return self.fail(error, out),
                };
                if let Some(complaint) = Complaint::read(&value) {
                    return self.fail(complaint.sort(None), out);
                }
                let text = value.to_string();
                match wire::read::<Event<'_>>(text.as_bytes()) {
                    Ok(read) => self.take(read, out),
                    Err(fault) => self.fail(wire::not_of_dialect(&fault), out),
                }
            }
        }
    }

    fn phase(&self) -> Phase {
        self.phase
    }

    fn end(&mut self, out: &mut Deltas) -> Result<(), ModelError> {
        match self.phase {
            Phase::Stopped => {
                self.stop(out);
                Ok(())
            }
            Phase::Closed => Ok(()),
            Phase::Open => {
                self.release(out);
                Err(truncated())
            }
            Phase::Failed => Err(truncated()),
        }
    }
}
