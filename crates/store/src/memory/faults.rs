//! What is to go wrong at which commit, and what was asked for.

use std::collections::BTreeMap;

use attache_session::SessionId;

use crate::refused::Refused;

/// What goes wrong at a commit.
#[derive(Clone, PartialEq, Debug)]
pub enum Fault {
    /// The program dies before it: nothing of it is stored, and nothing answers any more.
    CrashBefore,
    /// The program dies after it: it is stored, and nothing answers any more.
    CrashAfter,
    /// It is refused for this reason.
    Refuse(Refused),
}

/// Which commits go wrong, and how.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct FaultPlan(BTreeMap<u64, Fault>);

impl FaultPlan {
    /// Nothing goes wrong.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds that commit `number`, counted from 1, goes wrong.
    #[must_use]
    pub fn with(mut self, number: u64, fault: Fault) -> Self {
        self.0.insert(number, fault);
        self
    }

    pub(super) fn at(&self, number: u64) -> Option<Fault> {
        self.0.get(&number).cloned()
    }
}

/// An append that was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AppendTrace {
    /// The session that appended.
    pub session: SessionId,
    /// The stored names of its events.
    pub kinds: Vec<String>,
    /// How many sessions it bore.
    pub births: usize,
    /// How much mail it wrote.
    pub mail: usize,
    /// Whether it was refused.
    pub refused: bool,
}
