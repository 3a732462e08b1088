//! What streams now: never a record, replaced by the record that settles it.
//!
//! The turn appends to a shared buffer; no message per delta passes an actor. A viewer reads from
//! its own offset, so it can prove that nothing is missing.

use std::sync::{Mutex, MutexGuard, PoisonError};

use attache_model::Gate;
use attache_session::{CallId, TurnId};

use crate::places::NoPlace;

/// The running item of a turn.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LiveItem {
    /// The turn.
    pub turn: u32,
    /// Counts the model requests of the turn, from 1; 0 before the first.
    pub step: u32,
    /// Visible text so far.
    pub text: String,
    /// Reasoning so far.
    pub reasoning: String,
    /// Calls that run, with the names of their tools.
    pub calls: Vec<(CallId, std::sync::Arc<str>)>,
    /// What the request waits for instead of running: a retry, its turn at the provider.
    pub note: Option<Note>,
}

/// What a request waits for.
#[derive(Clone, Debug)]
pub enum Note {
    /// The moment of the next try and why there is one, or what else is done before the answer.
    Text(std::sync::Arc<str>),
    /// Its turn in this line; why the line stands still is asked when somebody looks.
    Line(std::sync::Arc<Gate>),
    /// A place under a limit of turns at once.
    Place(NoPlace),
}

impl PartialEq for Note {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(one), Self::Text(two)) => one == two,
            (Self::Line(one), Self::Line(two)) => std::sync::Arc::ptr_eq(one, two),
            (Self::Place(one), Self::Place(two)) => one == two,
            (Self::Text(_) | Self::Line(_) | Self::Place(_), _) => false,
        }
    }
}

impl Eq for Note {}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Line(gate) => gate.standing().fmt(f),
            Self::Place(place) => place.fmt(f),
        }
    }
}

#[derive(Default)]
pub(crate) struct Live(Mutex<LiveItem>);

impl Live {
    fn lock(&self) -> MutexGuard<'_, LiveItem> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A model request begins.
    pub(crate) fn step_begins(&self, turn: TurnId) {
        let mut item = self.lock();
        if item.turn != turn.0 {
            *item = LiveItem {
                turn: turn.0,
                ..LiveItem::default()
            };
        }
        item.step += 1;
        item.text.clear();
        item.reasoning.clear();
        item.note = None;
    }

    pub(crate) fn note(&self, note: Option<Note>) {
        self.lock().note = note;
    }

    pub(crate) fn text(&self, more: &str) {
        self.lock().text.push_str(more);
    }

    pub(crate) fn reasoning(&self, more: &str) {
        self.lock().reasoning.push_str(more);
    }

    pub(crate) fn call_begins(&self, call: &CallId, name: &std::sync::Arc<str>) {
        self.lock()
            .calls
            .push((CallId::clone(call), std::sync::Arc::clone(name)));
    }

    pub(crate) fn call_ends(&self, call: &CallId) {
        self.lock().calls.retain(|(open, _)| open != call);
    }

    /// The step is on record: its text is no longer live.
    pub(crate) fn settled(&self) {
        let mut item = self.lock();
        item.text.clear();
        item.reasoning.clear();
    }

    /// The turn is over; what the next one streams by now stays.
    pub(crate) fn clear(&self, turn: TurnId) {
        let mut item = self.lock();
        if item.turn == turn.0 {
            *item = LiveItem::default();
        }
    }

    /// Looks at it.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&LiveItem) -> T) -> T {
        look(&self.lock())
    }
}
