//! G-36: what becomes of a session when nobody looks at it any more, and the race of that with a viewer who comes.

use std::time::Duration;

use attache_host::Host;
use attache_protocol::{
    Answer, Command, FromHost, QueueRef, Resume, Runtime, SessionView, Snapshot, Status,
};
use attache_session::{Event, Holder, Position, StopReason};
use attache_testkit::pass;

use crate::kit::{Line, enqueue, host, life};

/// What a viewer attaches to: the attachment's name, and the snapshot.
async fn attached(line: &mut Line, command: Command) -> (String, Snapshot) {
    let Ok(Answer::Attached { attachment, .. }) = line.ask(command).await else {
        panic!("not attached");
    };
    (attachment, line.snapshot().await)
}

async fn row(line: &mut Line, id: &str) -> SessionView {
    let session_id = id.to_owned();
    match line.ask(Command::GetSession { session_id }).await {
        Ok(Answer::Session { session }) => *session,
        other => panic!("{other:?}"),
    }
}

async fn status(line: &mut Line, id: &str) -> Status {
    row(line, id).await.status
}

async fn leave(line: &mut Line, id: &str) {
    let session_id = id.to_owned();
    let done = line.ask(Command::Detach { session_id }).await;
    assert_eq!(done, Ok(Answer::Done { changed: true }));
}

async fn background(line: &mut Line, id: &str, continue_in_background: bool) {
    let set = Command::SetRetention {
        session_id: id.to_owned(),
        continue_in_background,
    };
    assert!(line.ask(set).await.is_ok());
}

/// A session that its viewer opened, with a turn in flight that never ends by itself.
async fn opened(line: &mut Line, number: u32) -> (String, String, Snapshot) {
    let id = line.create_for_me(number).await;
    let (name, snapshot) = attached(line, Command::attach(id.clone())).await;
    let work = enqueue(&id, QueueRef::Default {}, "think for ever");
    line.ask(work).await.unwrap();
    (id, name, snapshot)
}

fn back(id: &str, name: &str) -> Command {
    Command::Attach {
        session_id: id.to_owned(),
        resume: Some(Resume {
            attachment: name.to_owned(),
            place: None,
        }),
        read_only: false,
    }
}

fn start_or_attach(id: &str, resume: Option<&str>) -> Command {
    let resume = resume.map(|name| Resume {
        attachment: name.to_owned(),
        place: None,
    });
    Command::StartOrAttach {
        session_id: id.to_owned(),
        resume,
        environment: Default::default(),
    }
}

/// Why the last epoch ended, and what it went on for.
fn last_stop(host: &Host, id: &str) -> Option<(StopReason, Vec<Holder>)> {
    let log = host.engine().log(id.parse().unwrap(), Position(0), 10_000);
    let log = log.unwrap();
    log.iter().rev().find_map(|item| match &item.event.event {
        Event::Stopped { reason, waited_for } => Some((*reason, waited_for.clone())),
        _ => None,
    })
}

#[test]
fn g36_a_viewer_that_is_back_within_the_grace_finds_its_epoch_and_a_later_one_does_not() {
    for (away, in_time) in [(4_900, true), (5_500, false)] {
        life(async {
            let host = host().await;
            let mut other = Line::to(&host).await;
            let mut line = Line::to(&host).await;
            let (id, name, before) = opened(&mut line, 1).await;
            drop(line);
            pass(Duration::from_millis(away)).await;
            let mut line = Line::to(&host).await;
            if in_time {
                let (same, now) = attached(&mut line, back(&id, &name)).await;
                assert_eq!((same, now.epoch), (name, before.epoch));
                pass(Duration::from_secs(60)).await;
                assert_eq!(status(&mut other, &id).await, Status::Running);
                return;
            }
            let gone = line.ask(back(&id, &name)).await;
            assert_eq!(gone, Err("unknown-session".to_owned()));
            let seen = row(&mut other, &id).await;
            assert_eq!(seen.status, Status::Stopped);
            assert_eq!(seen.outcome.as_deref(), Some("interrupted"));
            assert_eq!(
                last_stop(&host, &id),
                Some((StopReason::LastViewerLeft, vec![]))
            );
            let (_, now) = attached(&mut line, start_or_attach(&id, Some(&name))).await;
            assert!(now.epoch.is_some() && now.epoch != before.epoch);
        });
    }
}

#[test]
fn g36_one_of_two_viewers_leaves_and_one_that_only_looks_counts() {
    life(async {
        let host = host().await;
        let mut other = Line::to(&host).await;
        let (mut one, mut looks) = (Line::to(&host).await, Line::to(&host).await);
        let (id, _, _) = opened(&mut one, 1).await;
        attached(&mut looks, Command::look(id.clone())).await;
        leave(&mut one, &id).await;
        pass(Duration::from_secs(60)).await;
        assert_eq!(status(&mut other, &id).await, Status::Running);
        leave(&mut looks, &id).await;
        pass(Duration::from_millis(1)).await;
        assert_eq!(status(&mut other, &id).await, Status::Stopped);
    });
}

#[test]
fn g36_an_attach_that_races_with_the_last_detach_wins_or_comes_too_late() {
    life(async {
        let host = host().await;
        let mut other = Line::to(&host).await;
        let mut outcomes = [0, 0];
        for number in 1..=200_u32 {
            let (mut one, mut two) = (Line::to(&host).await, Line::to(&host).await);
            let (id, _, before) = opened(&mut one, number).await;
            let turns = |count: u32| async move {
                for _ in 0..count {
                    tokio::task::yield_now().await;
                }
            };
            let (left, came) = tokio::join!(
                async {
                    turns(number % 14).await;
                    leave(&mut one, &id).await;
                },
                async {
                    turns(number / 14).await;
                    attached(&mut two, Command::attach(id.clone())).await.1
                }
            );
            let () = left;
            pass(Duration::from_secs(1)).await;
            let is = status(&mut other, &id).await;
            if came.epoch.is_some() {
                assert_eq!((came.epoch, is), (before.epoch, Status::Running));
                outcomes[0] += 1;
            } else {
                assert_eq!(is, Status::Stopped, "a stopped session is seen as it is");
                let (_, anew) = attached(&mut two, start_or_attach(&id, None)).await;
                assert!(anew.epoch.is_some() && anew.epoch != before.epoch);
                outcomes[1] += 1;
            }
            let session_id = id.clone();
            let ended = two.ask(Command::Terminate { session_id }).await;
            assert_eq!(ended, Ok(Answer::Done { changed: true }));
        }
        assert!(outcomes.iter().all(|times| *times > 10), "{outcomes:?}");
    });
}

#[test]
fn g36_a_session_that_continues_in_the_background_does_until_that_is_switched_off() {
    life(async {
        let host = host().await;
        let mut other = Line::to(&host).await;
        let mut line = Line::to(&host).await;
        let (id, _, _) = opened(&mut line, 1).await;
        background(&mut line, &id, true).await;
        assert!(row(&mut other, &id).await.continue_in_background);
        drop(line);
        pass(Duration::from_secs(60)).await;
        assert_eq!(status(&mut other, &id).await, Status::Running);
        // While somebody looks on it is only a preference.
        let mut looks = Line::to(&host).await;
        attached(&mut looks, Command::look(id.clone())).await;
        background(&mut other, &id, false).await;
        background(&mut other, &id, true).await;
        leave(&mut looks, &id).await;
        pass(Duration::from_secs(60)).await;
        assert_eq!(status(&mut other, &id).await, Status::Running);
        background(&mut other, &id, false).await;
        pass(Duration::from_millis(1)).await;
        assert_eq!(status(&mut other, &id).await, Status::Stopped);
        // It is not to be switched off twice, and holds over epochs.
        let (_, anew) = attached(&mut other, start_or_attach(&id, None)).await;
        let retention = anew.detail.unwrap().retention;
        assert!(!retention.continue_in_background);
    });
}

#[test]
fn who_works_for_a_session_holds_it_and_that_is_told_in_the_reason() {
    // What the session does, what holds it, and how long.
    let table: [(&str, &[Holder], u64); 2] = [
        ("delegate it", &[Holder::Children], 10),
        (
            "delegate and watch it",
            &[Holder::Children, Holder::Waits],
            10,
        ),
    ];
    for (task, held_by, seconds) in table {
        life(async {
            let host = host().await;
            let mut other = Line::to(&host).await;
            let mut line = Line::to(&host).await;
            let id = line.create_for_me(1).await;
            attached(&mut line, Command::attach(id.clone())).await;
            line.ask(enqueue(&id, QueueRef::Default {}, task))
                .await
                .unwrap();
            pass(Duration::from_secs(2)).await;
            leave(&mut line, &id).await;
            pass(Duration::from_secs(seconds - 3)).await;
            assert_ne!(status(&mut other, &id).await, Status::Stopped, "{task}");
            pass(Duration::from_secs(2)).await;
            assert_eq!(status(&mut other, &id).await, Status::Stopped, "{task}");
            let (reason, mut waited_for) = last_stop(&host, &id).unwrap();
            waited_for.sort_unstable();
            waited_for.retain(|holder| *holder != Holder::Notices);
            assert_eq!(
                (reason, &*waited_for),
                (StopReason::LastViewerLeft, held_by),
                "{task}"
            );
        });
    }
}

#[test]
fn a_viewer_who_comes_meanwhile_keeps_what_would_have_ended() {
    life(async {
        let host = host().await;
        let mut line = Line::to(&host).await;
        let id = line.create_for_me(1).await;
        attached(&mut line, Command::attach(id.clone())).await;
        let delegate = enqueue(&id, QueueRef::Default {}, "delegate it");
        line.ask(delegate).await.unwrap();
        pass(Duration::from_secs(2)).await;
        leave(&mut line, &id).await;
        pass(Duration::from_secs(3)).await;
        attached(&mut line, Command::look(id.clone())).await;
        pass(Duration::from_secs(60)).await;
        assert_eq!(status(&mut line, &id).await, Status::Idle);
        leave(&mut line, &id).await;
        pass(Duration::from_millis(1)).await;
        assert_eq!(status(&mut line, &id).await, Status::Stopped);
    });
}

#[test]
fn a_session_that_nobody_opened_to_work_is_not_ended_by_who_only_looks() {
    life(async {
        let host = host().await;
        let mut creator = Line::to(&host).await;
        let id = creator.create(1).await;
        background(&mut creator, &id, false).await;
        pass(Duration::from_millis(1)).await;
        // Started again by input, with nobody looking on.
        let work = enqueue(&id, QueueRef::Default {}, "think for ever");
        creator.ask(work).await.unwrap();
        let mut looks = Line::to(&host).await;
        attached(&mut looks, Command::look(id.clone())).await;
        leave(&mut looks, &id).await;
        pass(Duration::from_secs(60)).await;
        assert_eq!(status(&mut creator, &id).await, Status::Running);
    });
}

#[test]
fn a_session_whose_maker_vanished_before_it_attached_ends_after_the_grace() {
    life(async {
        let host = host().await;
        let mut other = Line::to(&host).await;
        let mut line = Line::to(&host).await;
        let id = line.create_for_me(1).await;
        let work = enqueue(&id, QueueRef::Default {}, "think for ever");
        line.ask(work).await.unwrap();
        drop(line);
        pass(Duration::from_millis(4_900)).await;
        assert_eq!(status(&mut other, &id).await, Status::Running);
        pass(Duration::from_millis(200)).await;
        assert_eq!(status(&mut other, &id).await, Status::Stopped);
    });
}

#[test]
fn whether_a_session_runs_is_told_and_what_is_unknown_is_unavailable() {
    life(async {
        let host = host().await;
        let mut line = Line::to(&host).await;
        let id = line.create(1).await;
        let unknown = "01931f2e-0000-7000-8000-0000000000ff".to_owned();
        let mut asked = Vec::new();
        for session_id in [id.clone(), unknown, "no id".to_owned()] {
            asked.push(line.ask(Command::QueryStatus { session_id }).await.unwrap());
        }
        let session_id = id.clone();
        line.ask(Command::Terminate { session_id }).await.unwrap();
        let session_id = id;
        asked.push(line.ask(Command::QueryStatus { session_id }).await.unwrap());
        let told = [
            Runtime::Running,
            Runtime::Unavailable,
            Runtime::Unavailable,
            Runtime::NotRunning,
        ];
        assert_eq!(asked, told.map(|runtime| Answer::Runtime { runtime }));
    });
}

#[test]
fn the_end_of_the_host_ends_what_continues_in_the_background_too() {
    life(async {
        let host = host().await;
        let (mut line, mut other) = (Line::to(&host).await, Line::to(&host).await);
        let id = other.create(1).await;
        attached(&mut line, Command::look(id.clone())).await;
        let idle = other.create(2).await;
        attached(&mut line, Command::look(idle.clone())).await;
        let work = enqueue(&id, QueueRef::Default {}, "think for ever");
        other.ask(work).await.unwrap();
        host.shutdown("the test ends it").await;
        let mut ends = Vec::new();
        while ends.last().is_none_or(|last| last != "gone") {
            match line.hear().await {
                FromHost::SessionTerminal {
                    session_id, reason, ..
                } => ends.push(format!("{session_id} {reason}")),
                FromHost::GoingAway { .. } => ends.push("gone".to_owned()),
                _ => {}
            }
        }
        ends.pop();
        ends.sort_unstable();
        assert_eq!(ends, [&id, &idle].map(|id| format!("{id} host-shutdown")));
    });
}
