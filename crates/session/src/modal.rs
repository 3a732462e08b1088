//! Questions to a person: raised by a call of the current turn, answered once by whoever is first, and gone with the call that
//! asked. What kinds there are, which answer fits which, and how a question ends are here; who is asked is not.

use std::sync::Arc;

use crate::id::{CallId, ModalId, TurnId};
use crate::json::Json;
use crate::outcome::named;

/// Most questions of one session that are open at once: each belongs to a call of its turn.
pub const OPEN_MODALS: usize = 100;

/// Most choices of a question.
pub const MODAL_CHOICES: usize = 100;

/// Longest choice, in bytes: it is shown whole everywhere.
pub const MODAL_CHOICE: usize = 1_024;

/// Most bytes of all choices of a question: a frame has room for them beside the rest.
pub const MODAL_CHOICES_BYTES: usize = 16 * 1024;

/// Longest text of a question or of an answer, in bytes.
pub const MODAL_TEXT: usize = 64 * 1024;

named! {
    /// What is asked for.
    ModalKind {
        /// Whether something may be done.
        Permission = "permission",
        /// A text, or one of several choices.
        Question = "question",
        /// Values that fit a JSON schema.
        Form = "form",
        /// Whether a plan may be carried out, or which way.
        Plan = "plan",
        /// That the person signs in somewhere.
        SignIn = "sign-in",
    }
}

/// A question to a person.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Modal {
    /// Its id.
    pub id: ModalId,
    /// The turn that asks.
    pub turn: TurnId,
    /// The call that asks.
    pub call: CallId,
    /// The tool that was called.
    pub tool: Arc<str>,
    /// SHA-256 of the call's arguments in hexadecimal: an answer is to this and to nothing else.
    pub digest: Arc<str>,
    /// What is asked for.
    pub kind: ModalKind,
    /// The question; not empty.
    pub text: Arc<str>,
    /// What belongs to it: the plan, what would be done, the address to sign in at.
    pub body: Option<Arc<str>>,
    /// Answers to choose from.
    pub choices: Vec<Arc<str>>,
    /// Whether another answer than those is one too.
    pub free: bool,
    /// The JSON schema that a form's values fit.
    pub schema: Option<Json>,
    /// How long an answer is waited for, in seconds.
    pub seconds: u32,
}

/// What a person answers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ModalAnswer {
    /// False for no: not permitted, not answered, not approved, not signed in.
    pub accepted: bool,
    /// A question's answer; the choice or the remark of the others.
    pub text: Option<Arc<str>>,
    /// A form's values.
    pub content: Option<Json>,
}

/// How a question stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ModalState {
    /// It waits for an answer.
    Open,
    /// It was answered.
    Answered {
        /// The answer.
        answer: ModalAnswer,
        /// The program of the viewer that gave it, for people.
        by: Arc<str>,
    },
    /// Nobody has answered in time.
    Expired,
    /// The call that asked is over.
    Withdrawn,
}

impl ModalState {
    /// The stable name.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Answered { .. } => "answered",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
        }
    }
}

impl Modal {
    /// Why it is no question that can be put.
    ///
    /// # Errors
    ///
    /// What is wrong with it, for whoever asks.
    pub fn check(&self) -> Result<(), &'static str> {
        let texts = self.choices.iter().chain(&self.body).chain([&self.text]);
        let is_form = self.kind == ModalKind::Form;
        if self.text.trim().is_empty() || self.choices.iter().any(|it| it.trim().is_empty()) {
            Err("the question and its choices need a text")
        } else if texts.clone().any(|text| text.contains('\0')) {
            Err("the question holds the character NUL")
        } else if texts.clone().any(|text| text.len() > MODAL_TEXT) {
            Err("a text of the question has more than 64 KiB")
        } else if self
            .choices
            .iter()
            .any(|choice| choice.len() > MODAL_CHOICE)
        {
            Err("a choice has more than 1 KiB")
        } else if self.choices.iter().map(|it| it.len()).sum::<usize>() > MODAL_CHOICES_BYTES {
            Err("the choices have more than 16 KiB together")
        } else if self.choices.len() > MODAL_CHOICES {
            Err("a question has at most 100 choices")
        } else if is_form != self.schema.is_some() {
            Err("a form, and nothing else, has a schema")
        } else if self.kind == ModalKind::Question && self.choices.is_empty() && !self.free {
            Err("a question without choices takes any answer")
        } else {
            Ok(())
        }
    }

    /// Why an answer is none to this question. Whether a form's values fit their schema is looked at elsewhere.
    ///
    /// # Errors
    ///
    /// What is wrong with it, for whoever answers.
    pub fn fits(&self, answer: &ModalAnswer) -> Result<(), &'static str> {
        let ModalAnswer {
            accepted,
            text,
            content,
        } = answer;
        let text = text.as_deref();
        if text.is_some_and(|text| text.len() > MODAL_TEXT) {
            return Err("the answer has more than 64 KiB");
        }
        if text.is_some_and(|text| text.contains('\0')) {
            return Err("the answer holds the character NUL");
        }
        if content.is_some() != (*accepted && self.kind == ModalKind::Form) {
            return Err("the values of a form, and nothing else, are its content");
        }
        let is_choice = text.is_some_and(|text| self.choices.iter().any(|it| **it == *text));
        match self.kind {
            _ if !accepted => Ok(()),
            ModalKind::Question if text.is_none_or(|text| text.trim().is_empty()) => {
                Err("the question needs a text as its answer")
            }
            ModalKind::Question | ModalKind::Plan
                if !is_choice && !self.free && !self.choices.is_empty() =>
            {
                Err("the answer is none of the choices")
            }
            _ => Ok(()),
        }
    }
}
