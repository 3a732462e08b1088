//! Questions to a person as viewers see them, and what they answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ModalKind {
    /// Whether something may be done.
    Permission,
    /// A text, or one of several choices.
    Question,
    /// Values that fit a JSON schema.
    Form,
    /// Whether a plan may be carried out, or which way.
    Plan,
    /// That the person signs in somewhere.
    SignIn,
}

/// An open question. Of several the first one was asked first; each waits until it is answered or its call is over.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ModalView {
    /// Its id.
    pub modal_id: String,
    /// Who asks, to whom the answer goes: the attached session, or one below it.
    pub session_id: String,
    /// The way from the root to who asks, both included.
    pub path: Vec<PathView>,
    /// What is asked for.
    pub kind: ModalKind,
    /// The question.
    pub text: String,
    /// What belongs to it: the plan, what would be done, the address to sign in at.
    pub body: Option<String>,
    /// Answers to choose from.
    pub choices: Vec<String>,
    /// Whether another answer than those is one too.
    pub free: bool,
    /// The JSON schema that a form's values fit.
    pub schema: Option<serde_json::Value>,
    /// The tool that asks.
    pub tool: String,
    /// Its call.
    pub call_id: String,
    /// SHA-256 of the call's arguments in hexadecimal: an answer is to these and to nothing else.
    pub arguments_digest: String,
    /// When it was asked: RFC 3339, UTC, with six fraction digits.
    pub raised_at: String,
    /// How long the answer is waited for, in seconds.
    pub seconds: u32,
}

/// A session on the way to who asks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PathView {
    /// The session.
    pub session_id: String,
    /// Its name.
    pub name: String,
}

/// What a person answers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ModalAnswer {
    /// False for no: not permitted, not answered, not approved, not signed in.
    pub accepted: bool,
    /// A question's answer; the choice or the remark of the others.
    pub text: Option<String>,
    /// A form's values.
    pub content: Option<serde_json::Value>,
}

/// How a question came to its end.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case"
)]
#[serde(deny_unknown_fields)]
pub enum ModalEnd {
    /// It was answered.
    Answered {
        /// The answer.
        answer: ModalAnswer,
        /// The program of the viewer that gave it.
        by: String,
    },
    /// There was no answer in time.
    Expired {},
    /// The call that asked is over.
    Withdrawn {},
}
