//! What is open of a running turn: its calls and the text that would be its result.

use std::sync::Arc;

use crate::cost::Cost;
use crate::id::{CallId, TurnId};
use crate::json::Json;
use crate::usage::Usage;

/// A tool call that has no result yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenCall {
    /// Its id within the session.
    pub id: CallId,
    /// The tool's name.
    pub name: Arc<str>,
    /// Whether the tool may have changed something by now.
    pub changes_state: bool,
}

/// The turn that is in flight.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenTurn {
    /// Its number.
    pub id: TurnId,
    /// Calls without a result, in the order in which the model made them.
    pub calls: Vec<OpenCall>,
    /// Model steps so far.
    pub steps: u32,
    /// Last non-empty text of the run so far, cut to a preview.
    pub text: Option<Arc<str>>,
    /// The last step said something: the text is its.
    pub text_is_last: bool,
    /// A call was cut that may have changed something.
    pub cut_changing: bool,
}

/// A call that the model has made in a step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewCall {
    /// Its id within the session.
    pub id: CallId,
    /// The tool's name as the model wrote it.
    pub name: Arc<str>,
    /// The arguments, byte for byte as they were streamed; they may be no JSON at all.
    pub arguments: Arc<str>,
    /// Whether the tool changes state; unknown counts as changing.
    pub changes_state: bool,
}

/// Where a history was cut for the model: everything before it is told by a summary. Steps are counted in their turn; a
/// cut never falls between a step's calls and their results.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Cut {
    /// The turn.
    pub turn: TurnId,
    /// How many steps of that turn stand before the cut; 0 is the turn's beginning.
    pub steps: u32,
}

/// What one model step said, apart from its calls.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StepText {
    /// The visible text, empty when there was none.
    pub text: Arc<str>,
    /// Reasoning as text, empty when there was none.
    pub reasoning: Arc<str>,
    /// Opaque reasoning parts that must go back to the provider unchanged: a JSON array.
    pub opaque: Option<Json>,
    /// The tokens that the step took.
    pub usage: Usage,
    /// What it cost; none when that is not known.
    pub cost: Option<Cost>,
    /// The model that spoke, as `PROVIDER/MODEL`.
    pub model: Arc<str>,
    /// The step was cut: by an interrupt, or by a fault of the provider.
    pub incomplete: bool,
}

impl StepText {
    /// Nothing was said: no text, no reasoning, no opaque part.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.text.is_empty() && self.reasoning.is_empty() && self.opaque.is_none()
    }
}
