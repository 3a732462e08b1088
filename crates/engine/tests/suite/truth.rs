//! What must be true of a store's logs, computed from nothing but the events.

use std::collections::{HashMap, HashSet};

use attache_session::{
    EndReason, Event, ItemId, MailBody, Origin, SessionId, Stamped, Status, TurnId, WatchId,
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
    pub(crate) live: bool,
    pub(crate) turn: Option<TurnId>,
    pub(crate) end: Option<EndReason>,
    pub(crate) queued: Vec<(ItemId, String)>,
    pub(crate) waiting: HashMap<ItemId, String>,
    pub(crate) consumed: Vec<(ItemId, String)>,
    pub(crate) sent: Vec<ItemId>,
    /// Registrations that are open, and how often each was answered.
    pub(crate) watches: HashMap<WatchId, SessionId>,
    pub(crate) answered: HashMap<WatchId, u32>,
    pub(crate) registered: HashSet<WatchId>,
}

/// Reads a log and checks what holds of each.
pub(crate) fn read(events: &[Stamped]) -> Told {
    let mut told = Told::default();
    let mut open: Vec<String> = Vec::new();
    let mut used: HashSet<String> = HashSet::new();
    for pair in events.windows(2) {
        assert!(pair[0].at < pair[1].at, "times strictly increase");
    }
    for stamped in events {
        match &stamped.event {
            Event::Started { .. } => {
                assert!(!told.live, "one epoch at a time");
                told.live = true;
            }
            Event::Stopped { .. } => {
                assert!(told.live && told.turn.is_none());
                told.live = false;
            }
            Event::TurnStarted { turn } => {
                assert!(told.live && told.turn.is_none());
                told.turn = Some(*turn);
            }
            Event::TurnEnded { turn, reason, .. } => {
                assert_eq!(told.turn, Some(*turn));
                assert!(open.is_empty(), "each call has its result");
                told.turn = None;
                told.end = Some(*reason);
            }
            Event::Queued { item, .. } => {
                let text = item.text.to_string();
                let twice = told.waiting.insert(item.id, text.clone());
                assert!(twice.is_none(), "an item came twice");
                told.queued.push((item.id, text));
                if let Origin::Notice { watch, .. } = &item.origin {
                    *told.answered.entry(*watch).or_default() += 1;
                }
            }
            Event::Edited { item, text, .. } => {
                told.waiting.insert(*item, text.to_string());
            }
            Event::Withdrawn { item } => {
                told.waiting.remove(item).expect("it waited");
            }
            Event::Consumed { item, .. } => {
                let text = told.waiting.remove(&item.id).expect("it waited");
                assert_eq!(text, *item.text);
                told.consumed.push((item.id, text));
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
                told.registered.insert(*watch);
            }
            Event::WatchEnded { watch } => {
                told.watches.remove(watch);
            }
            _ => {}
        }
    }
    assert!(told.answered.values().all(|count| *count == 1));
    told
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

/// Status and outcome of every session agree with its log.
pub(crate) fn rows_are_true(world: &World, told: &HashMap<SessionId, Told>, live: bool) {
    for (id, log) in told {
        let row = world.row(*id);
        let end = match log.turn {
            Some(_) if !live => Some(EndReason::HostRestart),
            _ => log.end,
        };
        assert_eq!(row.view.end_reason(), end, "session {id}");
        if !live || !log.live {
            assert_eq!(row.status, Status::Stopped, "session {id}");
            continue;
        }
        let work = log.turn.is_some() || row.view.summary.deliverable > 0;
        let unread = row.view.unread.inputs + row.view.unread.notices > 0;
        let error = end.is_some_and(|end| end.outcome().is_error());
        let expected = match (work || unread, error) {
            (true, _) => Status::Running,
            (false, true) => Status::Error,
            (false, false) => Status::Idle,
        };
        assert_eq!(row.status, expected, "session {id}");
    }
}
