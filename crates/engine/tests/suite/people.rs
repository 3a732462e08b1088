//! People who play in a simulation: they send, interrupt, end and start, change queues and limits, cut conversations, look
//! on, and one of them is another host that takes a session over for a moment.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache_engine::{Observed, Time as _};
use attache_session::{
    Answer, BudgetChange, Command, ErrorCode, Event, Immediacy, ItemId, Origin, Position, QueueId,
    QueuedItem, SessionId, Stamped, State, Status, Summary,
};
use attache_store::{Append, Log as _, MemoryStore, Rows as _, Writes as _};
use attache_testkit::{Dice, FaultyStore, World};
use tokio::task::JoinSet;

use crate::players::budget;
use crate::tally::{Counts, count};
use crate::truth::{self, TreeEnd};

/// Input that was acknowledged.
pub(crate) type Accepted = Arc<Mutex<Vec<ItemId>>>;

/// How often somebody asks who is told that another host has the session now; the one who comes next finds it.
const ASKS: u32 = 4;

/// People in one life of a world.
pub(crate) struct People<'a> {
    pub(crate) world: &'a World,
    pub(crate) store: &'a FaultyStore,
    pub(crate) memory: &'a MemoryStore,
    pub(crate) dice: Dice,
    pub(crate) accepted: &'a Accepted,
    pub(crate) ended: &'a Mutex<Vec<TreeEnd>>,
    pub(crate) counts: &'a mut Counts,
}

impl People<'_> {
    /// Starts a session as a person does who is told that the disk is full, makes room, and asks again.
    pub(crate) async fn start(&mut self, session: SessionId) {
        while let Err(error) = self.world.engine.start(session, None).await {
            count(self.counts, "a start refused");
            let full = [ErrorCode::StorageFull, ErrorCode::Internal].contains(&error.code);
            assert!(full, "{session} does not start: {error:?}");
        }
    }

    /// Now and then somebody sets a limit while others are still left as an earlier life of the host left them.
    pub(crate) async fn set_now_and_then(&mut self, session: SessionId) {
        if self.dice.chance(4) {
            self.set_bounds(session).await;
        }
    }

    /// What they do meanwhile.
    pub(crate) async fn act(&mut self) {
        let mut loaded = HashMap::new();
        let mut viewers: HashMap<SessionId, Observed> = HashMap::new();
        let mut cuts = JoinSet::new();
        for number in 0..10 + self.dice.below(10) {
            attache_testkit::pass(Duration::from_millis(self.dice.below(60))).await;
            let all = truth::sessions(self.world);
            self.look(&all, &mut loaded);
            let session = *self.dice.pick(&all);
            match self.dice.below(22) {
                0..5 => {
                    let text = format!("work 1 by hand {number}");
                    let _full = self.send(session, &text).await;
                }
                5 | 6 => self.interrupt(session).await,
                7 => drop(self.world.engine.terminate(session).await),
                8 => drop(self.world.engine.start(session, None).await),
                9..12 => change_queue(self.world, &mut self.dice, session).await,
                12 => make_queue(self.world, &mut self.dice, session).await,
                13 => delete_queue(self.world, session).await,
                14..18 => self.set_bounds(session).await,
                18 => {
                    let engine = self.world.engine.clone();
                    cuts.spawn(async move { engine.compact(session).await });
                }
                19 | 20 => match viewers.remove(&session) {
                    Some(gone) => drop(gone),
                    None => {
                        // One whose log has to be mended first cannot be seen while the disk is full.
                        if let Ok(seen) = self.world.engine.attach(session).await {
                            viewers.insert(session, seen);
                            count(self.counts, "a viewer");
                        }
                    }
                },
                _ => self.own_elsewhere(session).await,
            }
        }
        while let Some(cut) = cuts.join_next().await {
            if let Ok(Ok(())) = cut {
                count(self.counts, "a cut by hand");
            }
        }
    }

    /// Looks what lies unread, who is in memory, and who waits for a place.
    fn look(&mut self, all: &[SessionId], loaded: &mut HashMap<SessionId, bool>) {
        for id in all {
            let row = self.world.row(*id);
            assert_eq!(row.view.unread, truth::unread(self.memory, *id));
            if row.status == Status::Stopped {
                loaded.remove(id);
                continue;
            }
            let is = self.world.engine.live(*id).is_some();
            match (loaded.insert(*id, is), is) {
                (Some(true), false) => count(self.counts, "an unload"),
                (Some(false), true) => count(self.counts, "a load again"),
                _ => {}
            }
            let note = row.note.map(|note| note.to_string());
            if note.is_some_and(|note| note.starts_with("waits for a place")) {
                count(self.counts, "a turn waits for a place");
            }
        }
    }

    /// Whether it was accepted.
    async fn send(&mut self, session: SessionId, text: &str) -> bool {
        for _ in 0..ASKS {
            let command = Command::Enqueue {
                item: None,
                queue: if self.dice.chance(2) {
                    QueueId::Immediate
                } else {
                    QueueId::Default
                },
                text: text.into(),
                origin: Origin::Viewer,
            };
            match self.world.engine.command(session, command, None).await {
                Ok(Answer::Accepted { item }) => {
                    self.accepted.lock().expect("no holder fails").push(item);
                    return true;
                }
                Err(error) if error.code == ErrorCode::StorageFull => {
                    count(self.counts, "input refused for a full disk");
                    return false;
                }
                Err(error) if error.code == ErrorCode::EpochFenced => {
                    count(self.counts, "a command fenced");
                }
                other => panic!("input of people: {other:?}"),
            }
        }
        panic!("{session} does not come back");
    }

    async fn interrupt(&mut self, session: SessionId) {
        let tree = self.dice.chance(2);
        let now = || self.world.time.now();
        if tree {
            let end = TreeEnd {
                top: session,
                from: now(),
                to: None,
            };
            self.ended.lock().expect("no holder fails").push(end);
        }
        if self.world.engine.interrupt(session, tree).await == Ok(true) {
            count(self.counts, "an interrupt that hit");
        }
        if tree && let Some(end) = self.ended.lock().expect("no holder fails").last_mut() {
            end.to = Some(now());
        }
    }

    /// Sets limits, raises or lifts those that are set, stops what grows, or lets it grow again.
    async fn set_bounds(&mut self, session: SessionId) {
        let bounds = Arc::clone(&self.world.row(session).view.summary.bounds);
        let change = match self.dice.below(3) {
            0 => budget(&mut self.dice),
            other => {
                let more = 2 + 2 * self.dice.below(2);
                let mut change = BudgetChange::default();
                for (limit, most) in bounds.budget.iter() {
                    let most = (other == 1).then(|| limit.shown(most * more));
                    let added = change.add(limit.as_str(), most.as_deref().unwrap_or("none"));
                    added.expect("each once");
                }
                change
            }
        };
        for (limit, most) in change.iter() {
            match (bounds.budget.get(limit), most) {
                (Some(_), None) => count(self.counts, "a limit lifted"),
                (Some(before), Some(most)) if most < before => {
                    count(self.counts, "a limit lowered");
                }
                (Some(before), Some(most)) if most > before => {
                    count(self.counts, "a limit raised");
                }
                _ => {}
            }
        }
        let paused = match self.dice.below(4) {
            0 => Some(true),
            1 | 2 => Some(false),
            _ => None,
        };
        let set = self.world.engine.set_budget(session, change, paused).await;
        match (bounds.paused, paused) {
            (false, Some(true)) if set == Ok(true) => count(self.counts, "a tree paused"),
            (true, Some(false)) if set == Ok(true) => count(self.counts, "a tree resumed"),
            _ => {}
        }
    }

    /// Another host takes the session, writes what somebody says there, and is gone.
    async fn own_elsewhere(&mut self, session: SessionId) {
        let row = self.memory.row(session).expect("rows can be read");
        let row = row.expect("the session exists");
        // It is carried out by now, whether or not anybody waits for the answer.
        drop(self.store.claim(session, row.generation));
        let row = self.memory.row(session).expect("rows can be read");
        let row = row.expect("the session exists");
        let mut state = State::empty(session);
        let log = self.memory.events(session, Position(0), usize::MAX);
        for item in log.expect("the log can be read") {
            state.apply(&item.event);
        }
        let item = ItemId(self.world.time.fresh());
        let said = Stamped {
            at: self.world.time.now(),
            observed: None,
            event: Event::Queued {
                queue: QueueId::Default,
                item: Arc::new(QueuedItem {
                    id: item,
                    revision: 0,
                    text: "work 1 elsewhere".into(),
                    origin: Origin::Viewer,
                }),
            },
        };
        state.apply(&said);
        let append = Append {
            session,
            generation: row.generation,
            expected: row.head,
            events: vec![said],
            summary: Summary::of(&state).expect("it was born"),
            mail: Vec::new(),
            taken: Vec::new(),
            charges: Vec::new(),
            births: Vec::new(),
            links: Vec::new(),
            command: None,
            expects: Vec::new(),
        };
        // The disk may be full there too.
        if self.store.commit_elsewhere(append).await.is_ok() {
            count(self.counts, "an owner elsewhere");
            self.accepted.lock().expect("no holder fails").push(item);
        }
        // Nobody here knows what was said there before somebody asks, who makes room if the disk is full.
        while !self.send(session, "work 1 after another owner").await {}
    }
}

/// Makes a queue and puts something into it, or turns one that is there to what it was not.
async fn make_queue(world: &World, dice: &mut Dice, session: SessionId) {
    let Ok(state) = world.engine.state(session).await else {
        return;
    };
    let custom = state.queues.iter().map(|queue| (queue.id, queue.immediacy));
    let custom = custom.filter(|(id, _)| matches!(id, QueueId::Custom(_)));
    let custom: Vec<_> = custom.collect();
    let command = if custom.is_empty() {
        Command::CreateQueue {
            name: None,
            immediacy: *dice.pick(Immediacy::ALL),
        }
    } else {
        let (queue, immediacy) = *dice.pick(&custom);
        Command::ConfigureQueue {
            queue,
            immediacy: (immediacy != Immediacy::Held).then_some(Immediacy::Held),
            expected: None,
        }
    };
    let _full = world.engine.command(session, command, None).await;
    let more = Command::Enqueue {
        item: None,
        queue: QueueId::Custom(0),
        text: "work 1 in a queue of its own".into(),
        origin: Origin::Viewer,
    };
    let _none_or_full = world.engine.command(session, more, None).await;
}

/// Deletes a queue, if there is one and it is empty.
async fn delete_queue(world: &World, session: SessionId) {
    let Ok(state) = world.engine.state(session).await else {
        return;
    };
    let mut custom = state.queues.iter();
    let custom = custom.find(|queue| matches!(queue.id, QueueId::Custom(_)));
    let Some(queue) = custom else { return };
    let command = Command::DeleteQueue {
        queue: queue.id,
        expected: queue.revision,
    };
    // It may hold something, or get something meanwhile.
    let _kept = world.engine.command(session, command, None).await;
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
