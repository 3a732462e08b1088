//! The decoder of OpenAI's Responses. Events belong to output items, which are told apart by their place in the output; a
//! later event that repeats a whole adds only what its pieces lacked. Request bodies are in `encode`.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::responses_events::{Event, OURS, WireItem, WireResponse, WireUsage};
use super::wire::{self, Str, bytes};
use super::{Decoder, Phase, truncated};
use crate::delta::{Delta, Deltas, StopReason};
use crate::error::{ErrorKind, ModelError};
use crate::fault::Complaint;
use crate::json::Json;
use crate::text::{self, Mender, clipped};
use crate::usage::Usage;

/// Where the parts of a reasoning item's content are counted from, apart from those of its summary.
const CONTENT: u64 = 1 << 32;

/// Reads the events of one reply in the Responses dialect.
#[derive(Debug)]
pub struct OpenAiResponsesDecoder {
    phase: Phase,
    items: Vec<Item>,
    calls: usize,
    /// Bytes of text that have gone out.
    text_bytes: usize,
    /// A finished reasoning item that waits for the item which it stands before.
    held: Option<Value>,
    refused: bool,
    usage: Usage,
}

/// An item of the output.
#[derive(Debug)]
struct Item {
    index: Option<u64>,
    id: String,
    mender: Mender,
    done: bool,
    kind: ItemKind,
}

#[derive(Debug)]
enum ItemKind {
    Message {
        spoke: bool,
        /// Where in the text it began.
        at: usize,
    },
    Reasoning {
        /// The part of the summary or of the content that is being streamed.
        part: Option<u64>,
    },
    Call {
        call: usize,
        /// What has gone out of the arguments.
        arguments: String,
        /// What the call began with: all of them, or a place that is to be filled. It counts when nothing else comes.
        first: String,
    },
    /// A kind that we have no use for.
    Other,
}

impl Default for OpenAiResponsesDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl OpenAiResponsesDecoder {
    /// A decoder at the start of a reply.
    pub fn new() -> Self {
        Self {
            phase: Phase::Open,
            items: Vec::new(),
            calls: 0,
            text_bytes: 0,
            held: None,
            refused: false,
            usage: Usage::default(),
        }
    }

    fn fail(&mut self, error: ModelError, out: &mut Deltas) {
        self.phase = Phase::Failed;
        out.push(Delta::Failed(error));
    }

    /// Takes in an event; whether it is one of this dialect.
    fn take(&mut self, event: &Event<'_>, out: &mut Deltas) -> Result<(), serde_json::Error> {
        match bytes(&event.kind) {
            b"response.output_item.added" => {
                if let Some(raw) = event.item {
                    let item: WireItem<'_> = wire::read(raw.get().as_bytes())?;
                    self.begin(event.output_index.0, &item, out);
                }
            }
            b"response.output_item.done" => {
                if let Some(raw) = event.item {
                    self.item_done(event.output_index.0, raw, out)?;
                }
            }
            b"response.output_text.delta" => self.say(event, bytes(&event.delta), false, out),
            b"response.output_text.done" => self.say(event, bytes(&event.text), true, out),
            b"response.refusal.delta" => {
                self.refused = true;
                self.say(event, bytes(&event.delta), false, out);
            }
            b"response.refusal.done" => {
                self.refused = true;
                self.say(event, bytes(&event.refusal), true, out);
            }
            b"response.reasoning_summary_text.delta" | b"response.reasoning_text.delta" => {
                self.think(event, out);
            }
            b"response.function_call_arguments.delta" => {
                if let Some(at) = self.known(event) {
                    self.arguments(at, bytes(&event.delta), out);
                }
            }
            b"response.function_call_arguments.done" => {
                if let Some(at) = self.known(event) {
                    self.whole_arguments(at, &event.arguments, out);
                }
            }
            b"response.completed" | b"response.done" => self.close(event.response, true, out)?,
            b"response.incomplete" => self.close(event.response, false, out)?,
            b"response.failed" => {
                if let Some(raw) = event.response {
                    let response: WireResponse<'_> = wire::read(raw.get().as_bytes())?;
                    self.take_usage(response.usage.as_ref(), out);
                }
                self.release(out);
                let said = event
                    .response
                    .and_then(|raw| wire::read_odd(raw.get().as_bytes()).ok())
                    .and_then(|value| Complaint::read(&value));
                self.fail(said.unwrap_or_default().sort(None), out);
            }
            // Signs of life, wholes of what has come in pieces, and kinds that came later than this code.
            _ => {}
        }
        Ok(())
    }

    /// The item that an event is about. Its place counts for more than its id, which some gateways make anew each time.
    fn find(&self, index: Option<u64>, id: &[u8]) -> Option<usize> {
        let placed = |item: &Item| item.index.is_some() && item.index == index;
        let named = |item: &Item| {
            let unplaced = index.is_none() || item.index.is_none();
            unplaced && !id.is_empty() && item.id.as_bytes() == id
        };
        let by_place = self.items.iter().rposition(placed);
        by_place.or_else(|| self.items.iter().rposition(named))
    }

    fn known(&self, event: &Event<'_>) -> Option<usize> {
        self.find(event.output_index.0, bytes(&event.item_id))
    }

    /// The item that an event is about, of a kind that some gateways do not announce. An event that names none goes on
    /// with the last item when that is of its kind.
    fn known_or_begun(&mut self, event: &Event<'_>, kind: &[u8], out: &mut Deltas) -> usize {
        let nameless = event.output_index.0.is_none() && bytes(&event.item_id).is_empty();
        let last = self.items.len().checked_sub(1).filter(|last| {
            let item = &self.items[*last];
            let same = match item.kind {
                ItemKind::Message { .. } => kind == b"message",
                ItemKind::Reasoning { .. } => kind == b"reasoning",
                ItemKind::Call { .. } | ItemKind::Other => false,
            };
            nameless && same && !item.done
        });
        self.known(event).or(last).unwrap_or_else(|| {
            let item = WireItem {
                kind: Some(Str::of(kind)),
                id: event.item_id.as_ref().map(|id| Str::of(id.bytes())),
                ..WireItem::default()
            };
            self.begin(event.output_index.0, &item, out)
        })
    }

    fn begin(&mut self, index: Option<u64>, wire: &WireItem<'_>, out: &mut Deltas) -> usize {
        if let Some(known) = self.find(index, bytes(&wire.id)) {
            return known;
        }
        let kind = match bytes(&wire.kind) {
            b"message" => {
                let at = self.text_bytes;
                self.before(&json!({"text": at}), out);
                ItemKind::Message { spoke: false, at }
            }
            b"reasoning" => {
                self.before(&json!("reasoning"), out);
                ItemKind::Reasoning { part: None }
            }
            b"function_call" => {
                let call = self.calls;
                self.calls += 1;
                self.before(&json!({"call": call}), out);
                let id = wire.call_id.as_ref().map(Str::text);
                let id = id.filter(|id| !id.is_empty());
                out.push(Delta::CallStarted {
                    index: call,
                    id: id.map_or_else(|| format!("call_{call}"), |id| id.into_owned()),
                    name: wire
                        .name
                        .as_ref()
                        .map_or_else(String::new, |name| name.text().into_owned()),
                });
                ItemKind::Call {
                    call,
                    arguments: String::new(),
                    first: text::mended(bytes(&wire.arguments)).into_owned(),
                }
            }
            other => {
                let kind = clipped(&String::from_utf8_lossy(other), 64);
                out.push(Delta::Notice(format!(
                    "an output item of the unknown kind {kind:?} was passed over"
                )));
                ItemKind::Other
            }
        };
        self.items.push(Item {
            index,
            id: wire
                .id
                .as_ref()
                .map_or_else(String::new, |id| id.text().into_owned()),
            mender: Mender::default(),
            done: false,
            kind,
        });
        self.items.len() - 1
    }

    /// Lets go of the reasoning item that waited: `place` is what it stood before.
    fn before(&mut self, place: &Value, out: &mut Deltas) {
        if let Some(mut item) = self.held.take() {
            item["before"] = place.clone();
            out.push(Delta::ReasoningOpaque(Json::from_value(&item)));
        }
    }

    fn item_done(
        &mut self,
        index: Option<u64>,
        raw: &RawValue,
        out: &mut Deltas,
    ) -> Result<(), serde_json::Error> {
        let wire: WireItem<'_> = wire::read(raw.get().as_bytes())?;
        let at = self.begin(index, &wire, out);
        if std::mem::replace(&mut self.items[at].done, true) {
            return Ok(());
        }
        match &self.items[at].kind {
            ItemKind::Message { spoke, .. } => {
                if !*spoke {
                    for part in wire.content.iter().flatten() {
                        let refusal = bytes(&part.refusal);
                        self.refused |= !refusal.is_empty();
                        self.append(at, bytes(&part.text), out);
                        self.append(at, refusal, out);
                    }
                }
                self.finish_item(at, out);
            }
            ItemKind::Reasoning { part } => {
                if part.is_none() {
                    let parts = wire.summary.iter().flatten();
                    for (number, part) in (0..).zip(parts.chain(wire.content.iter().flatten())) {
                        self.ponder(at, number, bytes(&part.text), out);
                    }
                }
                self.finish_item(at, out);
                self.hold(at, raw, out);
            }
            ItemKind::Call { .. } => {
                self.whole_arguments(at, &wire.arguments, out);
                self.finish_item(at, out);
            }
            ItemKind::Other => {}
        }
        Ok(())
    }

    /// Keeps a finished reasoning item until it is known what it stands before.
    fn hold(&mut self, at: usize, raw: &RawValue, out: &mut Deltas) {
        let Ok(value @ Value::Object(_)) = wire::read_odd(raw.get().as_bytes()) else {
            return;
        };
        self.before(&json!("reasoning"), out);
        self.held = Some(value);
        let later = self.items[at + 1..]
            .iter()
            .find_map(|item| match item.kind {
                ItemKind::Message { at, .. } => Some(json!({"text": at})),
                ItemKind::Call { call, .. } => Some(json!({"call": call})),
                ItemKind::Reasoning { .. } | ItemKind::Other => None,
            });
        if let Some(place) = later {
            self.before(&place, out);
        }
    }

    /// Text of a message: a piece of it, or the whole of a part, which counts only where no pieces came.
    fn say(&mut self, event: &Event<'_>, text: &[u8], whole: bool, out: &mut Deltas) {
        if text.is_empty() {
            return;
        }
        let at = self.known_or_begun(event, b"message", out);
        if !(whole && matches!(self.items[at].kind, ItemKind::Message { spoke: true, .. })) {
            self.append(at, text, out);
        }
    }

    fn append(&mut self, at: usize, text: &[u8], out: &mut Deltas) {
        let item = &mut self.items[at];
        if let ItemKind::Message { spoke, .. } = &mut item.kind
            && !text.is_empty()
        {
            *spoke = true;
            let tail = out.text_tail();
            let before = tail.len();
            item.mender.push(text, tail);
            self.text_bytes += tail.len() - before;
            out.drop_empty_tail();
        }
    }

    fn think(&mut self, event: &Event<'_>, out: &mut Deltas) {
        let at = self.known_or_begun(event, b"reasoning", out);
        let content = || {
            event
                .content_index
                .0
                .map(|part| part.saturating_add(CONTENT))
        };
        let part = event.summary_index.0.or_else(content).unwrap_or(0);
        self.ponder(at, part, bytes(&event.delta), out);
    }

    /// More of a reasoning item. Its parts are paragraphs.
    fn ponder(&mut self, at: usize, number: u64, text: &[u8], out: &mut Deltas) {
        let item = &mut self.items[at];
        let ItemKind::Reasoning { part } = &mut item.kind else {
            return;
        };
        if text.is_empty() {
            return;
        }
        if part.replace(number).is_some_and(|before| before != number) {
            let tail = out.reasoning_tail();
            item.mender.finish(tail);
            tail.push_str("\n\n");
        }
        item.mender.push(text, out.reasoning_tail());
        out.drop_empty_tail();
    }

    fn arguments(&mut self, at: usize, fragment: &[u8], out: &mut Deltas) {
        let item = &mut self.items[at];
        if let ItemKind::Call {
            call, arguments, ..
        } = &mut item.kind
            && !item.done
            && !fragment.is_empty()
        {
            let tail = out.arguments_tail(*call);
            let before = tail.len();
            item.mender.push(fragment, tail);
            arguments.push_str(&tail[before..]);
            out.drop_empty_tail();
        }
    }

    /// The arguments as a whole, of which only what did not come before is new.
    fn whole_arguments(&mut self, at: usize, whole: &Option<Str<'_>>, out: &mut Deltas) {
        let Some(whole) = whole else { return };
        let item = &mut self.items[at];
        let ItemKind::Call {
            call, arguments, ..
        } = &mut item.kind
        else {
            return;
        };
        let whole = text::mended(whole.bytes());
        if let Some(rest) = whole.strip_prefix(arguments.as_str())
            && !rest.is_empty()
        {
            item.mender = Mender::default();
            out.arguments_tail(*call).push_str(rest);
            arguments.push_str(rest);
        }
    }

    /// Pushes what an item held back for its other half.
    fn finish_item(&mut self, at: usize, out: &mut Deltas) {
        let item = &mut self.items[at];
        match &mut item.kind {
            ItemKind::Message { .. } => {
                let tail = out.text_tail();
                let before = tail.len();
                item.mender.finish(tail);
                self.text_bytes += tail.len() - before;
            }
            ItemKind::Reasoning { .. } => item.mender.finish(out.reasoning_tail()),
            ItemKind::Call {
                call,
                arguments,
                first,
            } => {
                let tail = out.arguments_tail(*call);
                item.mender.finish(tail);
                if arguments.is_empty() {
                    tail.push_str(first);
                }
            }
            ItemKind::Other => return,
        }
        out.drop_empty_tail();
    }

    fn release(&mut self, out: &mut Deltas) {
        for at in 0..self.items.len() {
            if !self.items[at].done {
                self.finish_item(at, out);
            }
        }
        if let Some(item) = self.held.take() {
            out.push(Delta::ReasoningOpaque(Json::from_value(&item)));
        }
    }

    /// The terminal event.
    fn close(
        &mut self,
        raw: Option<&RawValue>,
        complete: bool,
        out: &mut Deltas,
    ) -> Result<(), serde_json::Error> {
        let response = match raw {
            Some(raw) => wire::read(raw.get().as_bytes())?,
            None => WireResponse::default(),
        };
        // Some gateways send nothing but the end, others leave out the ends of items.
        let alone = self.items.is_empty();
        for (index, item) in (0..).zip(response.output.iter().flatten()) {
            if alone || self.find(Some(index), b"").is_some() {
                self.item_done(Some(index), item, out)?;
            }
        }
        self.release(out);
        self.take_usage(response.usage.as_ref(), out);
        let reason = response.incomplete_details.and_then(|d| d.reason);
        let stop = match bytes(&reason) {
            _ if complete && self.refused => StopReason::Refusal,
            _ if complete && self.calls > 0 => StopReason::ToolCalls,
            _ if complete => StopReason::EndTurn,
            b"max_output_tokens" | b"max_tokens" => StopReason::Length,
            b"content_filter" => StopReason::ContentFilter,
            b"" => StopReason::Other("incomplete".to_owned()),
            other => StopReason::Other(clipped(&String::from_utf8_lossy(other), 64)),
        };
        out.push(Delta::Stop(stop));
        self.phase = Phase::Closed;
        Ok(())
    }

    fn take_usage(&mut self, wire: Option<&WireUsage>, out: &mut Deltas) {
        let Some(wire) = wire else { return };
        let mut usage = self.usage;
        usage.merge(&wire.usage());
        if usage != self.usage {
            self.usage = usage;
            out.push(Delta::Usage(usage));
        }
    }

    /// The end that other dialects have. Without the terminal event of this one, only a reply that is whole in itself is
    /// finished.
    fn done(&mut self, out: &mut Deltas) {
        let spoke = |item: &Item| matches!(item.kind, ItemKind::Message { spoke: true, .. });
        let whole = self.items.iter().all(|item| item.done)
            && (self.calls > 0 || self.items.iter().any(spoke));
        self.release(out);
        if whole {
            self.phase = Phase::Closed;
        } else {
            self.fail(truncated(), out);
        }
    }
}

impl Decoder for OpenAiResponsesDecoder {
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
        if let Ok(read) = wire::read::<Event<'_>>(event)
            && read.kind.is_some()
            && bytes(&read.kind) != b"error"
            && self.take(&read, out).is_ok()
        {
            return;
        }
        let value = match wire::read_odd(event) {
            Ok(value) => value,
            Err(error) => return self.fail(error, out),
        };
        if let Some(complaint) = Complaint::read(&value) {
            return self.fail(complaint.sort(None), out);
        }
        let text = value.to_string();
        let taken = match wire::read::<Event<'_>>(text.as_bytes()) {
            Ok(read) if read.kind.is_some() => self.take(&read, out),
            Ok(_) => {
                let error = ModelError::new(
                    ErrorKind::Malformed,
                    "an event of the stream has no type, as events of this dialect do",
                );
                return self.fail(error, out);
            }
            Err(fault) => Err(fault),
        };
        if let Err(fault) = taken
            && OURS.iter().any(|kind| value["type"] == *kind)
        {
            self.fail(wire::not_of_dialect(&fault), out);
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
