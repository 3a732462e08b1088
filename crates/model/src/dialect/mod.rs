//! The wire dialects: which there are, and what their decoders have in common. A decoder is pure; it sees the data of
//! one event after the other, and it neither waits nor sends.

mod anthropic;
mod calls;
mod openai_chat;
mod wire;

pub use anthropic::AnthropicDecoder;
pub use openai_chat::OpenAiChatDecoder;

use crate::delta::Deltas;
use crate::encode::{self, EncodedRequest, Quirks};
use crate::error::{ErrorKind, ModelError};
use crate::request::Request;

/// How requests and replies are written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Dialect {
    /// OpenAI's Chat Completions, which most servers speak.
    OpenAiChat,
    /// Anthropic's Messages.
    Anthropic,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::OpenAiChat, Self::Anthropic];

    /// The dialect of a name in settings.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|dialect| dialect.as_str() == name)
    }

    /// Its name in settings.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai-chat",
            Self::Anthropic => "anthropic",
        }
    }
}

/// How far a reply is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// More is to come.
    Open,
    /// The model has stopped; only the usage and the terminal event may follow.
    Stopped,
    /// The terminal event has come: there is nothing to wait for.
    Closed,
    /// A failure was pushed: there is nothing to wait for.
    Failed,
}

/// Turns the events of one reply into deltas.
pub trait Decoder: Send {
    /// Takes in the data of the next event.
    fn push(&mut self, event: &[u8], out: &mut Deltas);

    /// How far the reply is.
    fn phase(&self) -> Phase;

    /// Tells the decoder that the stream is over (its end, or no patience for usage); what was held back is pushed.
    ///
    /// # Errors
    /// When the reply was not finished.
    fn end(&mut self, out: &mut Deltas) -> Result<(), ModelError>;
}

impl Dialect {
    /// A decoder at the start of a reply.
    pub fn decoder(self) -> Box<dyn Decoder> {
        match self {
            Self::OpenAiChat => Box::new(OpenAiChatDecoder::new()),
            Self::Anthropic => Box::new(AnthropicDecoder::new()),
        }
    }

    /// The body of a request.
    pub(crate) fn encode(self, request: &Request, quirks: &Quirks) -> EncodedRequest {
        match self {
            Self::OpenAiChat => encode::openai_chat::encode(request, quirks),
            Self::Anthropic => encode::anthropic::encode(request, quirks),
        }
    }

    /// The address of a request, from a base in any of its usual spellings.
    pub(crate) fn endpoint(self, base: &str) -> String {
        let base = base.trim().trim_end_matches('/');
        let (path, versioned) = match self {
            Self::OpenAiChat => ("/chat/completions", true),
            Self::Anthropic => ("/messages", base.ends_with("/v1")),
        };
        if base.ends_with(path) {
            base.to_owned()
        } else if versioned {
            format!("{base}{path}")
        } else {
            format!("{base}/v1{path}")
        }
    }
}

/// The reply ended before its end.
pub(crate) fn truncated() -> ModelError {
    ModelError::new(
        ErrorKind::Truncated,
        "the stream ended before the reply was finished; what came up to there is incomplete",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_base_leads_to_the_same_address() {
        for base in [
            "http://h/v1",
            "http://h/v1/",
            " http://h/v1/chat/completions ",
        ] {
            assert_eq!(
                Dialect::OpenAiChat.endpoint(base),
                "http://h/v1/chat/completions"
            );
        }
        for base in [
            "http://h",
            "http://h/",
            "http://h/v1",
            "http://h/v1/",
            "http://h/v1/messages",
        ] {
            assert_eq!(Dialect::Anthropic.endpoint(base), "http://h/v1/messages");
        }
    }
}
