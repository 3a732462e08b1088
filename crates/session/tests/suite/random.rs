//! Random commands, whatever their order: nothing panics, the log folds to the state, each call
//! has one result before the model speaks again, and no input is lost or taken twice.

use std::collections::{HashMap, HashSet};

use attache_session::{
    Command, EndReason, Event, Immediacy, ItemId, MailBody, Notice, QueueId, Rejected, Stamped,
    StopReason, TurnId,
};
use proptest::prelude::*;

use crate::desk::{Desk, call, child, eid, enqueue, iid, result, said, sid, wid};

/// A command with small numbers in it, so that ids often fit and often do not.
#[derive(Clone, Debug)]
struct Plan {
    which: u8,
    a: u8,
    b: u8,
    flag: bool,
}

fn plan() -> impl Strategy<Value = Plan> {
    (0..22_u8, 0..4_u8, 0..4_u8, any::<bool>()).prop_map(|(which, a, b, flag)| Plan {
        which,
        a,
        b,
        flag,
    })
}

fn queue(number: u8) -> QueueId {
    match number {
        0 => QueueId::Immediate,
        1 => QueueId::Default,
        other => QueueId::Custom(u32::from(other) - 2),
    }
}

/// What a plan means now. Call ids are unique, as the agent makes them.
fn command(plan: &Plan, desk: &mut Desk, count: usize) -> Command {
    let Plan { which, a, b, flag } = *plan;
    let (an, bn) = (u128::from(a), u128::from(b));
    let turn = TurnId(desk.turn().0 + u32::from(a == 3));
    let item = desk
        .state
        .queues
        .iter()
        .flat_map(|queue| &queue.items)
        .nth(usize::from(a))
        .map_or(iid(77), |item| item.id);
    let open = desk.state.turn.as_ref().map_or(&[][..], |turn| &turn.calls);
    let open: Vec<String> = open.iter().map(|call| call.id.to_string()).collect();
    let revision = u32::from(b / 3);
    match which {
        0 | 1 => enqueue(None, queue(a), if b == 3 { " " } else { "text" }),
        2 => Command::Edit {
            item,
            text: "edited".into(),
            expected: revision,
        },
        3 => Command::Withdraw {
            item,
            expected: revision,
        },
        4 => Command::Move {
            item,
            queue: queue(b),
            before: flag.then_some(iid(77)),
            expected: 0,
        },
        5 => Command::CreateQueue {
            name: None,
            immediacy: Immediacy::ALL[usize::from(a % 3)],
        },
        6 => Command::ConfigureQueue {
            queue: queue(a),
            immediacy: Immediacy::ALL.get(usize::from(b)).copied(),
            expected: None,
        },
        7 => Command::DeleteQueue {
            queue: queue(a),
            expected: desk.state.queue(queue(a)).map_or(0, |queue| queue.revision),
        },
        8 => Command::Start {
            epoch: eid(200 + count as u128),
        },
        // A model speaks only when all its calls have results.
        9 | 10 if open.is_empty() => Command::RecordStep {
            turn,
            step: said("step"),
            calls: (0..b).map(|n| call(&format!("c{count}-{n}"))).collect(),
        },
        9..=12 => Command::RecordResults {
            turn,
            results: open
                .iter()
                .skip(usize::from(a))
                .take(1 + usize::from(b))
                .map(|id| result(id))
                .chain(flag.then(|| result("nowhere")))
                .collect(),
        },
        13 => Command::EndTurn {
            turn,
            reason: EndReason::ALL[usize::from(a * 3 + b) % EndReason::ALL.len()],
            step: flag.then(|| said("last")),
            error: None,
        },
        14 => Command::Cancel {
            reason: EndReason::Interrupted,
            watches: flag,
        },
        15 => Command::Stop {
            reason: StopReason::ALL[usize::from(a)],
            partial: flag.then(|| said("partial")),
        },
        16 => Command::Recover { partial: None },
        17 => Command::Spawn {
            call: flag.then(|| format!("spawn-{a}").into()),
            child: Box::new(child(10 + an, sid(1), None)),
        },
        18 if flag => Command::Acquire {
            child: sid(10 + an),
        },
        18 => Command::Release {
            child: sid(10 + an),
        },
        19 => Command::Send {
            to: sid(10 + an),
            epoch: eid(1),
            item: iid(300 + count as u128),
            text: "sent".into(),
            immediate: flag,
        },
        20 => Command::Watch {
            watch: wid(count as u128),
            target: if a == 0 { sid(1) } else { sid(10 + an) },
            message: None,
            settled: None,
        },
        _ => {
            let watch = desk
                .state
                .watches
                .first()
                .map_or(wid(999), |watch| watch.id);
            let body = match a {
                0 => MailBody::Input {
                    item: iid(400 + count as u128),
                    text: "mail".into(),
                    immediate: flag,
                },
                1 => MailBody::Notice(Notice {
                    told: None,
                    watch,
                    message: None,
                    outcome: None,
                    end_reason: None,
                    stopped: flag,
                }),
                2 if flag => MailBody::Hold,
                2 => MailBody::Release {
                    reason: StopReason::ALL[usize::from(b)],
                },
                _ => MailBody::Watch {
                    watch: wid(500 + count as u128),
                    message: None,
                },
            };
            let mail = desk.letters(&[(8 + bn % 2, body)]);
            crate::desk::take(mail, b == 3)
        }
    }
}

/// What must be true of any log.
fn check(log: &[Stamped]) -> Result<(), TestCaseError> {
    let mut open: Vec<String> = Vec::new();
    let mut calls: HashMap<String, u32> = HashMap::new();
    let mut turn = None;
    let mut live = false;
    let mut items: HashMap<ItemId, u32> = HashMap::new();
    for pair in log.windows(2) {
        prop_assert!(pair[0].at < pair[1].at);
    }
    for stamped in log {
        match &stamped.event {
            Event::Started { .. } => {
                prop_assert!(!live);
                live = true;
            }
            Event::Stopped { .. } => {
                prop_assert!(live && turn.is_none(), "a stop ends the turn first");
                live = false;
            }
            Event::TurnStarted { turn: id } => {
                prop_assert!(live && turn.is_none());
                turn = Some(*id);
            }
            Event::TurnEnded { turn: id, .. } => {
                prop_assert_eq!(turn, Some(*id));
                prop_assert!(open.is_empty(), "each call has its result before the end");
                turn = None;
            }
            Event::Queued { item, .. } => {
                prop_assert_eq!(items.insert(item.id, 0), None);
            }
            Event::Withdrawn { item } => {
                prop_assert_eq!(items.insert(*item, 1), Some(0));
            }
            Event::Consumed { item, turn: id, .. } => {
                prop_assert_eq!(turn, Some(*id));
                prop_assert!(
                    open.is_empty(),
                    "input never stands between a call and its result"
                );
                prop_assert_eq!(items.insert(item.id, 1), Some(0), "taken once");
            }
            Event::Said { turn: id, .. } => {
                prop_assert_eq!(turn, Some(*id));
                prop_assert!(
                    open.is_empty(),
                    "nothing stands between a call and its result"
                );
            }
            Event::CallStarted { call, .. } => {
                prop_assert_eq!(calls.insert(call.id.to_string(), 0), None);
                open.push(call.id.to_string());
            }
            Event::CallEnded { result, .. } => {
                prop_assert_eq!(calls.insert(result.call.to_string(), 1), Some(0));
                open.retain(|id| **id != *result.call);
            }
            _ => {}
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn random_commands_keep_every_rule(plans in prop::collection::vec(plan(), 1..60)) {
        let mut desk = Desk::child_of(&[8]);
        for (count, plan) in plans.iter().enumerate() {
            let command = command(plan, &mut desk, count);
            let before = desk.log.len();
            let decided = desk.attempt(&command);
            match decided {
                Err(Rejected::NoUserInput) => prop_assert!(false, "it takes input"),
                Err(_) => prop_assert_eq!(desk.log.len(), before),
                Ok(done) => {
                    let taken: HashSet<_> = done.taken.iter().collect();
                    prop_assert_eq!(taken.len(), done.taken.len());
                    let births: Vec<_> = done.births.iter().map(|birth| birth.session).collect();
                    prop_assert!(births.iter().all(|born| done.links.contains(born)));
                }
            }
        }
        check(&desk.log)?;
        // What waits is what was accepted and neither taken nor taken back.
        let waiting: usize = desk.state.queues.iter().map(|queue| queue.items.len()).sum();
        let count = |kind: &str| {
            desk.log.iter().filter(|it| it.event.kind() == kind).count()
        };
        prop_assert_eq!(waiting, count("queued") - count("consumed") - count("withdrawn"));
    }
}
