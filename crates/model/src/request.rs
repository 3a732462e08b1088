//! What a model is asked: conversation, tools, options. The encoders in `encode` turn it into a dialect's body.

use std::sync::{Arc, OnceLock};

use crate::encode::EncodedTools;
use crate::json::Json;
use crate::message::Message;

/// One request to a model. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Request {
    /// The model's id at its provider; empty: that of the model which is asked.
    pub model: Arc<str>,
    /// Instructions.
    pub system: Option<Arc<str>>,
    /// The conversation so far, well formed (see [`Message`]).
    pub messages: Vec<Message>,
    /// The tools that the conversation knows.
    pub tools: Arc<ToolSet>,
    /// `false` in a last round: the tools are still sent, because the history speaks of them, but calls are forbidden.
    pub tools_allowed: bool,
    /// Sampling and limits.
    pub options: Arc<Options>,
}

impl Request {
    /// Bytes of all that it says: instructions, conversation and tools. Pictures count what a usual one costs.
    #[must_use]
    pub fn text_len(&self) -> usize {
        let system = self.system.as_deref().map_or(0, str::len);
        let messages: usize = self.messages.iter().map(Message::text_len).sum();
        system + messages + self.tools.text_len()
    }
}

/// A tool as it is offered to the model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolSpec {
    /// Its name.
    pub name: Arc<str>,
    /// What it does, for the model.
    pub description: Arc<str>,
    /// JSON schema of the arguments.
    pub input_schema: Json,
}

/// A set of tools that is encoded at most once for each dialect. Share it between requests.
#[derive(Default, Debug)]
pub struct ToolSet {
    specs: Vec<ToolSpec>,
    encoded: [OnceLock<EncodedTools>; EncodedTools::FORMS],
}

impl ToolSet {
    /// A set of these tools, in this order.
    pub fn new(specs: Vec<ToolSpec>) -> Self {
        Self {
            specs,
            encoded: Default::default(),
        }
    }

    /// The tools.
    pub fn specs(&self) -> &[ToolSpec] {
        &self.specs
    }

    /// Bytes of all names, descriptions and schemas.
    #[must_use]
    pub fn text_len(&self) -> usize {
        let of = |spec: &ToolSpec| {
            spec.name.len() + spec.description.len() + spec.input_schema.as_str().len()
        };
        self.specs.iter().map(of).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.specs.is_empty()
    }

    pub(crate) fn encoded(
        &self,
        form: usize,
        encode: impl FnOnce(&[ToolSpec]) -> EncodedTools,
    ) -> &EncodedTools {
        self.encoded[form].get_or_init(|| encode(&self.specs))
    }
}

/// Options of a request; what is `None` is left to the provider.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Options {
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    pub top_p: Option<f64>,
    /// Most tokens to produce, reasoning included.
    pub max_output_tokens: Option<u32>,
    /// `low`, `medium`, `high`, or a provider's own word.
    pub reasoning_effort: Option<Arc<str>>,
    /// The form that the answer must have.
    pub output_schema: Option<OutputSchema>,
    /// Names what shares its beginning with this request (a session, say), for providers that place requests by it.
    pub cache_key: Option<Arc<str>>,
    /// An object whose members are put into the request as they are. They win over the options above, never over
    /// the model, the messages, the tools and the streaming.
    pub extra: Option<Json>,
}

/// The form of an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutputSchema {
    /// A name for it: letters, digits, `_` and `-`.
    pub name: Arc<str>,
    /// JSON schema of the answer.
    pub schema: Json,
}
