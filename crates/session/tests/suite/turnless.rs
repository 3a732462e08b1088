//! A session that runs no turns: it holds children and is told of them, nothing starts in it, and
//! what it is told waits until somebody outside says that it was read.

use attache_session::{
    Answer, Command, Created, EndReason, Expect, ItemId, MailBody, Notice, Origin, Outcome,
    QueueId, Rejected, RowView, SessionId, Settled, Status, StopReason, Summary, Unread,
    is_settled, status,
};

use crate::desk::{Desk, child, created, eid, enqueue, iid, kinds, sid, wid};

fn turnless() -> Created {
    Created {
        runs_turns: false,
        ..created(sid(1), &[])
    }
}

fn notice(watch: u128) -> MailBody {
    MailBody::Notice(Notice {
        told: None,
        watch: wid(watch),
        message: None,
        outcome: Some(Outcome::Succeeded),
        end_reason: Some(EndReason::Completed),
        stopped: false,
    })
}

fn watch(number: u128, target: u128, settled: bool) -> Command {
    let settled = settled.then(|| Notice {
        told: None,
        watch: wid(number),
        message: None,
        outcome: None,
        end_reason: None,
        stopped: false,
    });
    Command::Watch {
        watch: wid(number),
        target: sid(target),
        message: None,
        settled,
    }
}

/// A session without turns that has a child, number 2.
fn parent() -> Desk {
    let mut desk = Desk::of(turnless());
    let spawn = Command::Spawn {
        call: Some("made".into()),
        child: Box::new(child(2, sid(1), Some("go"))),
    };
    let done = desk.does(spawn);
    assert_eq!(kinds(&done.events), "child-held");
    assert_eq!(
        kinds(&done.births[0].events),
        "created started queued turn-started consumed",
        "its children run turns like any other"
    );
    desk
}

/// The ids of what waits.
fn waiting(desk: &Desk) -> Vec<ItemId> {
    let queue = desk.state.queue(QueueId::Immediate).expect("it is there");
    queue.items.iter().map(|item| item.id).collect()
}

/// The session as those see it who look from outside.
fn view(desk: &Desk, notices: u32) -> RowView {
    RowView {
        summary: Summary::of(&desk.state).expect("it was born").into(),
        live: true,
        unread: Unread {
            notices,
            ..Unread::default()
        },
    }
}

#[test]
fn it_takes_no_input_from_anybody() {
    for takes_input in [true, false] {
        let mut desk = Desk::of(Created {
            takes_input,
            ..turnless()
        });
        for origin in [Origin::Viewer, Origin::Session(sid(1))] {
            for queue in [QueueId::Immediate, QueueId::Default] {
                let input = Command::Enqueue {
                    item: None,
                    queue,
                    text: "x".into(),
                    origin: origin.clone(),
                };
                assert_eq!(desk.refuses(input), Rejected::NoUserInput);
            }
        }
        let summary = Summary::of(&desk.state).expect("it was born");
        assert!(!summary.takes_input && !summary.runs_turns);
    }
}

#[test]
fn it_does_for_children_what_any_session_does() {
    let mut desk = parent();
    let table = [
        (
            Command::Send {
                to: sid(2),
                epoch: eid(102),
                item: iid(6),
                text: "go on".into(),
                immediate: true,
            },
            "sent",
        ),
        (watch(1, 2, false), "watch-set"),
        (Command::Acquire { child: sid(4) }, "child-held"),
        (Command::Release { child: sid(2) }, "child-released"),
    ];
    for (command, events) in table {
        assert_eq!(kinds(&desk.does(command).events), events);
    }
    let again = Command::Spawn {
        call: Some("made".into()),
        child: Box::new(child(3, sid(1), None)),
    };
    let answer = Answer::Child { child: sid(2) };
    assert_eq!(desk.does(again).answer, answer, "a repeat finds the same");
}

#[test]
fn a_notice_waits_and_starts_nothing() {
    // As mail, and at once because the target has settled; it is told of itself at once, too.
    let mut desk = parent();
    desk.does(watch(1, 2, false));
    assert!(!desk.state.is_settled(), "it waits for its child");
    let done = desk.takes(&[(2, notice(1))]);
    assert_eq!(kinds(&done.events), "watch-ended queued");
    assert!(done.effects.is_empty());
    let done = desk.does(watch(2, 2, true));
    assert_eq!(
        (kinds(&done.events).as_str(), done.answer),
        ("queued", Answer::FiredAtOnce)
    );
    let done = desk.does(watch(3, 1, false));
    assert_eq!(
        (kinds(&done.events).as_str(), done.answer),
        ("queued", Answer::FiredAtOnce)
    );
    assert_eq!(waiting(&desk).len(), 3);
    assert!(desk.state.turn.is_none());
    assert_eq!(desk.state.deliverable(), 0);
    assert!(desk.state.is_settled());
    for notices in [0, 1] {
        let view = view(&desk, notices);
        assert_eq!(status(&view), Status::Idle, "what waits is no work");
        let own = |id: SessionId| (id == sid(1)).then(|| view.clone());
        let settled = match notices {
            0 => Settled::Yes,
            // It is on its way; whoever waits for quiet finds it there.
            _ => Settled::WaitsFor(sid(1)),
        };
        assert_eq!(is_settled(sid(1), &mut { own }), settled);
    }
    // Neither a start nor a look at its mail sets anything off.
    assert_eq!(desk.starts(7).answer, Answer::Unchanged);
    assert_eq!(desk.takes(&[]).events.len(), 0);
}

#[test]
fn what_was_read_moves_into_the_history_once() {
    let mut desk = parent();
    for number in [1, 2, 3] {
        desk.does(watch(number, 2, true));
    }
    let all = waiting(&desk);
    let read = |items: &[ItemId]| Command::Acknowledge {
        items: items.to_vec(),
    };
    let done = desk.does(read(&[all[1], iid(99), all[1]]));
    assert_eq!(
        (kinds(&done.events).as_str(), done.answer),
        ("acknowledged", Answer::Done)
    );
    assert!(done.effects.is_empty() && done.mail.is_empty());
    assert_eq!(waiting(&desk), [all[0], all[2]]);
    assert_eq!(desk.does(read(&[all[1]])).answer, Answer::Unchanged);
    assert_eq!(desk.does(read(&[])).answer, Answer::Unchanged);
    let done = desk.does(read(&all));
    assert_eq!(kinds(&done.events), "acknowledged acknowledged");
    assert!(waiting(&desk).is_empty());
}

#[test]
fn a_stopped_one_keeps_what_waits_and_can_be_read() {
    let mut desk = parent();
    desk.does(watch(1, 2, false));
    desk.does(watch(2, 2, true));
    desk.stops(StopReason::HostShutdown);
    let letter = desk.letters(&[(2, notice(1))]);
    let done = desk.does(crate::desk::take(letter, false));
    assert!(done.taken.is_empty(), "it stays unread until a start");
    let items = waiting(&desk);
    let done = desk.does(Command::Acknowledge { items });
    assert_eq!(kinds(&done.events), "acknowledged");
    let done = desk.starts(7);
    assert_eq!(kinds(&done.events), "started");
    let done = desk.takes(&[(2, notice(1))]);
    assert_eq!(kinds(&done.events), "watch-ended queued");
}

#[test]
fn its_watchers_are_told_as_those_of_any_session() {
    let mut desk = Desk::of(Created {
        parents: vec![sid(9)],
        root: sid(9),
        ..turnless()
    });
    let asked = MailBody::Watch {
        watch: wid(7),
        message: None,
    };
    let done = desk.takes(&[(9, asked)]);
    assert_eq!(kinds(&done.events), "watcher-added watcher-removed");
    assert_eq!(done.expects, [Expect::NoOtherMail]);
}

#[test]
fn whose_turns_read_its_input_has_nothing_to_acknowledge() {
    let mut desk = Desk::new();
    desk.says(QueueId::Default, "work");
    let item = desk.says(QueueId::Default, "more");
    let read = Command::Acknowledge { items: vec![item] };
    assert_eq!(desk.refuses(read), Rejected::RunsTurns);
    assert_eq!(desk.waiting(QueueId::Default), ["more"]);
    assert_eq!(
        desk.refuses(enqueue(None, QueueId::Default, " ")),
        Rejected::EmptyText
    );
}
