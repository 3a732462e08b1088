//! What is printed: data on standard output, everything else on standard error; colours and cursor
//! movements only on a terminal that wants them.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::clock;
use crate::fail::Failure;
use crate::safe;

/// Where a command prints.
pub(crate) struct Output {
    json: bool,
    out_terminal: bool,
    err_terminal: bool,
    unwritten: OnceLock<String>,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            json,
            out_terminal: !plain && std::io::stdout().is_terminal(),
            err_terminal: !plain && std::io::stderr().is_terminal(),
            unwritten: OnceLock::new(),
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

    /// Prints text for people, made safe to show.
    pub(crate) fn text(&self, text: &str) {
        self.write(&safe::text(text));
    }

    /// Prints a piece of an answer: as it is where a program reads it, safe to show on a terminal.
    pub(crate) fn answer(&self, text: &str) {
        if std::io::stdout().is_terminal() {
            self.text(text);
        } else {
            self.write(text);
        }
    }

    /// A reader that has gone ends nothing: the session goes on. Any other fault is told at the end.
    fn write(&self, text: &str) {
        let mut out = std::io::stdout().lock();
        if let Err(fault) = out.write_all(text.as_bytes()).and_then(|()| out.flush())
            && fault.kind() != std::io::ErrorKind::BrokenPipe
        {
            // The first one tells why.
            let _known = self.unwritten.set(fault.to_string());
        }
    }

    /// What is left to tell when a command has done its work: that its data was not written.
    pub(crate) fn finish(&self) -> Result<(), Failure> {
        match self.unwritten.get() {
            None => Ok(()),
            Some(fault) => Err(Failure::internal(format!(
                "what was asked for could not be written to standard output: {fault}"
            ))),
        }
    }

    /// Prints a line.
    pub(crate) fn line(&self, line: &str) {
        self.write(&format!("{line}\n"));
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
        let _written = writeln!(err, "{}", safe::text(text));
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
            category,
            retryable,
            message,
            hint,
            correlation_id,
        } = failure;
        if self.json {
            let error = json!({
                "code": code, "category": category, "retryable": retryable, "message": message,
                "hint": hint,
                "correlation_id": correlation_id.as_deref().map_or_else(clock::id, str::to_owned),
            });
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
