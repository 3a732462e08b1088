//! Seeded simulations: the whole engine with paused time, a store and a model that take their time,
//! models that do anything with their children, people who interfere, and now and then a crash.
//! When all has come to rest, the logs must account for everything.
//!
//! `ATTACHE_SEED=n` runs one seed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache_session::{Event, Origin, ResultOrigin, SessionId, Stamped, Status, Unread};
use attache_store::memory::{Fault, FaultPlan, MemoryStore};
use attache_store::{Log as _, Refused};
use attache_testkit::{Dice, FaultyStore, Planted, Puppet, TestTime, World, slow_tools};
use serde_json::Value;

use crate::players::{Accepted, people, say, start};
use crate::truth::{self, TreeEnd};

/// Seeds of a run.
const SEEDS: u64 = 1_000;

/// Lives of one world in which things go wrong; the next one is sound, so that it comes to rest.
const BAD_LIVES: u32 = 3;

/// Longer than any wait lasts.
const REST: Duration = Duration::from_secs(2_000);

/// What a look at the clock takes: more than any append has events, so that stamps of several sessions
/// can be compared.
const LOOK_MICROS: i64 = 1_000;

/// What must have occurred at least once over all seeds.
const MUST: &[&str] = &[
    "created",
    "started",
    "stopped",
    "queued",
    "edited",
    "withdrawn",
    "moved",
    "queue-set",
    "queue-deleted",
    "turn-started",
    "consumed",
    "said",
    "call-started",
    "call-ended",
    "turn-ended",
    "noted",
    "watch-set",
    "watch-ended",
    "watcher-added",
    "watcher-removed",
    "child-held",
    "child-released",
    "parent-holds",
    "parent-released",
    "sent",
    "a call cut",
    "input at a tool boundary",
    "a notice",
    "an append refused",
    "a crash before an append",
    "a crash after an append",
    "a crash after an answer",
    "a crash in the life after a crash",
    "input refused for a full disk",
    "a model failed",
    "outcome failed",
    "end storage-error",
    "end provider-error",
    "outcome interrupted",
    "outcome cancelled",
    "outcome succeeded",
    "stopped disposed",
    "stopped terminated",
    "stopped parent-ended",
    "stopped host-restart",
    "a wait steered",
    "a watch fired at once",
    "an interrupt that hit",
    "a tree of three levels",
];

/// How often each thing occurred.
pub(crate) type Counts = BTreeMap<String, u64>;

pub(crate) fn count(counts: &mut Counts, what: &str) {
    *counts.entry(what.to_owned()).or_default() += 1;
}

struct Life {
    number: u32,
    memory: Arc<MemoryStore>,
    /// The world ends after the answer to this append.
    stop_after: Option<u64>,
    bug: Option<Planted>,
    dice: Dice,
    accepted: Accepted,
    /// Trees that people have interrupted, in this life or before.
    ended: Arc<Mutex<Vec<TreeEnd>>>,
}

impl Life {
    /// Lives until all is at rest, or the world ends. False when it ended.
    fn live(&mut self, counts: &mut Counts) -> bool {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let memory = Arc::clone(&self.memory);
            let mut store = FaultyStore::new(memory).slow(self.dice.fork());
            if let Some(commit) = self.stop_after {
                store = store.stopping_after(commit);
            }
            if let Some(bug) = self.bug {
                store = store.with_bug(bug);
            }
            let store = Arc::new(store);
            let said = Arc::new(Mutex::new((self.dice.fork(), 0)));
            let puppet = Puppet::new(move |request| {
                let (dice, requests) = &mut *said.lock().expect("no holder fails");
                say(request, dice, requests)
            });
            let world = World::at(
                Arc::new(TestTime::of_life(self.number).stepping(LOOK_MICROS)),
                Arc::clone(&store) as Arc<dyn attache_store::Store>,
                puppet,
                slow_tools(&attache_tools::built_in(), self.dice.fork()),
                Vec::new(),
            )
            .await;
            tokio::select! {
                biased;
                () = store.when_stopped() => false,
                () = self.act(&world, counts) => true,
            }
        })
    }

    async fn act(&self, world: &World, counts: &mut Counts) {
        let mut dice = self.dice.clone();
        let found = truth::sessions(world);
        if found.is_empty() {
            let root = world.root(Some("work 0")).await;
            let first = self.log(root).into_iter().find_map(|it| match it.event {
                Event::Queued { item, .. } => Some(item.id),
                _ => None,
            });
            self.accepted
                .lock()
                .expect("no holder fails")
                .push(first.expect("the first input is in the birth"));
        }
        for id in &found {
            assert_eq!(world.row(*id).status, Status::Stopped);
        }
        for id in &found {
            start(world, *id, counts).await;
        }
        people(world, &mut dice, &self.accepted, &self.ended, counts).await;
        attache_testkit::pass(REST).await;
        self.at_rest(world);
    }

    fn at_rest(&self, world: &World) {
        let all = truth::sessions(world);
        let told = truth::all(&self.memory, &all);
        truth::nothing_sent_is_lost(&self.memory, &told);
        truth::rows_are_true(world, &self.memory, &told, true);
        truth::watches_are_accounted_for(&self.memory, &told, &self.tree_ends(told.keys()));
        for (id, log) in &told {
            assert!(log.turn.is_none(), "{id} has come to its end");
            assert!(world.engine.waiting_for(*id).is_empty());
            assert!(log.watches.is_empty(), "no watch of {id} is open");
            let unread = world.row(*id).view.unread;
            assert_eq!(unread, Unread::default(), "{id} has read its mail");
            if log.live {
                assert_eq!(log.deliverable(), 0, "{id} has taken all but what is held");
            }
        }
        for item in self.accepted.lock().expect("no holder fails").iter() {
            let there = told.values().flat_map(|log| &log.queued);
            assert_eq!(
                there.filter(|(id, _)| id == item).count(),
                1,
                "accepted once"
            );
        }
    }

    fn log(&self, id: SessionId) -> Vec<Stamped> {
        let items = self
            .memory
            .events(id, attache_session::Position(0), usize::MAX);
        let items = items.expect("the log can be read");
        items.into_iter().map(|item| item.event).collect()
    }

    /// Ends of whole trees: by people, and by the tool that stops.
    fn tree_ends<'a>(&self, all: impl Iterator<Item = &'a SessionId>) -> Vec<TreeEnd> {
        let mut ends = self.ended.lock().expect("no holder fails").clone();
        for caller in all {
            let log = self.log(*caller);
            for stamped in &log {
                if let Event::CallStarted { call, .. } = &stamped.event
                    && &*call.name == "agent_session_stop"
                    && let Ok(arguments) = serde_json::from_str::<Value>(&call.arguments)
                {
                    let named = arguments["session_id"].as_str().unwrap_or(".");
                    let done = log.iter().find(|it| {
                        matches!(&it.event, Event::CallEnded { result, .. }
                            if result.call == call.id && result.origin == ResultOrigin::Tool)
                    });
                    ends.push(TreeEnd {
                        top: named.parse().unwrap_or(*caller),
                        from: stamped.at,
                        to: done.map(|it| it.at),
                    });
                }
            }
        }
        ends
    }

    fn tally(&self, counts: &mut Counts) {
        use attache_store::Rows as _;
        let rows = self
            .memory
            .rows(attache_store::RowFilter::All, None, usize::MAX);
        for row in rows.expect("rows can be read") {
            let events = self.log(row.session);
            let events: Vec<&Event> = events.iter().map(|stamped| &stamped.event).collect();
            for pair in events.windows(2) {
                if let [Event::CallEnded { .. }, Event::Consumed { .. }] = pair {
                    count(counts, "input at a tool boundary");
                }
            }
            for event in events {
                count(counts, event.kind());
                match event {
                    Event::CallEnded { result, .. } => {
                        if result.origin == ResultOrigin::Cut {
                            count(counts, "a call cut");
                        }
                        if result.content.contains("steered") {
                            count(counts, "a wait steered");
                        }
                        if result.content.contains("\"fired_immediately\":true") {
                            count(counts, "a watch fired at once");
                        }
                    }
                    Event::Queued { item, .. } => {
                        if matches!(item.origin, Origin::Notice { .. }) {
                            count(counts, "a notice");
                        }
                        if item.text.starts_with("work 2") {
                            count(counts, "a tree of three levels");
                        }
                    }
                    Event::TurnEnded { reason, .. } => {
                        count(counts, &format!("end {reason}"));
                        count(counts, &format!("outcome {}", reason.outcome()));
                    }
                    Event::Noted { code, .. } if **code == *"provider-error" => {
                        count(counts, "a model failed");
                    }
                    Event::Stopped { reason } => count(counts, &format!("stopped {reason}")),
                    _ => {}
                }
            }
        }
        for trace in self.memory.traces() {
            if trace.refused {
                count(counts, "an append refused");
            }
        }
    }
}

/// What goes wrong in a life, and after whose answer it ends.
struct Wrong {
    plan: FaultPlan,
    stop_after: Option<u64>,
    name: &'static str,
}

impl Wrong {
    fn of(dice: &mut Dice, first: u64) -> Self {
        let at = first + dice.below(60);
        let plan = FaultPlan::new();
        let (plan, stop_after, name) = match dice.below(8) {
            0 => (plan.with(at, Fault::CrashBefore), None, "before an append"),
            1 => (plan.with(at, Fault::CrashAfter), None, "after an append"),
            2 => (plan, Some(at), "after an answer"),
            // For a while, so that what is tried again meets it too.
            3 | 4 => {
                let full = || Fault::Refuse(Refused::StorageFull);
                let until = at + 1 + dice.below(12);
                let plan = (at..until).fold(plan, |plan, number| plan.with(number, full()));
                (plan, None, "")
            }
            _ => (plan, None, ""),
        };
        Self {
            plan,
            stop_after,
            name,
        }
    }
}

/// Whether a world of a seed keeps all that must hold; a panic says what it does not.
pub(crate) fn holds(seed: u64, bug: Option<Planted>, counts: &mut Counts) -> bool {
    let run = std::panic::AssertUnwindSafe(|| run(seed, bug, counts));
    std::panic::catch_unwind(run).is_ok()
}

fn run(seed: u64, bug: Option<Planted>, counts: &mut Counts) {
    let mut dice = Dice::new(seed);
    // The first append bears the root.
    let mut wrong = Wrong::of(&mut dice, 2);
    let mut life = Life {
        number: 0,
        memory: Arc::new(MemoryStore::with_faults(wrong.plan)),
        stop_after: wrong.stop_after,
        bug,
        dice,
        accepted: Accepted::default(),
        ended: Arc::default(),
    };
    while !life.live(counts) {
        life.tally(counts);
        count(counts, &format!("a crash {}", wrong.name));
        if life.number > 0 {
            count(counts, "a crash in the life after a crash");
        }
        life.number += 1;
        wrong = if life.number < BAD_LIVES {
            Wrong::of(&mut life.dice, 1)
        } else {
            Wrong {
                plan: FaultPlan::new(),
                stop_after: None,
                name: "",
            }
        };
        life.memory = Arc::new(life.memory.crash_into(wrong.plan));
        life.stop_after = wrong.stop_after;
    }
    life.tally(counts);
}

#[test]
fn seeded_worlds_come_to_rest_with_everything_accounted_for() {
    let one = std::env::var("ATTACHE_SEED").ok();
    let one = one.map(|seed| seed.parse::<u64>().expect("ATTACHE_SEED is a number"));
    let seeds = one.map_or(1..=SEEDS, |seed| seed..=seed);
    let mut counts = Counts::new();
    let mut failed = Vec::new();
    for seed in seeds {
        let mut own = Counts::new();
        if !holds(seed, None, &mut own) {
            println!("ATTACHE_SEED={seed} failed");
            failed.push(seed);
        }
        for (what, number) in own {
            *counts.entry(what).or_default() += number;
        }
    }
    for (what, number) in &counts {
        println!("{number:>8} {what}");
    }
    assert!(failed.is_empty(), "run these with ATTACHE_SEED: {failed:?}");
    if one.is_none() {
        let never: Vec<_> = MUST
            .iter()
            .filter(|what| !counts.contains_key(**what))
            .collect();
        assert!(never.is_empty(), "never occurred: {never:?}");
    }
}
