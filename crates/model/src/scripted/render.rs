//! Templates of scripts: `${name}`, `${name[0]}`, `${name.len}`, and a chain of text functions behind `|`. They are read
//! when the script is loaded, so that a misspelt name or function is found there and not in the middle of a play.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value as JsonValue;

use crate::text::clipped;

/// What a name stands for.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Value {
    Text(String),
    List(Vec<String>),
    Number(u64),
}

impl Value {
    fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::List(items) => items.join(", "),
            Self::Number(number) => number.to_string(),
        }
    }

    fn into_json(self) -> JsonValue {
        match self {
            Self::Text(text) => text.into(),
            Self::List(items) => items.into(),
            Self::Number(number) => number.into(),
        }
    }
}

/// Values by name.
pub(super) type Values = BTreeMap<String, Value>;

/// A text with places to fill in.
#[derive(Clone, Debug)]
pub(super) struct Template(Vec<Segment>);

#[derive(Clone, Debug)]
enum Segment {
    Literal(String),
    Place(Place),
}

#[derive(Clone, Debug)]
struct Place {
    name: String,
    access: Access,
    functions: Vec<Function>,
}

#[derive(Clone, Debug)]
enum Access {
    Whole,
    /// Counted from the end when negative.
    Item(i64),
    Len,
}

#[derive(Clone, Debug)]
enum Function {
    Lines,
    FirstLine,
    Trim,
    Truncate(usize),
    Join(String),
    Wrap(String, String),
    Default(String),
    Replace(Regex, String),
    Pointer(String),
}

const FUNCTIONS: &str = "lines, first_line, trim, truncate N, join \"SEP\", wrap \"- {}\", default \"TEXT\", \
                         replace \"REGEX\" \"TEXT\", pointer \"/PATH\"";

impl Template {
    /// Reads a template; `known` says which names there will be.
    pub(super) fn parse(text: &str, known: &dyn Fn(&str) -> bool) -> Result<Self, String> {
        let mut segments = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            literal.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix('$') {
                literal.push('$');
                rest = after;
            } else if let Some(after) = rest.strip_prefix('{') {
                let mut reader = Reader {
                    rest: after,
                    whole: text,
                };
                let place = reader.place(known)?;
                rest = reader.rest;
                if !literal.is_empty() {
                    segments.push(Segment::Literal(std::mem::take(&mut literal)));
                }
                segments.push(Segment::Place(place));
            } else {
                literal.push('$');
            }
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            segments.push(Segment::Literal(literal));
        }
        Ok(Self(segments))
    }

    /// The text with all places filled in.
    pub(super) fn render(&self, values: &Values) -> Result<String, String> {
        let mut out = String::new();
        for segment in &self.0 {
            match segment {
                Segment::Literal(text) => out.push_str(text),
                Segment::Place(place) => out.push_str(&place.value(values)?.into_text()),
            }
        }
        Ok(out)
    }

    /// As [`Template::render`]; a template that is one place and nothing else keeps its kind: a list stays a list.
    fn render_json(&self, values: &Values) -> Result<JsonValue, String> {
        match self.0.as_slice() {
            [Segment::Place(place)] => Ok(place.value(values)?.into_json()),
            _ => self.render(values).map(JsonValue::String),
        }
    }
}

/// A JSON value whose strings are templates.
#[derive(Clone, Debug)]
pub(super) enum JsonTemplate {
    Plain(JsonValue),
    Text(Template),
    List(Vec<JsonTemplate>),
    Object(Vec<(String, JsonTemplate)>),
}

impl JsonTemplate {
    pub(super) fn parse(value: &JsonValue, known: &dyn Fn(&str) -> bool) -> Result<Self, String> {
        Ok(match value {
            JsonValue::String(text) => Self::Text(Template::parse(text, known)?),
            JsonValue::Array(items) => Self::List(
                items
                    .iter()
                    .map(|item| Self::parse(item, known))
                    .collect::<Result<_, _>>()?,
            ),
            JsonValue::Object(members) => {
                let members = members
                    .iter()
                    .map(|(key, value)| Ok((key.clone(), Self::parse(value, known)?)));
                Self::Object(members.collect::<Result<_, String>>()?)
            }
            plain => Self::Plain(plain.clone()),
        })
    }

    pub(super) fn render(&self, values: &Values) -> Result<JsonValue, String> {
        Ok(match self {
            Self::Plain(value) => value.clone(),
            Self::Text(template) => template.render_json(values)?,
            Self::List(items) => items
                .iter()
                .map(|item| item.render(values))
                .collect::<Result<_, _>>()?,
            Self::Object(members) => {
                let members = members
                    .iter()
                    .map(|(key, value)| Ok((key.clone(), value.render(values)?)));
                JsonValue::Object(members.collect::<Result<_, String>>()?)
            }
        })
    }
}

impl Place {
    fn value(&self, values: &Values) -> Result<Value, String> {
        let mut value = match values.get(&self.name) {
            Some(value) => self.accessed(value)?,
            // An optional capture that found nothing, or a group that took no part in its match.
            None => Value::Text(String::new()),
        };
        for function in &self.functions {
            value = function.apply(value);
        }
        Ok(value)
    }

    fn accessed(&self, value: &Value) -> Result<Value, String> {
        match (&self.access, value) {
            (Access::Whole, value) => Ok(value.clone()),
            (Access::Len, Value::List(items)) => Ok(Value::Number(items.len() as u64)),
            (Access::Len, Value::Text(text)) => Ok(Value::Number(text.chars().count() as u64)),
            (Access::Len, Value::Number(number)) => Ok(Value::Number(*number)),
            (Access::Item(wanted), Value::List(items)) => {
                let at = if *wanted < 0 {
                    *wanted + items.len() as i64
                } else {
                    *wanted
                };
                let item = usize::try_from(at).ok().and_then(|at| items.get(at));
                item.map(|item| Value::Text(item.clone())).ok_or_else(|| {
                    format!(
                        "${{{}[{wanted}]}} is not there: the list has {}",
                        self.name,
                        items.len()
                    )
                })
            }
            (Access::Item(_), _) => Err(format!("{} is not a list, so it has no items", self.name)),
        }
    }
}

impl Function {
    fn apply(&self, value: Value) -> Value {
        match (self, value) {
            (Self::Join(separator), Value::List(items)) => Value::Text(items.join(separator)),
            (Self::Join(_), value) => value,
            (Self::Default(text), Value::Text(empty)) if empty.is_empty() => {
                Value::Text(text.clone())
            }
            (Self::Default(text), Value::List(items)) if items.is_empty() => {
                Value::Text(text.clone())
            }
            (Self::Default(_), value) => value,
            (Self::Lines, Value::Text(text)) => Value::Number(text.lines().count() as u64),
            (function, Value::List(items)) => {
                Value::List(items.iter().map(|item| function.on_text(item)).collect())
            }
            (function, Value::Text(text)) => Value::Text(function.on_text(&text)),
            (function, Value::Number(number)) => Value::Text(function.on_text(&number.to_string())),
        }
    }

    fn on_text(&self, text: &str) -> String {
        match self {
            Self::Lines => text.lines().count().to_string(),
            Self::FirstLine => text
                .lines()
                .map(str::trim)
                .find(|line| !line.is_empty())
                .unwrap_or_default()
                .to_owned(),
            Self::Trim => text.trim().to_owned(),
            Self::Truncate(limit) => match text.char_indices().nth(*limit) {
                Some((at, _)) => format!("{}…", &text[..at]),
                None => text.to_owned(),
            },
            Self::Wrap(before, after) => format!("{before}{text}{after}"),
            Self::Replace(regex, with) => regex.replace_all(text, with.as_str()).into_owned(),
            Self::Pointer(pointer) => serde_json::from_str::<JsonValue>(text)
                .ok()
                .and_then(|value| value.pointer(pointer).map(json_text))
                .unwrap_or_default(),
            Self::Join(_) | Self::Default(_) => text.to_owned(),
        }
    }
}

/// A JSON value as text: strings without quotes.
pub(super) fn json_text(value: &JsonValue) -> String {
    match value {
        JsonValue::String(text) => text.clone(),
        other => other.to_string(),
    }
}

struct Reader<'a> {
    rest: &'a str,
    whole: &'a str,
}

impl Reader<'_> {
    fn fault<T>(&self, what: &str) -> Result<T, String> {
        Err(format!(
            "{what} in the template {:?}",
            clipped(self.whole, 60)
        ))
    }

    fn blank(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, word: &str) -> bool {
        self.blank();
        match self.rest.strip_prefix(word) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn word(&mut self) -> String {
        self.blank();
        let end = self
            .rest
            .find(|c: char| !(c.is_alphanumeric() || c == '_'))
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word.to_owned()
    }

    fn number<N: std::str::FromStr>(&mut self) -> Result<N, String> {
        self.blank();
        let end = self
            .rest
            .find(|c: char| !(c.is_ascii_digit() || c == '-'))
            .unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        digits
            .parse()
            .or_else(|_| self.fault("a number is missing"))
    }

    fn quoted(&mut self) -> Result<String, String> {
        if !self.eat("\"") {
            return self.fault("a text in double quotes is missing");
        }
        let mut out = String::new();
        let mut chars = self.rest.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return Ok(out);
                }
                '\\' => match chars.next() {
                    Some((_, 'n')) => out.push('\n'),
                    Some((_, 't')) => out.push('\t'),
                    Some((_, c @ ('"' | '\\'))) => out.push(c),
                    // Other escapes are those of regular expressions.
                    Some((_, c)) => out.extend(['\\', c]),
                    None => break,
                },
                c => out.push(c),
            }
        }
        self.fault("a closing quote is missing")
    }

    fn place(&mut self, known: &dyn Fn(&str) -> bool) -> Result<Place, String> {
        let name = self.word();
        if !known(&name) {
            return self.fault(&format!("the name {name:?} is not known"));
        }
        let mut access = Access::Whole;
        if self.eat("[") {
            access = Access::Item(self.number()?);
            if !self.eat("]") {
                return self.fault("a ] is missing");
            }
        } else if self.eat(".") {
            if self.word() != "len" {
                return self.fault("only .len may follow a name");
            }
            access = Access::Len;
        }
        let mut functions = Vec::new();
        while self.eat("|") {
            functions.push(self.function()?);
        }
        if !self.eat("}") {
            return self.fault("a } is missing");
        }
        Ok(Place {
            name,
            access,
            functions,
        })
    }

    fn function(&mut self) -> Result<Function, String> {
        let word = self.word();
        Ok(match word.as_str() {
            "lines" => Function::Lines,
            "first_line" => Function::FirstLine,
            "trim" => Function::Trim,
            "truncate" => Function::Truncate(self.number()?),
            "join" => Function::Join(self.quoted()?),
            "wrap" => match self.quoted()?.split_once("{}") {
                Some((before, after)) => Function::Wrap(before.to_owned(), after.to_owned()),
                None => return self.fault("wrap needs a {} for the text"),
            },
            "default" => Function::Default(self.quoted()?),
            "pointer" => Function::Pointer(self.quoted()?),
            "replace" => {
                let regex = Regex::new(&self.quoted()?).map_err(|fault| fault.to_string())?;
                Function::Replace(regex, self.quoted()?)
            }
            _ => {
                return self.fault(&format!(
                    "there is no function {word:?}; there are {FUNCTIONS}"
                ));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn values() -> Values {
        Values::from([
            ("name".to_owned(), Value::Text("src/a.rs".to_owned())),
            (
                "body".to_owned(),
                Value::Text("\n  fn main() {}\nx\n".to_owned()),
            ),
            (
                "list".to_owned(),
                Value::List(vec!["one".to_owned(), "two".to_owned(), "three".to_owned()]),
            ),
            ("none".to_owned(), Value::List(Vec::new())),
            (
                "json".to_owned(),
                Value::Text(r#"{"a":{"b":"c"},"n":3}"#.to_owned()),
            ),
            ("n".to_owned(), Value::Number(7)),
        ])
    }

    fn render(text: &str) -> Result<String, String> {
        let values = values();
        Template::parse(text, &|name| values.contains_key(name) || name == "unset")?.render(&values)
    }

    #[test]
    fn places_are_filled_in() {
        for (template, want) in [
            ("plain $ and $$ and $x", "plain $ and $ and $x"),
            ("Read ${name} now", "Read src/a.rs now"),
            (
                "${list[0]}-${list[-1]}-${list.len}-${name.len}-${n}",
                "one-three-3-8-7",
            ),
            ("${list}", "one, two, three"),
            (
                r#"${list | wrap "- {}" | join "\n"}"#,
                "- one\n- two\n- three",
            ),
            (r#"${list | truncate 3 | join "/"}"#, "one/two/thr…"),
            ("${body | lines} ${body | first_line}", "3 fn main() {}"),
            (r#"${body|trim|replace "\s+" "_"}"#, "fn_main()_{}_x"),
            (
                r#"${unset | default "nothing"} ${none | default "empty"}"#,
                "nothing empty",
            ),
            (
                r#"${json | pointer "/a/b"}${json | pointer "/n"}${json | pointer "/x"}"#,
                "c3",
            ),
        ] {
            assert_eq!(render(template).as_deref(), Ok(want), "{template}");
        }
    }

    #[test]
    fn faults_are_found_when_the_template_is_read() {
        for (template, want) in [
            ("${nme}", "\"nme\" is not known"),
            ("${name", "} is missing"),
            ("${name | shout}", "no function \"shout\""),
            ("${name | truncate}", "number"),
            (r#"${name | join "a}"#, "closing quote"),
            (r#"${name | wrap "x"}"#, "{}"),
            ("${name.size}", ".len"),
            ("${list[x]}", "number"),
        ] {
            let known = |name: &str| values().contains_key(name);
            let fault = Template::parse(template, &known).unwrap_err();
            assert!(fault.contains(want), "{template}: {fault}");
        }
        assert!(render("${list[9]}").unwrap_err().contains("has 3"));
        assert!(render("${name[0]}").unwrap_err().contains("not a list"));
    }

    #[test]
    fn a_place_alone_keeps_its_kind_in_json() {
        let template = json!({"ids": "${list}", "n": "${n}", "t": "n is ${n}", "deep": [{"x": "${name}"}], "k": true});
        let template = JsonTemplate::parse(&template, &|_| true).unwrap();
        assert_eq!(
            template.render(&values()).unwrap(),
            json!({"ids": ["one", "two", "three"], "n": 7, "t": "n is 7", "deep": [{"x": "src/a.rs"}], "k": true})
        );
    }
}
