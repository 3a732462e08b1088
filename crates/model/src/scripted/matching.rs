//! Which rule of a script fits a request, and what its captures find. Nothing is played here, and the request is all
//! that is looked at, apart from kept counters, which are handed in.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value as JsonValue;

use super::render::{Value, Values, json_text};
use super::script::{Capture, Counter, From, Rule, Script, Source, When};
use crate::echo::text_of;
use crate::message::{Message, ToolResult};
use crate::request::Request;

/// A request, looked at once.
pub(super) struct View<'a> {
    request: &'a Request,
    users: Vec<String>,
    /// Position of the first message after the last user message.
    turn: usize,
    /// Assistant messages after the last user message.
    pub(super) step: u64,
    counters: BTreeMap<&'a str, u64>,
}

/// A rule that fits, and what its templates may use.
pub(super) struct Match<'a> {
    pub(super) rule: &'a Rule,
    pub(super) values: Values,
}

impl<'a> View<'a> {
    pub(super) fn new(
        script: &'a Script,
        request: &'a Request,
        kept: &BTreeMap<String, u64>,
    ) -> Self {
        let messages = &request.messages;
        let users: Vec<String> = messages
            .iter()
            .filter_map(|message| match message {
                Message::User(parts) => Some(text_of(parts)),
                _ => None,
            })
            .collect();
        let turn = messages
            .iter()
            .rposition(|message| matches!(message, Message::User(_)))
            .map_or(0, |at| at + 1);
        let step = messages[turn..]
            .iter()
            .filter(|message| matches!(message, Message::Assistant(_)))
            .count() as u64;
        let mut view = Self {
            request,
            users,
            turn,
            step,
            counters: BTreeMap::new(),
        };
        for (name, counter) in &script.counters {
            let count = match counter {
                Counter::Tool(tool) => {
                    let source = Source {
                        tool: Some(tool.clone()),
                        everywhere: true,
                    };
                    view.results(&source).count() as u64
                }
                Counter::User(regex) => view
                    .users
                    .iter()
                    .filter(|text| regex.is_match(text))
                    .count() as u64,
                Counter::Kept => kept.get(name).copied().unwrap_or(0),
            };
            view.counters.insert(name, count);
        }
        view
    }

    /// The last user text.
    pub(super) fn user(&self) -> &str {
        self.users.last().map_or("", String::as_str)
    }

    fn system(&self) -> &str {
        self.request.system.as_deref().unwrap_or_default()
    }

    fn results(&self, source: &Source) -> impl DoubleEndedIterator<Item = &'a ToolResult> {
        let from = if source.everywhere { 0 } else { self.turn };
        let tool = source.tool.clone();
        self.request.messages[from..]
            .iter()
            .flat_map(|message| match message {
                Message::Tool(results) => results.as_slice(),
                _ => &[],
            })
            .filter(move |result| tool.as_deref().is_none_or(|tool| *result.name == *tool))
    }

    /// How many results of each tool came after the last user message, for people.
    pub(super) fn results_in_words(&self) -> String {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for result in self.results(&Source {
            tool: None,
            everywhere: false,
        }) {
            *counts.entry(&result.name).or_default() += 1;
        }
        if counts.is_empty() {
            return "no tool results".to_owned();
        }
        let words: Vec<_> = counts
            .iter()
            .map(|(tool, count)| format!("{count} of {tool}"))
            .collect();
        format!("tool results: {}", words.join(", "))
    }

    /// The first rule that fits.
    pub(super) fn find<'s>(&self, script: &'s Script) -> Option<Match<'s>> {
        script.rules.iter().find_map(|rule| {
            let mut values = Values::new();
            (self.holds(&rule.when, &mut values) && self.capture(rule, &mut values)).then(|| {
                values.insert("user".to_owned(), Value::Text(self.user().to_owned()));
                values.insert("step".to_owned(), Value::Number(self.step));
                values.insert(
                    "model".to_owned(),
                    Value::Text(self.request.model.to_string()),
                );
                for (name, count) in &self.counters {
                    values
                        .entry((*name).to_owned())
                        .or_insert(Value::Number(*count));
                }
                Match { rule, values }
            })
        })
    }

    fn holds(&self, when: &When, values: &mut Values) -> bool {
        let offered = |name: &String| {
            self.request
                .tools
                .specs()
                .iter()
                .any(|spec| *spec.name == **name)
        };
        takes(when.user.as_ref(), [self.user()], values)
            && takes(
                when.any_user.as_ref(),
                self.users.iter().map(String::as_str),
                values,
            )
            && takes(when.system.as_ref(), [self.system()], values)
            && takes(when.model.as_ref(), [&*self.request.model], values)
            && !when
                .not_user
                .as_ref()
                .is_some_and(|regex| regex.is_match(self.user()))
            && !when
                .not_system
                .as_ref()
                .is_some_and(|regex| regex.is_match(self.system()))
            && when.step.is_none_or(|range| range.holds(self.step))
            && when.offered.iter().all(offered)
            && !when.not_offered.iter().any(offered)
            && when
                .tools_allowed
                .is_none_or(|allowed| allowed == self.request.tools_allowed)
            && when.results.iter().all(|condition| {
                let count = self
                    .results(&condition.source)
                    .filter(|result| {
                        condition
                            .matches
                            .as_ref()
                            .is_none_or(|regex| regex.is_match(&result.content))
                            && !condition
                                .not_matches
                                .as_ref()
                                .is_some_and(|regex| regex.is_match(&result.content))
                            && condition
                                .is_error
                                .is_none_or(|wanted| wanted == result.is_error)
                    })
                    .count();
                condition.count.holds(count as u64)
            })
            && when.counters.iter().all(|(name, range)| {
                range.holds(self.counters.get(name.as_str()).copied().unwrap_or(0))
            })
    }

    fn capture(&self, rule: &Rule, values: &mut Values) -> bool {
        for (name, capture) in &rule.captures {
            let found = self.found(capture);
            if found.is_empty() && !capture.optional {
                return false;
            }
            if capture.list {
                values.insert(name.clone(), Value::List(found));
            } else if let Some(first) = found.into_iter().next() {
                values.insert(name.clone(), Value::Text(first));
            }
        }
        true
    }

    /// All that a capture finds, at most as many as it wants; of tool results, a single one is looked for from the end.
    fn found(&self, capture: &Capture) -> Vec<String> {
        let limit = if capture.list { capture.max } else { 1 };
        let from_text = |text: &str| -> Vec<String> {
            match &capture.regex {
                Some(regex) => regex
                    .captures_iter(text)
                    .take(limit)
                    .map(|groups| group_text(&groups))
                    .collect(),
                None => vec![text.to_owned()],
            }
        };
        let mut found: Vec<String> = match &capture.from {
            From::User => from_text(self.user()),
            From::System => from_text(self.system()),
            From::AnyUser => self
                .users
                .iter()
                .flat_map(|text| from_text(text))
                .take(limit)
                .collect(),
            From::Results(source) => {
                let read = |result: &ToolResult| match (&capture.each, &capture.pointer) {
                    (None, None) => from_text(&result.content),
                    _ => from_json(capture, &result.content),
                };
                if capture.list {
                    self.results(source).flat_map(read).take(limit).collect()
                } else {
                    self.results(source)
                        .rev()
                        .map(read)
                        .find(|found| !found.is_empty())
                        .unwrap_or_default()
                }
            }
        };
        found.truncate(limit);
        found
    }
}

/// Whether the first text that matches is there; its named groups become values.
fn takes<'t>(
    regex: Option<&Regex>,
    texts: impl IntoIterator<Item = &'t str>,
    values: &mut Values,
) -> bool {
    let Some(regex) = regex else { return true };
    let Some(groups) = texts.into_iter().find_map(|text| regex.captures(text)) else {
        return false;
    };
    for name in regex.capture_names().flatten() {
        if let Some(group) = groups.name(name) {
            values.insert(name.to_owned(), Value::Text(group.as_str().to_owned()));
        }
    }
    true
}

/// The first group when there is one, else the whole match.
fn group_text(groups: &regex::Captures<'_>) -> String {
    groups
        .get(1)
        .or_else(|| groups.get(0))
        .map_or("", |group| group.as_str())
        .to_owned()
}

fn from_json(capture: &Capture, content: &str) -> Vec<String> {
    let Ok(value) = serde_json::from_str::<JsonValue>(content) else {
        return Vec::new();
    };
    let pointer = capture.pointer.as_deref().unwrap_or_default();
    let Some(each) = &capture.each else {
        return match value.pointer(pointer) {
            Some(JsonValue::Array(items)) if capture.list => items.iter().map(json_text).collect(),
            Some(JsonValue::Null) | None => Vec::new(),
            Some(one) => vec![json_text(one)],
        };
    };
    let items = value.pointer(each).and_then(JsonValue::as_array);
    items
        .into_iter()
        .flatten()
        .filter(|item| {
            capture
                .filter
                .iter()
                .all(|(at, wanted)| item.pointer(at) == Some(wanted))
        })
        .filter_map(|item| {
            item.pointer(pointer)
                .filter(|found| !found.is_null())
                .map(json_text)
        })
        .collect()
}
