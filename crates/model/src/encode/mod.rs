//! Request bodies, one file a dialect, and what they share: providers' differences as plain data, tools that are encoded
//! once, and call ids and tool names in the spelling that strict servers accept. Nothing is sent from here.

pub(crate) mod anthropic;
pub(crate) mod openai_chat;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde::ser::SerializeMap;
use serde_json::value::RawValue;

use crate::json::Json;
use crate::message::ToolCall;
use crate::request::ToolSpec;

/// How a provider differs from the usual form of its dialect. Plain data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quirks {
    /// Chat Completions: send the reasoning of earlier steps back, as `reasoning_content`. Some servers refuse a request
    /// without it, others one with it.
    pub send_reasoning_back: bool,
    /// Chat Completions: name of the field for the most output tokens.
    pub max_tokens_field: Cow<'static, str>,
    /// Chat Completions: ask for usage with `stream_options`.
    pub stream_options: bool,
    /// Tool schemas must not have `anyOf`, `oneOf`, `allOf`, `not` or `enum` at their root; they are left out there.
    pub plain_root_schema: bool,
    /// Messages: mark the ends of instructions, tools and conversation for the provider's cache.
    pub cache_marks: bool,
    /// Messages: the limit of output tokens when the request has none, because the field is required there.
    pub default_max_tokens: u32,
    /// Remind the model once of an empty answer, or of an action that was claimed or announced without a call.
    pub reminders: bool,
}

impl Default for Quirks {
    fn default() -> Self {
        Self {
            send_reasoning_back: false,
            max_tokens_field: Cow::Borrowed("max_tokens"),
            stream_options: true,
            plain_root_schema: true,
            cache_marks: true,
            default_max_tokens: 8192,
            reminders: true,
        }
    }
}

/// A change of a quirk that cannot be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct QuirkError(String);

impl Quirks {
    /// Sets one by its name, for settings.
    ///
    /// # Errors
    /// When there is none of this name, or its value has another form.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), QuirkError> {
        let truth = value
            .parse()
            .map_err(|_fault| QuirkError(format!("must be true or false, not {value:?}")));
        match key {
            "reminders" => self.reminders = truth?,
            _ => return Err(QuirkError("is no quirk".to_owned())),
        }
        Ok(())
    }
}

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
    pub(crate) const FORMS: usize = 6;

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

/// Gives each call of a request an id that is unique in it and spelled as strict servers want.
#[derive(Default)]
pub(crate) struct CallIds<'a> {
    strict: bool,
    given: HashSet<Cow<'a, str>>,
    /// The calls of the last assistant message whose id had to be changed: (the id, what is sent).
    renamed: Vec<(&'a str, String)>,
}

impl<'a> CallIds<'a> {
    /// `strict`: only letters, digits, `_` and `-`.
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
        } else if self.strict && !id.chars().all(fine) {
            sent = Cow::Owned(id.chars().map(|c| if fine(c) { c } else { '_' }).collect());
        }
        if self.given.contains(&sent) {
            let free = (2usize..)
                .map(|n| format!("{sent}_{n}"))
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
