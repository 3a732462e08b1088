//! The checked form of a script, and the way to it from the form in `written`. Every fault is found here, with its
//! line; nothing is matched or played here. The language is described in `docs/scripted.md`.

use std::collections::BTreeMap;
use std::time::Duration;

use regex::Regex;

use super::render::{JsonTemplate, Template};
pub(super) use super::written::Range;
use super::written::{
    WireAction, WireCapture, WireCounter, WireFrom, WireRule, WireScript, WireUsage, WireWhen,
};
use crate::error::ErrorKind;
use crate::usage::Usage;

/// A fault in a script.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("script {script:?}{}: {what}", .line.map(|line| format!(", line {line}")).unwrap_or_default())]
pub struct ScriptError {
    /// The script, as it was named.
    pub script: String,
    /// The line, counted from 1, where it is known.
    pub line: Option<u64>,
    /// What is wrong.
    pub what: String,
}

/// Characters of text in one delta, unless the script says otherwise.
const PIECE: usize = 24;

/// A checked script.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) counters: BTreeMap<String, Counter>,
    pub(super) rules: Vec<Rule>,
}

/// What a counter counts.
#[derive(Debug)]
pub(super) enum Counter {
    /// Results of a tool in the conversation.
    Tool(String),
    /// User messages in the conversation that match.
    User(Regex),
    /// What rules add, kept as long as the model lives.
    Kept,
}

#[derive(Debug)]
pub(super) struct Rule {
    pub(super) name: String,
    pub(super) when: When,
    pub(super) captures: Vec<(String, Capture)>,
    pub(super) add: BTreeMap<String, u64>,
    pub(super) reply: Vec<Action>,
}

#[derive(Default, Debug)]
pub(super) struct When {
    pub(super) user: Option<Regex>,
    pub(super) not_user: Option<Regex>,
    pub(super) any_user: Option<Regex>,
    pub(super) system: Option<Regex>,
    pub(super) not_system: Option<Regex>,
    pub(super) model: Option<Regex>,
    pub(super) step: Option<Range>,
    pub(super) offered: Vec<String>,
    pub(super) not_offered: Vec<String>,
    pub(super) tools_allowed: Option<bool>,
    pub(super) results: Vec<ResultCondition>,
    pub(super) counters: BTreeMap<String, Range>,
}

#[derive(Debug)]
pub(super) struct ResultCondition {
    pub(super) source: Source,
    pub(super) matches: Option<Regex>,
    pub(super) not_matches: Option<Regex>,
    pub(super) is_error: Option<bool>,
    pub(super) count: Range,
}

/// Which tool results are looked at.
#[derive(Debug)]
pub(super) struct Source {
    /// Any tool when there is none.
    pub(super) tool: Option<String>,
    /// The whole conversation instead of what came after the last user message.
    pub(super) everywhere: bool,
}

#[derive(Debug)]
pub(super) struct Capture {
    pub(super) from: From,
    pub(super) regex: Option<Regex>,
    pub(super) each: Option<String>,
    pub(super) filter: BTreeMap<String, serde_json::Value>,
    pub(super) pointer: Option<String>,
    pub(super) list: bool,
    pub(super) max: usize,
    pub(super) optional: bool,
}

#[derive(Debug)]
pub(super) enum From {
    User,
    AnyUser,
    System,
    Results(Source),
}

#[derive(Debug)]
pub(super) enum Action {
    Text {
        text: Template,
        piece: usize,
        every: Duration,
    },
    Chunks {
        chunks: Vec<Template>,
        every: Duration,
    },
    Reasoning {
        text: Template,
        piece: usize,
        every: Duration,
    },
    Call {
        name: Template,
        arguments: Arguments,
        for_each: Option<String>,
        cut_after: Option<usize>,
    },
    Delay(Duration),
    Usage(Option<Usage>),
    Error {
        kind: ErrorKind,
        status: Option<u16>,
        retry_after: Option<Duration>,
        retryable: Option<bool>,
        message: Template,
    },
    Cut,
    Silence,
    Ping,
    Stop(String),
}

#[derive(Debug)]
pub(super) enum Arguments {
    Json(JsonTemplate),
    Raw(Template),
}

/// A fault without its place.
type Checked<T> = Result<T, String>;

impl Script {
    /// Reads and checks YAML or JSON.
    pub(super) fn parse(name: &str, text: &str) -> Result<Self, ScriptError> {
        let fault = |line: Option<u64>, what: String| ScriptError {
            script: name.to_owned(),
            line,
            what,
        };
        let wire: WireScript = serde_saphyr::from_str(text).map_err(|error| {
            let line = error
                .location()
                .map(|location| location.line())
                .filter(|line| *line > 0);
            fault(
                line,
                crate::text::clipped(&error.without_snippet().to_string(), 300),
            )
        })?;
        let mut counters = BTreeMap::new();
        for (key, counter) in wire.counters {
            let line = Some(counter.referenced.line());
            let checked = check_counter(counter.value)
                .map_err(|what| fault(line, format!("counter {key}: {what}")))?;
            counters.insert(key, checked);
        }
        let mut rules = Vec::new();
        for (at, rule) in wire.rules.into_iter().enumerate() {
            let mut line = rule.referenced.line();
            let label = rule
                .value
                .name
                .clone()
                .unwrap_or_else(|| format!("rule {}", at + 1));
            let checked = check_rule(label.clone(), rule.value, &counters, &mut line)
                .map_err(|what| fault(Some(line), format!("{label}: {what}")))?;
            rules.push(checked);
        }
        if rules.is_empty() {
            return Err(fault(None, "there are no rules".to_owned()));
        }
        Ok(Self { counters, rules })
    }
}

fn check_counter(wire: WireCounter) -> Checked<Counter> {
    match wire {
        WireCounter {
            tool: Some(tool),
            user: None,
            kept: false,
        } => Ok(Counter::Tool(tool)),
        WireCounter {
            tool: None,
            user: Some(user),
            kept: false,
        } => regex(&user).map(Counter::User),
        WireCounter {
            tool: None,
            user: None,
            kept: true,
        } => Ok(Counter::Kept),
        _ => Err("say exactly one of tool, user and kept: true".to_owned()),
    }
}

fn regex(text: &str) -> Checked<Regex> {
    Regex::new(text).map_err(|fault| match fault {
        regex::Error::Syntax(text) => text.lines().last().unwrap_or_default().to_owned(),
        other => other.to_string(),
    })
}

fn optional(text: Option<String>) -> Checked<Option<Regex>> {
    text.as_deref().map(regex).transpose()
}

/// `line` follows what is being checked.
fn check_rule(
    name: String,
    wire: WireRule,
    counters: &BTreeMap<String, Counter>,
    line: &mut u64,
) -> Checked<Rule> {
    let when = check_when(wire.when)?;
    for key in when.counters.keys().chain(wire.add.keys()) {
        if !counters.contains_key(key) {
            return Err(format!("there is no counter {key:?}"));
        }
    }
    if let Some(key) = wire
        .add
        .keys()
        .find(|key| !matches!(counters.get(*key), Some(Counter::Kept)))
    {
        return Err(format!(
            "counter {key:?} is derived from the conversation; only a kept one can be added to"
        ));
    }
    let mut captures = Vec::new();
    for (key, capture) in wire.capture {
        *line = capture.referenced.line();
        if matches!(key.as_str(), "user" | "step" | "model" | "item" | "index") {
            return Err(format!(
                "a capture cannot be called {key:?}; that name means something already"
            ));
        }
        let checked =
            check_capture(capture.value).map_err(|what| format!("capture {key}: {what}"))?;
        captures.push((key, checked));
    }
    let groups: Vec<&str> = [&when.user, &when.any_user, &when.system]
        .into_iter()
        .flatten()
        .flat_map(|regex| regex.capture_names().flatten())
        .collect();
    let known = |name: &str| {
        matches!(name, "user" | "step" | "model")
            || captures.iter().any(|(key, _)| key == name)
            || groups.contains(&name)
            || counters.contains_key(name)
    };
    let mut reply = Vec::new();
    for action in wire.reply {
        *line = action.referenced.line();
        reply.push(check_action(action.value, &known)?);
    }
    Ok(Rule {
        name,
        when,
        captures,
        add: wire.add,
        reply,
    })
}

fn check_when(wire: WireWhen) -> Checked<When> {
    let mut results = Vec::new();
    for condition in wire.results {
        results.push(ResultCondition {
            source: Source {
                tool: condition.tool,
                everywhere: condition.everywhere,
            },
            matches: optional(condition.matches)?,
            not_matches: optional(condition.not_matches)?,
            is_error: condition.is_error,
            count: condition.count.unwrap_or(Range {
                min: 1,
                max: u64::MAX,
            }),
        });
    }
    Ok(When {
        user: optional(wire.user)?,
        not_user: optional(wire.not_user)?,
        any_user: optional(wire.any_user)?,
        system: optional(wire.system)?,
        not_system: optional(wire.not_system)?,
        model: optional(wire.model)?,
        step: wire.step,
        offered: wire.offered.0,
        not_offered: wire.not_offered.0,
        tools_allowed: wire.tools_allowed,
        results,
        counters: wire.counters,
    })
}

fn check_capture(wire: WireCapture) -> Checked<Capture> {
    let from = match (wire.from, wire.tool) {
        (Some(WireFrom::User), None) => From::User,
        (Some(WireFrom::AnyUser), None) => From::AnyUser,
        (Some(WireFrom::System), None) => From::System,
        (None, Some(tool)) => From::Results(Source {
            tool: Some(tool),
            everywhere: wire.everywhere,
        }),
        _ => return Err("say exactly one of from and tool".to_owned()),
    };
    if !matches!(from, From::Results(_)) && (wire.pointer.is_some() || wire.each.is_some()) {
        return Err("pointer and each are for tool results".to_owned());
    }
    if wire.regex.is_some() && (wire.pointer.is_some() || wire.each.is_some()) {
        return Err("regex goes with neither pointer nor each".to_owned());
    }
    if !wire.filter.is_empty() && wire.each.is_none() {
        return Err("where needs each, which says where the list is".to_owned());
    }
    let pointers = wire
        .pointer
        .iter()
        .chain(&wire.each)
        .chain(wire.filter.keys());
    for pointer in pointers {
        if !pointer.is_empty() && !pointer.starts_with('/') {
            return Err(format!(
                "{pointer:?} is not a JSON pointer; it would begin with a slash"
            ));
        }
    }
    Ok(Capture {
        from,
        regex: optional(wire.regex)?,
        list: wire.all || wire.max.is_some() || wire.each.is_some(),
        each: wire.each,
        filter: wire.filter,
        pointer: wire.pointer,
        max: wire.max.unwrap_or(usize::MAX),
        optional: wire.optional,
    })
}

fn check_action(wire: WireAction, known: &dyn Fn(&str) -> bool) -> Checked<Action> {
    let template = |text: &str| Template::parse(text, known);
    let piece = wire.piece.unwrap_or(PIECE).max(1);
    let every = Duration::from_millis(wire.every_ms.unwrap_or(0));
    let mut found: Vec<(&str, &[&str], Action)> = Vec::new();
    if let Some(text) = &wire.text {
        found.push((
            "text",
            &["piece", "every_ms"],
            Action::Text {
                text: template(text)?,
                piece,
                every,
            },
        ));
    }
    if let Some(chunks) = &wire.chunks {
        let chunks = chunks
            .iter()
            .map(|chunk| template(chunk))
            .collect::<Checked<_>>()?;
        found.push(("chunks", &["every_ms"], Action::Chunks { chunks, every }));
    }
    if let Some(text) = &wire.reasoning {
        let text = template(text)?;
        found.push((
            "reasoning",
            &["piece", "every_ms"],
            Action::Reasoning { text, piece, every },
        ));
    }
    if let Some(name) = &wire.call {
        let action = check_call(name, &wire, known)?;
        found.push((
            "call",
            &["arguments", "raw_arguments", "for_each", "cut_after"],
            action,
        ));
    }
    if let Some(millis) = wire.delay_ms {
        found.push((
            "delay_ms",
            &[],
            Action::Delay(Duration::from_millis(millis)),
        ));
    }
    if let Some(WireUsage {
        input,
        output,
        cache_read,
        cache_write,
        reasoning,
    }) = wire.usage
    {
        let usage = Usage {
            input,
            output,
            cache_read,
            cache_write,
            reasoning,
        };
        found.push(("usage", &[], Action::Usage(Some(usage))));
    }
    if let Some(kind) = &wire.error {
        let action = Action::Error {
            kind: error_kind(kind)?,
            status: wire.status,
            retry_after: wire.retry_after_ms.map(Duration::from_millis),
            retryable: wire.retryable,
            message: template(wire.message.as_deref().unwrap_or("the script says so"))?,
        };
        found.push((
            "error",
            &["status", "retry_after_ms", "retryable", "message"],
            action,
        ));
    }
    if let Some(reason) = wire.stop {
        found.push(("stop", &[], Action::Stop(reason)));
    }
    let switches = [
        ("no_usage", wire.no_usage, Action::Usage(None)),
        ("cut", wire.cut, Action::Cut),
        ("silence", wire.silence, Action::Silence),
        ("ping", wire.ping, Action::Ping),
    ];
    for (key, given, action) in switches {
        match given {
            Some(true) => found.push((key, &[], action)),
            Some(false) => return Err(format!("{key} can only be true; leave the line out")),
            None => {}
        }
    }
    let given = [
        ("piece", wire.piece.is_some()),
        ("every_ms", wire.every_ms.is_some()),
        ("arguments", wire.arguments.is_some()),
        ("raw_arguments", wire.raw_arguments.is_some()),
        ("for_each", wire.for_each.is_some()),
        ("cut_after", wire.cut_after.is_some()),
        ("status", wire.status.is_some()),
        ("retry_after_ms", wire.retry_after_ms.is_some()),
        ("retryable", wire.retryable.is_some()),
        ("message", wire.message.is_some()),
    ];
    if found.len() > 1 {
        return Err(format!(
            "{} and {} need a line of the reply each",
            found[0].0, found[1].0
        ));
    }
    let Some((key, takes, action)) = found.pop() else {
        return Err("a line of the reply says nothing to do (text, chunks, reasoning, call, delay_ms, usage, no_usage, \
                    error, cut, silence, ping, stop)"
            .to_owned());
    };
    match given
        .iter()
        .find(|(name, given)| *given && !takes.contains(name))
    {
        Some((name, _)) => Err(format!("{name} does not go with {key}")),
        None => Ok(action),
    }
}

fn check_call(name: &str, wire: &WireAction, known: &dyn Fn(&str) -> bool) -> Checked<Action> {
    if let Some(list) = &wire.for_each
        && !known(list)
    {
        return Err(format!("for_each: the name {list:?} is not known"));
    }
    let looping = wire.for_each.is_some();
    let known = |name: &str| known(name) || (looping && matches!(name, "item" | "index"));
    let arguments = match (&wire.arguments, &wire.raw_arguments) {
        (Some(_), Some(_)) => {
            return Err("arguments and raw_arguments exclude each other".to_owned());
        }
        (None, Some(raw)) => Arguments::Raw(Template::parse(raw, &known)?),
        (Some(value @ serde_json::Value::Object(_)), None) => {
            Arguments::Json(JsonTemplate::parse(value, &known)?)
        }
        (Some(_), None) => {
            return Err("arguments must be a mapping; raw_arguments sends anything".to_owned());
        }
        (None, None) => Arguments::Json(JsonTemplate::Object(Vec::new())),
    };
    Ok(Action::Call {
        name: Template::parse(name, &known)?,
        arguments,
        for_each: wire.for_each.clone(),
        cut_after: wire.cut_after,
    })
}

fn error_kind(word: &str) -> Checked<ErrorKind> {
    const KINDS: [ErrorKind; 9] = [
        ErrorKind::Auth,
        ErrorKind::Unreachable,
        ErrorKind::Overloaded,
        ErrorKind::Refused,
        ErrorKind::ModelUnknown,
        ErrorKind::ContextOverflow,
        ErrorKind::Truncated,
        ErrorKind::Stalled,
        ErrorKind::Malformed,
    ];
    KINDS
        .into_iter()
        .find(|kind| kind.as_str() == word)
        .ok_or_else(|| {
            let known: Vec<_> = KINDS.iter().map(|kind| kind.as_str()).collect();
            format!("there is no error {word:?}; there are {}", known.join(", "))
        })
}
