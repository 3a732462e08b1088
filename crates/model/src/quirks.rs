//! How a provider differs from the usual form of its dialect, as plain data: one field a difference, each of which can
//! be set by its name. Which provider has which differences is in `profile`; what they do is in `encode` and `http`.

use std::borrow::Cow;

/// How a provider differs from the usual form of its dialect. Plain data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quirks {
    /// Chat Completions: which reasoning texts of earlier steps go back. Some servers refuse a request without them,
    /// others one with them.
    pub reasoning_back: ReasoningBack,
    /// Chat Completions: name of the field in which reasoning texts go back.
    pub reasoning_field: Cow<'static, str>,
    /// Chat Completions: send `reasoning_details` back as they came.
    pub reasoning_details: bool,
    /// Chat Completions: name of the field for the most output tokens.
    pub max_tokens_field: Cow<'static, str>,
    /// Chat Completions: ask for usage with `stream_options`.
    pub stream_options: bool,
    /// Tool schemas must not have `anyOf`, `oneOf`, `allOf`, `not` or `enum` at their root; they are left out there.
    pub plain_root_schema: bool,
    /// Messages: mark the ends of instructions, tools and conversation for the provider's cache.
    pub cache_marks: bool,
    /// Chat Completions: mark the ends of instructions and conversation for the cache when the model is Anthropic's.
    pub chat_cache_marks: bool,
    /// Messages: the limit of output tokens when the request has none, because the field is required there.
    pub default_max_tokens: u32,
    /// Chat Completions: ids of calls have only letters, digits, `_` and `-`, and at most 64 of them.
    pub strict_ids: bool,
    /// Chat Completions: the role of the instructions, `system` or `developer`.
    pub system_role: Cow<'static, str>,
    /// OpenAI's two dialects: whether several calls may be made at once; `None` leaves it to the provider.
    pub parallel_tool_calls: Option<bool>,
    /// OpenAI's two dialects: send the key of the prompt cache.
    pub prompt_cache_key: bool,
    /// The provider takes a schema for the answer.
    pub output_schema: bool,
    /// The model takes pictures; otherwise each is named in words where it stood.
    pub images: bool,
    /// The provider takes pictures inside of tool results; otherwise they follow in a message of the user. Chat
    /// Completions never does.
    pub result_images: bool,
    /// Messages: how thinking is asked for.
    pub thinking: Thinking,
    /// The server has no tool calls of its own: they have to be asked for and read as text.
    pub text_tool_calls: bool,
    /// Remind the model once of an empty answer, or of an action that was claimed or announced without a call.
    pub reminders: bool,
    /// The header that carries the key as it is; empty for the dialect's usual way.
    pub key_header: Cow<'static, str>,
    /// How the address of a request is made of the base URL.
    pub address: Address,
    /// The value of `api-version` in the address; empty for none.
    pub api_version: Cow<'static, str>,
}

/// Which reasoning texts go back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReasoningBack {
    /// None.
    Never,
    /// All.
    Always,
    /// Those since the last message of the user.
    ToolLoop,
}

/// How thinking is asked for in Messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Thinking {
    /// As the generation of the model wants it, which its id tells.
    ByModel,
    /// With a number of tokens.
    Budget,
    /// With an effort.
    Adaptive,
}

/// How the address of a request is made of the base URL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Address {
    /// As usual in the dialect.
    Usual,
    /// `/openai/v1/…` below the endpoint of an Azure resource; the model is named in the body.
    AzureV1,
    /// `/openai/deployments/MODEL/…` below the endpoint of an Azure resource.
    AzureDeployments,
}

/// A quirk that cannot be set so.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum QuirkError {
    /// There is no such quirk.
    #[error("there is no quirk {key:?}; the quirks are {}", Quirks::KEYS.join(", "))]
    Unknown {
        /// What was given.
        key: String,
    },
    /// The quirk has no such value.
    #[error("the quirk {key} cannot be {value:?}: it takes {takes}")]
    BadValue {
        /// The quirk.
        key: String,
        /// What was given.
        value: String,
        /// What it takes.
        takes: &'static str,
    },
}

impl Default for Quirks {
    fn default() -> Self {
        Self {
            reasoning_back: ReasoningBack::Never,
            reasoning_field: Cow::Borrowed("reasoning_content"),
            reasoning_details: false,
            max_tokens_field: Cow::Borrowed("max_tokens"),
            stream_options: true,
            plain_root_schema: true,
            cache_marks: true,
            chat_cache_marks: false,
            default_max_tokens: 8192,
            strict_ids: false,
            system_role: Cow::Borrowed("system"),
            parallel_tool_calls: None,
            prompt_cache_key: false,
            output_schema: true,
            images: true,
            result_images: true,
            thinking: Thinking::ByModel,
            text_tool_calls: false,
            reminders: true,
            key_header: Cow::Borrowed(""),
            address: Address::Usual,
            api_version: Cow::Borrowed(""),
        }
    }
}

impl Quirks {
    /// Names of all quirks, as [`Quirks::set`] knows them.
    pub const KEYS: [&str; 22] = [
        "reasoning_back",
        "reasoning_field",
        "reasoning_details",
        "max_tokens_field",
        "stream_options",
        "plain_root_schema",
        "cache_marks",
        "chat_cache_marks",
        "default_max_tokens",
        "strict_ids",
        "system_role",
        "parallel_tool_calls",
        "prompt_cache_key",
        "output_schema",
        "images",
        "result_images",
        "thinking",
        "text_tool_calls",
        "reminders",
        "key_header",
        "address",
        "api_version",
    ];

    /// Sets the quirk of a name.
    ///
    /// # Errors
    /// When there is no such quirk, or it has no such value.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), QuirkError> {
        let value = value.trim();
        let bad = |takes: &'static str| QuirkError::BadValue {
            key: key.to_owned(),
            value: value.to_owned(),
            takes,
        };
        let flag = || match value {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(bad("true or false")),
        };
        let one_of = |words: &[&'static str], takes: &'static str| {
            let known = words.iter().find(|word| **word == value);
            known.map(|word| Cow::Borrowed(*word)).ok_or(bad(takes))
        };
        match key {
            "reasoning_back" => {
                self.reasoning_back = match value {
                    "never" => ReasoningBack::Never,
                    "always" => ReasoningBack::Always,
                    "tool-loop" => ReasoningBack::ToolLoop,
                    _ => return Err(bad("never, always or tool-loop")),
                }
            }
            "reasoning_field" => {
                self.reasoning_field = one_of(
                    &["reasoning_content", "reasoning"],
                    "reasoning_content or reasoning",
                )?;
            }
            "reasoning_details" => self.reasoning_details = flag()?,
            "max_tokens_field" => {
                self.max_tokens_field = one_of(
                    &["max_tokens", "max_completion_tokens"],
                    "max_tokens or max_completion_tokens",
                )?;
            }
            "stream_options" => self.stream_options = flag()?,
            "plain_root_schema" => self.plain_root_schema = flag()?,
            "cache_marks" => self.cache_marks = flag()?,
            "chat_cache_marks" => self.chat_cache_marks = flag()?,
            "default_max_tokens" => {
                self.default_max_tokens = match value.parse() {
                    Ok(count @ 1..) => count,
                    _ => return Err(bad("a whole number of at least 1")),
                }
            }
            "strict_ids" => self.strict_ids = flag()?,
            "system_role" => {
                self.system_role = one_of(&["system", "developer"], "system or developer")?;
            }
            "parallel_tool_calls" => {
                self.parallel_tool_calls = match value {
                    "unset" => None,
                    _ => Some(flag().map_err(|_| bad("true, false or unset"))?),
                }
            }
            "prompt_cache_key" => self.prompt_cache_key = flag()?,
            "output_schema" => self.output_schema = flag()?,
            "images" => self.images = flag()?,
            "result_images" => self.result_images = flag()?,
            "thinking" => {
                self.thinking = match value {
                    "by-model" => Thinking::ByModel,
                    "budget" => Thinking::Budget,
                    "adaptive" => Thinking::Adaptive,
                    _ => return Err(bad("by-model, budget or adaptive")),
                }
            }
            "text_tool_calls" => self.text_tool_calls = flag()?,
            "reminders" => self.reminders = flag()?,
            "key_header" => {
                let fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
                if !value.bytes().all(fine) {
                    return Err(bad("the name of a header, or nothing"));
                }
                self.key_header = Cow::Owned(value.to_ascii_lowercase());
            }
            "address" => {
                self.address = match value {
                    "usual" => Address::Usual,
                    "azure-v1" => Address::AzureV1,
                    "azure-deployments" => Address::AzureDeployments,
                    _ => return Err(bad("usual, azure-v1 or azure-deployments")),
                }
            }
            "api_version" => {
                let fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
                if !value.bytes().all(fine) {
                    return Err(bad("a version such as 2024-10-21, or nothing"));
                }
                self.api_version = Cow::Owned(value.to_owned());
            }
            _ => {
                return Err(QuirkError::Unknown {
                    key: key.to_owned(),
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_quirk_can_be_set_and_refuses_what_it_does_not_know() {
        let values = [
            ("reasoning_back", "tool-loop"),
            ("reasoning_field", "reasoning"),
            ("reasoning_details", "true"),
            ("max_tokens_field", "max_completion_tokens"),
            ("stream_options", "false"),
            ("plain_root_schema", "false"),
            ("cache_marks", "false"),
            ("chat_cache_marks", "true"),
            ("default_max_tokens", "7"),
            ("strict_ids", "true"),
            ("system_role", "developer"),
            ("parallel_tool_calls", "false"),
            ("prompt_cache_key", "true"),
            ("output_schema", "false"),
            ("images", "false"),
            ("result_images", "false"),
            ("thinking", "adaptive"),
            ("text_tool_calls", "true"),
            ("reminders", "false"),
            ("key_header", "api-key"),
            ("address", "azure-v1"),
            ("api_version", "2024-10-21"),
        ];
        assert_eq!(values.map(|(key, _)| key), Quirks::KEYS);
        for (key, value) in values {
            let mut quirks = Quirks::default();
            quirks.set(key, value).unwrap();
            assert_ne!(quirks, Quirks::default(), "{key}");
            let fault = quirks.set(key, "no such\u{7}value").unwrap_err();
            assert!(
                matches!(fault, QuirkError::BadValue { .. }) && fault.to_string().contains(key),
                "{fault}"
            );
        }
        let fault = Quirks::default().set("colour", "red").unwrap_err();
        assert!(fault.to_string().contains("stream_options"), "{fault}");
    }
}
