//! A status is true at every moment: during a fan of a hundred it is sampled in all the ways in which it can be asked,
//! and held against what the log up to that moment and the unread mail say.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use attache_engine::parts::RowFilter;
use attache_model::Request;
use attache_session::{Event, Position, QueueId, SessionId, Status};
use attache_store::Rows;
use attache_store::memory::MemoryStore;
use attache_testkit::{Gate, Piece, Puppet, World, text};
use serde_json::{Value, json};

const CHILDREN: usize = 100;

/// How far the tasks of the engine get between two samples is up to the scheduler: one step each.
const STEPS_A_TICK: usize = 3;

const TICK: Duration = Duration::from_millis(10);

/// One look at one session.
struct Sample {
    how: &'static str,
    session: SessionId,
    /// The newest event before and after the look.
    heads: (Position, Position),
    /// Whether mail that sets off a turn lay unread, before and after the look.
    mail: (bool, bool),
    status: Status,
}

/// The parent creates all, waits for all and answers. A child waits at its gate, makes a call, waits at its second
/// gate and answers.
fn fan(gates: &Arc<Vec<[Gate; 2]>>) -> impl Fn(&Request) -> Vec<Piece> + Send + Sync + use<> {
    let gates = Arc::clone(gates);
    move |request| {
        let task = Puppet::task(request);
        let Some(number) = task.strip_prefix("task ") else {
            return parent(request);
        };
        let [first, second] = &gates[number.parse::<usize>().unwrap()];
        if Puppet::results(request).is_empty() {
            let call = Piece::Call("agent_session_list".to_owned(), "{}".to_owned());
            return vec![Piece::Wait(first.clone()), call];
        }
        let mut pieces = text("done");
        pieces.insert(0, Piece::Wait(second.clone()));
        pieces
    }
}

fn parent(request: &Request) -> Vec<Piece> {
    let results: Vec<Value> = Puppet::results(request)
        .iter()
        .map(|result| serde_json::from_str(result).unwrap())
        .collect();
    match results.first() {
        None => (0..CHILDREN)
            .map(|number| {
                let arguments = json!({ "initial_message": format!("task {number}") });
                Piece::Call("agent_session_create".to_owned(), arguments.to_string())
            })
            .collect(),
        Some(first) if first["created_at"].is_string() => results
            .iter()
            .map(|made| {
                let arguments = json!({
                    "session_id": made["session_id"], "wait_for_idle": true, "timeout_seconds": 300,
                });
                Piece::Call("agent_session_wait".to_owned(), arguments.to_string())
            })
            .collect(),
        Some(_) => text("all done"),
    }
}

/// Looks at the tree.
struct Sampler {
    world: World,
    store: Arc<MemoryStore>,
    root: SessionId,
    samples: Vec<Sample>,
}

type Before = HashMap<SessionId, (Position, bool)>;

impl Sampler {
    fn moment(&self) -> Before {
        let rows = self.world.engine.rows(RowFilter::Tree(self.root)).unwrap();
        let look = |session| {
            let mail = self.store.mail(session, 1_000).unwrap();
            let sets_off = |body: &attache_session::MailBody| body.is_input() || body.is_notice();
            mail.iter().any(|mail| sets_off(&mail.body))
        };
        rows.iter()
            .map(|row| (row.session, (row.head, look(row.session))))
            .collect()
    }

    fn take(
        &mut self,
        how: &'static str,
        before: &Before,
        seen: Vec<(SessionId, Status)>,
    ) -> Before {
        let after = self.moment();
        for (session, status) in seen {
            // One that was born during the look has its log from the start.
            let (head, mail) = before
                .get(&session)
                .copied()
                .unwrap_or((Position(0), false));
            let (head_after, mail_after) = after[&session];
            self.samples.push(Sample {
                how,
                session,
                heads: (head, head_after),
                mail: (mail, mail_after),
                status,
            });
        }
        after
    }

    async fn look(&mut self, turn: usize) {
        let before = self.moment();
        let rows = self.world.engine.rows(RowFilter::Tree(self.root)).unwrap();
        let seen = rows.iter().map(|row| (row.session, row.status)).collect();
        let before = self.take("tree", &before, seen);

        let list = self.world.ask(self.root, "agent_session_list", json!({}));
        let list = list.await;
        let seen: Vec<_> = list.as_array().unwrap().iter().map(shown).collect();
        let one = (!seen.is_empty()).then(|| seen[turn % seen.len()].0);
        let before = self.take("list", &before, seen);

        let Some(one) = one else { return };
        let arguments = json!({ "session_id": one.to_string() });
        let get = self.world.ask(self.root, "agent_session_get", arguments);
        let seen = vec![shown(&get.await)];
        self.take("get", &before, seen);
    }
}

fn shown(row: &Value) -> (SessionId, Status) {
    let status = match row["status"].as_str().unwrap() {
        "running" => Status::Running,
        "idle" => Status::Idle,
        "stopped" => Status::Stopped,
        other => panic!("{other}"),
    };
    (row["session_id"].as_str().unwrap().parse().unwrap(), status)
}

/// What a log says at each of its positions: whether there is an epoch, and whether there is work.
fn truths(world: &World, session: SessionId) -> Vec<(bool, bool)> {
    let (mut live, mut turn) = (false, false);
    let mut waiting: BTreeMap<String, QueueId> = BTreeMap::new();
    let mut all = vec![(false, false)];
    for stamped in world.events(session) {
        match stamped.event {
            Event::Started { .. } => live = true,
            Event::Stopped { .. } => live = false,
            Event::TurnStarted { .. } => turn = true,
            Event::TurnEnded { .. } => turn = false,
            Event::Queued { queue, item } => {
                waiting.insert(item.id.to_string(), queue);
            }
            Event::Consumed { item, .. } => {
                waiting.remove(&item.id.to_string());
            }
            Event::QueueSet { .. } => {
                panic!("no queue is held here, so that all input is deliverable")
            }
            _ => {}
        }
        all.push((live, turn || !waiting.is_empty()));
    }
    all
}

#[tokio::test(start_paused = true)]
async fn status_is_true_during_a_fan_of_a_hundred() {
    let store = Arc::new(MemoryStore::new());
    let world = World::over(Arc::clone(&store) as Arc<dyn attache_store::Store>).await;
    let gates: Arc<Vec<[Gate; 2]>> =
        Arc::new((0..CHILDREN).map(|_| <[Gate; 2]>::default()).collect());
    world.puppet.teach(fan(&gates));
    let root = world.root(Some("go")).await;
    let mut sampler = Sampler {
        world,
        store,
        root,
        samples: Vec::new(),
    };
    let mut tick = tokio::time::interval(TICK);
    // Every tick lets some children on, each by one gate, so that they stand everywhere between.
    for round in 0..60 {
        tick.tick().await;
        for (number, [first, second]) in gates.iter().enumerate() {
            if number % 25 == round % 25 {
                first.open();
            }
            if round >= 25 && number % 25 == (round * 7) % 25 {
                second.open();
            }
        }
        // Input that lies in the mail of a child that is idle, or at work.
        let children = sampler
            .world
            .engine
            .rows(RowFilter::Children(root))
            .unwrap();
        if round % 3 == 0
            && let Some(child) = children.get(round * 5 % CHILDREN)
        {
            let arguments = json!({ "session_id": child.session.to_string(), "text": "and this" });
            let sent = sampler.world.ask(root, "agent_session_send", arguments);
            sent.await;
        }
        for step in 0..STEPS_A_TICK {
            sampler.look(round * STEPS_A_TICK + step).await;
            tokio::task::yield_now().await;
        }
    }
    sampler.world.quiet(root).await;
    sampler.look(0).await;

    let Sampler { world, samples, .. } = sampler;
    let mut logs: HashMap<SessionId, Vec<(bool, bool)>> = HashMap::new();
    let mut counts: BTreeMap<(&str, bool), usize> = BTreeMap::new();
    let (mut unread, mut between) = (0, 0);
    for sample in &samples {
        let log = logs
            .entry(sample.session)
            .or_insert_with(|| truths(&world, sample.session));
        let span = |head: Position| usize::try_from(head.0).unwrap();
        let moments = span(sample.heads.0)..=span(sample.heads.1);
        let at = |head: usize, mail: bool| match log[head] {
            (false, _) => Status::Stopped,
            (true, work) if work || mail => Status::Running,
            (true, _) => Status::Idle,
        };
        let allowed: Vec<Status> = moments
            .clone()
            .flat_map(|head| [at(head, sample.mail.0), at(head, sample.mail.1)])
            .collect();
        assert!(
            allowed.contains(&sample.status),
            "{} of {} at {moments:?} says {}, the log says {allowed:?}",
            sample.how,
            sample.session,
            sample.status,
        );
        unread += usize::from(sample.mail.0);
        between += usize::from(sample.heads.0 != sample.heads.1);
        if sample.session != root {
            *counts
                .entry((sample.how, sample.status == Status::Running))
                .or_default() += 1;
        }
    }
    // A sampling that saw only one kind of child has shown nothing.
    for how in ["tree", "list", "get"] {
        for running in [true, false] {
            assert!(
                counts.contains_key(&(how, running)),
                "{how} {running}: {counts:?}"
            );
        }
    }
    assert!(unread > 0, "no mail was ever seen unread");
    assert!(
        between * 100 < samples.len(),
        "{between} of {} looks saw the log move",
        samples.len()
    );
    assert_eq!(logs.len(), CHILDREN + 1);
}
