//! Arguments of a call: read against the tool's closed schema, so that the model is told exactly
//! what to mend. Numbers out of range are clamped and named; every other misfit is an error.

use std::str::FromStr;

use attache_agent::ToolError;
use attache_agent::session::{SessionId, Timestamp};
use serde_json::{Map, Value, json};

/// Longest text that is sent to a session, in bytes.
pub(crate) const TEXT_LIMIT: usize = 1024 * 1024;

/// Longest text of a short argument, in bytes: names, patterns, filters.
const SHORT_LIMIT: usize = 4_096;

/// The arguments of one call. Each is taken out once; what is left at the end is unknown.
pub(crate) struct Arguments {
    left: Map<String, Value>,
    adjusted: Map<String, Value>,
}

impl Arguments {
    pub(crate) fn new(arguments: Value) -> Result<Self, ToolError> {
        match arguments {
            Value::Object(left) => Ok(Self {
                left,
                adjusted: Map::new(),
            }),
            _ => Err(ToolError::invalid("the arguments must be one JSON object")),
        }
    }

    /// Takes an argument; null counts as not given.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        self.left.remove(name).filter(|value| !value.is_null())
    }

    /// A text of any length up to the limit for sent texts, not empty.
    pub(crate) fn long_text(&mut self, name: &str) -> Result<Option<String>, ToolError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) if text.len() > TEXT_LIMIT => Err(ToolError::new(
                attache_agent::session::ErrorCode::TextTooLarge,
                format!(
                    "`{name}` has {} bytes; at most {TEXT_LIMIT} are taken",
                    text.len()
                ),
            )),
            Some(Value::String(text)) if text.trim().is_empty() => {
                Err(ToolError::invalid(format!("`{name}` is empty")))
            }
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong_type(name, "a string", &other)),
        }
    }

    /// A text of any length up to the limit for sent texts, taken as it is: blank and empty too.
    pub(crate) fn exact_text(&mut self, name: &str) -> Result<Option<String>, ToolError> {
        if let Some(Value::String(text)) = self.left.get(name)
            && text.trim().is_empty()
        {
            let text = text.clone();
            self.left.remove(name);
            return Ok(Some(text));
        }
        self.long_text(name)
    }

    /// A short text, not empty.
    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>, ToolError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) if text.len() > SHORT_LIMIT => Err(ToolError::invalid(
                format!("`{name}` is longer than {SHORT_LIMIT} bytes"),
            )),
            Some(Value::String(text)) if text.trim().is_empty() => {
                Err(ToolError::invalid(format!("`{name}` is empty")))
            }
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong_type(name, "a string", &other)),
        }
    }

    /// A short text that must be given.
    pub(crate) fn required_text(&mut self, name: &str) -> Result<String, ToolError> {
        self.text(name)?.ok_or_else(|| missing(name))
    }

    pub(crate) fn flag(&mut self, name: &str) -> Result<bool, ToolError> {
        match self.take(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(other) => Err(wrong_type(name, "true or false", &other)),
        }
    }

    pub(crate) fn flag_or(&mut self, name: &str, default: bool) -> Result<bool, ToolError> {
        if self.left.get(name).is_none_or(Value::is_null) {
            self.left.remove(name);
            return Ok(default);
        }
        self.flag(name)
    }

    /// A whole number, clamped into the range; a clamped one is named in `adjusted`.
    pub(crate) fn number(
        &mut self,
        name: &str,
        default: u64,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<u64, ToolError> {
        let Some(value) = self.take(name) else {
            return Ok(default);
        };
        let Some(number) = value.as_f64().filter(|_| value.is_number()) else {
            return Err(wrong_type(name, "a whole number", &value));
        };
        if number.fract() != 0.0 {
            return Err(wrong_type(name, "a whole number", &value));
        }
        let (low, high) = (*range.start(), *range.end());
        let taken = if number < 0.0 {
            low
        } else {
            value.as_u64().unwrap_or(u64::MAX).clamp(low, high)
        };
        if value.as_u64() != Some(taken) {
            self.adjusted.insert(name.to_owned(), json!(taken));
        }
        Ok(taken)
    }

    /// One of a few words.
    pub(crate) fn choice(
        &mut self,
        name: &str,
        choices: &[&'static str],
    ) -> Result<Option<&'static str>, ToolError> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        let found = value
            .as_str()
            .and_then(|text| choices.iter().find(|known| **known == text));
        match found {
            Some(known) => Ok(Some(known)),
            None => Err(wrong_type(
                name,
                &format!("one of {}", choices.join(", ")),
                &value,
            )),
        }
    }

    /// A list of some of a few words.
    pub(crate) fn choices(
        &mut self,
        name: &str,
        choices: &[&'static str],
    ) -> Result<Vec<String>, ToolError> {
        let Some(value) = self.take(name) else {
            return Ok(Vec::new());
        };
        let wanted = format!("a list of some of {}", choices.join(", "));
        let Value::Array(items) = &value else {
            return Err(wrong_type(name, &wanted, &value));
        };
        let mut taken = Vec::new();
        for item in items {
            match item.as_str() {
                Some(text) if choices.contains(&text) => taken.push(text.to_owned()),
                _ => return Err(wrong_type(name, &wanted, item)),
            }
        }
        Ok(taken)
    }

    /// The id of a session: a full id, or `.` for the caller.
    pub(crate) fn session(&mut self, caller: SessionId) -> Result<Option<SessionId>, ToolError> {
        match self.take("session_id") {
            None => Ok(None),
            Some(Value::String(text)) if text == "." => Ok(Some(caller)),
            Some(Value::String(text)) => match SessionId::from_str(&text) {
                Ok(id) => Ok(Some(id)),
                // What is no id names no session: one answer with one shape for both.
                Err(_) => Err(ToolError::new(
                    attache_agent::session::ErrorCode::UnknownSession,
                    format!("there is no session {}", quoted(&text)),
                )),
            },
            Some(other) => Err(wrong_type("session_id", "a session id or \".\"", &other)),
        }
    }

    /// The same; it must be given.
    pub(crate) fn required_session(&mut self, caller: SessionId) -> Result<SessionId, ToolError> {
        self.session(caller)?.ok_or_else(|| missing("session_id"))
    }

    /// A time in RFC 3339. Fewer than six fraction digits mean the start of that unit, so a page
    /// may repeat and never skips.
    pub(crate) fn time(&mut self, name: &str) -> Result<Option<Timestamp>, ToolError> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        crate::show::read_time(&text).map(Some).ok_or_else(|| {
            ToolError::invalid(format!(
                "`{name}` must be a time like 2026-11-30T12:00:00.000000Z, not {}",
                quoted(&text)
            ))
        })
    }

    /// Ends the reading: nothing unknown may be left. The answer is what was adjusted.
    pub(crate) fn done(self) -> Result<Map<String, Value>, ToolError> {
        match self.left.keys().next() {
            None => Ok(self.adjusted),
            Some(unknown) => Err(ToolError::invalid(format!(
                "there is no parameter {}",
                quoted(unknown)
            ))),
        }
    }
}

fn missing(name: &str) -> ToolError {
    ToolError::invalid(format!("`{name}` is missing"))
}

fn wrong_type(name: &str, wanted: &str, value: &Value) -> ToolError {
    ToolError::invalid(format!(
        "`{name}` must be {wanted}, not {}",
        quoted(&value.to_string())
    ))
}

/// A piece of the caller's own text, bounded.
pub(crate) fn quoted(text: &str) -> String {
    let (shown, more) = attache_agent::session::preview(text, 60);
    format!("{shown:?}{}", if more { "…" } else { "" })
}
