//! A world that plays a plan: a host in memory, its sessions, its viewers and their wires, under time that stands still while
//! there is work.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache_protocol::{Answer, Command, Immediacy, QueueRef};
use attache_session::{Command as Rule, Origin, QueueId};
use attache_testkit::{Break, Dice, pass, tools_as_slow_as};

use super::book::{Book, Counts};
use super::checks;
use super::plan::{Act, Into, Plan, Step};
use super::planted::{Bug, Planted};
use super::viewer::{Shared, Viewer};
use crate::kit::{Line, enqueue, host_that_plays, life};

/// The model: it says a text that is its input's own, in pieces that take a while, and calls a tool when it is asked to.
const SCRIPT: &str = r#"
rules:
  - when: {user: '^bear', step: 0}
    reply:
      - call: agent_session_create
        arguments: {initial_message: "a child's words"}
  - when: {user: '^calls', step: 0}
    reply:
      - text: "Let me look, because of ${user}."
        piece: 5
        every_ms: 10
      - call: agent_session_list
        arguments: {}
  - when: {user: '^flood'}
    reply:
      - text: "So much."
  - reply:
      - text: "Of ${user} this can be said, word by word and piece by piece, until it is all."
        piece: 6
        every_ms: 11
"#;

/// Longer than any reply, any loss that is not noticed, and grace.
const REST: Duration = Duration::from_secs(30);

/// Virtual milliseconds that a tool takes at most, twice: long enough for somebody to come meanwhile.
const TOOL_MS: u64 = 400;

/// A text that takes six times its bytes in a frame, and so many of them that no window holds all.
const FLOOD_BYTES: usize = 56 * 1024;
const FLOOD_TEXTS: usize = 13;

/// Plays a plan: how often everything occurred, and what was wrong.
pub(crate) fn play(plan: &Plan, bug: Option<Planted>) -> (Counts, Vec<String>) {
    life(async {
        let mut dice = Dice::new(plan.head.seed);
        let tools = tools_as_slow_as(&attache_tools::built_in(), dice.fork(), TOOL_MS);
        let host = host_that_plays(SCRIPT, tools).await;
        let mut line = Line::to(&host).await;
        let mut sessions = Vec::new();
        for number in 1..=plan.head.roots {
            let number = u32::try_from(number).unwrap();
            sessions.push(line.create(number).await);
        }
        if plan.head.child {
            sessions.push(bear(&mut line, &sessions[0]).await);
        }
        let book = Book::new(host.engine().clone(), bug.map(Bug::new));
        let book = Arc::new(Mutex::new(book));
        let floods = plan.steps.iter().any(|step| step.act == Act::Flood {});
        let viewers = plan.head.viewers.iter().enumerate().map(|(number, looks)| {
            let session = sessions[looks.session % sessions.len()].clone();
            let (host, book) = (host.clone(), Arc::clone(&book));
            let name = format!("v{number}");
            let mut viewer = Viewer::new(name, session, looks.read_only, host, book, dice.fork());
            viewer.floods = floods;
            Arc::new(Mutex::new(viewer))
        });
        let viewers: Vec<Shared> = viewers.collect();
        for viewer in &viewers {
            Viewer::connect(viewer, Duration::ZERO);
        }
        for step in &plan.steps {
            pass(Duration::from_millis(step.after)).await;
            act(step, &viewers, &book).await;
        }
        come_to_rest(&viewers).await;
        let mut wrong = Vec::new();
        let mut truths = BTreeMap::new();
        for session in &sessions {
            let truth = checks::truth(&mut line, session).await;
            let state = host.engine().state(session.parse().unwrap()).await.unwrap();
            checks::snapshot_is_true(&truth, &state, &mut wrong);
            truths.insert(session.clone(), truth);
        }
        for viewer in &viewers {
            let viewer = viewer.lock().unwrap();
            let pending: Vec<&str> = viewer.end.pending().collect();
            if !viewer.follows() || !pending.is_empty() {
                wrong.push(format!(
                    "a viewer is not attached, or waits for {pending:?}"
                ));
            }
            checks::mirror_is_true(&viewer, &truths[&viewer.session], &mut wrong);
        }
        let mut book = book.lock().unwrap();
        checks::commands_took_effect_once(&mut book);
        let mut all = std::mem::take(&mut book.wrong);
        all.extend(wrong);
        (std::mem::take(&mut book.counts), all)
    })
}

/// A child of a session.
async fn bear(line: &mut Line, parent: &str) -> String {
    let bear = enqueue(parent, QueueRef::Default {}, "bear");
    line.ask(bear).await.unwrap();
    pass(REST).await;
    let tree = Command::ListSessions {
        root_session_id: Some(parent.to_owned()),
        after_session_id: None,
    };
    match line.ask(tree).await.unwrap() {
        Answer::Sessions { sessions, .. } => sessions[1].session_id.clone(),
        other => panic!("{other:?}"),
    }
}

/// Everybody reads, comes back and attaches, and then nothing more happens.
async fn come_to_rest(viewers: &[Shared]) {
    for viewer in viewers {
        viewer.lock().unwrap().stall(false);
    }
    // A wire that is about to break does so before its viewer comes back.
    pass(Duration::from_millis(500)).await;
    for viewer in viewers {
        if !viewer.lock().unwrap().is_connected() {
            Viewer::connect(viewer, Duration::ZERO);
        }
    }
    pass(REST).await;
    for viewer in viewers {
        let mut viewer = viewer.lock().unwrap();
        if !viewer.follows() {
            viewer.again();
        }
    }
    pass(REST).await;
}

async fn act(step: &Step, viewers: &[Shared], book: &Arc<Mutex<Book>>) {
    let shared = &viewers[step.viewer % viewers.len()];
    let ms = Duration::from_millis;
    match step.act {
        Act::Connect { unnoticed } => Viewer::connect(shared, ms(unnoticed)),
        Act::Restart {} => Viewer::restart(shared),
        Act::Cut {
            up,
            down,
            unnoticed,
        } => shared.lock().unwrap().cut(Break {
            up,
            down,
            unnoticed: ms(unnoticed),
        }),
        Act::Stall {} => shared.lock().unwrap().stall(true),
        Act::ReadOn {} => shared.lock().unwrap().stall(false),
        Act::Attach {} => shared.lock().unwrap().again(),
        Act::Repeat { back } => shared.lock().unwrap().repeat(back),
        Act::Flood {} => {
            let session = shared.lock().unwrap().session.parse().unwrap();
            let engine = book.lock().unwrap().engine.clone();
            for number in 0..FLOOD_TEXTS {
                let rule = Rule::Enqueue {
                    item: None,
                    queue: QueueId::Default,
                    text: format!("flood {number} {}", "\u{1}".repeat(FLOOD_BYTES)).into(),
                    origin: Origin::Viewer,
                };
                engine.command(session, rule, None).await.unwrap();
            }
            book.lock().unwrap().count("a flood");
        }
        _ => {
            let command = command(step, &shared.lock().unwrap(), &mut book.lock().unwrap());
            if let Some(command) = command {
                shared.lock().unwrap().command(command);
            }
        }
    }
}

/// The command that a step means, as its viewer sees the session now; none where it sees nothing of the kind.
fn command(step: &Step, viewer: &Viewer, book: &mut Book) -> Option<Command> {
    let session_id = viewer.session.clone();
    let queues = &viewer.mirror().queues;
    let items = queues.iter().flat_map(|queue| &queue.items);
    let items: Vec<_> = items.collect();
    let item = |nth: usize| items.get(nth % items.len().max(1)).copied();
    let queue = |nth: usize| queues.get(nth % queues.len().max(1));
    Some(match step.act {
        Act::Enqueue { into, calls, start } => Command::Enqueue {
            session_id,
            queue: match into {
                Into::Immediate => QueueRef::Immediate {},
                Into::Default => QueueRef::Default {},
                Into::Held | Into::Aside => QueueRef::Named {
                    name: format!("{into:?}"),
                    held: into == Into::Held,
                },
            },
            text: book.fresh(if calls { "calls t" } else { "t" }),
            start,
            environment: BTreeMap::new(),
        },
        Act::Edit { nth } => Command::EditItem {
            session_id,
            item_id: item(nth)?.item_id.clone(),
            text: book.fresh("e"),
            expected_revision: item(nth)?.revision,
        },
        Act::Remove { nth } => Command::RemoveItem {
            session_id,
            item_id: item(nth)?.item_id.clone(),
            expected_revision: item(nth)?.revision,
        },
        Act::Move { nth, to, first } => Command::MoveItem {
            session_id,
            item_id: item(nth)?.item_id.clone(),
            queue_id: queue(to)?.queue_id.clone(),
            before_item_id: queue(to)?
                .items
                .first()
                .filter(|_| first)
                .map(|it| it.item_id.clone()),
            expected_revision: item(nth)?.revision,
        },
        Act::CreateQueue { held } => Command::CreateQueue {
            session_id,
            name: Some(book.fresh("q")),
            immediacy: if held {
                Immediacy::Held
            } else {
                Immediacy::Queue
            },
        },
        Act::Configure { nth } => Command::ConfigureQueue {
            session_id,
            queue_id: queue(nth)?.queue_id.clone(),
            immediacy: (queue(nth)?.immediacy != Immediacy::Held).then_some(Immediacy::Held),
            expected_revision: queue(nth)?.revision,
        },
        Act::DeleteQueue { nth } => {
            // The two that every session has cannot be deleted, and come first.
            let custom = queues.get(2 + nth % queues.len().saturating_sub(2).max(1))?;
            Command::DeleteQueue {
                session_id,
                queue_id: custom.queue_id.clone(),
                expected_revision: custom.revision,
            }
        }
        Act::Interrupt {} => Command::Interrupt {
            session_id,
            tree: false,
        },
        Act::Terminate {} => Command::Terminate { session_id },
        Act::Start {} => Command::StartSession {
            session_id,
            environment: BTreeMap::new(),
        },
        // Whoever only looks is bound by its attachment.
        Act::Detach {} if !viewer.read_only => Command::Detach { session_id },
        _ => return None,
    })
}
