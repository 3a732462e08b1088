//! The types for programs in TypeScript, made from the schema and committed as `schemas/attach-agent-session.v1.ts`. They say no
//! more and no less than the schema does; why they are made from it is told in decision 11.

use std::fmt::Write as _;

use attache_protocol::schema;
use serde_json::Value;

const HEAD: &str = "// The frames of `attach-agent-session`, version 1. Made from the schema beside this file; do not edit it.\n\
    // A member that may be left out by who sends it has a `?`.\n";

/// The type of a schema.
fn type_of(of: &Value) -> String {
    if let Some(name) = of["$ref"].as_str() {
        return name.rsplit('/').next().unwrap().to_owned();
    }
    if let Some(choices) = of["oneOf"].as_array().or(of["anyOf"].as_array()) {
        let choices: Vec<String> = choices.iter().map(type_of).collect();
        return choices.join(" | ");
    }
    if !of["const"].is_null() {
        return of["const"].to_string();
    }
    if let Some(values) = of["enum"].as_array() {
        let values: Vec<String> = values.iter().map(Value::to_string).collect();
        return values.join(" | ");
    }
    match &of["type"] {
        Value::Array(kinds) => {
            let kinds: Vec<String> = kinds
                .iter()
                .map(|kind| one_type(kind.as_str().unwrap(), of))
                .collect();
            kinds.join(" | ")
        }
        Value::String(kind) => one_type(kind, of),
        _ => "unknown".to_owned(),
    }
}

fn one_type(kind: &str, of: &Value) -> String {
    match kind {
        "object" => object(of),
        "array" => format!("Array<{}>", type_of(&of["items"])),
        "string" => "string".to_owned(),
        "integer" | "number" => "number".to_owned(),
        "boolean" => "boolean".to_owned(),
        "null" => "null".to_owned(),
        other => panic!("{other} is new in the schema"),
    }
}

fn object(of: &Value) -> String {
    let Some(properties) = of["properties"].as_object() else {
        let value = match &of["additionalProperties"] {
            values @ Value::Object(_) => type_of(values),
            _ => "unknown".to_owned(),
        };
        return match of["additionalProperties"] {
            // A kind without members of its own.
            Value::Bool(false) => "Record<string, never>".to_owned(),
            _ => format!("Record<string, {value}>"),
        };
    };
    let required: Vec<&str> = of["required"]
        .as_array()
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let members: Vec<String> = properties
        .iter()
        .map(|(name, of)| {
            let may = if required.contains(&name.as_str()) {
                ""
            } else {
                "?"
            };
            format!("{name:?}{may}: {}", type_of(of))
        })
        .collect();
    format!("{{ {} }}", members.join("; "))
}

fn declare(text: &mut String, name: &str, of: &Value) {
    let told = of["description"].as_str().unwrap_or_default();
    if !told.is_empty() {
        let told = told.replace('\n', " ").replace("*/", "* /");
        // Writing to a text does not fail.
        let _written = writeln!(text, "\n/** {told} */");
    }
    let kinds = of["oneOf"].as_array().filter(|kinds| kinds.len() > 1);
    let type_of = match kinds {
        Some(kinds) => kinds
            .iter()
            .map(|kind| format!("\n  | {}", type_of(kind)))
            .collect(),
        None => format!(" {}", type_of(of)),
    };
    let _written = writeln!(text, "export type {name} ={type_of};");
}

#[test]
fn the_committed_types_are_those_of_the_schema() {
    let schema = schema();
    let mut text = HEAD.to_owned();
    let mut known = std::collections::BTreeMap::new();
    for (from, name) in [("from-viewer", "FromViewer"), ("from-host", "FromHost")] {
        declare(&mut text, name, &schema[from]);
        for (name, of) in schema[from]["$defs"].as_object().unwrap() {
            let before = known.insert(name.clone(), of.clone());
            assert!(
                before.is_none_or(|before| before == *of),
                "{name} is one type"
            );
        }
    }
    for (name, of) in &known {
        declare(&mut text, name, of);
    }
    super::committed("attach-agent-session.v1.ts", &text);
}
