//! What a viewer knows of a tree: its rows, folded from a snapshot and deltas.

use std::collections::HashMap;

use crate::frame::{FromHost, Patch, Stream};
use crate::session::SessionView;

/// The rows of a tree, in order of birth.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TreeMirror {
    rows: Vec<SessionView>,
    places: HashMap<String, usize>,
}

impl TreeMirror {
    /// Folds a frame in; true when a row has changed.
    pub fn apply(&mut self, frame: &FromHost) -> bool {
        match frame {
            FromHost::Snapshot(snapshot) if snapshot.stream == Stream::Tree => {
                self.rows = snapshot.sessions.clone();
                self.index();
                true
            }
            FromHost::Delta(delta) if delta.stream == Stream::Tree => match &delta.patch {
                Patch::TreeRow { session } => {
                    self.put((**session).clone());
                    true
                }
                Patch::TreeGone {} => {
                    self.rows.retain(|row| row.session_id != delta.session_id);
                    self.index();
                    true
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// The rows.
    #[must_use]
    pub fn rows(&self) -> &[SessionView] {
        &self.rows
    }

    /// Rows come in no order of their own; a new one goes to its place by birth.
    fn put(&mut self, row: SessionView) {
        if let Some(place) = self.places.get(&row.session_id) {
            self.rows[*place] = row;
            return;
        }
        let place = self
            .rows
            .partition_point(|other| other.created_at <= row.created_at);
        self.rows.insert(place, row);
        self.index();
    }

    fn index(&mut self) {
        self.places = self
            .rows
            .iter()
            .enumerate()
            .map(|(i, row)| (row.session_id.clone(), i))
            .collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Delta;

    #[test]
    fn a_row_that_is_gone_is_gone_and_other_streams_change_nothing() {
        let mut mirror = TreeMirror::default();
        let gone = |stream| {
            FromHost::Delta(Box::new(Delta {
                stream,
                epoch: None,
                sequence: 0,
                session_id: "s".to_owned(),
                live: false,
                patch: Patch::TreeGone {},
            }))
        };
        assert!(!mirror.apply(&gone(Stream::Session)));
        assert!(mirror.apply(&gone(Stream::Tree)));
        assert!(mirror.rows().is_empty());
    }
}
