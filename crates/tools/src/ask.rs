//! Toolset `ask`: `ask_user` puts a question to a person and waits for the answer. Who is asked, and for how long, is the
//! engine's and the definition's business.

use std::sync::Arc;

use attache_agent::session::{ErrorCode, ModalAnswer, ModalKind};
use attache_agent::{AskPerson, Asked, CallContext, Tool, ToolError, ToolOutcome, Toolset};
use serde_json::{Map, Value, json};

use crate::agent_session::{Answer, tool};
use crate::arguments::{Arguments, wrong_type};
use crate::show;

/// The toolset.
pub struct Ask;

impl Toolset for Ask {
    fn kind(&self) -> &'static str {
        "ask"
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![Arc::new(AskUser::default())]
    }
}

/// The tool's name.
const NAME: &str = "ask_user";

tool!(
    /// The tool.
    AskUser(waits),
    true,
    show::spec(
        NAME,
        "Ask the person that you work for a question and wait for the answer. Use it when you cannot \
         find out by yourself and a wrong guess would cost much; not to report, and not for \
         permission to do what you were asked to do. Give choices where there are few answers, or a \
         JSON schema where you need several values at once. Nobody may be there: then the result \
         says so after a while, and you go on with your best guess or end with what is open.",
        &json!({
            "question": {
                "type": "string",
                "description": "The question, with all that is needed to answer it."
            },
            "choices": {
                "type": "array",
                "items": { "type": "string" },
                "description": "Answers to choose from; the person may still answer otherwise."
            },
            "schema": {
                "type": "object",
                "description": "JSON schema of the values to fill in. Not together with choices."
            }
        }),
        &["question"]
    ),
    call
);

async fn call(context: CallContext, arguments: Value) -> Answer {
    let written = arguments.to_string();
    let mut arguments = Arguments::new(arguments)?;
    let text = arguments.required_text("question")?;
    let choices = choices(arguments.take("choices"))?;
    let schema = match arguments.take("schema") {
        None => None,
        Some(schema @ Value::Object(_)) => Some(schema),
        Some(other) => return Err(wrong_type("schema", "an object", &other)),
    };
    arguments.done()?;
    if schema.is_some() && !choices.is_empty() {
        return Err(ToolError::invalid(
            "`choices` and `schema` are two ways to ask: give one of them",
        ));
    }
    let ask = AskPerson {
        tool: NAME.into(),
        arguments: written,
        kind: if schema.is_some() {
            ModalKind::Form
        } else {
            ModalKind::Question
        },
        text,
        body: None,
        choices,
        free: true,
        schema,
    };
    match context.sessions.ask(&context.caller, ask).await {
        Ok(asked) => Ok(ToolOutcome::json(&shown(asked))),
        Err(error) if error.code == ErrorCode::NotPermitted => Err(ToolError::from(error)
            .with_hint("Go on with your best guess, and say in your result what you assumed.")),
        Err(error) => Err(error.into()),
    }
}

fn choices(given: Option<Value>) -> Result<Vec<String>, ToolError> {
    let wanted = "an array of strings";
    let texts = match given {
        None => return Ok(Vec::new()),
        Some(Value::Array(texts)) => texts,
        Some(other) => return Err(wrong_type("choices", wanted, &other)),
    };
    let text = |value: Value| match value {
        Value::String(text) => Ok(text),
        other => Err(wrong_type("choices", wanted, &other)),
    };
    texts.into_iter().map(text).collect()
}

fn shown(asked: Asked) -> Value {
    let not = |reason: &str| json!({ "answered": false, "reason": reason });
    match asked {
        Asked::Expired => not("no answer in time"),
        Asked::Parent => not(
            "the question was put to your parent agent, which answers with a message: go on meanwhile, or end your turn",
        ),
        Asked::Answered { answer, by: _ } => {
            let ModalAnswer {
                accepted,
                text,
                content,
            } = answer;
            let mut shown = if accepted {
                Map::from_iter([("answered".to_owned(), json!(true))])
            } else {
                Map::from_iter([
                    ("answered".to_owned(), json!(false)),
                    ("reason".to_owned(), json!("the person declined to answer")),
                ])
            };
            if let Some(text) = text {
                let name = if accepted { "answer" } else { "remark" };
                shown.insert(name.to_owned(), json!(&*text));
            }
            let content = content.and_then(|content| serde_json::from_str(content.as_str()).ok());
            if let Some(content) = content {
                shown.insert("content".to_owned(), content);
            }
            Value::Object(shown)
        }
    }
}
