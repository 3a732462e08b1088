//! Requests without their pictures: each is named where it stood, so that the model knows of it and can ask for it
//! otherwise; and which refusals of a provider are about pictures. When pictures are left out is decided elsewhere.

use std::sync::Arc;

use crate::error::{ErrorKind, ModelError};
use crate::message::{Image, Message, Part, ToolResult};
use crate::request::Request;

/// What stands in the place of a picture; `why` is a sentence.
fn note(media_type: &str, base64: &str, why: &str) -> String {
    format!(
        "[A picture is left out here: {media_type}, {} bytes. {why}]",
        decoded_len(base64)
    )
}

/// How many bytes a padded base64 text stands for.
fn decoded_len(base64: &str) -> usize {
    let padding = base64.bytes().rev().take_while(|byte| *byte == b'=');
    (base64.len() / 4 * 3).saturating_sub(padding.count())
}

impl Message {
    /// Whether a picture is in it that would be sent.
    #[must_use]
    pub fn has_pictures(&self) -> bool {
        match self {
            Self::User(parts) => parts.iter().any(|part| matches!(part, Part::Image { .. })),
            Self::Assistant(_) => false,
            Self::Tool(results) => results.iter().any(|result| !result.images.is_empty()),
        }
    }

    /// Puts a text in the place of each picture; `why` is the sentence that the text ends with.
    pub fn leave_pictures_out(&mut self, why: &str) {
        match self {
            Self::User(parts) => {
                for part in parts {
                    if let Part::Image { media_type, base64 } = part {
                        *part = Part::text(note(media_type, base64, why));
                    }
                }
            }
            Self::Assistant(_) => {}
            Self::Tool(results) => {
                for result in results {
                    result.leave_pictures_out(why);
                }
            }
        }
    }
}

impl ToolResult {
    /// Puts a text behind the content for each picture; `why` is the sentence that the text ends with.
    pub fn leave_pictures_out(&mut self, why: &str) {
        if self.images.is_empty() {
            return;
        }
        let notes = std::mem::take(&mut self.images);
        let notes = notes
            .iter()
            .map(|Image { media_type, base64 }| note(media_type, base64, why));
        let said = (!self.content.is_empty()).then(|| self.content.to_string());
        let lines: Vec<String> = said.into_iter().chain(notes).collect();
        self.content = Arc::from(lines.join("\n"));
    }
}

impl Request {
    /// Whether any picture is sent with it.
    #[must_use]
    pub fn has_pictures(&self) -> bool {
        self.messages.iter().any(Message::has_pictures)
    }

    /// The same with a text in the place of each picture; `why` is the sentence that the text ends with.
    #[must_use]
    pub fn without_pictures(mut self, why: &str) -> Self {
        for message in &mut self.messages {
            message.leave_pictures_out(why);
        }
        self
    }
}

impl ModelError {
    /// Whether a provider may have refused a request for the pictures in it: it says no to this very request and names
    /// pictures. Some servers of models without eyes say so with a status that is for faults of their own.
    #[must_use]
    pub fn is_about_pictures(&self) -> bool {
        self.kind == ErrorKind::Refused
            && match self.status {
                Some(400 | 415 | 422) => names_pictures(&self.message.to_lowercase()),
                Some(404 | 500 | 501) => takes_no_pictures(&self.message.to_lowercase()),
                _ => false,
            }
    }
}

/// Whether a text in lower case names pictures.
fn names_pictures(lower: &str) -> bool {
    ["image", "vision", "multimodal"]
        .iter()
        .any(|word| lower.contains(word))
}

/// Whether a text in lower case says that pictures are not supported: the name of a model alone does not.
pub(crate) fn takes_no_pictures(lower: &str) -> bool {
    const SAYS: [&str; 5] = [
        "not support",
        "n't support",
        "unsupported",
        "support image",
        "support vision",
    ];
    names_pictures(lower) && SAYS.iter().any(|text| lower.contains(text))
}

#[cfg(test)]
mod tests {
    use crate::fault::from_answer;

    #[test]
    fn refusals_of_pictures_are_told_from_others() {
        for (status, text, about) in [
            (400, "this model does not support image input", true),
            (
                400,
                "messages[7]: unknown variant `image_url`, expected `text` at line 1",
                true,
            ),
            (400, "Could not process IMAGE", true),
            (415, "Vision is not enabled", true),
            (422, "not a Multimodal model", true),
            (404, "No endpoints found that support image input", true),
            (500, "image input is not supported by this server", true),
            (500, "Unsupported content part type: \"image_url\"", true),
            (500, "image decoder crashed, contact support", false),
            (404, "The model `qwen-image` does not exist", false),
            (400, "temperature is too high", false),
            (401, "images need another key", false),
            (403, "image input is not supported", false),
            (429, "too many images", false),
            (413, "image too large", false),
        ] {
            let body = serde_json::json!({ "error": { "message": text } }).to_string();
            let error = from_answer(status, body.as_bytes());
            assert_eq!(error.is_about_pictures(), about, "{status} {text}");
            assert!(!about || !error.retryable, "{status} {text}");
        }
    }
}
