//! The JSON of Responses events, read leniently and only as far as a reply is put together from it. What is made of it is
//! in `openai_responses`.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::wire::{Count, Str};
use crate::usage::Usage;

/// The kinds of events that a reply is put together from. Others may have any form.
pub(super) const OURS: [&str; 15] = [
    "response.output_item.added",
    "response.output_item.done",
    "response.output_text.delta",
    "response.output_text.done",
    "response.refusal.delta",
    "response.refusal.done",
    "response.reasoning_summary_text.delta",
    "response.reasoning_text.delta",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.completed",
    "response.done",
    "response.incomplete",
    "response.failed",
    "error",
];

#[derive(Deserialize)]
pub(super) struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Option<Str<'a>>,
    #[serde(default)]
    pub(super) output_index: Count,
    #[serde(borrow, default)]
    pub(super) item_id: Option<Str<'a>>,
    #[serde(default)]
    pub(super) summary_index: Count,
    #[serde(default)]
    pub(super) content_index: Count,
    #[serde(borrow, default)]
    pub(super) delta: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(super) text: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(super) refusal: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(super) arguments: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(super) item: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) response: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
pub(super) struct WireItem<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(super) id: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(super) call_id: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(super) name: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(super) arguments: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(super) content: Option<Vec<WirePart<'a>>>,
    #[serde(borrow, default)]
    pub(super) summary: Option<Vec<WirePart<'a>>>,
}

#[derive(Deserialize)]
pub(super) struct WirePart<'a> {
    #[serde(borrow, default)]
    pub(super) text: Option<Str<'a>>,
    #[serde(borrow, default)]
    pub(super) refusal: Option<Str<'a>>,
}

#[derive(Default, Deserialize)]
pub(super) struct WireResponse<'a> {
    #[serde(borrow, default)]
    pub(super) output: Option<Vec<&'a RawValue>>,
    #[serde(default)]
    pub(super) usage: Option<WireUsage>,
    #[serde(borrow, default)]
    pub(super) incomplete_details: Option<Incomplete<'a>>,
}

#[derive(Deserialize)]
pub(super) struct Incomplete<'a> {
    #[serde(borrow, default)]
    pub(super) reason: Option<Str<'a>>,
}

#[derive(Deserialize)]
pub(super) struct WireUsage {
    #[serde(default)]
    pub(super) input_tokens: Count,
    #[serde(default)]
    pub(super) output_tokens: Count,
    #[serde(default)]
    pub(super) input_tokens_details: Option<InputDetails>,
    #[serde(default)]
    pub(super) output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize)]
pub(super) struct InputDetails {
    #[serde(default)]
    pub(super) cached_tokens: Count,
    #[serde(default)]
    pub(super) cache_write_tokens: Count,
}

#[derive(Deserialize)]
pub(super) struct OutputDetails {
    #[serde(default)]
    pub(super) reasoning_tokens: Count,
}

impl WireUsage {
    /// The counts in our convention, which is also that of this wire.
    pub(super) fn usage(&self) -> Usage {
        let input = self.input_tokens_details.as_ref();
        let output = self.output_tokens_details.as_ref();
        Usage {
            input: self.input_tokens.0,
            output: self.output_tokens.0,
            cache_read: input.and_then(|d| d.cached_tokens.0),
            cache_write: input.and_then(|d| d.cache_write_tokens.0),
            reasoning: output.and_then(|d| d.reasoning_tokens.0),
        }
    }
}
