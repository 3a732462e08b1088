//! What providers have said of their models' contexts while this process ran: a table can be wrong or lack a model, and
//! whoever serves one may allow less.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use attache_model::{ErrorKind, ModelError, stated_limit};

/// Models that are remembered; beyond them nothing is learned, and each overflow costs its request again.
const MOST: usize = 1_024;

/// Tokens by the model's name, provider included.
#[derive(Default)]
pub(crate) struct Limits(Mutex<HashMap<Arc<str>, u64>>);

impl Limits {
    /// A request to the model has failed.
    pub(crate) fn learn(&self, model: &Arc<str>, error: &ModelError) {
        if error.kind != ErrorKind::ContextOverflow {
            return;
        }
        if let Some(stated) = stated_limit(&error.message) {
            let mut limits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if limits.len() < MOST || limits.contains_key(model) {
                limits.insert(Arc::clone(model), stated);
            }
        }
    }

    /// The limit to go by, where the table has `known`.
    pub(crate) fn of(&self, model: &str, known: Option<u64>) -> Option<u64> {
        let limits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match (limits.get(model), known) {
            (Some(stated), Some(known)) => Some(known.min(*stated)),
            (stated, known) => stated.copied().or(known),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smaller_of_what_is_known_and_what_was_said() {
        let limits = Limits::default();
        let model: Arc<str> = "a/m".into();
        let said = |text: &str, kind| ModelError::new(kind, text);
        limits.learn(
            &model,
            &said("maximum context length is 500", ErrorKind::Refused),
        );
        assert_eq!(limits.of("a/m", None), None);
        for (text, known, want) in [
            ("too long", Some(900), Some(900)),
            ("prompt is too long: 900 > 800", None, Some(800)),
            ("no word of it", Some(900), Some(800)),
            ("no word of it", Some(700), Some(700)),
            ("prompt is too long: 900 > 850", Some(900), Some(850)),
        ] {
            limits.learn(&model, &said(text, ErrorKind::ContextOverflow));
            assert_eq!(limits.of("a/m", known), want, "{text}");
        }
        assert_eq!(limits.of("b/m", None), None);
    }
}
