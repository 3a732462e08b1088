//! From what a tool said to what a client gets: one object, as structured content and as text, with
//! the root and its notices beside it.

use attache_engine::EngineError;
use attache_engine::parts::{ToolError, ToolOutcome};
use attache_session::SessionId;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value, json};

use crate::door::ROOT;

/// The object of an outcome. An array stands under the name of what it lists, a text under `text`.
pub(crate) fn object(content: &str) -> Map<String, Value> {
    match serde_json::from_str(content) {
        Ok(Value::Object(object)) => object,
        Ok(list @ Value::Array(_)) => Map::from_iter([("sessions".to_owned(), list)]),
        _ => Map::from_iter([("text".to_owned(), Value::from(content))]),
    }
}

/// What a call came to.
pub(crate) struct Answer {
    pub(crate) object: Map<String, Value>,
    pub(crate) is_error: bool,
}

impl From<ToolOutcome> for Answer {
    fn from(outcome: ToolOutcome) -> Self {
        let ToolOutcome {
            content,
            is_error,
            spawned: _,
            images,
            report: _,
        } = outcome;
        let mut object = object(&content);
        if !images.is_empty() {
            // Told of: their bytes are for the models of sessions.
            let told = images.iter().map(
                |picture| json!({ "media_type": &*picture.media_type, "bytes": picture.bytes }),
            );
            object.insert("pictures".to_owned(), told.collect());
        }
        Self { object, is_error }
    }
}

impl From<ToolError> for Answer {
    fn from(error: ToolError) -> Self {
        ToolOutcome::from(error).into()
    }
}

impl From<EngineError> for Answer {
    fn from(error: EngineError) -> Self {
        ToolError::new(error.code, error.message).into()
    }
}

impl Answer {
    /// The same with the root that it belongs to and the notices of that one.
    pub(crate) fn with_root(mut self, root: SessionId, notices: Vec<Value>) -> Self {
        self.object.insert(ROOT.to_owned(), root.to_string().into());
        self.object
            .insert("notices".to_owned(), Value::Array(notices));
        self
    }

    /// As the protocol has it.
    pub(crate) fn result(self) -> CallToolResult {
        let Self { object, is_error } = self;
        let value = Value::Object(object);
        let content = vec![ContentBlock::text(value.to_string())];
        let mut result = if is_error {
            CallToolResult::error(content)
        } else {
            CallToolResult::success(content)
        };
        result.structured_content = Some(value);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use attache_session::Picture;

    #[test]
    fn every_outcome_is_an_object() {
        for (content, is) in [
            (r#"{"ok":true}"#, json!({ "ok": true })),
            ("[1]", json!({ "sessions": [1] })),
            ("said", json!({ "text": "said" })),
            ("7", json!({ "text": "7" })),
        ] {
            assert_eq!(Value::Object(object(content)), is);
        }
    }

    #[test]
    fn a_picture_is_told_of_without_its_bytes() {
        let picture = Picture::of_bytes("image/png", b"0123456789");
        let outcome = ToolOutcome::json(&json!({ "ok": true })).with_image(picture.clone());
        let result = Answer::from(outcome).result();
        let told = json!({ "ok": true, "pictures": [{ "media_type": "image/png", "bytes": 10 }] });
        assert_eq!(result.structured_content, Some(told));
        let text = serde_json::to_string(&result).unwrap();
        assert!(!text.contains(&*picture.base64), "{text}");
    }

    #[test]
    fn the_text_says_what_the_object_says() {
        let root = SessionId(uuid::Uuid::from_u128(7));
        let error = ToolError::invalid("no");
        let result = Answer::from(error).with_root(root, vec![]).result();
        assert_eq!(result.is_error, Some(true));
        let structured = result.structured_content.unwrap();
        assert_eq!(structured["root_session_id"], root.to_string());
        assert_eq!(structured["error"]["code"], "invalid-arguments");
        let text = result.content[0].as_text().unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(&text.text).unwrap(),
            structured
        );
    }
}
