//! Who plays in a simulation: models that do anything with their children, and people who interfere.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use attache_model::{ErrorKind, ModelError};
use attache_session::{Answer, Command, ErrorCode, Immediacy, ItemId, Origin, QueueId, SessionId};
use attache_testkit::{Dice, Message, Piece, Puppet, Request, World, text};
use serde_json::{Value, json};

use crate::simulation::{Counts, count};
use crate::truth::{self, TreeEnd};

/// Requests of one life after which models only answer, so that every plan ends.
const REQUESTS: u32 = 40;

/// One request in so many fails.
const FAILS_ONCE_IN: u64 = 30;

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

/// What a model says.
pub(crate) fn say(request: &Request, dice: &mut Dice, requests: &mut u32) -> Vec<Piece> {
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
pub(crate) type Accepted = Arc<Mutex<Vec<ItemId>>>;

/// What people do meanwhile.
pub(crate) async fn people(
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
        match dice.below(14) {
            12 => make_queue(world, dice, session).await,
            13 => delete_queue(world, session).await,
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

/// Starts a session as a person does who is told that the disk is full, makes room, and asks again.
pub(crate) async fn start(world: &World, session: SessionId, counts: &mut Counts) {
    while let Err(error) = world.engine.start(session, None).await {
        count(counts, "a start refused");
        let full = [ErrorCode::StorageFull, ErrorCode::Internal].contains(&error.code);
        assert!(full, "{session} does not start: {error:?}");
    }
}
