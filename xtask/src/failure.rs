//! Why a command of the automation ended badly. One enum for the whole program, because every command ends in the same
//! place: a line on standard error and an exit code.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// What stopped a command; the facts are fields, the sentence is made by `Display`.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line makes no sense.
    Usage { why: String },
    /// A program could not be started at all.
    Start { program: String, source: io::Error },
    /// A program ran and said no.
    Exit { program: String, code: Option<i32> },
    /// A file or a directory could not be read.
    Read { path: PathBuf, source: io::Error },
    /// A program answered with something that we cannot read.
    Answer { program: String, why: String },
    /// Tidy found something.
    Findings { count: usize },
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage { why } => write!(out, "{why}"),
            Self::Start { program, source } => write!(out, "cannot start `{program}`: {source}"),
            Self::Exit {
                program,
                code: Some(code),
            } => write!(out, "`{program}` ended with code {code}"),
            Self::Exit {
                program,
                code: None,
            } => write!(out, "`{program}` was ended by a signal"),
            Self::Read { path, source } => write!(out, "cannot read {}: {source}", path.display()),
            Self::Answer { program, why } => write!(out, "`{program}` answered oddly: {why}"),
            Self::Findings { count: 1 } => write!(out, "1 finding"),
            Self::Findings { count } => write!(out, "{count} findings"),
        }
    }
}
