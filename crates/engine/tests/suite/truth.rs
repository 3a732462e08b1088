//! What must be true of a store's logs, computed from nothing but the events.

use std::collections::{HashMap, HashSet};

use attache_session::{
    EndReason, Event, Immediacy, ItemId, MailBody, Origin, QueueId, SessionId, Stamped, Status,
    StopReason, Timestamp, TurnId, Unread, WatchId,
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
    pub(crate) registered: HashSet<WatchId>,
    pub(crate) answered: HashMap<WatchId, u32>,
    /// Registrations that ended without an answer.
    given_up: Vec<GivenUp>,
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
    let mut open: Vec<String> = Vec::new();
    let mut used: HashSet<String> = HashSet::new();
    for pair in events.windows(2) {
        assert!(pair[0].at < pair[1].at, "times strictly increase");
    }
    for (place, stamped) in events.iter().enumerate() {
        match &stamped.event {
            Event::Created(created) => told.turnless = !created.runs_turns,
            Event::Started { .. } => {
                assert!(!told.live, "one epoch at a time");
                told.live = true;
            }
            Event::Stopped { .. } => {
                assert!(told.live && told.turn.is_none());
                told.live = false;
            }
            Event::TurnStarted { turn } => {
                assert!(told.live && told.turn.is_none() && !told.turnless);
                told.turn = Some(*turn);
            }
            Event::TurnEnded { turn, reason, .. } => {
                assert_eq!(told.turn, Some(*turn));
                assert!(open.is_empty(), "each call has its result");
                told.turn = None;
                told.end = Some(*reason);
                told.ends.push(*reason);
            }
            Event::Queued { queue, item } => {
                let text = item.text.to_string();
                let waits = Waits {
                    queue: *queue,
                    text: text.clone(),
                };
                let twice = told.waiting.insert(item.id, waits);
                assert!(twice.is_none(), "an item came twice");
                told.queued.push((item.id, text));
                if let Origin::Notice { watch, .. } = &item.origin {
                    *told.answered.entry(*watch).or_default() += 1;
                }
            }
            Event::Edited { item, text, .. } => {
                let waits = told.waiting.get_mut(item).expect("it waited");
                waits.text = text.to_string();
            }
            Event::Moved { item, queue, .. } => {
                told.waiting.get_mut(item).expect("it waited").queue = *queue;
            }
            Event::QueueSet {
                queue, immediacy, ..
            } => match immediacy {
                Immediacy::Held => drop(told.held.insert(*queue)),
                Immediacy::Immediate | Immediacy::Queue => drop(told.held.remove(queue)),
            },
            Event::Acknowledged { item, .. } => {
                assert!(told.turnless, "only what nobody else reads");
                let waited = told.waiting.remove(&item.id).expect("it waited");
                assert_eq!(waited.text, *item.text);
            }
            Event::Withdrawn { item } => {
                told.waiting.remove(item).expect("it waited");
            }
            Event::Consumed { item, .. } => {
                let waited = told.waiting.remove(&item.id).expect("it waited");
                assert_eq!(waited.text, *item.text);
                told.consumed.push((item.id, waited.text));
            }
            Event::Said { .. } => assert!(open.is_empty(), "calls are answered first"),
            Event::CallStarted { call, .. } => {
                assert!(used.insert(call.id.to_string()), "call ids are unique");
                open.push(call.id.to_string());
            }
            Event::CallEnded { result, .. } => {
                let place = open.iter().position(|id| **id == *result.call);
                open.remove(place.expect("a result for an open call"));
            }
            Event::Sent { item, .. } => told.sent.push(*item),
            Event::WatchSet { watch, target } => {
                told.watches.insert(*watch, *target);
                assert!(told.registered.insert(*watch), "a registration is new");
            }
            Event::WatchEnded { watch } => {
                told.watches.remove(watch).expect("it was registered");
                let after = &events[place + 1..];
                if !answers(after.first(), *watch) {
                    told.given_up.push(GivenUp {
                        watch: *watch,
                        at: stamped.at,
                        with_its_epoch: ends_for_good(after),
                    });
                }
            }
            _ => {}
        }
    }
    assert!(told.answered.values().all(|count| *count == 1));
    for watch in &told.registered {
        let open = told.watches.contains_key(watch);
        let answered = told.answered.contains_key(watch);
        let given_up = told.given_up.iter().filter(|it| it.watch == *watch).count();
        let places = usize::from(open) + usize::from(answered) + given_up;
        assert_eq!(places, 1, "a registration is open, answered or given up");
    }
    told
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
            reason: StopReason::Terminated | StopReason::Disposed | StopReason::ParentEnded
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

/// What lies unread for a session, counted from its box.
fn unread(store: &MemoryStore, id: SessionId) -> Unread {
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
        let end = match log.turn {
            Some(_) if !live => Some(EndReason::HostRestart),
            _ => log.end,
        };
        assert_eq!(row.view.end_reason(), end, "session {id}");
        let summary = &row.view.summary;
        assert_eq!(summary.turn, log.turn, "session {id}");
        assert_eq!(summary.epoch.is_some(), log.live, "session {id}");
        let counts = (summary.deliverable as usize, summary.queued as usize);
        let waiting = (log.deliverable(), log.waiting.len());
        assert_eq!(counts, waiting, "session {id}");
        let unread = unread(store, *id);
        assert_eq!(row.view.unread, unread, "session {id}");
        if !live || !log.live {
            assert_eq!(row.status, Status::Stopped, "session {id}");
            continue;
        }
        let work = log.turn.is_some() || log.deliverable() > 0;
        let read = log.turnless || unread.inputs + unread.notices == 0;
        let error = end.is_some_and(|end| end.outcome().is_error());
        let expected = match (work || !read, error) {
            (true, _) => Status::Running,
            (false, true) => Status::Error,
            (false, false) => Status::Idle,
        };
        assert_eq!(row.status, expected, "session {id}");
    }
}
