//! Agent definitions: what an author writes, in JSON or as Markdown with front matter, and what a
//! session is started with. Where they lie is not known here.

mod front_matter;
mod keys;
mod parameters;
mod places;
mod wire;

use attache_model::Options;
use attache_session::{BudgetChange, Json};

use crate::stall::OnStall;
pub use front_matter::Dialect as MarkdownDialect;

pub use parameters::{Parameter, ParameterError};

/// An agent definition.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Definition {
    /// Its name: lower case letters, digits, `-` and `_`.
    pub name: String,
    /// Its name for people.
    pub display_name: Option<String>,
    /// What it is for; other agents choose by it.
    pub description: String,
    /// The model as `PROVIDER/MODEL`; none is the caller's choice.
    pub model: Option<String>,
    /// Options of each request.
    pub options: Options,
    /// What the model is told.
    pub instructions: String,
    /// Toolset kinds and single tools.
    pub tools: Vec<String>,
    /// Definitions that it may start by name.
    pub sub_agents: Vec<SubAgent>,
    /// What `--param` and `parameters` fill in.
    pub parameters: Vec<Parameter>,
    /// Limits of its runs.
    pub limits: Limits,
    /// Limits of the tree that begins with it.
    pub budget: BudgetChange,
    /// Where its tools work, seen from the folder in which it is started.
    pub working_directory: Option<String>,
}

/// A definition that another one may start by name.
#[derive(Clone, PartialEq, Debug)]
pub struct SubAgent {
    /// The name.
    pub name: String,
    /// The definition.
    pub definition: Box<Definition>,
}

/// Limits of a definition's runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Limits {
    /// Rounds of a run at most.
    pub iteration_limit: Option<u32>,
    /// Seconds without progress of the model after which a run counts as stalled.
    pub stall_seconds: Option<u32>,
    /// The same while tools run.
    pub tool_stall_seconds: Option<u32>,
    /// What becomes of a run that has stalled.
    pub on_stall: OnStall,
    /// Whom a question to a person goes to.
    pub questions: Questions,
    /// Seconds for which the answer to a question is waited for.
    pub question_seconds: Option<u32>,
}

/// Whom the questions of a definition's sessions go to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Questions {
    /// A person: they are shown to every viewer of the session, and to those of its ancestors.
    #[default]
    Ask,
    /// Nobody: they are refused at once.
    Deny,
    /// The parent agent, which answers with a message; a session without a parent asks a person.
    AskParent,
}

/// A definition that does not load: where, and what is wrong.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct DefinitionError {
    /// The file, or what stands for it.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, with the field.
    pub message: String,
}

/// Instructions of the built-in definition.
const BUILT_IN_INSTRUCTIONS: &str = "You are a capable agent. Work on the task you are given with \
    the tools you have, and say plainly what you did and what you found.\n\nWork that can be split \
    goes to sub-agents: create one with agent_session_create for each part, wait for it with \
    agent_session_wait or ask to be told with agent_session_on_complete, and read its result \
    before you build on it.";

impl Definition {
    /// The definition that is used when none is named.
    #[must_use]
    pub fn built_in() -> Self {
        Self {
            name: "attache".to_owned(),
            description: "A general agent that works on files and delegates to sub-agents."
                .to_owned(),
            instructions: BUILT_IN_INSTRUCTIONS.to_owned(),
            tools: ["agent-session", "ask", "current-session", "filesystem"]
                .map(str::to_owned)
                .to_vec(),
            ..Self::default()
        }
    }

    /// Reads a definition in JSON. `file` names it in errors.
    ///
    /// # Errors
    ///
    /// [`DefinitionError`] with the line and what is wrong there.
    pub fn from_json(text: &str, file: &str) -> Result<Self, DefinitionError> {
        wire::from_json(text, file)
    }

    /// Reads a definition that a session was born with, from the session's record.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn from_stored(stored: &Json) -> Result<Self, String> {
        wire::from_stored(stored.as_str())
    }

    /// Reads a definition in Markdown: front matter between two lines of `---`, then the
    /// instructions. `fallback_name` is used by dialects whose files need no name.
    ///
    /// # Errors
    ///
    /// [`DefinitionError`] with the line and what is wrong there.
    pub fn from_markdown(
        text: &str,
        file: &str,
        dialect: MarkdownDialect,
        fallback_name: &str,
    ) -> Result<Self, DefinitionError> {
        front_matter::from_markdown(text, file, dialect, fallback_name)
    }

    /// The definition as JSON, in the form that [`Definition::from_json`] reads.
    #[must_use]
    pub fn to_json(&self) -> Json {
        Json::from_checked(wire::to_value(self).to_string())
    }

    /// The definition with its parameters filled in: `${name}` in the texts becomes the value that
    /// was given, else the default. A filled definition has no parameters any more.
    ///
    /// # Errors
    ///
    /// [`ParameterError`] for a missing, unknown or not allowed value.
    pub fn fill(
        &self,
        given: &std::collections::BTreeMap<String, String>,
    ) -> Result<Self, ParameterError> {
        parameters::fill(self, given)
    }
}

/// The line, from 1, on which a field of a definition's file stands; the first one when it is not
/// found. The field may be a path with dots.
#[must_use]
pub fn field_line(text: &str, field: &str) -> usize {
    places::line_of(text, &format!("{field}:")).unwrap_or(1)
}

/// Whether a text can be the name of a definition.
fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 64
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}
