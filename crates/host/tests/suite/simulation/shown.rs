//! The text of the running item as a viewer would show it: each piece once, and then the record that begins with it.

use std::collections::BTreeSet;

use attache_protocol::{EventKind, HistoryItem, RunningItem};

/// See the module.
#[derive(Default)]
pub(crate) struct Shown {
    /// Turn and step.
    which: (u32, u32),
    text: String,
    /// Text that was shown, had no record yet and is not shown any more, with its turn.
    pub(crate) before: BTreeSet<(u32, String)>,
}

impl Shown {
    /// A piece is new, and this is what runs with it; an error says what is wrong.
    pub(crate) fn piece(&mut self, piece: &str, runs: Option<&RunningItem>) -> Result<(), String> {
        let which = runs.map_or((0, 0), |it| (it.turn, it.step));
        if which != self.which {
            self.forget();
            self.which = which;
        }
        self.text.push_str(piece);
        if runs.is_some_and(|it| it.text == self.text) {
            Ok(())
        } else {
            Err(format!("{:?} was shown of {runs:?}", self.text))
        }
    }

    /// An item joins the history, of which so many bytes are said to have been seen: how it was seen, where it is what the
    /// model said; an error says what is wrong.
    pub(crate) fn item(
        &mut self,
        item: &HistoryItem,
        streamed: usize,
    ) -> Result<Option<&'static str>, String> {
        if item.kind != EventKind::Assistant {
            return Ok(None);
        }
        if item.turn != Some(self.which.0) || self.text.is_empty() {
            return Ok(Some("a text of which only the record was seen"));
        }
        let text = std::mem::take(&mut self.text);
        if streamed != text.len() {
            return Err(format!("{streamed} bytes of {text:?} were shown"));
        }
        match item.text.strip_prefix(text.as_str()) {
            None => Err(format!("{text:?} was shown of {:?}", item.text)),
            Some("") => Ok(Some("a text seen as it was said")),
            Some(_) => Ok(Some("a text of which the end was seen as a record")),
        }
    }

    /// Nothing runs any more.
    pub(crate) fn forget(&mut self) {
        let text = std::mem::take(&mut self.text);
        if !text.is_empty() {
            self.before.insert((self.which.0, text));
        }
    }
}
