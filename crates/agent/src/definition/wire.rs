//! The written form of a definition, and the conversions from and to it. Closed: an unknown key is
//! an error that names it.

use std::sync::Arc;

use attache_model::{Json, Options, OutputSchema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::parameters::Parameter;
use super::{Definition, DefinitionError, Limits, Questions, SubAgent, is_name, keys, places};
use crate::budgets::{budget_of, budget_to_json};
use crate::stall::OnStall;

#[derive(Serialize, Deserialize)]
#[serde(
    rename_all = "kebab-case",
    deny_unknown_fields,
    expecting = "an object with the keys of a definition"
)]
pub(super) struct Written {
    pub(super) name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    display_name: Option<String>,
    #[serde(default)]
    description: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(default)]
    options: WrittenOptions,
    #[serde(default)]
    pub(super) instructions: String,
    #[serde(default)]
    tools: Vec<WrittenTool>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sub_agents: Vec<WrittenSubAgent>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parameters: Vec<WrittenParameter>,
    #[serde(default)]
    limits: WrittenLimits,
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    budget: serde_json::Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    working_directory: Option<String>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct WrittenOptions {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<serde_json::Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<serde_json::Map<String, Value>>,
}

/// A toolset or a tool: `{"kind": "filesystem"}`, or just its name.
#[derive(Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "a toolset kind, a tool's name, or {\"kind\": \"…\"}"
)]
enum WrittenTool {
    Name(String),
    Kind(WrittenKind),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenKind {
    kind: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct WrittenSubAgent {
    name: String,
    definition: Box<Written>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct WrittenParameter {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    required: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    default: Option<String>,
    #[serde(default, rename = "enum", skip_serializing_if = "Vec::is_empty")]
    choices: Vec<String>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct WrittenLimits {
    #[serde(skip_serializing_if = "Option::is_none")]
    iteration_limit: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stall_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_stall_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_stall: Option<WrittenOnStall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    questions: Option<WrittenQuestions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    question_seconds: Option<u32>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum WrittenQuestions {
    Ask,
    Deny,
    AskParent,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum WrittenOnStall {
    Report,
    Interrupt,
}

pub(super) fn from_json(text: &str, file: &str) -> Result<Definition, DefinitionError> {
    let error = |line: usize, message: String| DefinitionError {
        file: file.to_owned(),
        line,
        message,
    };
    let written: Written = serde_json::from_str(text).map_err(|fault| {
        let (line, column) = (fault.line().max(1), fault.column());
        let message = places::bare(&fault.to_string());
        error(line, places::with_field(text, line, column, &message))
    })?;
    from_written(written)
        .and_then(without_keys)
        .map_err(|message| error(places::line_of(text, &message).unwrap_or(1), message))
}

/// A definition as a record of ours holds it: what loading refuses was refused before.
pub(super) fn from_stored(text: &str) -> Result<Definition, String> {
    let written: Written = serde_json::from_str(text).map_err(|fault| fault.to_string())?;
    from_written(written)
}

/// The same definition, in which nobody wrote a key.
pub(super) fn without_keys(definition: Definition) -> Result<Definition, String> {
    let Some((field, beginning)) = keys::find(&to_value(&definition)) else {
        return Ok(definition);
    };
    let like = beginning.map_or(String::new(), |beginning| format!(" ({beginning}…)"));
    Err(format!(
        "{field}: a definition holds no keys{like}; they come from the environment"
    ))
}

/// Checks what the types alone do not say.
pub(super) fn from_written(written: Written) -> Result<Definition, String> {
    let Written {
        name,
        display_name,
        description,
        model,
        options,
        instructions,
        tools,
        sub_agents,
        parameters,
        limits,
        budget,
        working_directory,
    } = written;
    if !is_name(&name) {
        return Err(format!(
            "name: {name:?} must be 1 to 64 letters, digits, `-` or `_`"
        ));
    }
    if let Some(model) = &model
        && !model
            .split_once('/')
            .is_some_and(|(p, m)| !p.is_empty() && !m.is_empty())
        && !model.contains("${")
        && model != "echo"
    {
        return Err(format!(
            "model: {model:?} must have the form PROVIDER/MODEL"
        ));
    }
    let limits = Limits {
        iteration_limit: limits.iteration_limit,
        stall_seconds: limits.stall_seconds,
        tool_stall_seconds: limits.tool_stall_seconds,
        on_stall: match limits.on_stall {
            Some(WrittenOnStall::Interrupt) => OnStall::Interrupt,
            Some(WrittenOnStall::Report) | None => OnStall::Report,
        },
        questions: match limits.questions {
            Some(WrittenQuestions::Ask) | None => Questions::Ask,
            Some(WrittenQuestions::Deny) => Questions::Deny,
            Some(WrittenQuestions::AskParent) => Questions::AskParent,
        },
        question_seconds: limits.question_seconds,
    };
    for (name, seconds) in [
        ("stall-seconds", limits.stall_seconds),
        ("tool-stall-seconds", limits.tool_stall_seconds),
        ("question-seconds", limits.question_seconds),
    ] {
        if seconds == Some(0) {
            return Err(format!("limits.{name}: must be at least 1"));
        }
    }
    if limits.iteration_limit == Some(0) {
        return Err("limits.iteration-limit: must be at least 1".to_owned());
    }
    let budget = budget_of(&budget).map_err(|error| format!("budget: {error}"))?;
    let sub_agents = sub_agents
        .into_iter()
        .map(sub_agent)
        .collect::<Result<_, _>>()?;
    let parameters = parameters
        .into_iter()
        .map(parameter)
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Definition {
        name,
        display_name,
        description,
        model,
        options: options_of(options),
        instructions,
        tools: tools
            .into_iter()
            .map(|tool| match tool {
                WrittenTool::Name(name) => name,
                WrittenTool::Kind(WrittenKind { kind }) => kind,
            })
            .collect(),
        sub_agents,
        parameters,
        limits,
        budget,
        working_directory,
    })
}

fn sub_agent(written: WrittenSubAgent) -> Result<SubAgent, String> {
    let WrittenSubAgent { name, definition } = written;
    let definition =
        from_written(*definition).map_err(|message| format!("sub-agents: {name}: {message}"))?;
    Ok(SubAgent {
        name,
        definition: Box::new(definition),
    })
}

fn parameter(written: WrittenParameter) -> Result<Parameter, String> {
    let WrittenParameter {
        name,
        description,
        required,
        default,
        choices,
    } = written;
    if !is_name(&name) {
        return Err(format!(
            "parameters: {name:?} must be 1 to 64 letters, digits, `-` or `_`"
        ));
    }
    if let Some(default) = &default
        && !choices.is_empty()
        && !choices.contains(default)
    {
        return Err(format!(
            "parameters: the default of `{name}` is not among its values"
        ));
    }
    Ok(Parameter {
        name,
        description,
        required,
        default,
        choices,
    })
}

fn options_of(written: WrittenOptions) -> Options {
    let WrittenOptions {
        temperature,
        top_p,
        max_output_tokens,
        reasoning_effort,
        output_schema,
        extra,
    } = written;
    let json = |members| attache_model::Json::from_value(&Value::Object(members));
    Options {
        temperature,
        top_p,
        max_output_tokens,
        reasoning_effort: reasoning_effort.map(Arc::from),
        output_schema: output_schema.map(|schema| OutputSchema {
            name: "answer".into(),
            schema: json(schema),
        }),
        extra: extra.map(json),
        // A turn's own.
        cache_key: None,
    }
}

pub(super) fn to_value(definition: &Definition) -> Value {
    serde_json::to_value(to_written(definition)).unwrap_or(Value::Null)
}

fn to_written(definition: &Definition) -> Written {
    let Definition {
        name,
        display_name,
        description,
        model,
        options,
        instructions,
        tools,
        sub_agents,
        parameters,
        limits,
        budget,
        working_directory,
    } = definition.clone();
    let Options {
        temperature,
        top_p,
        max_output_tokens,
        reasoning_effort,
        output_schema,
        extra,
        // A turn's own.
        cache_key: _,
    } = options;
    let members = |json: Json| match json.to_value() {
        Value::Object(members) => Some(members),
        _ => None,
    };
    let output_schema = output_schema.and_then(|output| members(output.schema));
    let extra = extra.and_then(members);
    Written {
        name,
        display_name,
        description,
        model,
        options: WrittenOptions {
            temperature,
            top_p,
            max_output_tokens,
            reasoning_effort: reasoning_effort.map(|effort| effort.to_string()),
            output_schema,
            extra,
        },
        instructions,
        tools: tools.into_iter().map(WrittenTool::Name).collect(),
        sub_agents: sub_agents
            .into_iter()
            .map(|SubAgent { name, definition }| WrittenSubAgent {
                name,
                definition: Box::new(to_written(&definition)),
            })
            .collect(),
        parameters: parameters
            .into_iter()
            .map(
                |Parameter {
                     name,
                     description,
                     required,
                     default,
                     choices,
                 }| WrittenParameter {
                    name,
                    description,
                    required,
                    default,
                    choices,
                },
            )
            .collect(),
        limits: WrittenLimits {
            iteration_limit: limits.iteration_limit,
            stall_seconds: limits.stall_seconds,
            tool_stall_seconds: limits.tool_stall_seconds,
            on_stall: (limits.on_stall == OnStall::Interrupt).then_some(WrittenOnStall::Interrupt),
            questions: match limits.questions {
                Questions::Ask => None,
                Questions::Deny => Some(WrittenQuestions::Deny),
                Questions::AskParent => Some(WrittenQuestions::AskParent),
            },
            question_seconds: limits.question_seconds,
        },
        budget: budget_to_json(&budget),
        working_directory,
    }
}
