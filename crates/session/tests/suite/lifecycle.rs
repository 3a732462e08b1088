//! Epochs: start, stop for each reason, recovery; what a stop writes, in which order, and to whom.

use attache_session::{
    Answer, Command, Effect, EndReason, Event, MailBody, Outcome, QueueId, StopReason,
};

use crate::desk::{Desk, body, eid, kinds, said, sid, wid};

/// A session in the middle of everything: a turn with an open call, a child, a watch of its own, a
/// watch on itself, a watcher.
fn entangled() -> Desk {
    let mut desk = Desk::child_of(&[9]);
    desk.says(QueueId::Default, "work");
    desk.does(Command::Spawn {
        call: None,
        child: Box::new(crate::desk::child(2, sid(1), None)),
    });
    desk.does(Command::Spawn {
        call: None,
        child: Box::new(crate::desk::child(3, sid(1), None)),
    });
    desk.does(Command::Release { child: sid(3) });
    for (watch, target) in [(1, 2), (2, 1)] {
        desk.does(Command::Watch {
            watch: wid(watch),
            target: sid(target),
            message: None,
            settled: None,
        });
    }
    desk.takes(&[(
        9,
        MailBody::Watch {
            watch: wid(3),
            message: None,
        },
    )]);
    desk.steps(&["a"]);
    desk
}

fn mail(decision: &attache_session::Decision) -> Vec<(&'static str, attache_session::SessionId)> {
    let each = decision.mail.iter();
    each.map(|mail| (body(&mail.body), mail.to)).collect()
}

#[test]
fn a_stop_writes_everything_in_one_order() {
    // What ends the run, and whether children, watches and holds are given up.
    let table = [
        (StopReason::Terminated, EndReason::Cancelled, true),
        (StopReason::Disposed, EndReason::Cancelled, true),
        (StopReason::ParentEnded, EndReason::Cancelled, true),
        (StopReason::HostShutdown, EndReason::Interrupted, false),
        (StopReason::HostRestart, EndReason::HostRestart, false),
        (StopReason::LastViewerLeft, EndReason::Interrupted, true),
    ];
    assert_eq!(table.len(), StopReason::ALL.len());
    for (reason, ends, for_good) in table {
        let mut desk = entangled();
        let turn = desk.turn();
        let done = desk.does(Command::Stop {
            reason,
            partial: Some(said("half a sent")),
        });
        let (expected, letters) = if for_good {
            (
                "call-ended noted turn-ended watch-ended watch-ended watcher-removed stopped \
                 child-released watcher-removed",
                vec![("unwatch", sid(2)), ("release", sid(2)), ("notice", sid(9))],
            )
        } else {
            // The registration on itself is answered by input that waits for the next start.
            (
                "call-ended noted turn-ended watcher-removed watch-ended queued stopped \
                 watcher-removed",
                vec![("notice", sid(9))],
            )
        };
        assert_eq!(kinds(&done.events), expected, "{reason}");
        assert_eq!(mail(&done), letters, "{reason}");
        let cancel = Effect::CancelTurn { turn, reason: ends };
        assert!(
            done.effects.contains(&cancel),
            "{reason}: {:?}",
            done.effects
        );
        assert!(
            done.expects.is_empty(),
            "what lies unread is no work of a stopped session"
        );
        let terminal = done
            .events
            .iter()
            .filter(|it| matches!(it.event, Event::Stopped { .. }));
        assert_eq!(terminal.count(), 1);
        let state = &desk.state;
        assert_eq!((state.stop, state.end_reason), (Some(reason), Some(ends)));
        assert!(state.is_settled() && state.epoch.is_none());
        assert_eq!(state.watches.is_empty(), for_good);
        assert!(state.watchers.is_empty());
        assert_eq!(state.child(sid(2)).unwrap().held, !for_good);
        assert!(!state.child(sid(3)).unwrap().held);
        assert_eq!(
            state.result.as_deref(),
            Some("on it"),
            "no text of a model while calls are open"
        );
        let Some(MailBody::Notice(notice)) = done.mail.last().map(|mail| &mail.body) else {
            panic!("{:?}", done.mail)
        };
        assert!(notice.stopped);
        assert_eq!((notice.watch, notice.end_reason), (wid(3), Some(ends)));
        assert_eq!(notice.outcome, Some(ends.outcome()));

        // The end state stays the end state, and nothing is written or told a second time.
        let before = desk.log.len();
        for again in StopReason::ALL {
            let done = desk.stops(*again);
            assert!(done.mail.is_empty() && done.effects.is_empty());
        }
        let recovered = desk.does(Command::Recover { partial: None });
        assert_eq!(recovered.answer, Answer::Unchanged);
        assert_eq!((desk.log.len(), desk.state.stop), (before, Some(reason)));
    }
}

#[test]
fn a_stop_without_a_turn_keeps_the_outcome_of_the_last_run() {
    for reason in StopReason::ALL {
        for ended in EndReason::ALL {
            let mut desk = Desk::new();
            desk.says(QueueId::Default, "work");
            desk.ends(*ended);
            let done = desk.stops(*reason);
            assert_eq!(kinds(&done.events), "stopped");
            assert!(done.effects.is_empty());
            assert_eq!(desk.state.outcome(), Some(ended.outcome()));
        }
    }
}

#[test]
fn what_was_streamed_is_kept_by_whatever_ends_the_run() {
    for reason in StopReason::ALL {
        let mut desk = Desk::new();
        desk.says(QueueId::Default, "work");
        let done = desk.does(Command::Stop {
            reason: *reason,
            partial: Some(said("half a sent")),
        });
        assert_eq!(kinds(&done.events), "said noted turn-ended stopped");
        assert_eq!(desk.state.result.as_deref(), Some("half a sent"));
    }
}

#[test]
fn start_makes_one_epoch() {
    let mut desk = Desk::new();
    let done = desk.starts(2);
    assert_eq!((done.answer, done.events.len()), (Answer::Unchanged, 0));
    assert_eq!(desk.state.epoch, Some(eid(1)));
    desk.stops(StopReason::Terminated);
    let done = desk.starts(2);
    assert_eq!(
        (done.answer, kinds(&done.events).as_str()),
        (Answer::Done, "started")
    );
    assert_eq!((desk.state.epoch, desk.state.stop), (Some(eid(2)), None));
}

#[test]
fn recovery_ends_what_a_crash_left_open_and_cancels_nobody() {
    let mut desk = entangled();
    let done = desk.does(Command::Recover {
        partial: Some(said("check")),
    });
    assert_eq!(
        kinds(&done.events),
        "call-ended noted turn-ended watcher-removed watch-ended queued stopped \
         watcher-removed"
    );
    let wake = Effect::Wake { session: sid(9) };
    assert_eq!(
        done.effects,
        [wake],
        "there is no turn of this life to cancel"
    );
    assert_eq!(desk.state.outcome(), Some(Outcome::Interrupted));
    assert_eq!(desk.state.stop, Some(StopReason::HostRestart));
    // Held children and registrations on others outlive the host.
    assert!(desk.state.child(sid(2)).unwrap().held);
    assert_eq!(desk.state.watches.len(), 1);
    // Nothing starts by itself; the next start consumes what waited, once.
    let started = desk.starts(2);
    assert_eq!(kinds(&started.events), "started turn-started consumed");

    let mut idle = Desk::new();
    let done = idle.does(Command::Recover { partial: None });
    assert_eq!(kinds(&done.events), "stopped");
    assert_eq!(idle.state.outcome(), None);
}
