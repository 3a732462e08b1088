//! `grep`: lines of files of the working directory, found by their text.

use std::fs::File;
use std::ops::ControlFlow;
use std::os::fd::AsFd;

use attache_agent::session::preview;
use attache_agent::{CallContext, ToolError, ToolOutcome};
use regex::{Regex, RegexBuilder};
use serde_json::{Value, json};

use super::confine::{Kind, Place, open_file, shown};
use super::read_file::{is_binary, whole};
use super::walk::{Walk, below, pattern};
use super::{ANSWER_BYTES, WHOLE_FILE_BYTES, on_files, with_adjusted};
use crate::agent_session::{Answer, tool};
use crate::arguments::Arguments;
use crate::show;

/// Lines of an answer without a limit, and at most.
const LIMIT: u64 = 100;
const MOST: u64 = 1_000;

/// Characters of a line that are shown.
const LINE_CHARS: usize = 500;

/// Memory that a pattern may take, so that no pattern of a model can fill the host's.
const PATTERN_BYTES: usize = 4 * 1024 * 1024;

tool!(
    /// The tool.
    Grep,
    false,
    show::spec(
        "grep",
        "Find lines of files of the working directory by a regular expression. Use it to find \
         where something is defined or used. What .gitignore names, .git, binary files and files \
         over 8 MiB are passed over.",
        &json!({
            "pattern": {
                "type": "string",
                "description": "The regular expression, for one line; without look-around."
            },
            "path": {
                "type": "string",
                "description": "A file or folder; the working directory by default."
            },
            "glob": {
                "type": "string",
                "description": "Only files that fit this pattern, for example *.rs."
            },
            "ignore_case": {
                "type": "boolean",
                "description": "Upper and lower case are the same. Default false."
            },
            "limit": { "type": "integer", "description": "Lines at most: 100, at most 1000." }
        }),
        &["pattern"]
    ),
    call
);

async fn call(context: CallContext, arguments: Value) -> Answer {
    let mut arguments = Arguments::new(arguments)?;
    let text = arguments
        .exact_text("pattern")?
        .filter(|text| !text.is_empty())
        .ok_or_else(|| ToolError::invalid("`pattern` is missing or empty"))?;
    let path = arguments.text("path")?.unwrap_or_else(|| ".".to_owned());
    let glob = match arguments.text("glob")? {
        Some(glob) => Some(pattern("glob", &glob)?),
        None => None,
    };
    let ignore_case = arguments.flag("ignore_case")?;
    let limit = arguments.number("limit", LIMIT, 1..=MOST)?;
    let adjusted = arguments.done()?;
    let regex = RegexBuilder::new(&text)
        .case_insensitive(ignore_case)
        .size_limit(PATTERN_BYTES)
        .dfa_size_limit(PATTERN_BYTES)
        .build()
        .map_err(|error| {
            let error = error.to_string();
            ToolError::invalid(format!(
                "`pattern` is no regular expression: {}",
                preview(&error, LINE_CHARS).0
            ))
            .with_hint("Escape characters that are meant as they are, such as ( [ { . * with \\.")
        })?;
    on_files(&context, move |confined, stop| {
        let relative = confined.relative(&path)?;
        let mut search = Search::new(regex, usize::try_from(limit).unwrap_or(1));
        let place = confined.find(&relative, false);
        match place.map_err(|fault| fault.at(&path))? {
            Place::Folder(folder) => {
                let mut walk = Walk::of_sources(stop, confined, &relative);
                walk.run(folder.as_fd(), &relative, &mut |found| {
                    let fits =
                        |glob: &globset::GlobMatcher| glob.is_match(below(found.path, &relative));
                    if found.kind != Kind::File || !glob.as_ref().is_none_or(fits) {
                        return Ok(ControlFlow::Continue(()));
                    }
                    // A file that cannot be opened is counted as passed over.
                    match open_file(found.folder, found.name) {
                        Ok(file) => Ok(search.file(&file, found.path)),
                        Err(_fault) => {
                            search.skipped += 1;
                            Ok(ControlFlow::Continue(()))
                        }
                    }
                })?;
            }
            Place::Entry { .. } | Place::Free { .. } => {
                let file = confined.file(&relative).map_err(|fault| fault.at(&path))?;
                let _ended = search.file(&file, &shown(&relative));
            }
        }
        let answer = json!({
            "matches": search.matches,
            "files_searched": search.searched,
            "files_skipped": search.skipped,
            "truncated": search.truncated,
        });
        Ok(ToolOutcome::json(&with_adjusted(answer, adjusted)))
    })
    .await
}

struct Search {
    regex: Regex,
    limit: usize,
    matches: Vec<Value>,
    bytes: usize,
    searched: u64,
    /// Binary, too large, or not readable.
    skipped: u64,
    truncated: bool,
}

impl Search {
    fn new(regex: Regex, limit: usize) -> Self {
        Self {
            regex,
            limit,
            matches: Vec::new(),
            bytes: 0,
            searched: 0,
            skipped: 0,
            truncated: false,
        }
    }

    fn file(&mut self, file: &File, path: &str) -> ControlFlow<()> {
        let bytes = match whole(file, WHOLE_FILE_BYTES) {
            Ok(Some(bytes)) if !is_binary(&bytes) => bytes,
            _ => {
                self.skipped += 1;
                return ControlFlow::Continue(());
            }
        };
        self.searched += 1;
        for (number, line) in String::from_utf8_lossy(&bytes).lines().enumerate() {
            if !self.regex.is_match(line) {
                continue;
            }
            let text = preview(line, LINE_CHARS).0;
            self.bytes += path.len() + text.len();
            if self.matches.len() == self.limit || self.bytes > ANSWER_BYTES {
                self.truncated = true;
                return ControlFlow::Break(());
            }
            self.matches
                .push(json!({ "path": path, "line": number + 1, "text": text }));
        }
        ControlFlow::Continue(())
    }
}
