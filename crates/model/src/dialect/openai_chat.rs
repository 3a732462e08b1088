//! The decoder of Chat Completions, for the many servers that speak it more or less. Which fragment belongs to which
//! tool call is in `calls`; request bodies are in `encode`.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::calls::{Calls, Entry};
use super::wire::{self, Count, Str, bytes};
use super::{Decoder, Phase, truncated};
use crate::delta::{Delta, Deltas, StopReason};
use crate::error::ModelError;
use crate::fault::Complaint;
use crate::json::Json;
use crate::text::Mender;
use crate::usage::Usage;

/// Reads the events of one reply in the Chat Completions dialect.
#[derive(Debug)]
pub struct OpenAiChatDecoder {
    phase: Phase,
    text: Mender,
    reasoning: Mender,
    calls: Calls,
    /// Reasoning in the form that goes back unchanged.
    details: Vec<Value>,
    refused: bool,
    spoke: bool,
    usage: Usage,
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(default)]
    usage: Option<WireUsage>,
    #[serde(default)]
    x_groq: Option<XGroq>,
    #[serde(default)]
    error: Option<serde::de::IgnoredAny>,
    #[serde(borrow, default)]
    object: Option<Str<'a>>,
    #[serde(borrow, default, rename = "type")]
    kind: Option<Str<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(default)]
    index: Count,
    #[serde(borrow, default)]
    delta: Option<WireDelta<'a>>,
    #[serde(borrow, default)]
    finish_reason: Option<Str<'a>>,
    #[serde(default)]
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
struct WireDelta<'a> {
    #[serde(borrow, default)]
    content: Option<Str<'a>>,
    #[serde(borrow, default)]
    reasoning_content: Option<Str<'a>>,
    #[serde(borrow, default)]
    reasoning: Option<Str<'a>>,
    #[serde(borrow, default)]
    reasoning_details: Option<&'a RawValue>,
    #[serde(borrow, default)]
    refusal: Option<Str<'a>>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<WireCall<'a>>>,
}

#[derive(Deserialize)]
struct WireCall<'a> {
    #[serde(default)]
    index: Count,
    #[serde(borrow, default)]
    id: Option<Str<'a>>,
    #[serde(borrow, default)]
    function: Option<WireFunction<'a>>,
}

#[derive(Deserialize)]
struct WireFunction<'a> {
    #[serde(borrow, default)]
    name: Option<Str<'a>>,
    #[serde(borrow, default)]
    arguments: Option<Str<'a>>,
}

#[derive(Deserialize)]
struct XGroq {
    #[serde(default)]
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
struct WireUsage {
    #[serde(default)]
    prompt_tokens: Count,
    #[serde(default)]
    completion_tokens: Count,
    #[serde(default)]
    prompt_cache_hit_tokens: Count,
    #[serde(default)]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default)]
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Deserialize)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: Count,
    #[serde(default)]
    cache_write_tokens: Count,
}

#[derive(Deserialize)]
struct CompletionDetails {
    #[serde(default)]
    reasoning_tokens: Count,
}

impl Default for OpenAiChatDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl OpenAiChatDecoder {
    /// A decoder at the start of a reply.
    pub fn new() -> Self {
        Self {
            phase: Phase::Open,
            text: Mender::default(),
            reasoning: Mender::default(),
            calls: Calls::default(),
            details: Vec::new(),
            refused: false,
            spoke: false,
            usage: Usage::default(),
        }
    }

    fn fail(&mut self, error: ModelError, out: &mut Deltas) {
        self.phase = Phase::Failed;
        out.push(Delta::Failed(error));
    }

    fn take(&mut self, chunk: Chunk<'_>, out: &mut Deltas) {
        for choice in chunk.choices.into_iter().flatten() {
            // Only one answer is ever asked for.
            if matches!(choice.index, Count(Some(1..))) {
                continue;
            }
            if let Some(usage) = choice.usage {
                self.take_usage(&usage, out);
            }
            if self.phase != Phase::Open {
                continue;
            }
            if let Some(delta) = choice.delta {
                self.take_delta(delta, out);
            }
            match choice.finish_reason {
                Some(reason) if !reason.is_empty() => self.stop(&reason.text(), out),
                _ => {}
            }
        }
        if let Some(usage) = chunk.usage.or(chunk.x_groq.and_then(|groq| groq.usage)) {
            self.take_usage(&usage, out);
        }
    }

    fn take_delta(&mut self, delta: WireDelta<'_>, out: &mut Deltas) {
        let mut reasoning = bytes(&delta.reasoning_content);
        if reasoning.is_empty() {
            reasoning = bytes(&delta.reasoning);
        }
        if !reasoning.is_empty() {
            self.spoke = true;
            self.reasoning.push(reasoning, out.reasoning_tail());
            out.drop_empty_tail();
        }
        if let Some(details) = delta.reasoning_details {
            self.take_details(details);
        }
        for text in [bytes(&delta.content), bytes(&delta.refusal)] {
            if !text.is_empty() {
                self.spoke = true;
                self.text.push(text, out.text_tail());
                out.drop_empty_tail();
            }
        }
        self.refused |= !bytes(&delta.refusal).is_empty();
        for call in delta.tool_calls.into_iter().flatten() {
            self.spoke = true;
            let id = call.id.unwrap_or_default();
            let (name, arguments) = match call.function {
                Some(function) => (
                    function.name.unwrap_or_default(),
                    function.arguments.unwrap_or_default(),
                ),
                None => Default::default(),
            };
            let entry = Entry {
                index: call.index.0,
                id: &id.text(),
                name: &name.text(),
                arguments: arguments.bytes(),
            };
            self.calls.push(entry, out);
        }
    }

    /// Pieces of one detail are joined; what cannot be read is left out, because it is only needed to be sent back.
    fn take_details(&mut self, raw: &RawValue) {
        let Ok(Value::Array(pieces)) = wire::read_odd(raw.get().as_bytes()) else {
            return;
        };
        for piece in pieces {
            match self.details.last_mut() {
                Some(last) if continues(last, &piece) => join(last, piece),
                _ => self.details.push(piece),
            }
        }
    }

    fn take_usage(&mut self, wire: &WireUsage, out: &mut Deltas) {
        let details = wire.prompt_tokens_details.as_ref();
        let mut usage = self.usage;
        usage.merge(&Usage {
            input: wire.prompt_tokens.0,
            output: wire.completion_tokens.0,
            cache_read: details
                .and_then(|d| d.cached_tokens.0)
                .or(wire.prompt_cache_hit_tokens.0),
            cache_write: details.and_then(|d| d.cache_write_tokens.0),
            reasoning: wire
                .completion_tokens_details
                .as_ref()
                .and_then(|d| d.reasoning_tokens.0),
        });
        if usage != self.usage {
            self.usage = usage;
            out.push(Delta::Usage(usage));
        }
    }

    fn stop(&mut self, reason: &str, out: &mut Deltas) {
        self.release(out);
        self.phase = Phase::Stopped;
        let reason = match reason {
            "stop" | "eos" | "end_turn" if self.refused => StopReason::Refusal,
            // Some servers say "stop" although they wait for the results of calls.
            "stop" | "eos" | "end_turn" if !self.calls.is_empty() => StopReason::ToolCalls,
            "stop" | "eos" | "end_turn" => StopReason::EndTurn,
            "tool_calls" | "function_call" | "tool_use" => StopReason::ToolCalls,
            "length" | "max_tokens" => StopReason::Length,
            "content_filter" => StopReason::ContentFilter,
            other => StopReason::Other(crate::text::clipped(other, 64)),
        };
        out.push(Delta::Stop(reason));
    }

    /// Pushes what was held back for its other half.
    fn release(&mut self, out: &mut Deltas) {
        self.reasoning.finish(out.reasoning_tail());
        out.drop_empty_tail();
        self.text.finish(out.text_tail());
        out.drop_empty_tail();
        self.calls.finish(out);
        let details = std::mem::take(&mut self.details);
        if !details.is_empty() {
            let data = json!({"type": "reasoning_details", "details": details});
            out.push(Delta::ReasoningOpaque(Json::from_value(&data)));
        }
    }

    /// The terminal event. Some servers give no finish reason; then only a reply that is whole in itself is finished.
    fn done(&mut self, out: &mut Deltas) {
        if self.phase == Phase::Open {
            self.release(out);
            if !self.spoke || !self.calls.are_complete() {
                return self.fail(truncated(), out);
            }
        }
        self.phase = Phase::Closed;
    }

    /// An event without the usual form: an error, or a form that can be brought into the usual one.
    fn take_odd(&mut self, event: &[u8], out: &mut Deltas) {
        let mut value = match wire::read_odd(event) {
            Ok(value) => value,
            Err(error) => return self.fail(error, out),
        };
        if let Some(complaint) = Complaint::read(&value) {
            return self.fail(complaint.sort(None), out);
        }
        straighten(&mut value);
        let text = value.to_string();
        match wire::read::<Chunk<'_>>(text.as_bytes()) {
            Ok(chunk) => self.take(chunk, out),
            Err(fault) => self.fail(wire::not_of_dialect(&fault), out),
        }
    }
}

/// Whether a piece goes on with the last detail.
fn continues(last: &Value, piece: &Value) -> bool {
    let texts = ["reasoning.text", "reasoning.summary"];
    let same = |key: &str| piece[key].is_null() || piece[key] == last[key];
    // A signature ends its detail.
    texts.iter().any(|kind| piece["type"] == *kind)
        && last["signature"].is_null()
        && piece["type"] == last["type"]
        && piece["index"] == last["index"]
        && same("id")
        && same("format")
}

fn join(last: &mut Value, piece: Value) {
    let (Value::Object(last), Value::Object(piece)) = (last, piece) else {
        return;
    };
    for (key, value) in piece {
        match (last.get_mut(&key), value) {
            (Some(Value::String(text)), Value::String(more))
                if key == "text" || key == "summary" =>
            {
                text.push_str(&more);
            }
            (_, Value::Null) => {}
            (_, value) => {
                last.insert(key, value);
            }
        }
    }
}

/// Arguments that came as an object become their text.
fn straighten(value: &mut Value) {
    let choices = value.get_mut("choices").and_then(Value::as_array_mut);
    for choice in choices.into_iter().flatten() {
        let calls = choice
            .pointer_mut("/delta/tool_calls")
            .and_then(Value::as_array_mut);
        for call in calls.into_iter().flatten() {
            if let Some(arguments) = call.pointer_mut("/function/arguments")
                && !arguments.is_string()
                && !arguments.is_null()
            {
                *arguments = Value::String(arguments.to_string());
            }
        }
    }
}

impl Decoder for OpenAiChatDecoder {
    fn push(&mut self, event: &[u8], out: &mut Deltas) {
        if matches!(self.phase, Phase::Closed | Phase::Failed) {
            return;
        }
        let event = event.trim_ascii();
        if event.is_empty() {
            return;
        }
        if event == b"[DONE]" {
            return self.done(out);
        }
        match wire::read::<Chunk<'_>>(event) {
            Ok(chunk)
                if chunk.error.is_none()
                    && !says_error(&chunk.object)
                    && !says_error(&chunk.kind) =>
            {
                self.take(chunk, out);
            }
            Ok(_) | Err(_) => self.take_odd(event, out),
        }
    }

    fn phase(&self) -> Phase {
        self.phase
    }

    fn end(&mut self, out: &mut Deltas) -> Result<(), ModelError> {
        match self.phase {
            Phase::Stopped | Phase::Closed => Ok(()),
            Phase::Failed => Err(truncated()),
            Phase::Open => {
                self.release(out);
                Err(truncated())
            }
        }
    }
}

fn says_error(field: &Option<Str<'_>>) -> bool {
    bytes(field) == b"error"
}
