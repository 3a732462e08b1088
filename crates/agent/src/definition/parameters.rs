//! Parameters of a definition: what is declared, what was given, and what the texts become.

use std::collections::BTreeMap;

use super::Definition;
use super::keys::key_in;

/// A declared parameter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// Its name, as in `${name}`.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Whether a value must be given when there is no default.
    pub required: bool,
    /// What it is when nothing is given.
    pub default: Option<String>,
    /// The values that are allowed; empty is any.
    pub choices: Vec<String>,
}

/// A value that is missing, unknown or not allowed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParameterError {
    /// A required parameter has no value.
    #[error("parameter `{name}` of definition `{definition}` needs a value: {description}")]
    Missing {
        /// The definition.
        definition: String,
        /// The parameter.
        name: String,
        /// What it is for.
        description: String,
    },
    /// The definition declares no such parameter.
    #[error("definition `{definition}` has no parameter `{name}`; it has: {known}")]
    Unknown {
        /// The definition.
        definition: String,
        /// What was given.
        name: String,
        /// What it declares.
        known: String,
    },
    /// The value looks like a key, and would stand in the session's record.
    #[error(
        "parameter `{name}` holds what looks like a key ({beginning}…); keys come from the environment"
    )]
    Key {
        /// The parameter.
        name: String,
        /// How it begins.
        beginning: &'static str,
    },
    /// The value is not among the allowed ones.
    #[error("parameter `{name}` cannot be {value:?}; allowed: {allowed}")]
    NotAllowed {
        /// The parameter.
        name: String,
        /// What was given.
        value: String,
        /// The allowed values.
        allowed: String,
    },
}

/// See [`Definition::fill`]. A given value that is blank counts as none.
pub(super) fn fill(
    definition: &Definition,
    given: &BTreeMap<String, String>,
) -> Result<Definition, ParameterError> {
    if let Some(unknown) = given
        .keys()
        .find(|name| !definition.parameters.iter().any(|p| p.name == **name))
    {
        let known: Vec<&str> = definition
            .parameters
            .iter()
            .map(|p| p.name.as_str())
            .collect();
        return Err(ParameterError::Unknown {
            definition: definition.name.clone(),
            name: unknown.clone(),
            known: if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            },
        });
    }
    let mut values: Vec<(String, String)> = Vec::new();
    for parameter in &definition.parameters {
        let given = given
            .get(&parameter.name)
            .filter(|value| !value.trim().is_empty());
        match given.or(parameter.default.as_ref()) {
            Some(value) => {
                if let Some(beginning) = key_in(value) {
                    return Err(ParameterError::Key {
                        name: parameter.name.clone(),
                        beginning,
                    });
                }
                if !parameter.choices.is_empty() && !parameter.choices.contains(value) {
                    return Err(ParameterError::NotAllowed {
                        name: parameter.name.clone(),
                        value: value.clone(),
                        allowed: parameter.choices.join(", "),
                    });
                }
                values.push((format!("${{{}}}", parameter.name), value.clone()));
            }
            None if parameter.required => {
                return Err(ParameterError::Missing {
                    definition: definition.name.clone(),
                    name: parameter.name.clone(),
                    description: parameter.description.clone(),
                });
            }
            None => {}
        }
    }
    let text = |text: &String| substitute(text, &values);
    Ok(Definition {
        description: text(&definition.description),
        model: definition.model.as_ref().map(text),
        instructions: text(&definition.instructions),
        working_directory: definition.working_directory.as_ref().map(text),
        parameters: Vec::new(),
        ..definition.clone()
    })
}

/// One pass from left to right: a value that looks like a placeholder is not filled in again.
fn substitute(text: &str, values: &[(String, String)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(place) = rest.find("${") {
        out.push_str(&rest[..place]);
        rest = &rest[place..];
        match values
            .iter()
            .find(|(name, _)| rest.starts_with(name.as_str()))
        {
            Some((name, value)) => {
                out.push_str(value);
                rest = &rest[name.len()..];
            }
            None => {
                out.push_str("${");
                rest = &rest[2..];
            }
        }
    }
    out.push_str(rest);
    out
}
