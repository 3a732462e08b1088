//! `agent_session_create`: a child session, with its first input if there is one.

use attache_agent::session::BudgetChange;
use attache_agent::{CallContext, CreateChild, ToolError, ToolOutcome, budget_of};
use serde_json::{Value, json};

use super::{Answer, tool};
use crate::arguments::{Arguments, wrong_type};
use crate::show;

tool!(
    /// The tool.
    Create,
    true,
    show::spec(
        "agent_session_create",
        "Create a sub-agent session and, with initial_message, start it on that task. Use it for \
         work that can be done apart from yours, or in parallel: each child works by itself and \
         its last message is its result. Without definition the child is like you.",
        &json!({
            "definition": {
                "description": "Name of a known agent definition, or an inline definition object. \
                    Omit it for a child with your own definition.",
                "anyOf": [{ "type": "string" }, { "type": "object" }]
            },
            "initial_message": {
                "type": "string",
                "description": "The task, complete in itself: the child does not see your history."
            },
            "name": { "type": "string", "description": "A short name for people." },
            "working_directory": {
                "type": "string",
                "description": "A folder inside yours in which the child works; yours by default."
            },
            "parameters": {
                "type": "object",
                "description": "Values of the definition's parameters.",
                "additionalProperties": { "type": "string" }
            },
            "budget": {
                "type": "object",
                "description": "Limits of the child and all below it, each a part of what is left of yours.",
                "properties": {
                    "concurrent": { "type": "number", "description": "Turns at once." },
                    "agents": { "type": "number", "description": "Living sub-agents below it." },
                    "depth": { "type": "number", "description": "Generations below it." },
                    "tokens": { "type": "number" },
                    "usd": { "type": "number", "description": "Dollars." },
                    "wall": { "type": "number", "description": "Seconds of work." },
                    "tool-calls": { "type": "number" }
                },
                "additionalProperties": false
            }
        }),
        &[]
    ),
    call
);

async fn call(context: CallContext, arguments: Value) -> Answer {
    let mut arguments = Arguments::new(arguments)?;
    let definition = match arguments.look("definition") {
        None | Some(Value::Null | Value::Object(_)) => arguments.take("definition"),
        // A name is a short text, since the answer to an unknown one names it.
        Some(Value::String(_)) => arguments.text("definition")?.map(Value::String),
        Some(other) => return Err(wrong_type("definition", "a name or an object", other)),
    };
    let mut parameters = Vec::new();
    match arguments.take("parameters") {
        None => {}
        Some(Value::Object(given)) => {
            for (name, value) in given {
                match value {
                    Value::String(value) => parameters.push((name, value)),
                    other => {
                        return Err(wrong_type(
                            &format!("parameters.{name}"),
                            "a string",
                            &other,
                        ));
                    }
                }
            }
        }
        Some(other) => return Err(wrong_type("parameters", "an object", &other)),
    }
    let budget = match arguments.take("budget") {
        None => BudgetChange::default(),
        Some(Value::Object(limits)) => {
            budget_of(&limits).map_err(|error| ToolError::invalid(format!("budget: {error}")))?
        }
        Some(other) => return Err(wrong_type("budget", "an object", &other)),
    };
    let new = CreateChild {
        definition,
        initial_message: arguments.long_text("initial_message")?,
        name: arguments.text("name")?,
        working_directory: arguments.text("working_directory")?,
        parameters,
        budget,
    };
    arguments.done()?;
    let child = context.sessions.create(&context.caller, new).await?;
    Ok(ToolOutcome::json(&json!({
        "session_id": child.session.to_string(),
        "status": child.status.as_str(),
        "created_at": show::time(child.created_at),
    }))
    .with_spawned(child.session))
}
