//! Looks at each append in the moment in which it is stored, and holds what is stored by then against the logs: fences,
//! rows and their status, sums of tokens, registrations, input on its way, counters of limits. What must hold only at
//! rest is looked at elsewhere.

use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};

use attache_session::{
    Event, ItemId, Limit, Mail, MailBody, Position, RowView, SessionId, Stamped, WatchId,
};
use attache_store::{Log as _, MemoryStore, RowFilter, Rows as _};
use attache_testkit::Stored;

use crate::truth::{self, Told};

/// See the module. It lives as long as a life of the host.
pub(crate) struct Witness(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    sessions: HashMap<SessionId, One>,
    /// Input that was sent and that its receiver has not taken.
    letters: HashMap<ItemId, SessionId>,
    wrong: bool,
}

/// A session as its log tells it.
#[derive(Default)]
struct One {
    log: Told,
    /// Whether the epoch that the log is in is one of this life.
    here: bool,
    /// Sums over it and all that was spawned below it; of the living only those below.
    living: i64,
    tokens: i64,
    usd_nanos: i64,
    calls: i64,
    /// What the counter of calls had beyond `calls` when they were limited.
    calls_before: i64,
}

impl Witness {
    /// What a store has at the beginning of a life.
    pub(crate) fn of(store: &MemoryStore) -> Self {
        let mut seen = Seen::default();
        let rows = store.rows(RowFilter::All, None, usize::MAX);
        for row in rows.expect("rows can be read") {
            let log = store.events(row.session, Position(0), usize::MAX);
            let log = log.expect("the log can be read").into_iter();
            let events: Vec<Stamped> = log.map(|item| item.event).collect();
            seen.follow(row.session, &events);
            let one = seen.one(row.session);
            one.here = false;
            for mail in letters_of(store, row.session) {
                if let MailBody::Input { item, .. } = mail.body {
                    seen.letters.insert(item, row.session);
                }
            }
        }
        for (id, one) in &mut seen.sessions {
            one.calls_before = used(store, *id, Limit::ToolCalls) - one.calls;
        }
        Self(Mutex::new(seen))
    }

    /// Looks at what was stored; false when something does not hold, which is said by a panic that goes no further.
    pub(crate) fn look(&self, stored: &Stored<'_>) -> bool {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !seen.wrong {
            let look = AssertUnwindSafe(|| seen.take(stored));
            seen.wrong = std::panic::catch_unwind(look).is_err();
        }
        !seen.wrong
    }

    /// Whether something did not hold.
    pub(crate) fn is_wrong(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).wrong
    }
}

fn letters_of(store: &MemoryStore, id: SessionId) -> Vec<Mail> {
    store.mail(id, usize::MAX).expect("the box can be read")
}

fn used(store: &MemoryStore, id: SessionId, limit: Limit) -> i64 {
    let used = store.quota(id, limit.as_str());
    used.expect("counters can be read")
}

fn tokens(log: &Told) -> i64 {
    let sum = log.usage.input.unwrap_or(0) + log.usage.output.unwrap_or(0);
    i64::try_from(sum).expect("few tokens")
}

fn usd_nanos(log: &Told) -> i64 {
    i64::try_from(log.usd_nanos).expect("little money")
}

impl Seen {
    fn one(&mut self, id: SessionId) -> &mut One {
        self.sessions.entry(id).or_default()
    }

    /// A session and those in whose trees it was spawned, from it upwards.
    fn chain(&self, id: SessionId) -> Vec<SessionId> {
        let mut chain = vec![id];
        let mut next = id;
        while let Some(one) = self.sessions.get(&next)
            && let Some(spawner) = one.log.spawner
        {
            chain.push(spawner);
            next = spawner;
        }
        chain
    }

    /// Reads on in a log, and adds what it says to the sums of all above.
    fn follow(&mut self, id: SessionId, events: &[Stamped]) {
        let one = self.one(id);
        let before = (one.log.live, tokens(&one.log), one.log.calls);
        let spent = usd_nanos(&one.log);
        one.log.follow(events);
        one.here |= events
            .iter()
            .any(|it| matches!(it.event, Event::Started { .. }));
        let living = i64::from(one.log.live) - i64::from(before.0);
        let tokens = tokens(&one.log) - before.1;
        let calls = i64::try_from(one.log.calls - before.2).expect("few calls");
        let spent = usd_nanos(&one.log) - spent;
        for above in self.chain(id) {
            let one = self.one(above);
            one.living += if above == id { 0 } else { living };
            one.tokens += tokens;
            one.usd_nanos += spent;
            one.calls += calls;
        }
    }

    fn take(&mut self, stored: &Stored<'_>) {
        let append = stored.append;
        let id = append.session;
        let owner = (append.generation, append.expected);
        let stood = stored.stood.unwrap_or((append.generation, Position(0)));
        assert_eq!(stood, owner, "whoever has lost {id} writes no more");
        let was_counted = self.counts_calls(id);
        self.follow(id, &append.events);
        for born in &append.births {
            self.follow(born.session, &born.events);
        }
        if self.counts_calls(id) && !was_counted {
            let one = self.one(id);
            one.calls_before = used(stored.store, id, Limit::ToolCalls) - one.calls;
        }
        let mut touched: HashSet<SessionId> = append.births.iter().map(|it| it.session).collect();
        touched.insert(id);
        touched.extend(append.mail.iter().map(|mail| mail.to));
        let boxes: HashMap<SessionId, Vec<Mail>> = touched
            .iter()
            .map(|id| (*id, letters_of(stored.store, *id)))
            .collect();
        self.input_is_on_its_way(stored, &boxes);
        self.nobody_waits_in_vain(stored, &touched);
        for id in touched {
            self.row_is_true(stored.store, id);
        }
        for payer in self.chain(id) {
            self.counters_are_true(stored.store, payer);
        }
    }

    fn counts_calls(&self, id: SessionId) -> bool {
        let one = self.sessions.get(&id);
        one.is_some_and(|one| one.log.bounds.budget.get(Limit::ToolCalls).is_some())
    }

    fn input_is_on_its_way(&mut self, stored: &Stored<'_>, boxes: &HashMap<SessionId, Vec<Mail>>) {
        let append = stored.append;
        for stamped in &append.events {
            if let Event::Queued { item, .. } = &stamped.event {
                self.letters.remove(&item.id);
            }
        }
        for mail in &append.mail {
            if let MailBody::Input { item, .. } = mail.body {
                self.letters.insert(item, mail.to);
            }
        }
        for (id, letters) in boxes {
            let mut lies: Vec<ItemId> = letters.iter().filter_map(input_of).collect();
            let sent = self.letters.iter().filter(|(_, to)| *to == id);
            let mut sent: Vec<ItemId> = sent.map(|(item, _)| *item).collect();
            lies.sort();
            sent.sort();
            assert_eq!(lies, sent, "what was sent to {id} lies there once, or came");
        }
    }

    /// A registration that is open lies with the one that is watched, or as mail on the way there or back: in one place.
    fn nobody_waits_in_vain(&self, stored: &Stored<'_>, touched: &HashSet<SessionId>) {
        let watched = touched.iter().filter_map(|id| self.sessions.get(id));
        let mut owners: HashSet<SessionId> = watched
            .flat_map(|one| one.log.watchers.values().copied())
            .collect();
        owners.extend(touched);
        for owner in owners {
            let Some(one) = self.sessions.get(&owner) else {
                continue;
            };
            if one.log.watches.is_empty() {
                continue;
            }
            let own = letters_of(stored.store, owner);
            for (watch, target) in &one.log.watches {
                let there = letters_of(stored.store, *target);
                let asks = there.iter().filter(|mail| asks(mail, *watch)).count();
                let answers = own.iter().filter(|mail| answers(mail, *watch)).count();
                let target = self.sessions.get(target);
                let kept = target.is_some_and(|it| it.log.watchers.contains_key(watch));
                assert_eq!(
                    asks + answers + usize::from(kept),
                    1,
                    "the registration {watch:?} of {owner} is in one place"
                );
            }
        }
    }

    fn row_is_true(&self, store: &MemoryStore, id: SessionId) {
        let row = store.row(id).expect("rows can be read");
        let (Some(row), Some(one)) = (row, self.sessions.get(&id)) else {
            return;
        };
        let view = RowView {
            summary: Arc::clone(&row.summary),
            live: one.here,
            unread: row.unread,
        };
        truth::row_is_true(id, &one.log, &view, store, one.here);
    }

    fn counters_are_true(&self, store: &MemoryStore, id: SessionId) {
        let Some(one) = self.sessions.get(&id) else {
            return;
        };
        for (limit, _) in one.log.bounds.budget.iter() {
            let counted = match limit {
                Limit::Agents => one.living,
                Limit::Tokens => one.tokens,
                Limit::ToolCalls => one.calls + one.calls_before,
                Limit::Usd => one.usd_nanos,
                Limit::Concurrent | Limit::Depth | Limit::Wall => continue,
            };
            assert_eq!(used(store, id, limit), counted, "{limit} of {id}");
        }
    }
}

fn input_of(mail: &Mail) -> Option<ItemId> {
    match mail.body {
        MailBody::Input { item, .. } => Some(item),
        _ => None,
    }
}

fn asks(mail: &Mail, watch: WatchId) -> bool {
    matches!(&mail.body, MailBody::Watch { watch: asked, .. } if *asked == watch)
}

fn answers(mail: &Mail, watch: WatchId) -> bool {
    matches!(&mail.body, MailBody::Notice(notice) if notice.watch == watch)
}
