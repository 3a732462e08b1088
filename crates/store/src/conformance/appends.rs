//! Cases: what an append must be, and what is stored when it is not.

use attache_session::{Event, Expect, Generation, Json, Position, StopReason, TurnId};

use super::values::{Author, held, noted, said, session, uuid, wait};
use super::{Case, Subject};
use crate::append::{Charge, CommandRecord};
use crate::read::{KnownCommand, Partial};
use crate::refused::Refused;

pub(super) const CASES: &[Case] = &[
    ("what_is_appended_is_read_in_order", order),
    ("a_restart_finds_everything", restarted),
    ("times_strictly_increase", times),
    ("another_generation_is_fenced", fenced),
    ("a_log_that_has_grown_is_moved", moved),
    ("a_log_begins_with_its_creation", begins),
    ("a_claim_raises_the_generation", claims),
    ("an_epoch_that_has_changed_is_refused", other_epoch),
    (
        "a_limit_that_is_reached_is_named_and_nothing_is_stored",
        limits,
    ),
    (
        "counters_are_charged_in_order_and_never_below_zero",
        counters,
    ),
    ("a_command_is_carried_out_once", commands),
    ("streamed_text_rides_with_the_next_append", partials),
    ("a_deleted_session_is_gone", deleted),
];

fn order(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut author = Author::root(store, 1);
    assert_eq!(author.write(store, vec![said("a"), said("b")]), Position(4));
    assert_eq!(author.write(store, vec![said("c")]), Position(5));
    assert_eq!(author.write(store, vec![]), Position(5));
    let log = store.events(session(1), Position(2), 2).expect("a log");
    let texts: Vec<_> = log
        .iter()
        .map(|item| (item.position.0, text_of(&item.event.event)))
        .collect();
    assert_eq!(texts, [(3, "a".to_owned()), (4, "b".to_owned())]);
    let rest = store.events(session(1), Position(4), 9).expect("a log");
    assert_eq!(rest.len(), 1);
    assert!(
        store
            .events(session(1), Position(5), 9)
            .expect("a log")
            .is_empty()
    );
    assert!(
        store
            .events(session(2), Position(0), 9)
            .expect("a log")
            .is_empty()
    );
}

fn text_of(event: &Event) -> String {
    match event {
        Event::Said { step, .. } => step.text.to_string(),
        other => format!("{other:?}"),
    }
}

fn restarted(subject: &mut dyn Subject) {
    let mut author = Author::root(subject.store(), 1);
    author.write(subject.store(), vec![said("a")]);
    let log = subject.store().events(session(1), Position(0), 9);
    let row = subject.store().row(session(1));
    subject.restart();
    assert_eq!(subject.store().events(session(1), Position(0), 9), log);
    assert_eq!(subject.store().row(session(1)), row);
    let row = row.expect("a row").expect("a session");
    assert_eq!(row.head, Position(3));
    assert_eq!(row.last_at, author.state.last_at);
    assert_eq!(*row.summary, author.summary());
    assert_eq!(row.root, session(1));
    assert_eq!(row.spawner, None);
    assert_eq!(author.write(subject.store(), vec![said("b")]), Position(4));
}

fn times(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut author = Author::root(store, 1);
    let last = author.state.last_at;
    let mut equal = author.append(vec![said("a"), said("b")]);
    equal.events[1].at = equal.events[0].at;
    assert_eq!(author.commit(store, equal), Err(Refused::TimeNotIncreasing));
    let mut late = author.append(vec![said("a")]);
    late.events[0].at = last;
    assert_eq!(author.commit(store, late), Err(Refused::TimeNotIncreasing));
    assert_eq!(author.write(store, vec![said("a")]), Position(3));
}

fn fenced(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut author = Author::root(store, 1);
    for wrong in [0, 2] {
        let mut append = author.append(vec![said("a")]);
        append.generation = Generation(wrong);
        // A fenced owner is told so whatever else is wrong.
        append.expected = Position(77);
        let current = Generation(1);
        assert_eq!(
            author.commit(store, append),
            Err(Refused::Fenced { current })
        );
    }
    author = Author::root_again(store, 1);
    assert_eq!(author.write(store, vec![said("a")]), Position(3));
}

fn moved(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut author = Author::root(store, 1);
    let mut twin = author.clone();
    author.write(store, vec![said("a")]);
    let late = twin.append(vec![said("b")]);
    let head = Position(3);
    assert_eq!(twin.commit(store, late), Err(Refused::Moved { head }));
    let mut ahead = author.append(vec![said("b")]);
    ahead.expected = Position(9);
    assert_eq!(wait(store.commit(ahead)), Err(Refused::Moved { head }));
    let mut again = Author::new(1);
    let birth = again.birth(None);
    let birth = again.append(birth);
    assert_eq!(wait(store.commit(birth)), Err(Refused::Moved { head }));
}

fn begins(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut author = Author::new(1);
    let events = author.birth(None);
    let birth = author.append(events);
    let mut headless = birth.clone();
    headless.events.remove(0);
    let unknown = Err(Refused::Unknown {
        session: session(1),
    });
    assert_eq!(wait(store.commit(headless)), unknown);
    let mut empty = birth.clone();
    empty.events.clear();
    assert_eq!(wait(store.commit(empty)), unknown);
    let mut ahead = birth.clone();
    ahead.expected = Position(1);
    assert_eq!(wait(store.commit(ahead)), unknown);
    assert_eq!(store.row(session(1)), Ok(None));
    assert_eq!(wait(store.commit(birth)), Ok(Position(2)));
}

fn claims(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut author = Author::root(store, 1);
    assert_eq!(
        wait(store.claim(session(1), Generation(1))),
        Ok(Generation(2))
    );
    let current = Generation(2);
    assert_eq!(
        wait(store.claim(session(1), Generation(1))),
        Err(Refused::Fenced { current })
    );
    assert_eq!(
        wait(store.claim(session(2), Generation(1))),
        Err(Refused::Unknown {
            session: session(2)
        })
    );
    let old = author.append(vec![said("a")]);
    assert_eq!(author.commit(store, old), Err(Refused::Fenced { current }));
    author.generation = current;
    assert_eq!(author.write(store, vec![said("a")]), Position(3));
    let row = store.row(session(1)).expect("a row").expect("a session");
    assert_eq!(row.generation, current);
}

fn other_epoch(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut author = Author::root(store, 1);
    let mut other = Author::root(store, 2);
    let seen = Expect::Epoch {
        session: session(2),
        epoch: other.epoch(),
    };
    let mut append = author.append(vec![said("a")]);
    append.expects.push(seen.clone());
    author.commit(store, append).expect("the same epoch");
    other.write(
        store,
        vec![Event::Stopped {
            reason: StopReason::Terminated,
            waited_for: Vec::new(),
        }],
    );
    let mut append = author.append(vec![said("b")]);
    append.expects.push(seen);
    assert_eq!(
        author.commit(store, append),
        Err(Refused::OtherEpoch {
            session: session(2),
            current: None
        })
    );
    let mut append = author.append(vec![said("b")]);
    append.expects.push(Expect::Epoch {
        session: session(3),
        epoch: other.epoch(),
    });
    assert_eq!(
        author.commit(store, append),
        Err(Refused::OtherEpoch {
            session: session(3),
            current: None
        })
    );
}

fn charge(number: u128, key: &str, amount: i64, limit: Option<i64>) -> Charge {
    Charge {
        session: session(number),
        key: key.to_owned(),
        amount,
        limit,
    }
}

fn limits(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut author = Author::root(store, 1);
    let mut append = author.append(vec![said("a")]);
    append.charges = vec![charge(1, "agents", 2, Some(2)), charge(1, "depth", 1, None)];
    author.commit(store, append).expect("within the limit");
    let before = store.row(session(1));
    let mut child = Author::new(2);
    let birth = child.birth(Some(&author));
    let born = child.born(birth);
    let mut append = author.append(vec![held(2), said("b")]);
    append.births.push(born);
    append.links.push(session(2));
    append.charges = vec![
        charge(1, "depth", 1, None),
        charge(1, "agents", 1, Some(2)),
        charge(1, "money", 1, Some(0)),
    ];
    append.command = Some(command(1, b'a'));
    assert_eq!(
        author.commit(store, append),
        Err(Refused::LimitReached {
            session: session(1),
            key: "agents".to_owned(),
            used: 2,
            limit: 2
        })
    );
    assert_eq!(store.row(session(1)), before);
    assert_eq!(store.row(session(2)), Ok(None));
    assert_eq!(store.quota(session(1), "depth"), Ok(1));
    assert_eq!(store.command(session(1), uuid(1)), Ok(None));
    assert_eq!(store.events(session(1), Position(3), 9), Ok(vec![]));
}

fn counters(subject: &mut dyn Subject) {
    let store = subject.store();
    let mut author = Author::root(store, 1);
    let mut append = author.append(vec![]);
    append.charges = vec![
        charge(1, "a", 3, Some(3)),
        charge(1, "a", -2, Some(0)),
        charge(1, "a", 2, Some(3)),
        charge(1, "b", -5, None),
    ];
    author.commit(store, append).expect("each step fits");
    assert_eq!(store.quota(session(1), "a"), Ok(3));
    assert_eq!(store.quota(session(1), "b"), Ok(0));
    assert_eq!(store.quota(session(1), "c"), Ok(0));
    let mut append = author.append(vec![]);
    append.charges = vec![charge(2, "a", 1, None)];
    assert_eq!(
        author.commit(store, append),
        Err(Refused::Unknown {
            session: session(2)
        })
    );
}

fn command(number: u128, digest: u8) -> CommandRecord {
    CommandRecord {
        id: uuid(number),
        digest: [digest; 32],
        answer: Json::from_checked("{\"item\":1}"),
    }
}

fn commands(subject: &mut dyn Subject) {
    let mut author = Author::root(subject.store(), 1);
    let mut append = author.append(vec![said("a")]);
    append.command = Some(command(1, b'a'));
    let repeat = append.clone();
    author.commit(subject.store(), append).expect("a command");
    author.write(subject.store(), vec![said("b")]);
    subject.restart();
    let store = subject.store();
    let answer = Json::from_checked("{\"item\":1}");
    let position = Position(3);
    assert_eq!(
        wait(store.commit(repeat.clone())),
        Err(Refused::CommandKnown {
            position,
            answer: answer.clone()
        })
    );
    let mut reused = repeat.clone();
    reused.command = Some(command(1, b'b'));
    assert_eq!(wait(store.commit(reused)), Err(Refused::CommandReused));
    assert_eq!(
        store.command(session(1), uuid(1)),
        Ok(Some(KnownCommand {
            digest: [b'a'; 32],
            position,
            answer
        }))
    );
    let when = repeat.events[0].at.0;
    assert_eq!(wait(store.sweep_commands(when)), Ok(0));
    assert_eq!(wait(store.sweep_commands(when + 1)), Ok(1));
    assert_eq!(store.command(session(1), uuid(1)), Ok(None));
    let head = Position(4);
    assert_eq!(wait(store.commit(repeat)), Err(Refused::Moved { head }));
}

fn partials(subject: &mut dyn Subject) {
    let mut author = Author::root(subject.store(), 1);
    let mut other = Author::root(subject.store(), 2);
    author.write(
        subject.store(),
        vec![Event::TurnStarted { turn: TurnId(1) }],
    );
    let mut partial = Partial {
        turn: TurnId(1),
        step: attache_session::StepText {
            text: "hal".into(),
            ..Default::default()
        },
    };
    subject.store().checkpoint(session(1), partial.clone());
    partial.step.text = "half".into();
    subject.store().checkpoint(session(1), partial.clone());
    other.write(subject.store(), vec![noted("x")]);
    subject.restart();
    let store = subject.store();
    assert_eq!(store.partial(session(1)), Ok(Some(partial.clone())));
    assert_eq!(store.partial(session(2)), Ok(None));
    // What is on record is streamed no more: a crash during its calls must not say it again.
    author.write(store, vec![super::values::said("half a sentence")]);
    assert_eq!(store.partial(session(1)), Ok(None));
    store.checkpoint(session(1), partial.clone());
    author.write(store, vec![noted("x")]);
    assert_eq!(store.partial(session(1)), Ok(Some(partial)));
    author.write(
        store,
        vec![Event::TurnEnded {
            turn: TurnId(1),
            reason: attache_session::EndReason::HostRestart,
            result: None,
        }],
    );
    assert_eq!(store.partial(session(1)), Ok(None));
}

fn deleted(subject: &mut dyn Subject) {
    let mut author = Author::root(subject.store(), 1);
    let child = author.child(subject.store(), 2);
    for _ in 0..30 {
        let many = (0..100).map(|number| said(&number.to_string())).collect();
        author.write(subject.store(), many);
    }
    assert_eq!(wait(subject.store().delete(session(1))), Ok(()));
    let unknown = Refused::Unknown {
        session: session(1),
    };
    for _ in 0..2 {
        let store = subject.store();
        assert_eq!(store.row(session(1)), Ok(None));
        assert_eq!(store.events(session(1), Position(0), 9), Ok(vec![]));
        let late = author.clone().append(vec![said("x")]);
        assert_eq!(wait(store.commit(late)), Err(unknown.clone()));
        assert_eq!(wait(store.delete(session(1))), Err(unknown.clone()));
        assert_eq!(store.descends(session(2), session(1)), Ok(false));
        let row = store.row(session(2)).expect("a row").expect("a session");
        assert_eq!(row.spawner, Some(session(1)));
        assert_eq!(row.head, child.state.position);
        subject.restart();
    }
}

impl Author {
    /// The author of a root session that exists, as its log says.
    fn root_again(store: &dyn crate::read::Store, number: u128) -> Self {
        let mut author = Self::new(number);
        for item in store
            .events(session(number), Position(0), 99)
            .expect("a log")
        {
            author.state.apply(&item.event);
        }
        author
    }
}
