//! The conversation as it is given to a model: messages, their parts, tool calls and their results.
//! Clones are cheap (texts are shared). No wire format is known here, and no rule of who may say what when.

use std::sync::Arc;

use crate::json::{Json, NotJson};

/// One message. A request is well formed when each call of an assistant message has exactly one result, in order, in
/// the `Tool` message right after it; the caller sees to that.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// What people (or other sessions) say. Text and images only; other parts are not sent.
    User(Vec<Part>),
    /// What the model said before.
    Assistant(Vec<Part>),
    /// Results of the calls of the assistant message before.
    Tool(Vec<ToolResult>),
}

/// What a picture counts in bytes of text: about 1,500 tokens, whatever its file takes.
const IMAGE_LEN: usize = 6_000;

impl Message {
    /// Bytes of all that it says.
    #[must_use]
    pub fn text_len(&self) -> usize {
        match self {
            Self::User(parts) | Self::Assistant(parts) => parts.iter().map(Part::text_len).sum(),
            Self::Tool(results) => results.iter().map(ToolResult::text_len).sum(),
        }
    }
}

/// A part of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    /// Plain text.
    Text(Arc<str>),
    /// The model's reasoning. `opaque` is what the provider wants back unchanged (a signature, say).
    Reasoning {
        /// Readable reasoning; may be empty.
        text: Arc<str>,
        /// Data of the dialect that produced it; other dialects leave it out.
        opaque: Option<Json>,
    },
    /// A tool call.
    Call(ToolCall),
    /// A picture.
    Image {
        /// Such as `image/png`.
        media_type: Arc<str>,
        /// The bytes in base64.
        base64: Arc<str>,
    },
}

impl Part {
    /// A text part.
    pub fn text(text: impl AsRef<str>) -> Self {
        Self::Text(Arc::from(text.as_ref()))
    }

    fn text_len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Reasoning { text, opaque } => {
                text.len() + opaque.as_ref().map_or(0, |opaque| opaque.as_str().len())
            }
            Self::Call(call) => call.name.len() + call.arguments.len(),
            Self::Image { .. } => IMAGE_LEN,
        }
    }
}

/// A call of a tool, as the model made it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolCall {
    /// Names the call within its conversation.
    pub id: Arc<str>,
    /// Name of the tool; may be one that does not exist.
    pub name: Arc<str>,
    /// The arguments as they were streamed, perhaps not JSON. See [`ToolCall::input`].
    pub arguments: Arc<str>,
}

/// Arguments that cannot be used. The texts are meant for the model.
#[derive(Debug, thiserror::Error)]
pub enum BadArguments {
    /// The text is not JSON.
    #[error("the arguments are not valid JSON ({0}); send one JSON object")]
    NotJson(#[from] NotJson),
    /// The text is JSON, but not an object.
    #[error("the arguments are a JSON {0}; send one JSON object")]
    NotObject(&'static str),
}

impl ToolCall {
    /// The arguments as a JSON object. Empty text, white space and `null` mean `{}`; an object that was encoded twice
    /// (a JSON string that holds an object) is unwrapped once; half surrogate pairs become U+FFFD.
    ///
    /// # Errors
    /// When the text is not JSON or not an object.
    pub fn input(&self) -> Result<Json, BadArguments> {
        let text = self.arguments.trim();
        if text.is_empty() || text == "null" {
            return Ok(Json::empty_object());
        }
        let json = Json::parse(text)?;
        match json.as_str().as_bytes()[0] {
            b'{' => Ok(json),
            b'"' => unwrapped(&json).ok_or(BadArguments::NotObject("string")),
            b'[' => Err(BadArguments::NotObject("array")),
            b't' | b'f' => Err(BadArguments::NotObject("boolean")),
            _ => Err(BadArguments::NotObject("number")),
        }
    }
}

fn unwrapped(json: &Json) -> Option<Json> {
    let serde_json::Value::String(inner) = json.to_value() else {
        return None;
    };
    let inner = inner.trim();
    if inner.is_empty() || inner == "null" {
        return Some(Json::empty_object());
    }
    Json::parse(inner)
        .ok()
        .filter(|inner| inner.as_str().starts_with('{'))
}

/// A picture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Image {
    /// Such as `image/png`.
    pub media_type: Arc<str>,
    /// The bytes in base64.
    pub base64: Arc<str>,
}

/// The result of one call.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ToolResult {
    /// The call that this answers.
    pub call_id: Arc<str>,
    /// Name of the tool.
    pub name: Arc<str>,
    /// What the model reads.
    pub content: Arc<str>,
    /// Whether the call failed.
    pub is_error: bool,
    /// Pictures that belong to the result; usually none.
    pub images: Vec<Image>,
}

impl ToolResult {
    fn text_len(&self) -> usize {
        self.content.len() + self.images.len() * IMAGE_LEN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(arguments: &str) -> Result<String, String> {
        let call = ToolCall {
            id: "c".into(),
            name: "t".into(),
            arguments: arguments.into(),
        };
        call.input()
            .map(|json| json.as_str().to_owned())
            .map_err(|fault| fault.to_string())
    }

    #[test]
    fn a_picture_counts_the_same_wherever_it_stands() {
        let image = Image {
            media_type: "image/png".into(),
            base64: "A".repeat(40_000).into(),
        };
        let part = Part::Image {
            media_type: image.media_type.clone(),
            base64: image.base64.clone(),
        };
        let result = ToolResult {
            content: "seen".into(),
            images: vec![image.clone(), image],
            ..ToolResult::default()
        };
        assert_eq!(Message::User(vec![part]).text_len(), IMAGE_LEN);
        assert_eq!(Message::Tool(vec![result]).text_len(), 4 + 2 * IMAGE_LEN);
    }

    // G-08
    #[test]
    fn nothing_in_any_spelling_is_the_empty_object() {
        for nothing in ["", "  ", "null", "{}", "\"\"", "\"null\""] {
            assert_eq!(input(nothing).as_deref(), Ok("{}"), "{nothing}");
        }
    }

    // G-08
    #[test]
    fn an_object_encoded_twice_is_unwrapped_once() {
        assert_eq!(input(r#""{\"a\":1}""#).as_deref(), Ok(r#"{"a":1}"#));
        assert!(input(r#""\"{}\"""#).is_err());
    }

    // G-08
    #[test]
    fn bad_arguments_name_the_parse_fault() {
        let fault = input(r#"{"mode": fastt"}"#).unwrap_err();
        assert!(
            fault.contains("not valid JSON") && fault.contains("column"),
            "{fault}"
        );
        assert!(input("[1,2]").unwrap_err().contains("array"));
        assert!(input("7").unwrap_err().contains("number"));
        assert!(input("true").unwrap_err().contains("boolean"));
        assert!(input("\"x\"").unwrap_err().contains("string"));
    }
}
