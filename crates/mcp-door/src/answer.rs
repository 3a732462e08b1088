//! From what a tool said to what a client gets: one object, as structured content and as text, with
//! the root and its notices beside it.

use attache_engine::EngineError;
use attache_engine::parts::{ToolError, ToolOutcome};
use attache_session::SessionId;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value};

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
        Self {
            object: object(&outcome.content),
            is_error: outcome.is_error,
        }
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
    use serde_json::json;

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
