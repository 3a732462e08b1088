//! `edit_file`: one text of a file is exchanged for another.

use std::os::fd::AsFd;

use attache_agent::{CallContext, ToolError, ToolOutcome};
use memchr::memmem;
use serde_json::{Value, json};

use super::confine::{Fault, Kind, Place, open_file, shown};
use super::read_file::{is_binary, too_large, whole};
use super::{WHOLE_FILE_BYTES, on_files_alone, write_file};
use crate::agent_session::{Answer, tool};
use crate::arguments::{Arguments, quoted};
use crate::show;

tool!(
    /// The tool.
    EditFile,
    true,
    show::spec(
        "edit_file",
        "Replace one text in a file of the working directory by another. old_string must be in the \
         file exactly once, spaces and line ends included: give enough lines around the place, or \
         use replace_all. Read the file first.",
        &json!({
            "path": { "type": "string", "description": "The file, from the working directory." },
            "old_string": { "type": "string", "description": "The text as it is now, not empty." },
            "new_string": { "type": "string", "description": "What stands there afterwards." },
            "replace_all": {
                "type": "boolean",
                "description": "Replace every occurrence. Default false."
            }
        }),
        &["path", "old_string", "new_string"]
    ),
    call
);

async fn call(context: CallContext, arguments: Value) -> Answer {
    let mut arguments = Arguments::new(arguments)?;
    let path = arguments.required_text("path")?;
    let mut text = |name: &str| {
        arguments
            .exact_text(name)?
            .ok_or_else(|| ToolError::invalid(format!("`{name}` is missing")))
    };
    let old = text("old_string")?;
    let new = text("new_string")?;
    let all = arguments.flag("replace_all")?;
    arguments.done()?;
    if old.is_empty() {
        return Err(ToolError::invalid("`old_string` is empty")
            .with_hint("Name the text to replace; a new file is made with write_file."));
    }
    if old == new {
        return Err(ToolError::invalid(
            "`old_string` and `new_string` are the same",
        ));
    }
    on_files_alone(&context, move |confined, stop| {
        let relative = confined.relative(&path)?;
        let place = confined.find(&relative, false);
        let (folder, name) = match place.map_err(|fault| fault.at(&path))? {
            Place::Entry {
                folder,
                name,
                kind: Kind::File,
            } => (folder, name),
            Place::Entry { kind, .. } => return Err(Fault::NotAFile(kind).at(&path)),
            Place::Folder(_) => return Err(Fault::NotAFile(Kind::Folder).at(&path)),
            Place::Free { .. } => return Err(Fault::Missing.at(&path)),
        };
        let content = open_file(folder.as_fd(), &name)
            .and_then(|file| whole(&file, WHOLE_FILE_BYTES))
            .map_err(|fault| fault.at(&path))?
            .ok_or_else(|| too_large(&path, WHOLE_FILE_BYTES))?;
        if is_binary(&content) {
            return Err(ToolError::invalid(format!("{} is no text", quoted(&path)))
                .with_hint("Only text files can be edited."));
        }
        let (content, replaced) = replace(&content, &old, &new, all, &path)?;
        stop.check()?;
        write_file::put(folder.as_fd(), &name, &content).map_err(|fault| fault.at(&path))?;
        Ok(ToolOutcome::json(&json!({
            "path": shown(&relative),
            "replacements": replaced,
        })))
    })
    .await
}

/// Replaces in the bytes of the file, so that what is no UTF-8 stays as it is.
fn replace(
    content: &[u8],
    old: &str,
    new: &str,
    all: bool,
    path: &str,
) -> Result<(Vec<u8>, usize), ToolError> {
    let places: Vec<usize> = memmem::find_iter(content, old).collect();
    if places.is_empty() {
        return Err(
            ToolError::invalid(format!("`old_string` is not in {}", quoted(path))).with_hint(
                "Read the file and copy the text exactly, with its spaces and line ends.",
            ),
        );
    }
    if places.len() > 1 && !all {
        return Err(ToolError::invalid(format!(
            "`old_string` is {} times in {}",
            places.len(),
            quoted(path)
        ))
        .with_hint("Give more of the lines around the place, or set replace_all."));
    }
    let mut edited = Vec::with_capacity(content.len());
    let mut from = 0;
    for place in &places {
        edited.extend_from_slice(&content[from..*place]);
        edited.extend_from_slice(new.as_bytes());
        from = place + old.len();
    }
    edited.extend_from_slice(&content[from..]);
    Ok((edited, places.len()))
}
