//! Definitions in Markdown: our own, and those that other agents' users already have.
//!
//! Our own front matter is closed and has the keys of the JSON form. In the files of others we read
//! the keys that we know the meaning of, and pass over the rest.

use serde::Deserialize;

use super::wire::{Written, from_written};
use super::{Definition, DefinitionError, is_name};

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
    let at = |fault: &serde_saphyr::Error| {
        // The first line of the front matter is the second of the file.
        fault
            .location()
            .map_or(2, |place| usize::try_from(place.line()).unwrap_or(1) + 1)
    };
    match dialect {
        Dialect::Attache => {
            let mut written: Written = serde_saphyr::from_str(yaml)
                .map_err(|fault| error(at(&fault), one_line(&fault.to_string())))?;
            if !written.instructions.is_empty() && !body.trim().is_empty() {
                return Err(error(
                    2,
                    "instructions: give them in the front matter or below it, not both".to_owned(),
                ));
            }
            if written.instructions.is_empty() {
                body.trim().clone_into(&mut written.instructions);
            }
            from_written(written).map_err(|message| error(2, message))
        }
        Dialect::Foreign => {
            let foreign: Foreign = serde_saphyr::from_str(yaml)
                .map_err(|fault| error(at(&fault), one_line(&fault.to_string())))?;
            let name = foreign.name.unwrap_or_else(|| fallback_name.to_owned());
            if !is_name(&name) {
                return Err(error(
                    2,
                    format!("name: {name:?} must be 1 to 64 letters, digits, `-` or `_`"),
                ));
            }
            Ok(Definition {
                name,
                description: foreign.description,
                // Short names such as `sonnet` or `inherit` mean "the user's choice".
                model: foreign.model.filter(|model| model.contains('/')),
                instructions: body.trim().to_owned(),
                tools: foreign_tools(foreign.tools),
                ..Definition::built_in()
            })
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

fn one_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim().to_owned()
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
