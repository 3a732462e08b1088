//! `glob`: files of the working directory, found by their names.

use std::ops::ControlFlow;
use std::os::fd::AsFd;

use attache_agent::{CallContext, ToolOutcome};
use serde_json::{Value, json};

use super::confine::Kind;
use super::walk::{Walk, below, pattern};
use super::{ANSWER_BYTES, on_files};
use crate::agent_session::{Answer, tool};
use crate::arguments::Arguments;
use crate::show;

/// Paths of an answer.
const MATCHES: usize = 2_000;

tool!(
    /// The tool.
    Glob,
    false,
    show::spec(
        "glob",
        "Find files of the working directory by name, for example *.rs, src/**/*.{ts,tsx} or \
         docs/*.md. A pattern without a slash fits names in any folder. What .gitignore names and \
         .git are passed over.",
        &json!({
            "pattern": { "type": "string", "description": "The pattern, from `path`." },
            "path": {
                "type": "string",
                "description": "The folder to look in; the working directory by default."
            }
        }),
        &["pattern"]
    ),
    call
);

async fn call(context: CallContext, arguments: Value) -> Answer {
    let mut arguments = Arguments::new(arguments)?;
    let wanted = pattern("pattern", &arguments.required_text("pattern")?)?;
    let path = arguments.text("path")?.unwrap_or_else(|| ".".to_owned());
    arguments.done()?;
    on_files(&context, move |confined, stop| {
        let relative = confined.relative(&path)?;
        let folder = confined
            .folder(&relative)
            .map_err(|fault| fault.at(&path))?;
        let mut matches = Vec::new();
        let mut bytes = 0;
        let mut truncated = false;
        let mut walk = Walk::of_sources(stop, confined, &relative);
        walk.run(folder.as_fd(), &relative, &mut |found| {
            if found.kind == Kind::Folder || !wanted.is_match(below(found.path, &relative)) {
                return Ok(ControlFlow::Continue(()));
            }
            bytes += found.path.len();
            if matches.len() == MATCHES || bytes > ANSWER_BYTES {
                truncated = true;
                return Ok(ControlFlow::Break(()));
            }
            matches.push(found.path.to_owned());
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(ToolOutcome::json(
            &json!({ "matches": matches, "truncated": truncated }),
        ))
    })
    .await
}
