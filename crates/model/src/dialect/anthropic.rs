//! The decoder of Anthropic's Messages. Request bodies are in `encode`.

use serde::Deserialize;
use serde_json::json;

use super::wire::{self, Count, Str, bytes};
use super::{Decoder, Phase, truncated};
use crate::delta::{Delta, Deltas, StopReason};
use crate::error::ModelError;
use crate::fault::Complaint;
use crate::json::Json;
use crate::text::{Mender, clipped};
use crate::usage::Usage;

/// Reads the events of one reply in the Messages dialect.
#[derive(Debug)]
pub struct AnthropicDecoder {
    phase: Phase,
    blocks: Vec<Block>,
    calls: usize,
    spoke: bool,
    stopped: bool,
    counts: Counts,
    usage: Usage,
}

/// A content block that has begun and not ended.
#[derive(Debug)]
struct Block {
    index: u64,
    mender: Mender,
    kind: BlockKind,
}

#[derive(Debug)]
enum BlockKind {
    Text,
    Thinking {
        signature: String,
    },
    Call {
        call: usize,
        whole: Option<String>,
        streamed: bool,
    },
    /// A kind that we have no use for.
    Other,
}

/// The counts as the wire has them, where the input excludes what went through the cache.
#[derive(Clone, Copy, Default, Debug)]
struct Counts {
    input: Option<u64>,
    output: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    reasoning: Option<u64>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Str<'a>>,
    #[serde(default)]
    index: Count,
    #[serde(default)]
    message: Option<WireMessage>,
    #[serde(borrow, default)]
    content_block: Option<WireBlock<'a>>,
    #[serde(borrow, default)]
    delta: Option<WireDelta<'a>>,
    #[serde(default)]
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
struct WireMessage {
    #[serde(default)]
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
struct WireBlock<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Str<'a>>,
    #[serde(borrow, default)]
    text: Option<Str<'a>>,
    #[serde(borrow, default)]
    thinking: Option<Str<'a>>,
    #[serde(borrow, default)]
    signature: Option<Str<'a>>,
    #[serde(borrow, default)]
    data: Option<Str<'a>>,
    #[serde(borrow, default)]
    id: Option<Str<'a>>,
    #[serde(borrow, default)]
    name: Option<Str<'a>>,
    #[serde(default)]
    input: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct WireDelta<'a> {
    #[serde(borrow, default)]
    text: Option<Str<'a>>,
    #[serde(borrow, default)]
    thinking: Option<Str<'a>>,
    #[serde(borrow, default)]
    signature: Option<Str<'a>>,
    #[serde(borrow, default)]
    partial_json: Option<Str<'a>>,
    #[serde(borrow, default)]
    stop_reason: Option<Str<'a>>,
}

#[derive(Deserialize)]
struct WireUsage {
    #[serde(default)]
    input_tokens: Count,
    #[serde(default)]
    output_tokens: Count,
    #[serde(default)]
    cache_read_input_tokens: Count,
    #[serde(default)]
    cache_creation_input_tokens: Count,
    #[serde(default)]
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize)]
struct OutputDetails {
    #[serde(default, alias = "thinking_tokens")]
    reasoning_tokens: Count,
}

impl Default for AnthropicDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl AnthropicDecoder {
    /// A decoder at the start of a reply.
    pub fn new() -> Self {
        Self {
            phase: Phase::Open,
            blocks: Vec::new(),
            calls: 0,
            spoke: false,
            stopped: false,
            counts: Counts::default(),
            usage: Usage::default(),
        }
    }

    fn fail(&mut self, error: ModelError, out: &mut Deltas) {
        self.phase = Phase::Failed;
        out.push(Delta::Failed(error));
    }

    fn take(&mut self, event: Event<'_>, out: &mut Deltas) {
        match bytes(&event.kind) {
            b"message_start" => {
                if let Some(usage) = event.message.and_then(|message| message.usage) {
                    self.take_usage(&usage, out);
                }
            }
            b"content_block_start" => {
                if let Some(block) = event.content_block {
                    self.begin(event.index.0.unwrap_or(0), block, out);
                }
            }
            b"content_block_delta" => {
                if let Some(delta) = event.delta {
                    self.extend(event.index.0.unwrap_or(0), &delta, out);
                }
            }
            b"content_block_stop" => {
                let index = event.index.0.unwrap_or(0);
                if let Some(at) = self.blocks.iter().rposition(|block| block.index == index) {
                    let block = self.blocks.remove(at);
                    end_block(block, out);
                }
            }
            b"message_delta" => {
                if let Some(usage) = event.usage {
                    self.take_usage(&usage, out);
                }
                let reason = event.delta.and_then(|delta| delta.stop_reason);
                if let Some(reason) = reason
                    && !reason.is_empty()
                    && !self.stopped
                {
                    self.end_blocks(out);
                    self.stopped = true;
                    self.phase = Phase::Stopped;
                    out.push(Delta::Stop(stop_reason(&reason.text())));
                }
            }
            b"message_stop" => {
                self.done(out);
            }
            // Pings, and kinds that came later than this code.
            _ => {}
        }
    }

    /// The terminal event. Without a reason to stop, only a reply that is whole in itself is finished.
    fn done(&mut self, out: &mut Deltas) {
        if self.stopped || (self.spoke && self.blocks.is_empty()) {
            self.phase = Phase::Closed;
        } else {
            self.end_blocks(out);
            self.fail(truncated(), out);
        }
    }

    fn begin(&mut self, index: u64, wire: WireBlock<'_>, out: &mut Deltas) {
        let mut mender = Mender::default();
        let kind = match bytes(&wire.kind) {
            b"text" => {
                append(&mut mender, bytes(&wire.text), out, Deltas::text_tail);
                self.spoke |= !bytes(&wire.text).is_empty();
                BlockKind::Text
            }
            b"thinking" => {
                append(
                    &mut mender,
                    bytes(&wire.thinking),
                    out,
                    Deltas::reasoning_tail,
                );
                self.spoke = true;
                BlockKind::Thinking {
                    signature: wire
                        .signature
                        .map_or(String::new(), |s| s.text().into_owned()),
                }
            }
            b"redacted_thinking" => {
                let data = wire.data.unwrap_or_default();
                let block = json!({"type": "redacted_thinking", "data": data.text()});
                out.push(Delta::ReasoningOpaque(Json::from_value(&block)));
                self.spoke = true;
                BlockKind::Other
            }
            b"tool_use" => {
                let call = self.calls;
                self.calls += 1;
                self.spoke = true;
                let id = wire.id.unwrap_or_default();
                let id = if id.is_empty() {
                    format!("call_{call}")
                } else {
                    id.text().into_owned()
                };
                let name = wire.name.unwrap_or_default().text().into_owned();
                out.push(Delta::CallStarted {
                    index: call,
                    id,
                    name,
                });
                let whole = wire.input.filter(|input| match input {
                    serde_json::Value::Object(members) => !members.is_empty(),
                    serde_json::Value::Null => false,
                    _ => true,
                });
                BlockKind::Call {
                    call,
                    whole: whole.map(|input| input.to_string()),
                    streamed: false,
                }
            }
            other => {
                let kind = clipped(&String::from_utf8_lossy(other), 64);
                out.push(Delta::Notice(format!(
                    "a content block of the unknown kind {kind:?} was passed over"
                )));
                BlockKind::Other
            }
        };
        self.blocks.push(Block {
            index,
            mender,
            kind,
        });
    }

    fn extend(&mut self, index: u64, delta: &WireDelta<'_>, out: &mut Deltas) {
        let Some(block) = self
            .blocks
            .iter_mut()
            .rev()
            .find(|block| block.index == index)
        else {
            return;
        };
        match &mut block.kind {
            BlockKind::Text => {
                let text = bytes(&delta.text);
                self.spoke |= !text.is_empty();
                append(&mut block.mender, text, out, Deltas::text_tail);
            }
            BlockKind::Thinking { signature } => {
                append(
                    &mut block.mender,
                    bytes(&delta.thinking),
                    out,
                    Deltas::reasoning_tail,
                );
                if let Some(more) = &delta.signature {
                    signature.push_str(&more.text());
                }
            }
            BlockKind::Call { call, streamed, .. } => {
                let fragment = bytes(&delta.partial_json);
                *streamed |= !fragment.is_empty();
                append(&mut block.mender, fragment, out, |out| {
                    out.arguments_tail(*call)
                });
            }
            BlockKind::Other => {}
        }
    }

    fn end_blocks(&mut self, out: &mut Deltas) {
        for block in self.blocks.drain(..) {
            end_block(block, out);
        }
    }

    fn take_usage(&mut self, wire: &WireUsage, out: &mut Deltas) {
        let counts = &mut self.counts;
        counts.input = wire.input_tokens.0.or(counts.input);
        counts.output = wire.output_tokens.0.or(counts.output);
        counts.cache_read = wire.cache_read_input_tokens.0.or(counts.cache_read);
        counts.cache_write = wire.cache_creation_input_tokens.0.or(counts.cache_write);
        counts.reasoning = wire
            .output_tokens_details
            .as_ref()
            .and_then(|d| d.reasoning_tokens.0)
            .or(counts.reasoning);
        let cached = counts
            .cache_read
            .unwrap_or(0)
            .saturating_add(counts.cache_write.unwrap_or(0));
        let usage = Usage {
            input: counts.input.map(|input| input.saturating_add(cached)),
            output: counts.output,
            cache_read: counts.cache_read,
            cache_write: counts.cache_write,
            reasoning: counts.reasoning,
        };
        if usage != self.usage {
            self.usage = usage;
            out.push(Delta::Usage(usage));
        }
    }
}

fn append(
    mender: &mut Mender,
    bytes: &[u8],
    out: &mut Deltas,
    tail: impl Fn(&mut Deltas) -> &mut String,
) {
    if !bytes.is_empty() {
        mender.push(bytes, tail(out));
        out.drop_empty_tail();
    }
}

fn end_block(mut block: Block, out: &mut Deltas) {
    match block.kind {
        BlockKind::Text => block.mender.finish(out.text_tail()),
        BlockKind::Thinking { signature } => {
            block.mender.finish(out.reasoning_tail());
            out.drop_empty_tail();
            if !signature.is_empty() {
                let data = json!({"type": "thinking", "signature": signature});
                out.push(Delta::ReasoningOpaque(Json::from_value(&data)));
            }
        }
        BlockKind::Call {
            call,
            whole,
            streamed,
        } => {
            let tail = out.arguments_tail(call);
            block.mender.finish(tail);
            if let Some(whole) = whole
                && !streamed
            {
                tail.push_str(&whole);
            }
        }
        BlockKind::Other => {}
    }
    out.drop_empty_tail();
}

fn stop_reason(word: &str) -> StopReason {
    match word {
        "end_turn" | "stop_sequence" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolCalls,
        "max_tokens" => StopReason::Length,
        "refusal" => StopReason::Refusal,
        other => StopReason::Other(clipped(other, 64)),
    }
}

impl Decoder for AnthropicDecoder {
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
            return self.done(out);
        }
        match wire::read::<Event<'_>>(event) {
            Ok(read) if bytes(&read.kind) != b"error" && read.kind.is_some() => {
                self.take(read, out)
            }
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
            Phase::Stopped | Phase::Closed => Ok(()),
            Phase::Open => {
                self.end_blocks(out);
                Err(truncated())
            }
            Phase::Failed => Err(truncated()),
        }
    }
}
