//! `list_directory`: what a folder holds, with kinds and sizes.

use std::ops::ControlFlow;
use std::os::fd::AsFd;

use attache_agent::{CallContext, ToolOutcome};
use rustix::fs::AtFlags;
use serde_json::{Value, json};

use super::confine::{Kind, shown};
use super::walk::Walk;
use super::{ANSWER_BYTES, on_files, with_adjusted};
use crate::agent_session::{Answer, tool};
use crate::arguments::Arguments;
use crate::show;

/// Entries of an answer.
const ENTRIES: usize = 2_000;

/// Folders below each other that are shown at most.
const DEEPEST: u64 = 8;

tool!(
    /// The tool.
    ListDirectory,
    false,
    show::spec(
        "list_directory",
        "List what a folder of the working directory holds, hidden and ignored files included. Use \
         it to find your way; to find files by name use glob, by content grep.",
        &json!({
            "path": {
                "type": "string",
                "description": "The folder; the working directory by default."
            },
            "depth": {
                "type": "integer",
                "description": "Folders below each other that are shown: 1, at most 8."
            }
        }),
        &[]
    ),
    call
);

async fn call(context: CallContext, arguments: Value) -> Answer {
    let mut arguments = Arguments::new(arguments)?;
    let path = arguments.text("path")?.unwrap_or_else(|| ".".to_owned());
    let depth = arguments.number("depth", 1, 1..=DEEPEST)?;
    let adjusted = arguments.done()?;
    on_files(&context, move |confined, stop| {
        let relative = confined.relative(&path)?;
        let folder = confined
            .folder(&relative)
            .map_err(|fault| fault.at(&path))?;
        let mut entries = Vec::new();
        let mut bytes = 0;
        let mut truncated = false;
        let mut walk = Walk::of_all(stop, usize::try_from(depth).unwrap_or(1));
        walk.run(folder.as_fd(), &relative, &mut |found| {
            bytes += found.path.len();
            if entries.len() == ENTRIES || bytes > ANSWER_BYTES {
                truncated = true;
                return Ok(ControlFlow::Break(()));
            }
            let size = match found.kind {
                // A file that has just gone has no size.
                Kind::File => {
                    rustix::fs::statat(found.folder, found.name, AtFlags::SYMLINK_NOFOLLOW)
                        .ok()
                        .map(|stat| stat.st_size)
                }
                _ => None,
            };
            let kind = match found.kind {
                Kind::File => "file",
                Kind::Folder => "directory",
                Kind::Link => "link",
                Kind::Other => "other",
            };
            entries.push(json!({ "path": found.path, "kind": kind, "size": size }));
            Ok(ControlFlow::Continue(()))
        })?;
        let answer = json!({
            "path": shown(&relative),
            "entries": entries,
            "truncated": truncated,
        });
        Ok(ToolOutcome::json(&with_adjusted(answer, adjusted)))
    })
    .await
}
