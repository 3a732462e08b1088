//! What streams now: never a record, replaced by the record that settles it.
//!
//! The turn appends to a shared buffer; no message per delta passes an actor. A viewer reads from
//! its own offset, so it can prove that nothing is missing.

use std::sync::{Mutex, MutexGuard, PoisonError};

use attache_session::{CallId, TurnId};

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
