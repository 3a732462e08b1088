//! Definitions in Markdown: our own, and those that other agents' users already have.
//!
//! Our own front matter is closed and has the keys of the JSON form. In the files of others we read
//! the keys that we know the meaning of, and pass over the rest.

use serde::Deserialize;

use super::wire::{Written, from_written, without_keys};
use super::{Definition, DefinitionError, is_name, places};

/// Whose files these are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// Ours: the keys of the JSON form.
    Attache,
    /// `.claude/agents/*.md` and `.github/agents/*.md`: name, description, tools, model.
    Foreign,
}

#[derive(Deserialize)]
struct Foreign {
    name: Option<String>,
    #[serde(default)]
    description: String,
    model: Option<String>,
    tools: Option<ForeignTools>,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a list of tools, or their names with commas between"
)]
enum ForeignTools {
    List(Vec<String>),
    Text(String),
}

pub(super) fn from_markdown(
    text: &str,
    file: &str,
    dialect: Dialect,
    fallback_name: &str,
) -> Result<Definition, DefinitionError> {
    let error = |line: usize, message: String| DefinitionError {
        file: file.to_owned(),
        line,
        message,
    };
    let (yaml, body) = split(text).ok_or_else(|| {
        error(
            1,
            "front matter must stand at the top, between two lines of `---`".to_owned(),
        )
    })?;
    let unread = |fault: &serde_saphyr::Error| {
        let message = places::bare(&fault.without_snippet().to_string());
        match fault.location() {
            // The first line of the front matter is the second of the file.
            Some(place) => {
                let line = usize::try_from(place.line()).unwrap_or(1) + 1;
                let column = usize::try_from(place.column()).unwrap_or(1);
                error(line, places::with_field(text, line, column, &message))
            }
            None => error(2, message),
        }
    };
    let unfit = |message: String| error(places::line_of(text, &message).unwrap_or(2), message);
    match dialect {
        Dialect::Attache => {
            let mut written: Written =
                serde_saphyr::from_str(yaml).map_err(|fault| unread(&fault))?;
            if !written.instructions.is_empty() && !body.trim().is_empty() {
                return Err(unfit(
                    "instructions: give them in the front matter or below it, not both".to_owned(),
                ));
            }
            if written.instructions.is_empty() {
                body.trim().clone_into(&mut written.instructions);
            }
            from_written(written).and_then(without_keys).map_err(unfit)
        }
        Dialect::Foreign => {
            let foreign: Foreign = serde_saphyr::from_str(yaml).map_err(|fault| unread(&fault))?;
            let name = foreign.name.unwrap_or_else(|| fallback_name.to_owned());
            if !is_name(&name) {
                return Err(unfit(format!(
                    "name: {name:?} must be 1 to 64 letters, digits, `-` or `_`"
                )));
            }
            let definition = Definition {
                name,
                description: foreign.description,
                // Short names such as `sonnet` or `inherit` mean "the user's choice".
                model: foreign.model.filter(|model| model.contains('/')),
                instructions: body.trim().to_owned(),
                tools: foreign_tools(foreign.tools),
                ..Definition::built_in()
            };
            without_keys(definition).map_err(unfit)
        }
    }
}

/// The text between the two marks, and what follows.
fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let rest = text
        .strip_prefix("---\n")
        .or_else(|| text.strip_prefix("---\r\n"))?;
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((&rest[..at], &rest[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

/// What the tools of others are here; those that we have nothing for are left out. Without a list
/// an agent has all.
fn foreign_tools(tools: Option<ForeignTools>) -> Vec<String> {
    let names = match tools {
        None => return Definition::built_in().tools,
        Some(ForeignTools::List(names)) => names,
        Some(ForeignTools::Text(text)) => {
            text.split(',').map(|name| name.trim().to_owned()).collect()
        }
    };
    let mut ours: Vec<String> = Vec::new();
    for name in names {
        let known = match name.to_ascii_lowercase().as_str() {
            "*" | "all" => return Definition::built_in().tools,
            "read" => "read_file",
            "write" | "create" => "write_file",
            "edit" | "multiedit" => "edit_file",
            "ls" => "list_directory",
            "glob" => "glob",
            "grep" | "search" => "grep",
            "task" | "agent" => "agent-session",
            _ => continue,
        };
        if !ours.iter().any(|other| other == known) {
            ours.push(known.to_owned());
        }
    }
    ours
}
