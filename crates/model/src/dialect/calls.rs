//! Putting tool calls together from the fragments of Chat Completions, where servers differ most: which fragment
//! belongs to which call, when a call begins, and which repetition means nothing. It does not judge arguments.

use crate::delta::{Delta, Deltas};
use crate::text::Mender;

/// One entry of `delta.tool_calls`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'a> {
    pub(super) index: Option<u64>,
    pub(super) id: &'a str,
    pub(super) name: &'a str,
    pub(super) arguments: &'a [u8],
}

/// The calls of one reply.
#[derive(Default, Debug)]
pub(super) struct Calls {
    slots: Vec<Slot>,
    /// How many have begun. A call that waits for its name begins after others that came later.
    begun: usize,
}

#[derive(Debug)]
struct Slot {
    wire_index: Option<u64>,
    id: String,
    name: String,
    /// Its number among those that have begun.
    number: Option<usize>,
    mender: Mender,
    arguments: String,
    /// How much of `arguments` has gone out.
    sent: usize,
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Whether the arguments of every call are whole.
    pub(super) fn are_complete(&self) -> bool {
        self.slots.iter().all(|slot| {
            slot.number.is_some() && (slot.arguments.trim().is_empty() || slot.is_complete())
        })
    }

    pub(super) fn push(&mut self, entry: Entry<'_>, out: &mut Deltas) {
        if entry.id.is_empty()
            && entry.name.is_empty()
            && entry.arguments.is_empty()
            && entry.index.is_none()
        {
            return;
        }
        let at = match self.place(&entry) {
            Place::Slot(at) => at,
            Place::New => {
                self.slots.push(Slot {
                    wire_index: entry.index,
                    id: String::new(),
                    name: String::new(),
                    number: None,
                    mender: Mender::default(),
                    arguments: String::new(),
                    sent: 0,
                });
                self.slots.len() - 1
            }
            Place::Repetition => return,
        };
        let slot = &mut self.slots[at];
        if slot.id.is_empty() {
            slot.id.push_str(entry.id);
        }
        if slot.name.is_empty() {
            slot.name.push_str(entry.name);
        }
        slot.mender.push(entry.arguments, &mut slot.arguments);
        if !slot.name.is_empty() {
            slot.emit(&mut self.begun, out);
        }
    }

    /// Emits what was held back: calls that never got a name, and halves of characters.
    pub(super) fn finish(&mut self, out: &mut Deltas) {
        for slot in &mut self.slots {
            slot.mender.finish(&mut slot.arguments);
            slot.emit(&mut self.begun, out);
        }
    }

    fn place(&self, entry: &Entry<'_>) -> Place {
        let same_index = match entry.index {
            Some(index) => self
                .slots
                .iter()
                .rposition(|slot| slot.wire_index == Some(index)),
            None => None,
        };
        let same_id = || {
            self.slots
                .iter()
                .rposition(|slot| !entry.id.is_empty() && slot.id == entry.id)
        };
        let candidate = match entry.index {
            Some(_) => same_index,
            None => same_id().or_else(|| {
                let continues = entry.id.is_empty() || entry.name.is_empty();
                self.slots.len().checked_sub(1).filter(|_| continues)
            }),
        };
        let Some(at) = candidate else {
            return Place::New;
        };
        let slot = &self.slots[at];
        let other_id = !entry.id.is_empty() && !slot.id.is_empty() && slot.id != entry.id;
        if other_id {
            // Some servers count every call as index 0; others send a fresh id with each fragment of one call. A name
            // tells them apart, or arguments that are whole already.
            let begins = !entry.name.is_empty() || slot.is_complete();
            return match same_id() {
                Some(known) => Place::Slot(known),
                None if begins => Place::New,
                None => Place::Slot(at),
            };
        }
        // A name for a call that has one: repeated with each fragment by some servers, unless the arguments are whole.
        if !entry.name.is_empty()
            && !slot.name.is_empty()
            && !entry.arguments.is_empty()
            && slot.is_complete()
        {
            if !entry.id.is_empty()
                && entry.name == slot.name
                && entry.arguments == slot.arguments.as_bytes()
            {
                return Place::Repetition;
            }
            return Place::New;
        }
        Place::Slot(at)
    }
}

enum Place {
    Slot(usize),
    New,
    /// The call was sent again as a whole.
    Repetition,
}

impl Slot {
    fn is_complete(&self) -> bool {
        serde_json::from_str::<serde::de::IgnoredAny>(&self.arguments).is_ok()
    }

    fn emit(&mut self, begun: &mut usize, out: &mut Deltas) {
        let index = *self.number.get_or_insert_with(|| {
            let index = *begun;
            *begun += 1;
            let id = if self.id.is_empty() {
                format!("call_{index}")
            } else {
                self.id.clone()
            };
            out.push(Delta::CallStarted {
                index,
                id,
                name: self.name.clone(),
            });
            index
        });
        if self.sent < self.arguments.len() {
            out.arguments_tail(index)
                .push_str(&self.arguments[self.sent..]);
            self.sent = self.arguments.len();
        }
    }
}
