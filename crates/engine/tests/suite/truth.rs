//! What must be true of a store's logs, computed from nothing but the events.

use std::collections::{HashMap, HashSet};

use std::sync::Arc;

use attache_session::{
    Bounds, EndReason, Event, Immediacy, ItemId, MailBody, Origin, QueueId, RowView, SessionId,
    Stamped, Status, StepText, StopReason, Timestamp, TurnId, Unread, Usage, WatchId, status,
};
use attache_store::MemoryStore;
use attache_store::{Log as _, Rows as _};
use attache_testkit::World;

/// All sessions of a world, in the order of their birth.
pub(crate) fn sessions(world: &World) -> Vec<SessionId> {
    let rows = world.engine.rows(attache_store::RowFilter::All);
    let rows = rows.expect("rows can be read");
    rows.into_iter().map(|row| row.session).collect()
}

/// What one log says, by itself.
#[derive(Default)]
pub(crate) struct Told {
    /// It runs no turns.
    pub(crate) turnless: bool,
    pub(crate) live: bool,
    pub(crate) turn: Option<TurnId>,
    pub(crate) end: Option<EndReason>,
    pub(crate) ends: Vec<EndReason>,
    pub(crate) queued: Vec<(ItemId, String)>,
    pub(crate) waiting: HashMap<ItemId, Waits>,
    /// Queues that start no turn.
    held: HashSet<QueueId>,
    pub(crate) consumed: Vec<(ItemId, String)>,
    pub(crate) sent: Vec<ItemId>,
    /// Registrations that are open.
    pub(crate) watches: HashMap<WatchId, SessionId>,
    /// All that were ever made, and how often each was answered. A watch that fires at once is
    /// answered without a registration.
    pub(crate) registered: HashMap<WatchId, SessionId>,
    pub(crate) answered: HashMap<WatchId, u32>,
    /// Registrations whose answer a turn took.
    told_of: Vec<WatchId>,
    /// Registrations that ended without an answer.
    given_up: Vec<GivenUp>,
    /// Registrations of others, or of its own, that it has to answer.
    pub(crate) watchers: HashMap<WatchId, SessionId>,
    /// The newest step called nothing and was not cut.
    has_spoken: bool,
    /// Who made it.
    pub(crate) spawner: Option<SessionId>,
    /// All tokens, summed over what the model said.
    pub(crate) usage: Usage,
    /// What all of it cost, in billionths of a dollar.
    pub(crate) usd_nanos: u64,
    /// All calls of tools.
    pub(crate) calls: u64,
    /// What binds its tree.
    pub(crate) bounds: Arc<Bounds>,
    /// Calls without a result, and all that ever were.
    open: Vec<String>,
    used: HashSet<String>,
    last_at: Option<Timestamp>,
}

/// An item of input that is in no turn yet.
#[derive(Debug)]
pub(crate) struct Waits {
    queue: QueueId,
    text: String,
}

/// A registration that ended without an answer.
#[derive(Debug)]
struct GivenUp {
    watch: WatchId,
    at: Timestamp,
    /// Whether it ended because the epoch of its session did, and for good.
    with_its_epoch: bool,
}

/// An end of the runs of a session and of all below it, which ends their registrations too.
#[derive(Clone, Debug)]
pub(crate) struct TreeEnd {
    pub(crate) top: SessionId,
    /// When it was asked for, and when it was done; none if a crash came first.
    pub(crate) from: Timestamp,
    pub(crate) to: Option<Timestamp>,
}

impl Told {
    /// Items that may start a turn.
    pub(crate) fn deliverable(&self) -> usize {
        if self.turnless {
            return 0;
        }
        let waiting = self.waiting.values();
        waiting
            .filter(|item| !self.held.contains(&item.queue))
            .count()
    }
}

/// Reads a log and checks what holds of each.
pub(crate) fn read(events: &[Stamped]) -> Told {
    let mut told = Told::default();
    told.follow(events);
    told.check();
    told
}

impl Told {
    fn spend(&mut self, step: &StepText) {
        self.usage.add(&step.usage);
        self.usd_nanos += step.cost.as_ref().map_or(0, |cost| cost.usd_nanos);
    }

    /// Reads on, and checks what holds of each event. What belongs together comes together.
    pub(crate) fn follow(&mut self, events: &[Stamped]) {
        for (place, stamped) in events.iter().enumerate() {
            let before = self.last_at.replace(stamped.at);
            assert!(before < Some(stamped.at), "times strictly increase");
            self.take(stamped, &events[place + 1..]);
        }
    }

    fn take(&mut self, stamped: &Stamped, after: &[Stamped]) {
        match &stamped.event {
            Event::Created(created) => {
                self.turnless = !created.runs_turns;
                self.spawner = created.parents.first().copied();
                self.bounds = Arc::new(Bounds {
                    budget: created.budget,
                    ..Bounds::default()
                });
            }
            Event::BoundsSet { bounds } => self.bounds = Arc::clone(bounds),
            Event::Started { .. } => {
                assert!(!self.live, "one epoch at a time");
                self.live = true;
            }
            Event::Stopped { .. } => {
                assert!(self.live && self.turn.is_none());
                self.live = false;
            }
            Event::TurnStarted { turn } => {
                assert!(self.live && self.turn.is_none() && !self.turnless);
                self.turn = Some(*turn);
            }
            Event::TurnEnded { turn, reason, .. } => {
                assert_eq!(self.turn, Some(*turn));
                assert!(self.open.is_empty(), "each call has its result");
                self.turn = None;
                self.end = Some(*reason);
                self.ends.push(*reason);
            }
            Event::Queued { queue, item } => {
                let text = item.text.to_string();
                let waits = Waits {
                    queue: *queue,
                    text: text.clone(),
                };
                let twice = self.waiting.insert(item.id, waits);
                assert!(twice.is_none(), "an item came twice");
                self.queued.push((item.id, text));
                if let Origin::Notice { watch, .. } = &item.origin {
                    let count = self.answered.entry(*watch).or_default();
                    *count += 1;
                    assert_eq!(*count, 1, "a notice is told once");
                }
            }
            Event::Edited { item, text, .. } => {
                let waits = self.waiting.get_mut(item).expect("it waited");
                waits.text = text.to_string();
            }
            Event::Moved { item, queue, .. } => {
                self.waiting.get_mut(item).expect("it waited").queue = *queue;
            }
            Event::QueueSet {
                queue, immediacy, ..
            } => match immediacy {
                Immediacy::Held => drop(self.held.insert(*queue)),
                Immediacy::Immediate | Immediacy::Queue => drop(self.held.remove(queue)),
            },
            Event::Acknowledged { item, .. } => {
                assert!(self.turnless, "only what nobody else reads");
                let waited = self.waiting.remove(&item.id).expect("it waited");
                assert_eq!(waited.text, *item.text);
            }
            Event::Withdrawn { item } => {
                self.waiting.remove(item).expect("it waited");
            }
            Event::Consumed { item, .. } => {
                let waited = self.waiting.remove(&item.id).expect("it waited");
                assert_eq!(waited.text, *item.text);
                self.consumed.push((item.id, waited.text));
                if let Origin::Notice { watch, .. } = &item.origin {
                    self.told_of.push(*watch);
                }
            }
            Event::Said { step, .. } => {
                assert!(self.open.is_empty(), "calls are answered first");
                self.spend(step);
                self.has_spoken = !step.incomplete;
            }
            Event::Compacted { step, .. } => self.spend(step),
            Event::CallStarted { call, .. } => {
                assert!(self.used.insert(call.id.to_string()), "call ids are unique");
                self.open.push(call.id.to_string());
                self.has_spoken = false;
                self.calls += 1;
            }
            Event::CallEnded { result, .. } => {
                let place = self.open.iter().position(|id| **id == *result.call);
                self.open.remove(place.expect("a result for an open call"));
            }
            Event::Sent { item, .. } => self.sent.push(*item),
            Event::WatchSet { watch, target } => {
                self.watches.insert(*watch, *target);
                let known = self.registered.insert(*watch, *target);
                assert!(known.is_none(), "a registration is new");
            }
            Event::WatchEnded { watch } => {
                self.watches.remove(watch).expect("it was registered");
                if !answers(after.first(), *watch) {
                    self.given_up.push(GivenUp {
                        watch: *watch,
                        at: stamped.at,
                        with_its_epoch: ends_for_good(after),
                    });
                }
            }
            Event::WatcherAdded { watch, session, .. } => {
                let twice = self.watchers.insert(*watch, *session);
                assert!(twice.is_none(), "a watcher came twice");
            }
            Event::WatcherRemoved { watch } => {
                self.watchers.remove(watch).expect("it watched");
            }
            _ => {}
        }
    }

    /// Checks what holds of the whole.
    pub(crate) fn check(&self) {
        for watch in self.registered.keys() {
            let open = self.watches.contains_key(watch);
            let answered = self.answered.contains_key(watch);
            let given_up = self.given_up.iter().filter(|it| it.watch == *watch).count();
            let places = usize::from(open) + usize::from(answered) + given_up;
            assert_eq!(places, 1, "a registration is open, answered or given up");
        }
    }
}

/// Whether an event is the input that answers a registration.
fn answers(event: Option<&Stamped>, ended: WatchId) -> bool {
    matches!(event.map(|it| &it.event), Some(Event::Queued { item, .. })
        if matches!(&item.origin, Origin::Notice { watch, .. } if *watch == ended))
}

/// Whether, behind the ends of registrations, an epoch ends for good: not with its host, whose next
/// life finds the registrations as they were.
fn ends_for_good(events: &[Stamped]) -> bool {
    let mut rest = events.iter().map(|stamped| &stamped.event);
    let next = rest.find(|event| {
        !matches!(
            event,
            Event::WatchEnded { .. } | Event::WatcherRemoved { .. }
        )
    });
    matches!(
        next,
        Some(Event::Stopped {
            reason: StopReason::Terminated | StopReason::Disposed | StopReason::ParentEnded,
            ..
        })
    )
}

/// All that is told in a store.
pub(crate) fn all(store: &MemoryStore, sessions: &[SessionId]) -> HashMap<SessionId, Told> {
    let read_one = |id: &SessionId| {
        let events = store.events(*id, attache_session::Position(0), usize::MAX);
        let events: Vec<Stamped> = events
            .expect("the log can be read")
            .into_iter()
            .map(|item| item.event)
            .collect();
        (*id, read(&events))
    };
    sessions.iter().map(read_one).collect()
}

/// What was sent lies in the box or came once.
pub(crate) fn nothing_sent_is_lost(store: &MemoryStore, told: &HashMap<SessionId, Told>) {
    let mut places: HashMap<ItemId, u32> = HashMap::new();
    for (id, log) in told {
        for (item, _) in &log.queued {
            *places.entry(*item).or_default() += 1;
        }
        for mail in store.mail(*id, usize::MAX).expect("the box can be read") {
            if let MailBody::Input { item, .. } = &mail.body {
                *places.entry(*item).or_default() += 1;
            }
        }
    }
    for log in told.values() {
        for item in &log.sent {
            assert_eq!(places.get(item), Some(&1), "sent input is in one place");
        }
    }
    assert!(places.values().all(|count| *count == 1));
}

/// A registration ends with its answer, with the epoch of its session, or with the runs of a whole
/// tree that its session is part of; nothing else ends one.
pub(crate) fn watches_are_accounted_for(
    store: &MemoryStore,
    told: &HashMap<SessionId, Told>,
    ends: &[TreeEnd],
) {
    for (id, log) in told {
        for lost in log.given_up.iter().filter(|it| !it.with_its_epoch) {
            let ended = ends.iter().any(|end| {
                let meanwhile = end.from <= lost.at && end.to.is_none_or(|to| lost.at <= to);
                let inside =
                    end.top == *id || store.descends(*id, end.top).expect("lineage can be read");
                meanwhile && inside
            });
            assert!(ended, "{id} was not told, and nobody ended {lost:?}");
        }
    }
}

/// Whoever asked to be told has been told, once: a turn took the answer.
pub(crate) fn everybody_is_told_once(told: &HashMap<SessionId, Told>) {
    for (id, log) in told.iter().filter(|(_, log)| !log.turnless) {
        for watch in log.registered.keys() {
            if log.given_up.iter().all(|it| it.watch != *watch) {
                let times = log.told_of.iter().filter(|it| *it == watch).count();
                assert_eq!(times, 1, "{id} is told once of {watch:?}");
            }
        }
    }
}

/// Whether a session that is watched, and itself waits for nobody, has said its last, and who watches it has not taken the
/// answer into a turn.
pub(crate) fn somebody_is_still_to_be_told(told: &HashMap<SessionId, Told>) -> bool {
    let has_spoken = |id: &SessionId| {
        let log = &told[id];
        log.has_spoken && log.registered.is_empty()
    };
    told.values().any(|log| {
        let mut open = log.registered.iter();
        open.any(|(watch, target)| has_spoken(target) && !log.told_of.contains(watch))
    })
}

/// What lies unread for a session, counted from its box.
pub(crate) fn unread(store: &MemoryStore, id: SessionId) -> Unread {
    let mut unread = Unread::default();
    for mail in store.mail(id, usize::MAX).expect("the box can be read") {
        match mail.body {
            MailBody::Input { .. } => unread.inputs += 1,
            MailBody::Notice(_) | MailBody::Report { .. } => unread.notices += 1,
            MailBody::Watch { .. }
            | MailBody::Unwatch { .. }
            | MailBody::Hold
            | MailBody::Release { .. } => unread.other += 1,
        }
    }
    unread
}

/// What is stored of every session for those who look from outside agrees with its log and its box,
/// and so do the status and the outcome that are computed from it.
pub(crate) fn rows_are_true(
    world: &World,
    store: &MemoryStore,
    told: &HashMap<SessionId, Told>,
    live: bool,
) {
    for (id, log) in told {
        let row = world.row(*id);
        row_is_true(*id, log, &row.view, store, live);
        assert_eq!(row.status, status(&row.view), "session {id}");
    }
}

/// The same of one row. `live` says whether an epoch that the log is in is one of this life.
pub(crate) fn row_is_true(
    id: SessionId,
    log: &Told,
    view: &RowView,
    store: &MemoryStore,
    live: bool,
) {
    let end = match log.turn {
        Some(_) if !live => Some(EndReason::HostRestart),
        _ => log.end,
    };
    assert_eq!(view.end_reason(), end, "session {id}");
    let summary = &view.summary;
    assert_eq!(summary.turn, log.turn, "session {id}");
    assert_eq!(summary.epoch.is_some(), log.live, "session {id}");
    let counts = (summary.deliverable as usize, summary.queued as usize);
    let waiting = (log.deliverable(), log.waiting.len());
    assert_eq!(counts, waiting, "session {id}");
    assert_eq!(summary.usage, log.usage, "session {id}");
    let unread = unread(store, id);
    assert_eq!(view.unread, unread, "session {id}");
    let work = log.turn.is_some() || log.deliverable() > 0;
    let read = log.turnless || unread.inputs + unread.notices == 0;
    let error = end.is_some_and(|end| end.outcome().is_error());
    let expected = match (live && log.live, work || !read, error) {
        (false, ..) => Status::Stopped,
        (true, true, _) => Status::Running,
        (true, false, true) => Status::Error,
        (true, false, false) => Status::Idle,
    };
    assert_eq!(status(view), expected, "session {id}");
}
