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

    /// An argument as it was given, left where it is.
    pub(crate) fn look(&self, name: &str) -> Option<&Value> {
        self.left.get(name)
    }

    /// Takes an argument; null counts as not given.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        self.left.remove(name).filter(|value| !value.is_null())
    }

    /// A text of any length up to the limit for sent texts, not empty.
    pub(crate) fn long_text(&mut self, name: &str) -> Result<Option<String>, ToolError> {
        let text = self.exact_text(name)?;
        not_blank(name, text)
    }

    /// A text of any length up to the limit for sent texts, taken as it is: blank and empty too.
    pub(crate) fn exact_text(&mut self, name: &str) -> Result<Option<String>, ToolError> {
        match self.string(name)? {
            Some(text) if text.len() > TEXT_LIMIT => Err(ToolError::new(
                attache_agent::session::ErrorCode::TextTooLarge,
                format!(
                    "`{name}` has {} bytes; at most {TEXT_LIMIT} are taken",
                    text.len()
                ),
            )),
            text => Ok(text),
        }
    }

    /// A short text, not empty.
    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>, ToolError> {
        match self.string(name)? {
            Some(text) if text.len() > SHORT_LIMIT => Err(ToolError::invalid(format!(
                "`{name}` is longer than {SHORT_LIMIT} bytes"
            ))),
            text => not_blank(name, text),
        }
    }

    /// A string. None may hold a NUL: no text and no name of a file has one.
    fn string(&mut self, name: &str) -> Result<Option<String>, ToolError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) if text.contains('\0') => Err(ToolError::invalid(format!(
                "`{name}` holds the character NUL"
            ))),
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
        // 5.0 is the whole number 5; a number beyond the range of u64 is beyond any range here.
        let given = value.as_u64().unwrap_or(number as u64);
        let taken = given.clamp(*range.start(), *range.end());
        if number < 0.0 || given != taken {
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

fn not_blank(name: &str, text: Option<String>) -> Result<Option<String>, ToolError> {
    match text {
        Some(text) if text.trim().is_empty() => {
            Err(ToolError::invalid(format!("`{name}` is empty")))
        }
        text => Ok(text),
    }
}

fn missing(name: &str) -> ToolError {
    ToolError::invalid(format!("`{name}` is missing"))
}

/// The refusal of a value that is of another type than the schema says.
pub(crate) fn wrong_type(name: &str, wanted: &str, value: &Value) -> ToolError {
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

#[cfg(test)]
mod tests {
    use attache_agent::session::ErrorCode;

    use super::*;

    const CALLER: &str = "01931f2e-0000-7000-8000-00000000abcd";

    fn of(value: Value) -> Arguments {
        Arguments::new(json!({ "a": value })).unwrap()
    }

    /// What an argument is read as, and the code and message of a refusal.
    fn read<T>(
        value: Value,
        reader: impl FnOnce(&mut Arguments) -> Result<T, ToolError>,
    ) -> Result<T, (ErrorCode, String)> {
        reader(&mut of(value)).map_err(|refused| (refused.code, refused.message))
    }

    #[test]
    fn arguments_are_one_object_and_nothing_unknown() {
        for not in [json!([]), json!(null), json!("a"), json!(1)] {
            assert!(Arguments::new(not).is_err());
        }
        let left = of(json!(1)).done().unwrap_err();
        assert_eq!(left.message, "there is no parameter \"a\"");
        // Null counts as not given, and is not unknown once it was asked for.
        let mut none = of(json!(null));
        assert_eq!(none.text("a").unwrap(), None);
        assert_eq!(none.done().unwrap(), Map::new());
        let looked = of(json!(1));
        assert_eq!(
            (looked.look("a"), looked.look("b")),
            (Some(&json!(1)), None)
        );
        assert!(looked.done().is_err(), "it was not taken");
        let mut taken = of(json!(1));
        assert_eq!((taken.take("a"), taken.take("a")), (Some(json!(1)), None));
    }

    #[test]
    fn texts_have_their_limits_and_are_not_blank() {
        let long = "x".repeat(TEXT_LIMIT);
        let short = "x".repeat(4_096);
        assert_eq!(TEXT_LIMIT, 1_048_576);
        let kept = |text: &str| Ok(Some(text.to_owned()));
        assert_eq!(read(json!(long), |a| a.long_text("a")), kept(&long));
        assert_eq!(read(json!(long), |a| a.exact_text("a")), kept(&long));
        assert_eq!(read(json!(short), |a| a.text("a")), kept(&short));
        assert_eq!(read(json!(" a "), |a| a.text("a")), kept(" a "));
        let (code, message) = read(json!(format!("{long}x")), |a| a.long_text("a")).unwrap_err();
        assert_eq!(code, ErrorCode::TextTooLarge);
        assert_eq!(message, "`a` has 1048577 bytes; at most 1048576 are taken");
        let refused = |message: &str| Err((ErrorCode::InvalidArguments, message.to_owned()));
        let longer = json!(format!("{short}x"));
        assert_eq!(
            read(longer, |a| a.text("a")),
            refused("`a` is longer than 4096 bytes")
        );
        for blank in ["", " \n"] {
            assert_eq!(read(json!(blank), |a| a.text("a")), refused("`a` is empty"));
            assert_eq!(
                read(json!(blank), |a| a.long_text("a")),
                refused("`a` is empty")
            );
            assert_eq!(read(json!(blank), |a| a.exact_text("a")), kept(blank));
            let mut exact = of(json!(blank));
            exact.exact_text("a").unwrap();
            assert!(exact.done().is_ok());
        }
        let nul = "`a` holds the character NUL";
        assert_eq!(read(json!("a\0"), |a| a.text("a")), refused(nul));
        assert_eq!(read(json!("a\0"), |a| a.long_text("a")), refused(nul));
        assert_eq!(read(json!("a\0"), |a| a.exact_text("a")), refused(nul));
        let number = "`a` must be a string, not \"1\"";
        assert_eq!(read(json!(1), |a| a.text("a")), refused(number));
        assert_eq!(read(json!(1), |a| a.long_text("a")), refused(number));
        assert_eq!(
            read(json!(null), |a| a.required_text("a")),
            Err((ErrorCode::InvalidArguments, "`a` is missing".to_owned()))
        );
        assert_eq!(
            read(json!("b"), |a| a.required_text("a")),
            Ok("b".to_owned())
        );
    }

    #[test]
    fn numbers_out_of_range_are_clamped_and_named() {
        let cases = [
            (json!(null), 7, false),
            (json!(2), 2, false),
            (json!(9), 9, false),
            (json!(5.0), 5, false),
            (json!(1), 2, true),
            (json!(10), 9, true),
            (json!(0), 2, true),
            (json!(-1), 2, true),
            (json!(-3.0), 2, true),
            (json!(1e30), 9, true),
            (json!(u64::MAX), 9, true),
        ];
        for (given, taken, adjusted) in cases {
            let mut arguments = of(given.clone());
            assert_eq!(arguments.number("a", 7, 2..=9).unwrap(), taken, "{given}");
            let named = arguments.done().unwrap();
            let expected = if adjusted {
                json!({ "a": taken })
            } else {
                json!({})
            };
            assert_eq!(Value::Object(named), expected, "{given}");
        }
        // From 0 on, what is below is adjusted too.
        let mut lowest = of(json!(0));
        assert_eq!(lowest.number("a", 7, 0..=9).unwrap(), 0);
        assert_eq!(lowest.done().unwrap(), Map::new());
        let mut below = of(json!(-1));
        assert_eq!(below.number("a", 7, 0..=9).unwrap(), 0);
        assert_eq!(below.done().unwrap().len(), 1);
        for wrong in [json!("5"), json!(2.5), json!(true), json!([3])] {
            let (code, message) = read(wrong, |a| a.number("a", 7, 2..=9)).unwrap_err();
            assert_eq!(code, ErrorCode::InvalidArguments);
            assert!(
                message.starts_with("`a` must be a whole number, not "),
                "{message}"
            );
        }
    }

    #[test]
    fn flags_are_true_or_false() {
        for (given, flag, or_true) in [
            (json!(null), false, true),
            (json!(true), true, true),
            (json!(false), false, false),
        ] {
            assert_eq!(read(given.clone(), |a| a.flag("a")), Ok(flag));
            let mut arguments = of(given);
            assert_eq!(arguments.flag_or("a", true).unwrap(), or_true);
            assert!(arguments.done().is_ok());
        }
        for wrong in [json!("true"), json!(1)] {
            assert!(read(wrong.clone(), |a| a.flag("a")).is_err());
            assert!(read(wrong, |a| a.flag_or("a", true)).is_err());
        }
    }

    #[test]
    fn words_are_known_ones() {
        let words = ["one", "two"];
        assert_eq!(read(json!(null), |a| a.choice("a", &words)), Ok(None));
        assert_eq!(
            read(json!("two"), |a| a.choice("a", &words)),
            Ok(Some("two"))
        );
        assert_eq!(
            read(json!("three"), |a| a.choice("a", &words))
                .unwrap_err()
                .1,
            r#"`a` must be one of one, two, not "\"three\"""#
        );
        assert!(read(json!(2), |a| a.choice("a", &words)).is_err());
        let both = vec!["two".to_owned(), "one".to_owned()];
        assert_eq!(read(json!(null), |a| a.choices("a", &words)), Ok(vec![]));
        assert_eq!(
            read(json!(["two", "one"]), |a| a.choices("a", &words)),
            Ok(both)
        );
        for wrong in [json!("one"), json!(["three"]), json!([1])] {
            assert!(read(wrong, |a| a.choices("a", &words)).is_err());
        }
    }

    #[test]
    fn what_is_no_id_names_no_session() {
        let caller: SessionId = CALLER.parse().unwrap();
        let ask = |value: Value| {
            let mut arguments = Arguments::new(json!({ "session_id": value })).unwrap();
            arguments
                .required_session(caller)
                .map_err(|refused| (refused.code, refused.message))
        };
        let other = "01931f2e-0000-7000-8000-00000000abce";
        assert_eq!(ask(json!(".")), Ok(caller));
        assert_eq!(ask(json!(other)), Ok(other.parse().unwrap()));
        let unknown = "there is no session \"0000abce\"".to_owned();
        assert_eq!(
            ask(json!("0000abce")),
            Err((ErrorCode::UnknownSession, unknown))
        );
        assert_eq!(ask(json!(null)).unwrap_err().1, "`session_id` is missing");
        assert_eq!(ask(json!(4)).unwrap_err().0, ErrorCode::InvalidArguments);
        let mut none = Arguments::new(json!({})).unwrap();
        assert_eq!(none.session(caller).unwrap(), None);
    }

    #[test]
    fn times_are_in_rfc_3339() {
        // What comes after a time is read; a shorter one stands for the start of its unit.
        for (given, after) in [
            ("1970-01-01T00:00:01.500000Z", 1_500_000),
            ("1970-01-01T00:00:01.5Z", 1_499_999),
        ] {
            let after = Ok(Some(Timestamp(after)));
            assert_eq!(read(json!(given), |a| a.time("a")), after, "{given}");
        }
        assert_eq!(read(json!(null), |a| a.time("a")), Ok(None));
        assert_eq!(
            read(json!("now"), |a| a.time("a")).unwrap_err().1,
            "`a` must be a time like 2026-11-30T12:00:00.000000Z, not \"now\""
        );
    }

    #[test]
    fn a_quoted_text_is_bounded() {
        let sixty = "é".repeat(60);
        assert_eq!(quoted(&sixty), format!("\"{sixty}\""));
        assert_eq!(quoted(&format!("{sixty}é")), format!("\"{sixty}\"…"));
    }
}
