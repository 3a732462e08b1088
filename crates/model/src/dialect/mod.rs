//! The wire dialects: which there are, and what their decoders have in common. A decoder is pure; it sees the data of
//! one event after the other, and it neither waits nor sends.

mod anthropic;
mod calls;
mod gemini;
mod openai_chat;
mod openai_responses;
mod responses_events;
mod wire;

pub use anthropic::AnthropicDecoder;
pub use gemini::GeminiDecoder;
pub use openai_chat::OpenAiChatDecoder;
pub use openai_responses::OpenAiResponsesDecoder;

use crate::delta::Deltas;
use crate::encode::{self, EncodedRequest, Quirks};
use crate::error::{ErrorKind, ModelError};
use crate::quirks::Address;
use crate::request::Request;

/// How requests and replies are written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Dialect {
    /// OpenAI's Chat Completions, which most servers speak.
    OpenAiChat,
    /// OpenAI's Responses.
    OpenAiResponses,
    /// Anthropic's Messages.
    Anthropic,
    /// Google's generateContent.
    Gemini,
}

impl Dialect {
    /// All dialects.
    pub const ALL: [Self; 4] = [
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::Anthropic,
        Self::Gemini,
    ];

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
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
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
            Self::OpenAiResponses => Box::new(OpenAiResponsesDecoder::new()),
            Self::Anthropic => Box::new(AnthropicDecoder::new()),
            Self::Gemini => Box::new(GeminiDecoder::new()),
        }
    }

    /// The body of a request.
    pub(crate) fn encode(self, request: &Request, quirks: &Quirks) -> EncodedRequest {
        if !quirks.images && request.has_pictures() {
            let told = request.clone().without_pictures(encode::TAKES_NO_PICTURES);
            let mut encoded = self.encode(&told, quirks);
            encoded.notices.push(encode::no_pictures());
            return encoded;
        }
        match self {
            Self::OpenAiChat => encode::openai_chat::encode(request, quirks),
            Self::OpenAiResponses => encode::openai_responses::encode(request, quirks),
            Self::Anthropic => encode::anthropic::encode(request, quirks),
            Self::Gemini => encode::gemini::encode(request, quirks),
        }
    }

    /// The body of a request as bytes, for those who show or check it; models send it themselves.
    #[must_use]
    pub fn body(self, request: &Request, quirks: &Quirks) -> Vec<u8> {
        self.encode(request, quirks).body
    }

    /// The address of a request for a model, from a base in any of its usual spellings. What the base has behind a `?`
    /// stays there.
    pub(crate) fn endpoint(self, base: &str, model: &str, quirks: &Quirks) -> String {
        let (base, query) = base.trim().split_once('?').unwrap_or((base.trim(), ""));
        let base = base.trim_end_matches('/');
        let mut query: Vec<&str> = query.split('&').filter(|pair| !pair.is_empty()).collect();
        let version = format!("api-version={}", quirks.api_version);
        let says_version = query.iter().any(|pair| pair.starts_with("api-version="));
        if !quirks.api_version.is_empty() && !says_version {
            query.push(&version);
        }
        let path = match self {
            Self::OpenAiChat => "/chat/completions",
            Self::OpenAiResponses => "/responses",
            Self::Anthropic => "/messages",
            Self::Gemini => ":streamGenerateContent",
        };
        let mut address = if base.ends_with(path) {
            base.to_owned()
        } else {
            let base = match quirks.address {
                Address::Usual => base.to_owned(),
                Address::AzureV1 => below(base, "/openai/v1"),
                Address::AzureDeployments => {
                    format!("{}/deployments/{}", below(base, "/openai"), escaped(model))
                }
            };
            match self {
                Self::OpenAiChat | Self::OpenAiResponses => base + path,
                Self::Anthropic if base.ends_with("/v1") => base + path,
                Self::Anthropic => base + "/v1" + path,
                Self::Gemini => {
                    let version = if ends_with_version(&base) {
                        ""
                    } else {
                        "/v1beta"
                    };
                    let name = model_path(model);
                    format!("{base}{version}/{name}{path}")
                }
            }
        };
        if self == Self::Gemini && !query.iter().any(|pair| pair.starts_with("alt=")) {
            query.push("alt=sse");
        }
        if !query.is_empty() {
            address.push('?');
            address.push_str(&query.join("&"));
        }
        address
    }
}

/// The base with a path of Azure's below it, of which it may have a part or the whole already.
fn below(base: &str, path: &str) -> String {
    let has = |part: &str| base.ends_with(part);
    match path {
        _ if has(path) => base.to_owned(),
        "/openai/v1" if has("/openai") => format!("{base}/v1"),
        _ => format!("{base}{path}"),
    }
}

/// Whether a base names a version of the interface, such as `v1beta`.
fn ends_with_version(base: &str) -> bool {
    let last = base.rsplit('/').next().unwrap_or_default();
    let rest = last.strip_prefix('v').unwrap_or_default();
    rest.starts_with(|c: char| c.is_ascii_digit())
        && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The name of a Gemini model as a path. Tuned models have a folder of their own.
fn model_path(model: &str) -> String {
    let (folder, id) = match model.split_once('/') {
        Some((folder @ ("models" | "tunedModels"), id)) => (folder, id),
        _ => ("models", model),
    };
    format!("{folder}/{}", escaped(id))
}

/// A name as one segment of a path.
fn escaped(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        // A segment of nothing but dots would be a step upwards.
        let dot = byte == b'.' && name.bytes().any(|byte| byte != b'.');
        if dot || byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
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
        use Dialect::{Anthropic, Gemini, OpenAiChat, OpenAiResponses};
        const GEMINI: &str = "http://h/v1beta/models/gemini-x:streamGenerateContent?alt=sse";
        for (dialect, base, want) in [
            (OpenAiChat, "http://h/v1", "http://h/v1/chat/completions"),
            (OpenAiChat, "http://h/v1/", "http://h/v1/chat/completions"),
            (
                OpenAiChat,
                " http://h/v1/chat/completions ",
                "http://h/v1/chat/completions",
            ),
            (
                OpenAiChat,
                "http://h/v1?k=v",
                "http://h/v1/chat/completions?k=v",
            ),
            (OpenAiResponses, "http://h/v1/", "http://h/v1/responses"),
            (
                OpenAiResponses,
                "http://h/v1/responses",
                "http://h/v1/responses",
            ),
            (Anthropic, "http://h", "http://h/v1/messages"),
            (Anthropic, "http://h/", "http://h/v1/messages"),
            (Anthropic, "http://h/v1", "http://h/v1/messages"),
            (Anthropic, "http://h/v1/", "http://h/v1/messages"),
            (Anthropic, "http://h/v1/messages", "http://h/v1/messages"),
            (Gemini, "http://h", GEMINI),
            (Gemini, "http://h/v1beta/", GEMINI),
            (
                Gemini,
                "http://h/proxy/v1",
                "http://h/proxy/v1/models/gemini-x:streamGenerateContent?alt=sse",
            ),
        ] {
            let quirks = Quirks::default();
            assert_eq!(dialect.endpoint(base, "gemini-x", &quirks), want, "{base}");
        }
    }

    #[test]
    fn models_in_addresses_are_one_segment() {
        let quirks = Quirks::default();
        for (model, want) in [
            ("models/gemini-2.5-pro", "models/gemini-2.5-pro"),
            ("tunedModels/my-1", "tunedModels/my-1"),
            ("../../x?y", "models/..%2F..%2Fx%3Fy"),
            ("..", "models/%2E%2E"),
        ] {
            let address = Dialect::Gemini.endpoint("http://h/v1beta", model, &quirks);
            let path = address
                .strip_prefix("http://h/v1beta/")
                .and_then(|rest| rest.strip_suffix(":streamGenerateContent?alt=sse"));
            assert_eq!(path, Some(want));
        }
    }

    #[test]
    fn addresses_of_azure() {
        let mut quirks = Quirks::profile("azure").unwrap();
        for base in [
            "https://r.example",
            "https://r.example/openai",
            "https://r.example/openai/v1/",
        ] {
            assert_eq!(
                Dialect::OpenAiChat.endpoint(base, "m", &quirks),
                "https://r.example/openai/v1/chat/completions"
            );
        }
        quirks.address = Address::AzureDeployments;
        quirks.api_version = "2024-10-21".into();
        for base in ["https://r.example/", "https://r.example/openai"] {
            assert_eq!(
                Dialect::OpenAiChat.endpoint(base, "my gpt", &quirks),
                "https://r.example/openai/deployments/my%20gpt/chat/completions?api-version=2024-10-21"
            );
        }
        assert_eq!(
            Dialect::OpenAiChat.endpoint("https://r.example?api-version=x", "m", &quirks),
            "https://r.example/openai/deployments/m/chat/completions?api-version=x"
        );
    }
}
