//! JSON text that this crate carries without interpreting it: tool schemas, opaque reasoning, extra options.
//! The text is checked once, when it is made; it is not re-modelled, reordered or reformatted.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{MapAccess, SeqAccess, Visitor};

use crate::text;

/// JSON text that is always valid: it parses, its strings are proper Unicode, and it nests at most 127 deep.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Json(Arc<str>);

/// Text that is not JSON; the message says where and why, and quotes nothing of the text.
#[derive(Debug, thiserror::Error)]
#[error("not valid JSON: {0}")]
pub struct NotJson(String);

impl Json {
    /// Checks `text`. Escapes of half a surrogate pair are replaced by U+FFFD, because a strict reader refuses them;
    /// everything else is kept byte for byte.
    ///
    /// # Errors
    /// When the text is not one JSON value.
    pub fn parse(text: &str) -> Result<Self, NotJson> {
        let mended = text::mend_escapes(text);
        let mut reader = serde_json::Deserializer::from_str(&mended);
        Checked::deserialize(&mut reader)
            .and_then(|_| reader.end())
            .map_err(|fault| NotJson(fault.to_string()))?;
        Ok(Self(Arc::from(&*mended)))
    }

    /// Writes a value as compact JSON.
    pub fn from_value(value: &serde_json::Value) -> Self {
        Self(Arc::from(value.to_string()))
    }

    /// The empty object, which is what a tool without arguments is called with.
    pub fn empty_object() -> Self {
        Self(Arc::from("{}"))
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text itself, shared.
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }

    /// Reads the text into a value.
    pub fn to_value(&self) -> serde_json::Value {
        serde_json::from_str(&self.0).expect("the text was checked when it was made")
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Walks a value through the same paths as a full read (strings, numbers, depth), and keeps nothing.
struct Checked;

impl<'de> Deserialize<'de> for Checked {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CheckedVisitor)
    }
}

struct CheckedVisitor;

impl<'de> Visitor<'de> for CheckedVisitor {
    type Value = Checked;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_str<E>(self, _: &str) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_unit<E>(self) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Checked, A::Error> {
        while seq.next_element::<Checked>()?.is_some() {}
        Ok(Checked)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Checked, A::Error> {
        while map.next_entry::<Checked, Checked>()?.is_some() {}
        Ok(Checked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_parses_can_be_read_back_in_full() {
        for text in [
            "{}",
            "[1,2.5,-3,null,true]",
            r#"{"a":"\ud83d\ude00"}"#,
            "  7 ",
        ] {
            let json = Json::parse(text).unwrap();
            assert_eq!(json.as_str(), text);
            json.to_value();
        }
    }

    #[test]
    fn half_a_pair_becomes_a_replacement_mark() {
        let json = Json::parse(r#"{"t":"a\ud83d","\\ud83d":"\ude00"}"#).unwrap();
        assert_eq!(
            json.to_value(),
            serde_json::json!({"t": "a\u{fffd}", "\\ud83d": "\u{fffd}"})
        );
    }

    #[test]
    fn what_a_full_read_would_refuse_is_refused() {
        let deep = "[".repeat(200) + &"]".repeat(200);
        for text in [
            "",
            "{",
            "{} x",
            "1e999",
            "\"\u{1}\"",
            "{'a':1}",
            deep.as_str(),
        ] {
            assert!(Json::parse(text).is_err(), "{text}");
        }
    }
}
