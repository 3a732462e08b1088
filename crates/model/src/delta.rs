//! What a stream gives: small pieces of a reply in the order in which they came. Collecting them is in `assemble`.

use crate::error::ModelError;
use crate::json::Json;
use crate::usage::Usage;

/// A piece of a reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Delta {
    /// More of the answer.
    Text(String),
    /// More of the reasoning; never part of the answer.
    Reasoning(String),
    /// Ends the current block of reasoning, with data that goes back to the provider unchanged.
    ReasoningOpaque(Json),
    /// A tool call begins. `index` counts the calls of this reply from 0, whatever the wire said.
    CallStarted {
        /// Position of the call in the reply.
        index: usize,
        /// The id that the provider gave; made from the position when it gave none. May repeat: see `Assembler`.
        id: String,
        /// Name of the tool; may be empty or unknown.
        name: String,
    },
    /// More of a call's arguments; the call has been started before.
    CallArguments {
        /// Position of the call in the reply.
        index: usize,
        /// The next bytes of the arguments.
        fragment: String,
    },
    /// Running totals; a later count replaces an earlier one.
    Usage(Usage),
    /// The model has stopped. At most one in a reply; usage may still follow.
    Stop(StopReason),
    /// The provider reported a failure inside the stream. Nothing follows. Decoders push it; a `ModelStream` takes it out
    /// again and gives it as `StreamStep::Failed`, so that its caller finds failures in one place.
    Failed(ModelError),
    /// Something that a person may want to know (a tool's schema was adapted, say); not part of the reply.
    Notice(String),
}

/// Why the model stopped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StopReason {
    /// The answer is complete.
    EndTurn,
    /// It waits for the results of its calls.
    ToolCalls,
    /// The limit of output tokens was reached.
    Length,
    /// The model declined.
    Refusal,
    /// The provider held the rest back.
    ContentFilter,
    /// Another reason, in the provider's word.
    Other(String),
}

/// A buffer of deltas, to be reused from one read to the next.
#[derive(Default, Debug)]
pub struct Deltas(Vec<Delta>);

impl Deltas {
    /// An empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a delta.
    pub fn push(&mut self, delta: Delta) {
        self.0.push(delta);
    }

    /// Takes all deltas out, in order; the buffer keeps its memory.
    pub fn drain(&mut self) -> std::vec::Drain<'_, Delta> {
        self.0.drain(..)
    }

    /// Looks at the deltas.
    pub fn as_slice(&self) -> &[Delta] {
        &self.0
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Drops all deltas.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Takes the last delta out when it is a failure.
    pub(crate) fn pop_failed(&mut self) -> Option<ModelError> {
        match self.0.pop() {
            Some(Delta::Failed(error)) => Some(error),
            other => {
                self.0.extend(other);
                None
            }
        }
    }

    /// The text to append to: that of the last delta when it is text too, so that what came in one read is one delta.
    pub(crate) fn text_tail(&mut self) -> &mut String {
        if !matches!(self.0.last(), Some(Delta::Text(_))) {
            self.0.push(Delta::Text(String::new()));
        }
        match self.0.last_mut() {
            Some(Delta::Text(text)) => text,
            _ => unreachable!("a text was just pushed"),
        }
    }

    /// As `text_tail`, for reasoning.
    pub(crate) fn reasoning_tail(&mut self) -> &mut String {
        if !matches!(self.0.last(), Some(Delta::Reasoning(_))) {
            self.0.push(Delta::Reasoning(String::new()));
        }
        match self.0.last_mut() {
            Some(Delta::Reasoning(text)) => text,
            _ => unreachable!("a reasoning was just pushed"),
        }
    }

    /// As `text_tail`, for the arguments of one call.
    pub(crate) fn arguments_tail(&mut self, call: usize) -> &mut String {
        if !matches!(self.0.last(), Some(Delta::CallArguments { index, .. }) if *index == call) {
            self.0.push(Delta::CallArguments {
                index: call,
                fragment: String::new(),
            });
        }
        match self.0.last_mut() {
            Some(Delta::CallArguments { fragment, .. }) => fragment,
            _ => unreachable!("arguments were just pushed"),
        }
    }

    /// Removes a last delta that turned out to hold no text (half a character waits for its end).
    pub(crate) fn drop_empty_tail(&mut self) {
        let empty = match self.0.last() {
            Some(
                Delta::Text(text)
                | Delta::Reasoning(text)
                | Delta::CallArguments { fragment: text, .. },
            ) => text.is_empty(),
            _ => false,
        };
        if empty {
            self.0.pop();
        }
    }
}
