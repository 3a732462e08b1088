//! A status is true at every moment: during a fan of a hundred, of which some fail and some are ended in the middle, it
//! is sampled in all the ways in which it can be asked, and held against what the log up to that moment and the unread
//! mail say.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use attache_engine::TreeFeed;
use attache_engine::parts::RowFilter;
use attache_model::{ErrorKind, ModelError, Request};
use attache_session::{EndReason, Event, Position, QueueId, SessionId, Status};
use attache_store::Store;
use attache_store::memory::MemoryStore;
use attache_store::sqlite::{Options, SqliteStore};
use attache_testkit::{Gate, Piece, Puppet, World, text};
use serde_json::{Value, json};

const CHILDREN: usize = 100;

/// Children that are looked at alone in each tick; the next ones each time.
const GETS_A_TICK: usize = 3;

const TICK: Duration = Duration::from_millis(10);

/// Ticks after which every gate is open.
const ROUNDS: usize = 60;

/// The ways in which a status can be asked.
const WAYS: [&str; 4] = ["tree", "feed", "list", "get"];

const STATUSES: [Status; 4] = [
    Status::Running,
    Status::Idle,
    Status::Stopped,
    Status::Error,
];

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
/// gate and answers, or its model fails there.
fn fan(gates: &Arc<Vec<[Gate; 2]>>) -> impl Fn(&Request) -> Vec<Piece> + Send + Sync + use<> {
    let gates = Arc::clone(gates);
    move |request| {
        let task = Puppet::task(request);
        let Some(number) = task.strip_prefix("task ") else {
            return parent(request);
        };
        let number = number.parse::<usize>().unwrap();
        let [first, second] = &gates[number];
        if Puppet::results(request).is_empty() {
            let call = Piece::Call("agent_session_list".to_owned(), "{}".to_owned());
            return vec![Piece::Wait(first.clone()), call];
        }
        let end = if number % 10 == 3 {
            Piece::Fail(ModelError::new(ErrorKind::Refused, "no"))
        } else {
            Piece::Text("done".to_owned())
        };
        vec![Piece::Wait(second.clone()), end]
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
    store: Arc<dyn Store>,
    root: SessionId,
    feed: TreeFeed,
    /// What the feed led to last, of each session.
    fed: HashMap<SessionId, Status>,
    samples: Vec<Sample>,
}

type Before = HashMap<SessionId, (Position, bool)>;

impl Sampler {
    /// Where sessions stand now: of the whole tree, or the ones that are named.
    fn moment(&self, of: Option<&[SessionId]>) -> Before {
        let engine = &self.world.engine;
        let rows = match of {
            None => engine.rows(RowFilter::Tree(self.root)).unwrap(),
            Some(ids) => ids.iter().map(|id| engine.row(*id).unwrap()).collect(),
        };
        let look = |session| {
            let mail = self.store.mail(session, 1_000).unwrap();
            let sets_off = |body: &attache_session::MailBody| body.is_input() || body.is_notice();
            mail.iter().any(|mail| sets_off(&mail.body))
        };
        rows.iter()
            .map(|row| (row.session, (row.head, look(row.session))))
            .collect()
    }

    /// Keeps what a look has seen between two moments.
    fn keep(
        &mut self,
        how: &'static str,
        before: &Before,
        seen: Vec<(SessionId, Status)>,
        after: &Before,
    ) {
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
    }

    /// Reads the rows that the feed names.
    fn follow(&mut self, changed: &[SessionId]) -> Vec<(SessionId, Status)> {
        let row = |id: &SessionId| (*id, self.world.engine.row(*id).unwrap().status);
        let seen: Vec<_> = changed.iter().map(row).collect();
        self.fed.extend(seen.iter().copied());
        seen
    }

    async fn look(&mut self, gets: impl Iterator<Item = usize>) {
        let before = self.moment(None);
        let rows = self.world.engine.rows(RowFilter::Tree(self.root)).unwrap();
        let seen = rows.iter().map(|row| (row.session, row.status)).collect();
        let after = self.moment(None);
        self.keep("tree", &before, seen, &after);

        let before = after;
        let list = self.world.ask(self.root, "agent_session_list", json!({}));
        let list = list.await;
        let seen: Vec<_> = list.as_array().unwrap().iter().map(shown).collect();
        let listed: Vec<SessionId> = seen.iter().map(|(id, _)| *id).collect();
        let after = self.moment(None);
        self.keep("list", &before, seen, &after);

        let changed = tokio::select! {
            biased;
            changed = self.feed.next() => changed,
            () = std::future::ready(()) => Vec::new(),
        };
        let before = self.moment(Some(&changed));
        let seen = self.follow(&changed);
        let after = self.moment(Some(&changed));
        self.keep("feed", &before, seen, &after);

        for turn in gets.filter(|_| !listed.is_empty()) {
            let one = listed[turn % listed.len()];
            let before = self.moment(Some(&[one]));
            let arguments = json!({ "session_id": one.to_string() });
            let get = self.world.ask(self.root, "agent_session_get", arguments);
            let get = get.await;
            assert_eq!(get["is_busy"], get["status"] == "running", "{get}");
            let after = self.moment(Some(&[one]));
            self.keep("get", &before, vec![shown(&get)], &after);
        }
    }

    /// Does with one of the children what a round has for it: some get input that lies in their mail while they are idle
    /// or at work, some are given up in the middle, some terminated.
    async fn meddle(&self, round: usize) {
        let (engine, root) = (&self.world.engine, self.root);
        let children = engine.rows(RowFilter::Children(root)).unwrap();
        let place = |step: usize, first: usize| (first + step * 10) % CHILDREN;
        let (place, tool, mut arguments) = match round % 6 {
            0 | 3 => (
                round * 5 % CHILDREN,
                "agent_session_send",
                json!({ "text": "and this" }),
            ),
            1 => (
                place(round / 6, 7),
                "agent_session_stop",
                json!({ "dispose": true }),
            ),
            4 => {
                if let Some(child) = children.get(place(round / 6, 9)) {
                    engine.terminate(child.session).await.unwrap();
                }
                return;
            }
            _ => return,
        };
        if let Some(child) = children.get(place) {
            arguments["session_id"] = json!(child.session.to_string());
            let done = self.world.call(root, tool, arguments).await;
            assert!(!done.is_error, "{}", done.content);
        }
    }

    /// The feed has told of all that changed, however late.
    async fn feed_is_complete(&mut self) {
        let rows = self.world.engine.rows(RowFilter::Tree(self.root)).unwrap();
        let now: HashMap<SessionId, Status> =
            rows.iter().map(|row| (row.session, row.status)).collect();
        while self.fed != now {
            let changed = tokio::time::timeout(Duration::from_secs(20), self.feed.next());
            let changed = changed.await.expect("the feed tells of each change");
            self.follow(&changed);
        }
    }
}

fn shown(row: &Value) -> (SessionId, Status) {
    let status = Status::parse(row["status"].as_str().unwrap()).unwrap();
    (row["session_id"].as_str().unwrap().parse().unwrap(), status)
}

/// What a log says at one of its positions.
#[derive(Clone, Copy, Default)]
struct Truth {
    /// There is an epoch.
    live: bool,
    /// A turn is in flight, or input waits.
    work: bool,
    /// The last run ended on a fault.
    wrong: bool,
}

/// The same at all of its positions.
fn truths(world: &World, session: SessionId) -> Vec<Truth> {
    let (mut now, mut turn) = (Truth::default(), false);
    let mut waiting: BTreeMap<String, QueueId> = BTreeMap::new();
    let mut all = vec![now];
    for stamped in world.events(session) {
        match stamped.event {
            Event::Started { .. } => now.live = true,
            Event::Stopped { .. } => now.live = false,
            Event::TurnStarted { .. } => turn = true,
            Event::TurnEnded { reason, .. } => {
                turn = false;
                now.wrong = reason == EndReason::ProviderError;
            }
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
        now.work = turn || !waiting.is_empty();
        all.push(now);
    }
    all
}

/// What came of a sampling.
struct Sampled {
    samples: usize,
    /// Looks during which the log of the session went on.
    between: usize,
    /// Those of a session with unread mail: in real time mail may be taken faster than anybody looks.
    unread: usize,
    /// How often each status was seen in each way.
    counts: BTreeMap<(&'static str, &'static str), usize>,
}

impl Sampled {
    /// A sampling that did not see all kinds of children in all ways has shown nothing.
    fn saw_everything(&self) {
        for how in WAYS {
            for status in STATUSES {
                let seen = self.counts.contains_key(&(how, status.as_str()));
                assert!(seen, "{how} {status}: {:?}", self.counts);
            }
        }
    }
}

/// Samples a fan from its begin to its end, and holds every sample against the logs.
///
/// In each tick it looks `steps` times, and lets the tasks of the engine go on by a step in between.
async fn sample_a_fan(store: Arc<dyn Store>, steps: usize) -> Sampled {
    let world = World::over(Arc::clone(&store)).await;
    let gates: Arc<Vec<[Gate; 2]>> =
        Arc::new((0..CHILDREN).map(|_| <[Gate; 2]>::default()).collect());
    world.puppet.teach(fan(&gates));
    let feed = world.engine.tree_feed();
    let root = world.root(Some("go")).await;
    let mut sampler = Sampler {
        world,
        store,
        root,
        feed,
        fed: HashMap::new(),
        samples: Vec::new(),
    };
    let mut tick = tokio::time::interval(TICK);
    let mut round = 0;
    // Every tick lets some children on, each by one gate, so that they stand everywhere between.
    while round < ROUNDS || sampler.world.row(root).status == Status::Running {
        tick.tick().await;
        for (number, [first, second]) in gates.iter().enumerate() {
            if number % 25 == round % 25 {
                first.open();
            }
            if round >= 25 && number % 25 == (round * 7) % 25 {
                second.open();
            }
        }
        if round < ROUNDS {
            sampler.meddle(round).await;
        }
        let gets = round * GETS_A_TICK..(round + 1) * GETS_A_TICK;
        for step in 0..steps {
            sampler.look(gets.clone().skip(step).step_by(steps)).await;
            tokio::task::yield_now().await;
        }
        round += 1;
    }
    sampler.world.quiet(root).await;
    sampler.look(0..CHILDREN).await;
    sampler.feed_is_complete().await;

    let Sampler { world, samples, .. } = sampler;
    let mut logs: HashMap<SessionId, Vec<Truth>> = HashMap::new();
    let mut counts = BTreeMap::new();
    let (mut unread, mut between) = (0, 0);
    for sample in &samples {
        let log = logs
            .entry(sample.session)
            .or_insert_with(|| truths(&world, sample.session));
        let span = |head: Position| usize::try_from(head.0).unwrap();
        let moments = span(sample.heads.0)..=span(sample.heads.1);
        let at = |head: usize, mail: bool| match log[head] {
            Truth { live: false, .. } => Status::Stopped,
            Truth { work, .. } if work || mail => Status::Running,
            Truth { wrong: true, .. } => Status::Error,
            _ => Status::Idle,
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
                .entry((sample.how, sample.status.as_str()))
                .or_default() += 1;
        }
    }
    assert_eq!(logs.len(), CHILDREN + 1);
    Sampled {
        samples: samples.len(),
        between,
        unread,
        counts,
    }
}

#[tokio::test(start_paused = true)]
async fn status_is_true_during_a_fan_of_a_hundred() {
    let sampled = sample_a_fan(Arc::new(MemoryStore::new()), 3).await;
    sampled.saw_everything();
    assert!(sampled.unread > 0, "no mail was ever seen unread");
    // Nothing else goes on during a look here.
    assert!(sampled.between * 100 < sampled.samples);
}

/// The same beside everything else: sessions work on threads of their own, and each append takes its real time.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn status_is_true_in_real_time_over_a_store_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&folder.path().join("store.db"), Options::default()).unwrap();
    sample_a_fan(Arc::new(store), 1).await.saw_everything();
}
