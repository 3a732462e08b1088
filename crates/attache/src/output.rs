//! What is printed: data on standard output, everything else on standard error; colours and cursor
//! movements only on a terminal that wants them.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::fail::Failure;

/// Where a command prints.
pub(crate) struct Output {
    json: bool,
    out_terminal: bool,
    err_terminal: bool,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            json,
            out_terminal: !plain && std::io::stdout().is_terminal(),
            err_terminal: !plain && std::io::stderr().is_terminal(),
        }
    }

    /// Whether data is printed as JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether progress may move the cursor.
    pub(crate) fn is_live(&self) -> bool {
        self.err_terminal && !self.json
    }

    /// Whether data may have colours.
    pub(crate) fn has_colours(&self) -> bool {
        self.out_terminal && !self.json
    }

    /// Prints text as it is. A reader that has gone ends nothing: the session goes on.
    pub(crate) fn text(&self, text: &str) {
        let mut out = std::io::stdout().lock();
        let _written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    /// Prints a line.
    pub(crate) fn line(&self, line: &str) {
        self.text(&format!("{line}\n"));
    }

    /// Prints one JSON document, or one object of a stream, as a line.
    pub(crate) fn value(&self, value: &Value) {
        self.line(&value.to_string());
    }

    /// Prints a JSON document where JSON is wanted, else lines.
    pub(crate) fn data(&self, value: &Value, lines: impl FnOnce() -> String) {
        if self.json {
            self.value(value);
        } else {
            self.text(&lines());
        }
    }

    /// Says something beside the data.
    pub(crate) fn note(&self, text: &str) {
        let mut err = std::io::stderr().lock();
        let _written = writeln!(err, "{text}");
    }

    /// Writes to the progress area as it is.
    pub(crate) fn progress(&self, text: &str) {
        let mut err = std::io::stderr().lock();
        let _written = err.write_all(text.as_bytes()).and_then(|()| err.flush());
    }

    /// Tells of a failure, and gives its exit code.
    pub(crate) fn failure(&self, failure: &Failure) -> ExitCode {
        let Failure {
            exit,
            code,
            message,
            hint,
        } = failure;
        if self.json {
            let error = json!({ "code": code, "message": message, "hint": hint });
            self.note(&json!({ "error": error }).to_string());
        } else {
            self.note(&format!("attache: {message}"));
            if let Some(hint) = hint {
                self.note(&format!("  {hint}"));
            }
        }
        ExitCode::from(*exit)
    }
}
