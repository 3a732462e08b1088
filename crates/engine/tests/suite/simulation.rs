//! Seeded simulations: the whole engine with paused time, a store and a model that take their time,
//! models that do anything with their children, people who interfere, and now and then a crash.
//! When all has come to rest, the logs must account for everything.
//!
//! `ATTACHE_SEED=n` runs one seed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache_model::{ErrorKind, ModelError};
use attache_session::{
    Answer, Command, ErrorCode, Event, ItemId, Origin, QueueId, ResultOrigin, SessionId, Stamped,
    Status, Unread,
};
use attache_store::memory::{Fault, FaultPlan, MemoryStore};
use attache_store::{Log as _, Refused};
use attache_testkit::{
    Dice, FaultyStore, Message, Piece, Planted, Puppet, Request, TestTime, World, slow_tools, text,
};
use serde_json::{Value, json};

use crate::truth::{self, TreeEnd};

/// Seeds of a run.
const SEEDS: u64 = 1_000;

/// Requests of one life after which models only answer, so that every plan ends.
const REQUESTS: u32 = 40;

/// One request in so many fails.
const FAILS_ONCE_IN: u64 = 30;

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

pub(crate) type Counts = BTreeMap<String, u64>;

fn count(counts: &mut Counts, what: &str) {
    *counts.entry(what.to_owned()).or_default() += 1;
}

/// How deep a model stands: its first input says so.
fn depth(request: &Request) -> u32 {
    let first = request.messages.first();
    let Some(Message::User(_)) = first else {
        return 9;
    };
    let mut alone = request.clone();
    alone.messages.truncate(1);
    let input = Puppet::last_user(&alone);
    let number = input.strip_prefix("work ").and_then(|rest| rest.get(..1));
    number.and_then(|digit| digit.parse().ok()).unwrap_or(9)
}

/// Children that a history tells of.
fn children(request: &Request) -> Vec<String> {
    let mut ids = BTreeSet::new();
    for message in &request.messages {
        let Message::Tool(results) = message else {
            continue;
        };
        for result in results
            .iter()
            .filter(|it| &*it.name == "agent_session_create")
        {
            let value: Value = serde_json::from_str(&result.content).unwrap_or_default();
            ids.extend(value["session_id"].as_str().map(str::to_owned));
        }
    }
    ids.into_iter().collect()
}

fn say(request: &Request, dice: &mut Dice, requests: &mut u32) -> Vec<Piece> {
    *requests += 1;
    let mut pieces = vec![Piece::Pause(Duration::from_millis(dice.below(20)))];
    if *requests > REQUESTS || Puppet::rounds(request) > 3 {
        pieces.extend(text("enough"));
        return pieces;
    }
    if dice.chance(FAILS_ONCE_IN) {
        pieces.push(Piece::Text("half an answer".to_owned()));
        pieces.push(Piece::Fail(ModelError::new(ErrorKind::Refused, "no")));
        return pieces;
    }
    let depth = depth(request);
    let known = children(request);
    for _ in 0..1 + dice.below(2) {
        let (name, arguments) = match dice.below(11) {
            0..3 if depth < 2 => {
                let first = format!("work {} of {}", depth + 1, dice.below(1_000));
                ("create", json!({ "initial_message": first }))
            }
            3 => ("list", json!({})),
            4 => ("on_complete", json!({ "session_id": "." })),
            other if !known.is_empty() => {
                let id = dice.pick(&known).clone();
                let on = json!({ "session_id": id });
                let with = |key: &str, value: Value| {
                    let mut all = on.clone();
                    all[key] = value;
                    all
                };
                match other {
                    5 | 6 => ("wait", with("wait_for_idle", json!(dice.chance(2)))),
                    7 => ("on_complete", on),
                    8 => {
                        let mut all = with("text", json!("more"));
                        if dice.chance(2) {
                            all["immediacy"] = json!("immediate");
                        }
                        ("send", all)
                    }
                    9 => ("stop", with("dispose", json!(dice.chance(2)))),
                    _ => ("acquire", on),
                }
            }
            _ => {
                pieces.push(Piece::Text("thinking".to_owned()));
                pieces.push(Piece::Pause(Duration::from_millis(dice.below(30))));
                continue;
            }
        };
        let name = format!("agent_session_{name}");
        pieces.push(Piece::Call(name, arguments.to_string()));
    }
    pieces
}

/// Input that was acknowledged.
type Accepted = Arc<Mutex<Vec<ItemId>>>;

/// What people do meanwhile.
async fn people(
    world: &World,
    dice: &mut Dice,
    accepted: &Accepted,
    ended: &Mutex<Vec<TreeEnd>>,
    counts: &mut Counts,
) {
    for number in 0..8 + dice.below(8) {
        attache_testkit::pass(Duration::from_millis(dice.below(60))).await;
        let all = truth::sessions(world);
        let session = *dice.pick(&all);
        match dice.below(12) {
            0..5 => {
                let command = Command::Enqueue {
                    item: None,
                    queue: if dice.chance(2) {
                        QueueId::Immediate
                    } else {
                        QueueId::Default
                    },
                    text: format!("work 1 by hand {number}").into(),
                    origin: Origin::Viewer,
                };
                match world.engine.command(session, command, None).await {
                    Ok(Answer::Accepted { item }) => {
                        accepted.lock().expect("no holder fails").push(item);
                    }
                    Err(error) if error.code == ErrorCode::StorageFull => {
                        count(counts, "input refused for a full disk");
                    }
                    other => panic!("input of people: {other:?}"),
                }
            }
            5 | 6 => {
                let tree = dice.chance(2);
                let now = || attache_engine::Time::now(&*world.time);
                if tree {
                    let end = TreeEnd {
                        top: session,
                        from: now(),
                        to: None,
                    };
                    ended.lock().expect("no holder fails").push(end);
                }
                if world.engine.interrupt(session, tree).await == Ok(true) {
                    count(counts, "an interrupt that hit");
                }
                if tree && let Some(end) = ended.lock().expect("no holder fails").last_mut() {
                    end.to = Some(now());
                }
            }
            7 => drop(world.engine.terminate(session).await),
            8 => drop(world.engine.start(session, None).await),
            _ => change_queue(world, dice, session).await,
        }
    }
}

async fn change_queue(world: &World, dice: &mut Dice, session: SessionId) {
    let Ok(state) = world.engine.state(session).await else {
        return;
    };
    let waiting: Vec<_> = state.queues.iter().flat_map(|queue| &queue.items).collect();
    let Some(item) = waiting.first() else { return };
    let (item, expected) = (item.id, item.revision);
    let command = match dice.below(3) {
        0 => Command::Edit {
            item,
            text: "work 1, edited".into(),
            expected,
        },
        1 => Command::Withdraw { item, expected },
        _ => Command::Move {
            item,
            queue: QueueId::Immediate,
            before: None,
            expected,
        },
    };
    // It may have been taken meanwhile.
    let _late = world.engine.command(session, command, None).await;
}

/// Starts a session as a person does who is told that the disk is full, makes room, and asks again.
async fn start(world: &World, session: SessionId, counts: &mut Counts) {
    while let Err(error) = world.engine.start(session, None).await {
        count(counts, "a start refused");
        let full = [ErrorCode::StorageFull, ErrorCode::Internal].contains(&error.code);
        assert!(full, "{session} does not start: {error:?}");
    }
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
            assert!(
                !log.live || log.waiting.is_empty(),
                "{id} has taken its input"
            );
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
