//! Request bodies, one file a dialect, and what they share: tools that are encoded once, answers' schemas, and call ids and tool names in the spelling that strict servers accept. Nothing is sent from here.

pub(crate) mod anthropic;
pub(crate) mod gemini;
pub(crate) mod openai_chat;
pub(crate) mod openai_responses;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde::ser::SerializeMap;
use serde_json::value::RawValue;

use crate::json::Json;
use crate::message::{ToolCall, ToolResult};
pub(crate) use crate::quirks::Quirks;
use crate::request::ToolSpec;

/// A request as bytes, and what had to be changed to get there.
#[derive(Debug)]
pub(crate) struct EncodedRequest {
    pub(crate) body: Vec<u8>,
    pub(crate) notices: Vec<String>,
}

/// The tools of a request in one form.
#[derive(Clone, Debug)]
pub(crate) struct EncodedTools {
    /// A JSON list.
    pub(crate) list: Box<RawValue>,
    /// Names of the tools whose schema was changed.
    pub(crate) adapted: Vec<Arc<str>>,
}

impl EncodedTools {
    /// How many forms there are: a dialect's, each with schemas as they are or with plain roots, for Messages also with
    /// or without a cache mark.
    pub(crate) const FORMS: usize = 10;

    pub(crate) fn new(list: &serde_json::Value, adapted: Vec<Arc<str>>) -> Self {
        let list = serde_json::value::to_raw_value(list).expect("a JSON value can be written");
        Self { list, adapted }
    }

    pub(crate) fn notices(&self) -> Vec<String> {
        self.adapted
            .iter()
            .map(|name| {
                format!(
                    "the schema of tool {name} was simplified at its root, because this provider refuses anyOf, oneOf, \
                     allOf, not and enum there"
                )
            })
            .collect()
    }
}

/// The schema of a tool as an object, and whether it had to be changed.
pub(crate) fn schema(spec: &ToolSpec, plain_root: bool) -> (serde_json::Value, bool) {
    let mut schema = spec.input_schema.to_value();
    let Some(members) = schema.as_object_mut() else {
        return (
            serde_json::json!({"type": "object", "properties": {}}),
            true,
        );
    };
    let mut changed = false;
    if plain_root {
        for key in ["anyOf", "oneOf", "allOf", "not", "enum"] {
            changed |= members.remove(key).is_some();
        }
    }
    // Required by the providers, and always true of arguments.
    if members.get("type").and_then(serde_json::Value::as_str) != Some("object") {
        changed |= members.insert("type".to_owned(), "object".into()).is_some();
    }
    members
        .entry("properties")
        .or_insert_with(|| serde_json::json!({}));
    (schema, changed)
}

/// Whether a schema keeps the rules that OpenAI has for a strict one: every object lists all its members as required and
/// allows no others. A schema that does not may still be sent, as a wish.
pub(crate) fn is_strict(schema: &serde_json::Value) -> bool {
    match schema {
        serde_json::Value::Object(members) => {
            let fine = match members.get("properties").and_then(|p| p.as_object()) {
                Some(properties) => {
                    let required = members.get("required").and_then(|r| r.as_array());
                    let all = |name: &String| {
                        required.is_some_and(|list| list.iter().any(|known| *known == **name))
                    };
                    members.get("additionalProperties") == Some(&false.into())
                        && properties.keys().all(all)
                }
                None => members.get("type") != Some(&"object".into()),
            };
            fine && members.values().all(is_strict)
        }
        serde_json::Value::Array(list) => list.iter().all(is_strict),
        _ => true,
    }
}

/// What is said when a provider takes no schema for its answers.
pub(crate) fn no_output_schema() -> String {
    "this provider takes no schema for its answer, so that the form of the answer is not assured"
        .to_owned()
}

/// What a model that takes no pictures is told in their place.
pub(crate) const TAKES_NO_PICTURES: &str = "This model takes no pictures.";

/// What is said when a model takes no pictures.
pub(crate) fn no_pictures() -> String {
    "this model takes no pictures (quirk `images`), so that each is named in words instead"
        .to_owned()
}

/// A picture as an address that holds it.
pub(crate) fn data_url(media_type: &str, base64: &str) -> String {
    format!("data:{media_type};base64,{base64}")
}

/// What stands before pictures that could not stay in their result.
pub(crate) fn picture_note(result: &ToolResult, call_id: &str) -> String {
    let count = match result.images.len() {
        1 => "1 picture".to_owned(),
        count => format!("{count} pictures"),
    };
    format!(
        "[{count} of the result of {} (call {call_id}):]",
        sendable_name(&result.name)
    )
}

/// The generation that a model's id names, such as (4, 6) for `claude-opus-4-6` and (2, 5) for `gemini-2.5-pro`. Dates are
/// no generations.
pub(crate) fn generation(model: &str) -> Option<(u32, u32)> {
    let short = |word: &&str| word.len() <= 2 && word.bytes().all(|byte| byte.is_ascii_digit());
    let words: Vec<&str> = model
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    let at = words.iter().position(short)?;
    let minor = words.get(at + 1).filter(|word| short(word));
    let number = |word: &str| word.parse().unwrap_or(0);
    Some((number(words[at]), minor.map_or(0, |word| number(word))))
}

/// The members of `extra`, without those that are ours to say.
pub(crate) fn extra<'a>(
    extra: Option<&'a Json>,
    ours: &[&str],
) -> BTreeMap<Cow<'a, str>, &'a RawValue> {
    let mut members: BTreeMap<Cow<'a, str>, &'a RawValue> = extra
        .and_then(|json| serde_json::from_str::<BTreeMap<String, &'a RawValue>>(json.as_str()).ok())
        .unwrap_or_default()
        .into_iter()
        .map(|(key, value)| (Cow::Owned(key), value))
        .collect();
    for key in ours {
        members.remove(*key);
    }
    members
}

/// An object of ours with the members that `extra` has for it, which win one by one. It is taken out of `extra`.
pub(crate) fn merged(
    mut ours: serde_json::Map<String, serde_json::Value>,
    extra: &mut BTreeMap<Cow<'_, str>, &RawValue>,
    key: &str,
) -> Option<serde_json::Value> {
    let theirs = extra.remove(key).map(|raw| serde_json::from_str(raw.get()));
    match theirs {
        Some(Ok(serde_json::Value::Object(theirs))) => ours.extend(theirs),
        Some(Ok(other)) => return Some(other),
        Some(Err(_)) | None => {}
    }
    (!ours.is_empty()).then_some(serde_json::Value::Object(ours))
}

/// Writes an optional member unless `extra` has it.
pub(crate) fn option<M: SerializeMap>(
    map: &mut M,
    extra: &BTreeMap<Cow<'_, str>, &RawValue>,
    key: &str,
    value: Option<impl serde::Serialize>,
) -> Result<(), M::Error> {
    match value {
        Some(value) if !extra.contains_key(key) => map.serialize_entry(key, &value),
        _ => Ok(()),
    }
}

/// Arguments as they may be sent: an object, `{}` when they cannot be used.
pub(crate) fn sendable_arguments(call: &ToolCall) -> Json {
    call.input().unwrap_or_else(|_| Json::empty_object())
}

/// A tool name that providers accept: models invent others, and the history must still be sendable.
pub(crate) fn sendable_name(name: &str) -> Cow<'_, str> {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.len() <= 64 && name.chars().all(fine) {
        return Cow::Borrowed(name);
    }
    let kept: String = name
        .chars()
        .take(64)
        .map(|c| if fine(c) { c } else { '_' })
        .collect();
    Cow::Owned(if kept.is_empty() {
        "unnamed".to_owned()
    } else {
        kept
    })
}

/// Most characters of a call's id that strict servers take.
const ID_LIMIT: usize = 64;

/// Gives each call of a request an id that is unique in it and spelled as strict servers want.
#[derive(Default)]
pub(crate) struct CallIds<'a> {
    strict: bool,
    given: HashSet<Cow<'a, str>>,
    /// The calls of the last assistant message whose id had to be changed: (the id, what is sent).
    renamed: Vec<(&'a str, String)>,
}

impl<'a> CallIds<'a> {
    /// `strict`: only letters, digits, `_` and `-`, and at most 64 of them.
    pub(crate) fn new(strict: bool) -> Self {
        Self {
            strict,
            ..Self::default()
        }
    }

    /// A new assistant message begins; results from now on belong to it.
    pub(crate) fn next_message(&mut self) {
        self.renamed.clear();
    }

    /// What is sent for a call's id.
    pub(crate) fn call(&mut self, id: &'a str) -> Cow<'a, str> {
        let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let mut sent: Cow<'a, str> = Cow::Borrowed(id);
        if id.is_empty() {
            sent = Cow::Borrowed("call");
        } else if self.strict && (id.len() > ID_LIMIT || !id.chars().all(fine)) {
            let kept = id.chars().take(ID_LIMIT);
            sent = Cow::Owned(kept.map(|c| if fine(c) { c } else { '_' }).collect());
        }
        if self.given.contains(&sent) {
            // Room for the number.
            let stem = if self.strict && sent.len() > ID_LIMIT - 8 {
                &sent[..ID_LIMIT - 8]
            } else {
                &sent
            };
            let free = (2usize..)
                .map(|n| format!("{stem}_{n}"))
                .find(|name| !self.given.contains(name.as_str()));
            sent = Cow::Owned(free.unwrap_or_default());
        }
        self.given.insert(sent.clone());
        if sent != id {
            self.renamed.push((id, sent.clone().into_owned()));
        }
        sent
    }

    /// What is sent for the id that a result names.
    pub(crate) fn result(&self, id: &'a str) -> Cow<'a, str> {
        match self.renamed.iter().find(|(from, _)| *from == id) {
            Some((_, to)) => Cow::Owned(to.clone()),
            None => Cow::Borrowed(id),
        }
    }
}
