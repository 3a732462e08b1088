//! The fold of a session's events. It holds what is open (queues, turn, calls, children, watches,
//! counters) and never settled history, so that a copy is cheap.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::budget::Bounds;
use crate::cost::Spent;
use crate::event::{Created, Event, ResultOrigin, Stamped};
use crate::id::{CallId, Epoch, ItemId, Position, QueueId, SessionId, TurnId};
use crate::lineage::{Child, Parent, Watch, Watcher};
use crate::modal::{Modal, ModalState};
use crate::outcome::{EndReason, Outcome, StopReason};
use crate::queue::{Queue, QueuedItem};
use crate::settings::{Holder, Settings};
use crate::summary::SideEffects;
use crate::text::{RESULT_PREVIEW_CHARS, preview};
use crate::time::Timestamp;
use crate::turn::{Cut, OpenCall, OpenTurn};
use crate::usage::Usage;

/// The state of one session after some number of events.
#[derive(Clone, PartialEq, Debug)]
pub struct State {
    /// The session.
    pub id: SessionId,
    /// Position of the newest event.
    pub position: Position,
    /// Time of the newest event.
    pub last_at: Timestamp,
    /// What it is from birth on; none before the first event.
    pub created: Option<Arc<Created>>,
    /// When it was born.
    pub created_at: Timestamp,
    /// When the model, a tool or a person last did something here.
    pub last_activity_at: Timestamp,
    /// The epoch it is in; none when it is stopped.
    pub epoch: Option<Epoch>,
    /// Why the last epoch ended; none while one lasts.
    pub stop: Option<StopReason>,
    /// Its queues; the two built-in ones first.
    pub queues: Vec<Queue>,
    /// Number of the next custom queue.
    pub next_queue: u32,
    /// The turn in flight.
    pub turn: Option<OpenTurn>,
    /// Its open questions to a person, first one first.
    pub modals: Vec<Arc<Modal>>,
    /// Number of the last turn that began.
    pub last_turn: TurnId,
    /// How the last run ended.
    pub end_reason: Option<EndReason>,
    /// Last non-empty text of the last run.
    pub result: Option<Arc<str>>,
    /// That text is not from the run's last step, which said nothing.
    pub result_earlier: bool,
    /// What the calls that the end of the last run cut may have done; none for a run that came to its own end.
    pub side_effects: Option<SideEffects>,
    /// Its parents, the spawner first.
    pub parents: Vec<Parent>,
    /// Its children in the order in which they joined; a batch of decisions copies the list once.
    pub children: Arc<Vec<(Child, Option<CallId>)>>,
    /// Its own registrations on other sessions that are not answered.
    pub watches: Vec<Watch>,
    /// Registrations on it that are not answered.
    pub watchers: Vec<Watcher>,
    /// All tokens so far.
    pub usage: Usage,
    /// All money so far.
    pub spent: Spent,
    /// Tokens of the newest prompt.
    pub context_tokens: Option<u64>,
    /// Where the conversation was last cut for the model.
    pub cut: Cut,
    /// What binds its tree.
    pub bounds: Arc<Bounds>,
    /// What people set for it.
    pub settings: Arc<Settings>,
}

impl State {
    /// A session before its first event.
    #[must_use]
    pub fn empty(id: SessionId) -> Self {
        Self {
            id,
            position: Position(0),
            last_at: Timestamp(0),
            created: None,
            created_at: Timestamp(0),
            last_activity_at: Timestamp(0),
            epoch: None,
            stop: None,
            queues: vec![
                Queue::built_in(QueueId::Immediate),
                Queue::built_in(QueueId::Default),
            ],
            next_queue: 0,
            turn: None,
            modals: Vec::new(),
            last_turn: TurnId(0),
            end_reason: None,
            result: None,
            result_earlier: false,
            side_effects: None,
            parents: Vec::new(),
            children: Arc::default(),
            watches: Vec::new(),
            watchers: Vec::new(),
            usage: Usage::default(),
            spent: Spent::default(),
            context_tokens: None,
            cut: Cut::default(),
            bounds: Arc::default(),
            settings: Arc::default(),
        }
    }

    /// Whether it has an epoch.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.epoch.is_some()
    }

    /// Whether turns run in it at all.
    #[must_use]
    pub fn runs_turns(&self) -> bool {
        self.created
            .as_ref()
            .is_none_or(|created| created.runs_turns)
    }

    /// Whether another parent than these holds it.
    #[must_use]
    pub fn is_held_beside(&self, parents: &[SessionId]) -> bool {
        let holders = self.parents.iter().filter(|parent| parent.holds);
        holders
            .map(|parent| parent.id)
            .any(|parent| !parents.contains(&parent))
    }

    /// What came of the last run.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        self.end_reason.map(EndReason::outcome)
    }

    /// Its name for people; empty before it is born.
    #[must_use]
    pub fn name(&self) -> Arc<str> {
        let born = || self.created.as_ref().map(|born| Arc::clone(&born.name));
        let set = self.settings.name.clone();
        set.or_else(born).unwrap_or_default()
    }

    /// The model of its next run as `PROVIDER/MODEL`; empty before it is born, or where no turns run.
    #[must_use]
    pub fn model(&self) -> Arc<str> {
        let born = || self.created.as_ref().map(|born| Arc::clone(&born.model));
        let set = self.settings.model.clone();
        set.or_else(born).unwrap_or_default()
    }

    /// Whether its epoch ends when nobody looks on. `held_by` is what holds it that is not in its own state. A turn of its
    /// own is no holder, and a session with parents follows them and not its viewers.
    #[must_use]
    pub fn ends_unviewed(&self, held_by: &[Holder]) -> bool {
        let follows = !self.parents.is_empty();
        let waits = self.watches.iter().any(|watch| watch.target != self.id);
        let is_held = follows || waits || !self.modals.is_empty() || !held_by.is_empty();
        self.is_live() && !self.settings.continue_in_background && !is_held
    }

    /// How many items of input may start a turn.
    #[must_use]
    pub fn deliverable(&self) -> usize {
        if !self.runs_turns() {
            return 0;
        }
        self.queues
            .iter()
            .filter(|queue| queue.starts_turn())
            .map(|queue| queue.items.len())
            .sum()
    }

    /// Whether, as far as its own state tells, nothing is in flight and nothing is waited for.
    /// Unread mail is not part of the state: the store checks it.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        !self.is_live()
            || (self.turn.is_none()
                && self.deliverable() == 0
                && self.watches.iter().all(|watch| watch.target == self.id))
    }

    /// A queue.
    #[must_use]
    pub fn queue(&self, id: QueueId) -> Option<&Queue> {
        self.queues.iter().find(|queue| queue.id == id)
    }

    /// A waiting item and its queue.
    #[must_use]
    pub fn item(&self, id: ItemId) -> Option<(&Queue, &Arc<QueuedItem>)> {
        self.queues.iter().find_map(|queue| {
            queue
                .items
                .iter()
                .find(|item| item.id == id)
                .map(|it| (queue, it))
        })
    }

    /// A child.
    #[must_use]
    pub fn child(&self, id: SessionId) -> Option<Child> {
        self.children
            .iter()
            .map(|(child, _)| *child)
            .find(|child| child.id == id)
    }

    /// Folds one event in. Total: a log that says something odd is taken as far as it makes sense,
    /// because what is stored must stay readable.
    pub fn apply(&mut self, stamped: &Stamped) {
        self.position = self.position.plus(1);
        self.last_at = stamped.at;
        match &stamped.event {
            Event::Created(created) => {
                self.created_at = stamped.at;
                self.last_activity_at = stamped.at;
                self.parents = created
                    .parents
                    .iter()
                    .map(|id| Parent {
                        id: *id,
                        holds: true,
                    })
                    .collect();
                if !created.budget.is_none() {
                    self.bounds = Arc::new(Bounds {
                        budget: created.budget,
                        ..Bounds::default()
                    });
                }
                if created.continue_in_background {
                    Arc::make_mut(&mut self.settings).continue_in_background = true;
                }
                self.created = Some(Arc::clone(created));
            }
            Event::Started { epoch } => {
                self.epoch = Some(*epoch);
                self.stop = None;
            }
            Event::Stopped { reason, .. } => {
                self.epoch = None;
                self.stop = Some(*reason);
                self.turn = None;
            }
            Event::Queued { queue, item } => {
                self.last_activity_at = stamped.at;
                self.change(*queue, |queue| queue.items.push_back(Arc::clone(item)));
            }
            Event::Edited {
                item,
                revision,
                text,
            } => self.edit(*item, *revision, text),
            Event::Withdrawn { item } => drop(self.take(*item)),
            Event::Moved {
                item,
                queue,
                before,
            } => {
                if let Some(moved) = self.take(*item) {
                    self.change(*queue, |queue| {
                        let place = before.and_then(|before| place_of(&queue.items, before));
                        queue
                            .items
                            .insert(place.unwrap_or(queue.items.len()), moved);
                    });
                }
            }
            Event::QueueSet {
                queue,
                name,
                immediacy,
                before_hold,
            } => {
                if self.queue(*queue).is_none() {
                    self.queues.push(Queue::built_in(*queue));
                    if let QueueId::Custom(number) = queue {
                        self.next_queue = self.next_queue.max(number + 1);
                    }
                }
                self.change(*queue, |queue| {
                    queue.name = Arc::clone(name);
                    queue.immediacy = *immediacy;
                    queue.before_hold = *before_hold;
                });
            }
            Event::QueueDeleted { queue } => self.queues.retain(|other| other.id != *queue),
            Event::TurnStarted { turn } => {
                self.last_turn = *turn;
                self.last_activity_at = stamped.at;
                self.turn = Some(OpenTurn {
                    id: *turn,
                    calls: Vec::new(),
                    steps: 0,
                    text: None,
                    text_is_last: false,
                    cut_changing: false,
                });
            }
            Event::Consumed { item, .. } | Event::Acknowledged { item, .. } => {
                drop(self.take(item.id));
            }
            Event::Said { step, .. } => {
                self.last_activity_at = stamped.at;
                self.usage.add(&step.usage);
                self.spent.call(step.cost.as_ref());
                self.context_tokens = step.usage.input.or(self.context_tokens);
                if let Some(turn) = &mut self.turn {
                    turn.steps += 1;
                    turn.text_is_last = !step.text.trim().is_empty();
                    if turn.text_is_last {
                        turn.text = Some(preview(&step.text, RESULT_PREVIEW_CHARS).0.into());
                    }
                }
            }
            Event::CallStarted { call, .. } => {
                if let Some(turn) = &mut self.turn {
                    turn.calls.push(OpenCall {
                        id: Arc::clone(&call.id),
                        name: Arc::clone(&call.name),
                        changes_state: call.changes_state,
                    });
                }
            }
            Event::CallEnded { result, .. } => {
                self.last_activity_at = stamped.at;
                if let Some(turn) = &mut self.turn {
                    turn.cut_changing |= result.origin == ResultOrigin::Cut
                        && turn
                            .calls
                            .iter()
                            .any(|call| call.id == result.call && call.changes_state);
                    turn.calls.retain(|call| call.id != result.call);
                }
            }
            Event::TurnEnded { reason, result, .. } => {
                self.last_activity_at = stamped.at;
                let open = self.turn.take();
                self.result_earlier =
                    result.is_some() && open.as_ref().is_some_and(|open| !open.text_is_last);
                let changing = open.is_some_and(|open| open.cut_changing);
                self.side_effects = SideEffects::of(*reason, changing);
                self.end_reason = Some(*reason);
                self.result = result.clone();
            }
            Event::WatchSet { watch, target } => {
                self.watches.push(Watch {
                    id: *watch,
                    target: *target,
                });
            }
            Event::WatchEnded { watch } => self.watches.retain(|other| other.id != *watch),
            Event::WatcherAdded {
                watch,
                session,
                message,
            } => self.watchers.push(Watcher {
                watch: *watch,
                session: *session,
                message: message.clone(),
            }),
            Event::WatcherRemoved { watch } => self.watchers.retain(|other| other.watch != *watch),
            Event::ChildHeld { child, call } => self.hold_child(*child, call.as_ref()),
            Event::ChildReleased { child } => {
                for (other, _) in Arc::make_mut(&mut self.children) {
                    if other.id == *child {
                        other.held = false;
                    }
                }
            }
            Event::ParentHolds { parent } => self.set_parent(*parent, true),
            Event::ParentReleased { parent } => self.set_parent(*parent, false),
            Event::Compacted { cut, step, .. } => {
                self.last_activity_at = stamped.at;
                self.usage.add(&step.usage);
                self.spent.call(step.cost.as_ref());
                self.context_tokens = None;
                self.cut = *cut;
            }
            Event::BoundsSet { bounds } => self.bounds = Arc::clone(bounds),
            Event::ModalSet { modal, state } => {
                self.last_activity_at = stamped.at;
                self.modals.retain(|known| known.id != modal.id);
                if *state == ModalState::Open {
                    self.modals.push(Arc::clone(modal));
                }
            }
            Event::SettingsSet { settings } => self.settings = Arc::clone(settings),
            Event::Noted { .. } | Event::Sent { .. } | Event::Unknown { .. } => {}
        }
    }

    fn change(&mut self, id: QueueId, change: impl FnOnce(&mut Queue)) {
        if let Some(queue) = self.queues.iter_mut().find(|queue| queue.id == id) {
            change(queue);
            queue.revision += 1;
        }
    }

    fn take(&mut self, item: ItemId) -> Option<Arc<QueuedItem>> {
        self.queues.iter_mut().find_map(|queue| {
            let taken = queue.items.remove(place_of(&queue.items, item)?);
            queue.revision += 1;
            taken
        })
    }

    fn edit(&mut self, id: ItemId, revision: u32, text: &Arc<str>) {
        for queue in &mut self.queues {
            if let Some(place) = place_of(&queue.items, id) {
                let item = Arc::make_mut(&mut queue.items[place]);
                item.revision = revision;
                item.text = Arc::clone(text);
                queue.revision += 1;
            }
        }
    }

    fn hold_child(&mut self, id: SessionId, call: Option<&CallId>) {
        let children = Arc::make_mut(&mut self.children);
        // The newest child is asked for first: a creator adds many and never repeats one.
        match children.iter_mut().rev().find(|(child, _)| child.id == id) {
            Some((child, _)) => child.held = true,
            None => children.push((Child { id, held: true }, call.cloned())),
        }
    }

    fn set_parent(&mut self, id: SessionId, holds: bool) {
        match self.parents.iter_mut().find(|parent| parent.id == id) {
            Some(parent) => parent.holds = holds,
            None if holds => self.parents.push(Parent { id, holds }),
            None => {}
        }
    }
}

fn place_of(items: &VecDeque<Arc<QueuedItem>>, id: ItemId) -> Option<usize> {
    items.iter().position(|item| item.id == id)
}
