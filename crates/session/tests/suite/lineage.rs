//! Children and holds: creating, acquiring, releasing, and the end of a session that nobody holds.

use attache_session::{
    Answer, CallId, Command, Effect, Epoch, Expect, MailBody, Origin, QueueId, Rejected, StopReason,
};

use crate::desk::{Desk, child, eid, iid, kinds, sid};

fn spawn(number: u128, call: Option<&str>, first: Option<&str>) -> Command {
    Command::Spawn {
        call: call.map(CallId::from),
        child: Box::new(child(number, sid(1), first)),
    }
}

fn send(to: u128, text: &str) -> Command {
    Command::Send {
        to: sid(to),
        epoch: eid(100 + to),
        item: iid(to),
        text: text.into(),
        immediate: false,
    }
}

const DISPOSED: MailBody = MailBody::Release {
    reason: StopReason::Disposed,
};

#[test]
fn a_child_is_born_in_the_append_of_its_spawner() {
    let mut desk = Desk::new();
    let done = desk.does(spawn(2, Some("call-1"), Some("dig")));
    assert_eq!(kinds(&done.events), "child-held");
    assert_eq!((done.births.len(), &done.links[..]), (1, &[sid(2)][..]));
    let birth = &done.births[0];
    assert_eq!(
        kinds(&birth.events),
        "created started queued turn-started consumed"
    );
    assert_eq!(birth.state.parents[0].id, sid(1));
    assert!(birth.state.parents[0].holds);
    assert_eq!(done.effects, [Effect::Wake { session: sid(2) }]);
    let quiet = desk.does(spawn(3, None, None));
    assert_eq!(kinds(&quiet.births[0].events), "created started");
}

#[test]
fn the_same_call_creates_one_child() {
    let mut desk = Desk::new();
    desk.does(spawn(2, Some("call-1"), None));
    let again = desk.does(spawn(3, Some("call-1"), None));
    assert_eq!(again.answer, Answer::Child { child: sid(2) });
    assert!(again.events.is_empty() && again.births.is_empty() && again.links.is_empty());
    assert_eq!(desk.does(spawn(3, Some("call-2"), None)).births.len(), 1);
    for number in [4, 5] {
        assert_eq!(desk.does(spawn(number, None, None)).births.len(), 1);
    }
    assert_eq!(desk.refuses(spawn(1, None, None)), Rejected::Circle);
}

#[test]
fn a_stopped_session_reaches_nobody() {
    let mut desk = Desk::new();
    desk.does(spawn(2, None, None));
    desk.stops(StopReason::HostShutdown);
    let watch = Command::Watch {
        watch: crate::desk::wid(1),
        target: sid(2),
        message: None,
        settled: None,
    };
    let to_itself = Command::Enqueue {
        item: None,
        queue: QueueId::Immediate,
        text: "x".into(),
        origin: Origin::Session(sid(1)),
    };
    for command in [
        spawn(3, None, None),
        Command::Acquire { child: sid(2) },
        send(2, "x"),
        to_itself,
        watch,
    ] {
        assert_eq!(desk.refuses(command), Rejected::Stopped);
    }
    // What a viewer gives it waits for the next start.
    let given = crate::desk::enqueue(None, QueueId::Default, "x");
    assert!(matches!(desk.does(given).answer, Answer::Accepted { .. }));
    // To give something up needs no life.
    assert_eq!(
        desk.does(Command::Release { child: sid(2) }).answer,
        Answer::Done
    );
}

#[test]
fn acquire_and_release_walk_every_step() {
    let acquire = Command::Acquire { child: sid(2) };
    let release = Command::Release { child: sid(2) };
    let mut desk = Desk::child_of(&[9, 8]);
    assert_eq!(desk.refuses(release.clone()), Rejected::NotAChild);
    for own in [1, 8, 9] {
        let circle = Command::Acquire { child: sid(own) };
        assert_eq!(desk.refuses(circle), Rejected::Circle);
    }
    // Not known: linked and told.
    let done = desk.does(acquire.clone());
    assert_eq!(
        (kinds(&done.events).as_str(), done.answer),
        ("child-held", Answer::Done)
    );
    assert_eq!(
        (done.links, &done.mail[0].body),
        (vec![sid(2)], &MailBody::Hold)
    );
    // Held: only told, because that is what starts a stopped child.
    let done = desk.does(acquire.clone());
    assert_eq!((done.events.len(), done.answer), (0, Answer::Unchanged));
    assert_eq!((done.links.len(), done.mail.len()), (0, 1));
    // Given up.
    let done = desk.does(release.clone());
    assert_eq!(
        (kinds(&done.events).as_str(), done.answer),
        ("child-released", Answer::Done)
    );
    assert_eq!(done.mail[0].body, DISPOSED);
    let done = desk.does(release);
    assert_eq!(
        (done.events.len(), done.mail.len(), done.answer),
        (0, 0, Answer::Unchanged)
    );
    assert_eq!(desk.refuses(send(2, "x")), Rejected::Disposed);
    // And held again.
    assert_eq!(kinds(&desk.does(acquire).events), "child-held");
    assert_eq!(desk.state.children.len(), 1);
    assert_eq!(kinds(&desk.does(send(2, "x")).events), "sent");
}

#[test]
fn sending_names_the_epoch_in_which_the_receiver_was_seen() {
    let mut desk = Desk::new();
    desk.does(spawn(2, None, None));
    assert_eq!(desk.refuses(send(2, " ")), Rejected::EmptyText);
    let done = desk.does(send(2, "x"));
    let epoch = Expect::Epoch {
        session: sid(2),
        epoch: eid(102),
    };
    assert_eq!(done.expects, [epoch]);
    assert_eq!(done.answer, Answer::Accepted { item: iid(2) });
    assert_eq!(done.effects, [Effect::Wake { session: sid(2) }]);
}

#[test]
fn a_session_ends_when_its_last_holder_leaves() {
    let mut desk = Desk::child_of(&[2, 3]);
    desk.takes(&[(4, MailBody::Hold)]);
    assert_eq!(desk.state.parents.len(), 3);
    for (leaves, lives) in [(2, true), (4, true), (3, false)] {
        desk.takes(&[(leaves, DISPOSED)]);
        assert_eq!(desk.state.is_live(), lives, "after {leaves} has left");
    }
    assert_eq!(desk.state.stop, Some(StopReason::Disposed));
    assert!(desk.state.parents.iter().all(|parent| !parent.holds));
    // A hold starts it again.
    let done = desk.takes(&[(3, MailBody::Hold)]);
    assert_eq!(kinds(&done.events), "parent-holds started");
}

#[test]
fn why_the_last_holder_left_is_why_it_ended() {
    for reason in StopReason::ALL {
        let mut desk = Desk::child_of(&[2]);
        desk.takes(&[(2, MailBody::Release { reason: *reason })]);
        let expected = if *reason == StopReason::Disposed {
            StopReason::Disposed
        } else {
            StopReason::ParentEnded
        };
        assert_eq!(desk.state.stop, Some(expected));
    }
}

#[test]
fn a_viewer_keeps_a_session_that_nobody_holds() {
    let mut desk = Desk::child_of(&[2]);
    let mail = desk.letters(&[(2, DISPOSED)]);
    let done = desk.does(crate::desk::take(mail, true));
    assert_eq!(kinds(&done.events), "parent-released");
    assert!(desk.state.is_live());
}

#[test]
fn a_hold_and_a_release_that_lie_together_count_in_their_order() {
    let hold = MailBody::Hold;
    // Held at the end, by whom; live at the end; from a live and from a stopped session.
    type Row<'a> = (&'a [(u128, &'a MailBody)], bool, bool);
    let table: &[Row<'_>] = &[
        (&[(2, &DISPOSED), (2, &hold)], true, true),
        (&[(2, &hold), (2, &DISPOSED)], false, false),
        (&[(2, &DISPOSED), (3, &hold)], true, true),
        (&[(3, &hold), (2, &DISPOSED)], true, true),
        (&[(3, &hold), (2, &DISPOSED), (3, &DISPOSED)], false, false),
        (&[(2, &DISPOSED), (2, &hold), (2, &DISPOSED)], false, false),
    ];
    for (mail, held, live) in table {
        for stopped_before in [false, true] {
            let mut desk = Desk::child_of(&[2]);
            if stopped_before {
                desk.stops(StopReason::HostShutdown);
            }
            let mail: Vec<_> = mail
                .iter()
                .map(|(from, body)| (*from, (*body).clone()))
                .collect();
            desk.takes(&mail);
            let holds = desk.state.parents.iter().any(|parent| parent.holds);
            assert_eq!((holds, desk.state.is_live()), (*held, *live), "{mail:?}");
        }
    }
}

#[test]
fn a_hold_starts_the_session_that_the_rest_of_the_mail_is_for() {
    let input = MailBody::Input {
        item: iid(1),
        text: "go".into(),
        immediate: false,
    };
    let mut desk = Desk::child_of(&[2]);
    desk.stops(StopReason::HostShutdown);
    let done = desk.takes(&[(2, input.clone())]);
    assert_eq!(kinds(&done.events), "queued");
    let done = desk.takes(&[(2, input), (2, MailBody::Hold)]);
    assert_eq!(
        kinds(&done.events),
        "parent-holds started queued turn-started consumed consumed"
    );
    assert_eq!(done.taken.len(), 2);
}

#[test]
fn input_of_a_parent_goes_to_the_queue_it_was_sent_to() {
    for (immediate, queue) in [(true, QueueId::Immediate), (false, QueueId::Default)] {
        let mut desk = Desk::child_of(&[2]);
        desk.says(QueueId::Default, "busy");
        desk.takes(&[(
            2,
            MailBody::Input {
                item: iid(1),
                text: "go".into(),
                immediate,
            },
        )]);
        assert_eq!(desk.waiting(queue), ["go"]);
    }
}

#[test]
fn nothing_is_taken_twice_from_an_empty_box() {
    let mut desk = Desk::new();
    let done = desk.takes(&[]);
    assert_eq!((done.answer, done.events.len()), (Answer::Unchanged, 0));
    assert_eq!(desk.state.epoch, Some(Epoch(eid(1).0)));
}

#[test]
fn a_hold_of_a_session_that_is_gone_starts_nothing() {
    let mut desk = Desk::child_of(&[2]);
    desk.stops(StopReason::HostRestart);
    let mail = desk.letters(&[(3, MailBody::Hold)]);
    let done = desk.does(Command::Take {
        mail,
        viewed: false,
        living: Vec::new(),
    });
    assert_eq!(kinds(&done.events), "parent-holds");
    assert_eq!(done.taken.len(), 1);
    assert_eq!(desk.state.parents.len(), 2);
    assert_eq!(
        kinds(&desk.takes(&[(3, MailBody::Hold)]).events),
        "parent-holds started"
    );
}
