//! What is stored of a state in the session's row, and what is computed from it: status, settled.
//!
//! Nothing here is ever a rule's input for its own session; it is for those who look from outside.

use std::sync::Arc;

use crate::budget::Bounds;
use crate::cost::Spent;
use crate::id::{Epoch, SessionId, TurnId};
use crate::mail::Told;
use crate::outcome::{EndReason, Outcome, StopReason, named};
use crate::state::State;
use crate::time::Timestamp;
use crate::usage::Usage;

/// The part of a state from which everything is computed that others see of a session.
#[derive(Clone, PartialEq, Debug)]
pub struct Summary {
    /// Its name among its siblings.
    pub name: Arc<str>,
    /// The name of its agent definition.
    pub agent: Arc<str>,
    /// Its model as `PROVIDER/MODEL`.
    pub model: Arc<str>,
    /// Where its tools work.
    pub working_directory: Arc<str>,
    /// Whether it takes input.
    pub takes_input: bool,
    /// Whether turns run in it at all.
    pub runs_turns: bool,
    /// Its parents, the spawner first.
    pub parents: Vec<SessionId>,
    /// When it was born.
    pub created_at: Timestamp,
    /// When something last happened in it.
    pub last_activity_at: Timestamp,
    /// The epoch that its log says it is in.
    pub epoch: Option<Epoch>,
    /// Why the last epoch ended.
    pub stop: Option<StopReason>,
    /// The turn in flight.
    pub turn: Option<TurnId>,
    /// The name of the first open call's tool.
    pub action: Option<Arc<str>>,
    /// Items of input that may start a turn.
    pub deliverable: u32,
    /// All items of input that wait, held ones included.
    pub queued: u32,
    /// Other sessions that it waits for by a registration.
    pub watching: Vec<SessionId>,
    /// How the last run ended.
    pub end_reason: Option<EndReason>,
    /// Last non-empty text of the last run.
    pub result: Option<Arc<str>>,
    /// That text is not from the run's last step, which said nothing.
    pub result_earlier: bool,
    /// What calls that the end of the last run cut may have done.
    pub side_effects: Option<SideEffects>,
    /// A call is open that may change something.
    pub changing: bool,
    /// All tokens so far.
    pub usage: Usage,
    /// All money so far.
    pub spent: Spent,
    /// Tokens of the newest prompt.
    pub context_tokens: Option<u64>,
    /// What binds its tree.
    pub bounds: Arc<Bounds>,
    /// Whether it goes on when its last viewer has left.
    pub continue_in_background: bool,
    /// How many of its questions to a person are open.
    pub asks: u32,
}

impl Summary {
    /// The summary of a state; none before the session is born.
    #[must_use]
    pub fn of(state: &State) -> Option<Self> {
        let created = state.created.as_ref()?;
        Some(Self {
            name: state.name(),
            agent: Arc::clone(&created.agent),
            model: state.model(),
            working_directory: Arc::clone(&created.working_directory),
            takes_input: created.takes_input && created.runs_turns,
            runs_turns: created.runs_turns,
            parents: state.parents.iter().map(|parent| parent.id).collect(),
            created_at: state.created_at,
            last_activity_at: state.last_activity_at,
            epoch: state.epoch,
            stop: state.stop,
            turn: state.turn.as_ref().map(|turn| turn.id),
            action: state
                .turn
                .as_ref()
                .and_then(|turn| turn.calls.first())
                .map(|call| Arc::clone(&call.name)),
            deliverable: count(state.deliverable()),
            queued: count(state.queues.iter().map(|queue| queue.items.len()).sum()),
            watching: state
                .watches
                .iter()
                .map(|watch| watch.target)
                .filter(|target| *target != state.id)
                .collect(),
            end_reason: state.end_reason,
            result: state.result.clone(),
            result_earlier: state.result_earlier,
            side_effects: state.side_effects,
            changing: state
                .turn
                .as_ref()
                .is_some_and(|turn| turn.calls.iter().any(|call| call.changes_state)),
            usage: state.usage,
            spent: state.spent,
            context_tokens: state.context_tokens,
            bounds: Arc::clone(&state.bounds),
            continue_in_background: state.settings.continue_in_background,
            asks: count(state.modals.len()),
        })
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

named! {
    /// What a session is doing, as `contracts` words it.
    Status {
        /// A turn is in flight, or deliverable input waits in a live session.
        Running = "running",
        /// Nothing is in flight, and nothing went wrong.
        Idle = "idle",
        /// No epoch in this life of its host.
        Stopped = "stopped",
        /// Nothing is in flight, and the last run went wrong.
        Error = "error",
    }
}

named! {
    /// What the calls of a run that was cut may have done outside.
    SideEffects {
        /// No call was under way, or none that changes anything.
        None = "none",
        /// A call that changes something was under way: look before doing it again.
        Maybe = "maybe",
    }
}

impl SideEffects {
    /// Of a run that ended so, with a changing call cut or not; none where there is nothing to say.
    pub(crate) fn of(reason: EndReason, changing: bool) -> Option<Self> {
        match reason.outcome() {
            _ if changing => Some(Self::Maybe),
            Outcome::Interrupted | Outcome::TimedOut => Some(Self::None),
            // Whoever ended it on purpose is told only of what there is to look after.
            Outcome::Cancelled | Outcome::Succeeded | Outcome::Failed | Outcome::OutOfBudget => {
                None
            }
        }
    }
}

/// Mail that lies unread for a session, by what it would set off.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Unread {
    /// Input from other sessions.
    pub inputs: u32,
    /// Notices.
    pub notices: u32,
    /// Everything else.
    pub other: u32,
}

/// A session as its host sees it: what is stored, and whether this life of the host knows its
/// epoch.
#[derive(Clone, PartialEq, Debug)]
pub struct RowView {
    /// What is stored.
    pub summary: Arc<Summary>,
    /// Whether the stored epoch was started in this life of the host.
    pub live: bool,
    /// What lies unread, read in the same transaction as the summary.
    pub unread: Unread,
}

impl RowView {
    /// The turn in flight, if it is one of this life of the host.
    #[must_use]
    pub fn turn(&self) -> Option<TurnId> {
        if self.is_live() {
            self.summary.turn
        } else {
            None
        }
    }

    /// Whether it has an epoch in this life of the host.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.live && self.summary.epoch.is_some()
    }

    /// How the last run ended; a turn that a crash cut reads as ended by it at once, before that
    /// is written down.
    #[must_use]
    pub fn end_reason(&self) -> Option<EndReason> {
        if !self.is_live() && self.summary.turn.is_some() {
            return Some(EndReason::HostRestart);
        }
        self.summary.end_reason
    }

    /// What came of the last run.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        self.end_reason().map(EndReason::outcome)
    }

    /// What it said last in the last run, as a notice tells it.
    #[must_use]
    pub fn told(&self) -> Option<Told> {
        let text = self.summary.result.as_ref()?;
        Some(Told {
            text: Arc::clone(text),
            earlier: self.summary.result_earlier,
        })
    }

    /// What calls may have done that the end of the last run cut, a crash included.
    #[must_use]
    pub fn side_effects(&self) -> Option<SideEffects> {
        if !self.is_live() && self.summary.turn.is_some() {
            return SideEffects::of(EndReason::HostRestart, self.summary.changing);
        }
        self.summary.side_effects
    }

    /// Input and notices that wait for it, in its queues or unread.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        let Unread {
            inputs,
            notices,
            other: _,
        } = self.unread;
        self.summary.queued + inputs + notices
    }

    /// Whether somebody who watches it may have to be told yet.
    fn owes_answers(&self) -> bool {
        self.unread.other > 0 || (self.summary.epoch.is_some() && !self.live)
    }

    fn has_work(&self) -> bool {
        self.summary.turn.is_some()
            || self.summary.deliverable > 0
            || self.unread.inputs > 0
            || self.unread.notices > 0
    }

    /// Whether it works or is about to. What waits in a session that runs no turns sets nothing off.
    fn is_at_work(&self) -> bool {
        self.summary.turn.is_some() || self.summary.runs_turns && self.has_work()
    }
}

/// The status of a session. Precedence: stopped, running, error, idle.
#[must_use]
pub fn status(row: &RowView) -> Status {
    if !row.is_live() {
        return Status::Stopped;
    }
    if row.is_at_work() {
        return Status::Running;
    }
    match row.outcome() {
        Some(outcome) if outcome.is_error() => Status::Error,
        _ => Status::Idle,
    }
}

/// Whether a session has settled, and if not, on whose account.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Settled {
    /// Nothing in flight and nothing that it waits for.
    Yes,
    /// This session still works: the asked one, or one that it waits for.
    WaitsFor(SessionId),
}

/// Whether `id` has settled: stopped, or nothing in flight, nothing deliverable, nothing unread
/// that would set it off, and no registration of its own on another session that has not settled.
///
/// A session that is watched has not settled either while it owes its watcher an answer: while the
/// watch may lie unread, or a crash that ended it is not written down. Otherwise a watcher whose
/// target ended just before the watch came would read as settled for a moment, and then go on.
///
/// `row` must answer from one moment; an unknown session counts as settled.
pub fn is_settled(id: SessionId, row: &mut dyn FnMut(SessionId) -> Option<RowView>) -> Settled {
    // Registrations go from ancestors to descendants, which is no circle; the list of the seen
    // guards against a log that says otherwise.
    let mut seen = vec![id];
    let mut next = 0;
    while let Some(id) = seen.get(next).copied() {
        next += 1;
        let Some(view) = row(id) else { continue };
        let watched = next > 1;
        if watched && view.owes_answers() {
            return Settled::WaitsFor(id);
        }
        if !view.is_live() {
            continue;
        }
        if view.has_work() {
            return Settled::WaitsFor(id);
        }
        for target in &view.summary.watching {
            if !seen.contains(target) {
                seen.push(*target);
            }
        }
    }
    Settled::Yes
}
