//! Reading calls from an answer's text, as it streams: what can be no call goes on at once, the rest waits for its line.

use std::sync::Arc;

/// What begins the line with a tool's name.
const NAME: &str = "tool_call_name:";

/// What begins the line with the arguments.
const ARGUMENTS: &str = "tool_call_arguments:";

/// Lines behind the name in which the arguments may begin.
const NEAR: usize = 3;

/// What some models write before their own form of calls; from there on nothing is for people.
const TOKENS: [&str; 4] = [
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>",
    "<|tool_calls_begin|>",
    "<|tool_call_begin|>",
];

/// A call as it was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) arguments: String,
}

/// Splits an answer into its text and its calls.
#[derive(Debug)]
pub(super) struct Splitter {
    /// The tools that may be called; none when calls are forbidden.
    names: Vec<Arc<str>>,
    /// The line that is not ended, as far as it has not gone out.
    line: String,
    /// What of the line has gone out: it can be no call any more.
    is_text: bool,
    /// Everything from the first call on.
    calls: Option<String>,
    cut: bool,
}

impl Splitter {
    pub(super) fn new(names: Vec<Arc<str>>) -> Self {
        Self {
            names,
            line: String::new(),
            is_text: false,
            calls: None,
            cut: false,
        }
    }

    /// Takes more of the answer; what is text for sure comes back.
    pub(super) fn push(&mut self, more: &str) -> String {
        let mut text = String::new();
        for piece in more.split_inclusive('\n') {
            self.piece(piece, &mut text);
        }
        text
    }

    fn piece(&mut self, piece: &str, text: &mut String) {
        if self.cut {
            return;
        }
        if let Some(calls) = &mut self.calls {
            calls.push_str(piece);
            return;
        }
        self.line.push_str(piece);
        let ended = piece.ends_with('\n');
        if !self.is_text && ended && self.begins_call(&self.line) {
            self.calls = Some(std::mem::take(&mut self.line));
            return;
        }
        self.cut_token();
        let is_no_call = self.is_text || !self.may_begin_call();
        if ended || (is_no_call && (self.cut || !self.may_be_token())) {
            text.push_str(&self.line);
            self.line.clear();
            self.is_text = !ended;
        }
    }

    /// The rest of the text, and the calls.
    pub(super) fn finish(&mut self) -> (String, Vec<Call>) {
        let line = std::mem::take(&mut self.line);
        if self.calls.is_none() && !self.is_text && self.begins_call(&line) {
            self.calls = Some(line);
            return (String::new(), self.read());
        }
        (line, self.read())
    }

    /// Cuts the line at a model's own mark of calls.
    fn cut_token(&mut self) {
        if let Some(at) = TOKENS
            .iter()
            .filter_map(|token| self.line.find(token))
            .min()
        {
            self.line.truncate(at);
            self.cut = true;
        }
    }

    /// Whether the line ends with the beginning of such a mark.
    fn may_be_token(&self) -> bool {
        let Some(at) = self.line.rfind('<') else {
            return false;
        };
        TOKENS
            .iter()
            .any(|token| token.starts_with(&self.line[at..]))
    }

    fn begins_call(&self, line: &str) -> bool {
        if self.names.is_empty() {
            return false;
        }
        let line = bare(line);
        strip(line, NAME).is_some() || self.known(line).is_some()
    }

    /// Whether the line that is not ended may still become one that begins a call.
    fn may_begin_call(&self) -> bool {
        if self.names.is_empty() {
            return false;
        }
        let line = self
            .line
            .trim_start()
            .trim_start_matches('`')
            .to_lowercase();
        let begins = |whole: &str| whole.starts_with(&line) || line.starts_with(whole);
        begins(NAME)
            || self.names.iter().any(|name| {
                let name = name.to_lowercase();
                name.starts_with(line.trim_end_matches(['`', ' ', '\r']))
            })
    }

    /// The tool of a name, in any case.
    fn known(&self, name: &str) -> Option<&Arc<str>> {
        self.names
            .iter()
            .find(|known| known.eq_ignore_ascii_case(name))
    }

    fn read(&mut self) -> Vec<Call> {
        let Some(text) = self.calls.take() else {
            return Vec::new();
        };
        let lines: Vec<&str> = text.lines().collect();
        let mut calls = Vec::new();
        let mut at = 0;
        while at < lines.len() {
            let line = bare(lines[at]);
            let (given, rest) = match strip(line, NAME) {
                Some(rest) => {
                    // The arguments may stand on the same line.
                    let lower = rest.to_lowercase();
                    match lower.find(ARGUMENTS) {
                        Some(place) => (bare(&rest[..place]), Some(&rest[place..])),
                        None => (bare(rest), None),
                    }
                }
                None if self.known(line).is_some() => (line, None),
                None => {
                    at += 1;
                    continue;
                }
            };
            let marked = strip(line, NAME).is_some();
            let name = self.known(given).map_or(given, |name| name);
            let (arguments, behind) = arguments(&lines, at, rest, marked);
            calls.push(Call {
                name: name.to_owned(),
                arguments,
            });
            at = behind;
        }
        calls
    }
}

/// The arguments of the call that begins at a line, and the line behind them.
fn arguments(lines: &[&str], at: usize, rest: Option<&str>, marked: bool) -> (String, usize) {
    let near = lines.iter().enumerate().skip(at + 1).take(NEAR);
    let begin = match rest {
        Some(rest) => strip(rest, ARGUMENTS).map(|begin| (at, begin)),
        None if marked => near
            .take_while(|(_, line)| strip(bare(line), NAME).is_none())
            .find_map(|(place, line)| Some((place, strip(bare(line), ARGUMENTS)?))),
        // Behind a bare name only an object on the next line is taken.
        None => lines
            .get(at + 1)
            .map(|line| (at + 1, bare(line)))
            .filter(|(_, line)| line.starts_with('{')),
    };
    let Some((mut place, begin)) = begin else {
        return ("{}".to_owned(), at + 1);
    };
    let mut json = begin.trim_matches('`').trim().to_owned();
    while !is_balanced(&json) && place + 1 < lines.len() {
        if strip(bare(lines[place + 1]), NAME).is_some() {
            break;
        }
        place += 1;
        json.push('\n');
        json.push_str(lines[place]);
    }
    let json = json.trim().trim_matches('`').trim().to_owned();
    (
        if json.is_empty() {
            "{}".to_owned()
        } else {
            json
        },
        place + 1,
    )
}

/// Whether all brackets that were opened are closed, strings left aside.
fn is_balanced(json: &str) -> bool {
    let (mut depth, mut string, mut escaped) = (0_i32, false, false);
    for c in json.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' if string => escaped = true,
            '"' => string = !string,
            '{' | '[' if !string => depth += 1,
            '}' | ']' if !string => depth -= 1,
            _ => {}
        }
    }
    depth <= 0 && !string && !json.is_empty()
}

/// A line without white space and back-ticks around it.
fn bare(line: &str) -> &str {
    line.trim().trim_matches('`').trim()
}

/// What stands behind a mark, in any case.
fn strip<'a>(line: &'a str, mark: &str) -> Option<&'a str> {
    let line = line.trim_start();
    let head = line.get(..mark.len())?;
    head.eq_ignore_ascii_case(mark)
        .then(|| line[mark.len()..].trim())
}
