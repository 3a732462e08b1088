//! A tool that asks a person in every way there is: the kinds whose own tools come later are tried out with it.

use std::sync::Arc;

use attache_agent::offer::{Json, ToolSpec};
use attache_agent::session::ModalKind;
use attache_agent::{
    AskPerson, Asked, CallContext, Tool, ToolError, ToolFuture, ToolOutcome, Toolset,
};
use serde_json::{Value, json};

/// The toolset `ask-kinds`, with the tool `ask_kind`.
#[derive(Default)]
pub struct AskKinds;

struct AskKind(ToolSpec);

impl Toolset for AskKinds {
    fn kind(&self) -> &'static str {
        "ask-kinds"
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let spec = ToolSpec {
            name: "ask_kind".into(),
            description: "Asks a person. Arguments: kind, text, body, choices.".into(),
            input_schema: Json::from_value(&json!({ "type": "object" })),
        };
        vec![Arc::new(AskKind(spec))]
    }
}

impl Tool for AskKind {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn waits(&self) -> bool {
        true
    }

    fn call<'a>(&'a self, context: CallContext, arguments: Value) -> ToolFuture<'a> {
        Box::pin(async move {
            let text = |name: &str| arguments[name].as_str().map(str::to_owned);
            let kind = text("kind").and_then(|kind| ModalKind::parse(&kind));
            let choices = arguments["choices"].as_array().into_iter().flatten();
            let ask = AskPerson {
                tool: "ask_kind".into(),
                arguments: arguments.to_string(),
                kind: kind.unwrap_or(ModalKind::Permission),
                text: text("text").unwrap_or_default(),
                body: text("body"),
                choices: choices
                    .filter_map(|choice| choice.as_str().map(str::to_owned))
                    .collect(),
                free: false,
                schema: None,
            };
            match context.sessions.ask(&context.caller, ask).await {
                Ok(Asked::Answered { answer, by }) => ToolOutcome::json(&json!({
                    "accepted": answer.accepted,
                    "text": answer.text.as_deref(),
                    "by": &*by,
                })),
                Ok(Asked::Expired) => ToolOutcome::json(&json!("expired")),
                Ok(Asked::Parent) => ToolOutcome::json(&json!("parent")),
                Err(error) => ToolError::from(error).into(),
            }
        })
    }
}
