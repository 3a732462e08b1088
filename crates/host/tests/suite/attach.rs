//! Attaching, coming back, falling behind and leaving, one case after the other.

use std::time::Duration;

use attache_protocol::{
    Answer, Command, FromHost, QueueRef, Resume, Status, StreamPlace, WINDOW_LIMIT,
};

use attache_testkit::pass;

use crate::kit::{Line, enqueue, host, life};

pub(crate) fn back(
    session: &str,
    attachment: &str,
    sequence: Option<u64>,
    epoch: Option<&str>,
) -> Command {
    Command::Attach {
        session_id: session.to_owned(),
        resume: Some(Resume {
            attachment: attachment.to_owned(),
            place: sequence.map(|sequence| StreamPlace {
                epoch: epoch.map(str::to_owned),
                sequence,
            }),
        }),
        read_only: false,
    }
}

pub(crate) async fn attached(line: &mut Line, command: Command) -> (String, bool) {
    match line.ask(command).await.unwrap() {
        Answer::Attached {
            attachment,
            replays,
        } => (attachment, replays),
        other => panic!("{other:?}"),
    }
}

/// Number and epoch of each frame of a stream; the first may be a snapshot.
pub(crate) fn numbers(frames: &[FromHost]) -> Vec<(bool, u64, Option<String>)> {
    let number = |frame: &FromHost| match frame {
        FromHost::Snapshot(snapshot) => Some((true, snapshot.sequence, snapshot.epoch.clone())),
        FromHost::Delta(delta) => Some((false, delta.sequence, delta.epoch.clone())),
        FromHost::SessionTerminal {
            sequence, epoch, ..
        } => Some((false, *sequence, epoch.clone())),
        _ => None,
    };
    frames.iter().filter_map(number).collect()
}

#[test]
fn g33_a_returning_viewer_goes_on_where_it_stood() {
    life(async {
        let host = host().await;
        let mut other = Line::to(&host).await;
        let id = other.create(1).await;
        let mut line = Line::to(&host).await;
        let (name, replays) = attached(&mut line, Command::attach(id.clone())).await;
        assert!(!replays);
        other
            .ask(enqueue(&id, QueueRef::Default {}, "one"))
            .await
            .unwrap();
        let seen = numbers(&line.rest().await);
        assert!(seen[0].0, "a snapshot comes first");
        let sequences: Vec<u64> = seen[1..].iter().map(|it| it.1).collect();
        let expected: Vec<u64> = (seen[0].1..).take(sequences.len()).collect();
        assert_eq!(sequences, expected, "live frames have numbers of their own");
        let (_, last, epoch) = seen.last().unwrap().clone();
        drop(line);
        // While it is away something happens, and then nothing more.
        pass(Duration::from_secs(1)).await;
        let held = QueueRef::Named {
            name: "later".to_owned(),
            held: true,
        };
        other.ask(enqueue(&id, held, "held")).await.unwrap();
        pass(Duration::from_secs(1)).await;
        for _twice in 0..2 {
            let mut line = Line::to(&host).await;
            let again = back(&id, &name, Some(last + 1), epoch.as_deref());
            assert_eq!(attached(&mut line, again).await, (name.clone(), true));
            let missed = numbers(&line.rest().await);
            assert!(
                !missed.is_empty(),
                "at once, without waiting for something new"
            );
            assert!(missed.iter().all(|it| !it.0));
            assert_eq!(missed[0].1, last + 1, "and nothing before");
        }
        // A place that the host does not know, or of another epoch, gets a snapshot.
        for (place, epoch) in [
            (None, epoch.as_deref()),
            (Some(last + 1_000), epoch.as_deref()),
            (Some(last + 1), Some("another")),
        ] {
            let mut line = Line::to(&host).await;
            let (same, replays) = attached(&mut line, back(&id, &name, place, epoch)).await;
            assert_eq!((same, replays), (name.clone(), false));
            assert!(numbers(&line.rest().await)[0].0);
        }
    });
}

#[test]
fn an_attachment_waits_five_seconds_for_its_viewer() {
    life(async {
        let host = host().await;
        let mut other = Line::to(&host).await;
        let id = other.create(1).await;
        for (away, same) in [(4_900, true), (5_500, false)] {
            let mut line = Line::to(&host).await;
            let (name, _) = attached(&mut line, Command::attach(id.clone())).await;
            let place = numbers(&line.rest().await)[0].clone();
            drop(line);
            pass(Duration::from_millis(away)).await;
            let mut line = Line::to(&host).await;
            let again = back(&id, &name, Some(place.1), place.2.as_deref());
            let (now, replays) = attached(&mut line, again).await;
            assert_eq!((now == name, replays), (same, same), "after {away} ms");
        }
        // Whoever leaves is gone at once.
        let mut line = Line::to(&host).await;
        let (name, _) = attached(&mut line, Command::attach(id.clone())).await;
        let detach = Command::Detach {
            session_id: id.clone(),
        };
        assert_eq!(
            line.ask(detach.clone()).await,
            Ok(Answer::Done { changed: true })
        );
        assert_eq!(line.ask(detach).await, Ok(Answer::Done { changed: false }));
        assert_ne!(
            attached(&mut line, back(&id, &name, None, None)).await.0,
            name
        );
    });
}

#[test]
fn a_viewer_that_comes_back_before_its_loss_is_noticed_takes_its_attachment_along() {
    life(async {
        let host = host().await;
        let mut other = Line::to(&host).await;
        let id = other.create(1).await;
        let mut old = Line::to(&host).await;
        let (name, _) = attached(&mut old, Command::attach(id.clone())).await;
        let place = numbers(&old.rest().await)[0].clone();
        let mut new = Line::to(&host).await;
        let again = back(&id, &name, Some(place.1), place.2.as_deref());
        assert_eq!(attached(&mut new, again).await, (name.clone(), true));
        other
            .ask(enqueue(&id, QueueRef::Default {}, "one"))
            .await
            .unwrap();
        assert!(!numbers(&new.rest().await).is_empty());
        assert!(
            numbers(&old.rest().await).is_empty(),
            "the old one hears nothing more"
        );
        // The end of the old connection takes nothing from the new one.
        drop(old);
        pass(Duration::from_secs(6)).await;
        other
            .ask(enqueue(&id, QueueRef::Default {}, "two"))
            .await
            .unwrap();
        assert!(!numbers(&new.rest().await).is_empty());
        // A name of another session is none.
        let third = other.create(2).await;
        assert_ne!(
            attached(&mut new, back(&third, &name, None, None)).await.0,
            name
        );
    });
}

#[test]
fn g34_a_command_that_comes_twice_at_once_takes_effect_once() {
    life(async {
        let host = host().await;
        let (mut one, mut two) = (Line::to(&host).await, Line::to(&host).await);
        let id = one.create(1).await;
        let command = || enqueue(&id, QueueRef::Default {}, "only once");
        let (first, second) = tokio::join!(one.ask_as("k", command()), two.ask_as("k", command()));
        let item = |answer: Result<Answer, String>| match answer.unwrap() {
            Answer::Accepted { item_id, .. } => item_id,
            other => panic!("{other:?}"),
        };
        assert_eq!(item(first), item(second));
        assert_eq!(
            one.ask_as("k", enqueue(&id, QueueRef::Default {}, "other"))
                .await,
            Err("command-id-reused".to_owned())
        );
        one.ask(Command::attach(id.clone())).await.unwrap();
        let heard = one.rest().await;
        let times = format!("{heard:?}").matches("\"only once\"").count();
        assert_eq!(times, 1, "{heard:#?}");
    });
}

#[test]
fn what_ends_something_hits_nothing_later_when_it_comes_again() {
    life(async {
        let host = host().await;
        let mut one = Line::to(&host).await;
        let id = one.create(1).await;
        let session_id = || id.clone();
        let think = || enqueue(&id, QueueRef::Default {}, "think for ever");
        let done = |changed| Ok(Answer::Done { changed });
        one.ask(think()).await.unwrap();
        let interrupt = || Command::Interrupt {
            session_id: session_id(),
            tree: false,
        };
        assert_eq!(one.ask_as("i", interrupt()).await, done(true));
        one.ask(think()).await.unwrap();
        // The next run is another one.
        assert_eq!(one.ask_as("i", interrupt()).await, done(true));
        let running = |row: Result<Answer, String>| match row.unwrap() {
            Answer::Session { session } => session.status == Status::Running,
            other => panic!("{other:?}"),
        };
        let get = || Command::GetSession {
            session_id: session_id(),
        };
        assert!(running(one.ask(get()).await));
        let terminate = || Command::Terminate {
            session_id: session_id(),
        };
        assert_eq!(
            one.ask_as("i", terminate()).await,
            Err("command-id-reused".to_owned())
        );
        assert_eq!(one.ask_as("t", terminate()).await, done(true));
        // Input that came before starts nothing when it comes again.
        assert!(one.ask_as("e", think()).await.is_ok());
        assert_eq!(one.ask_as("u", terminate()).await, done(true));
        assert!(one.ask_as("e", think()).await.is_ok());
        assert!(!running(one.ask(get()).await));
        // What was refused has not taken place, and may.
        let delete = || Command::Delete {
            session_id: session_id(),
        };
        one.ask(think()).await.unwrap();
        let refused = one.ask_as("d", delete()).await;
        assert_eq!(refused, Err("not-permitted".to_owned()));
        one.ask(interrupt()).await.unwrap();
        one.rest().await;
        assert_eq!(one.ask_as("d", delete()).await, done(true));
        assert_eq!(one.ask_as("d", delete()).await, done(true));
    });
}

#[test]
fn g35_a_viewer_that_stops_reading_costs_a_bounded_window_and_holds_up_nobody() {
    life(async {
        let host = host().await;
        let mut other = Line::to(&host).await;
        let id = other.create(1).await;
        let mut stalled = Line::to(&host).await;
        attached(&mut stalled, Command::attach(id.clone())).await;
        let mut reads = Line::to(&host).await;
        attached(&mut reads, Command::attach(id.clone())).await;
        // More than a window holds, in texts of 100 KiB.
        let rounds = 3 * WINDOW_LIMIT / (200 * 1024);
        let mut items = 0;
        for round in 0..rounds {
            let text = format!("long {round} {}", "x".repeat(100 * 1024));
            other
                .ask(enqueue(&id, QueueRef::Default {}, &text))
                .await
                .unwrap();
            let heard = reads.rest().await;
            items += format!("{heard:?}").matches("ItemPut").count();
        }
        assert_eq!(
            items,
            2 * rounds,
            "who reads has seen each text and each answer"
        );
        // What the stalled one hears when it reads again: what was on its way, and then a snapshot that has it all.
        let heard = stalled.rest().await;
        let seen = numbers(&heard);
        let snapshots = seen.iter().filter(|it| it.0).count();
        assert!(snapshots >= 2, "it began anew: {snapshots}");
        let bytes: usize = heard.iter().map(attache_protocol::encoded_len).sum();
        assert!(bytes < 2 * WINDOW_LIMIT, "{bytes}");
        let now = numbers(&{
            attached(&mut reads, Command::attach(id.clone())).await;
            reads.rest().await
        });
        let behind = numbers(&stalled.rest().await);
        assert_eq!(behind.last().unwrap().1, now.last().unwrap().1);
    });
}

#[test]
fn an_attachment_ends_with_its_epoch_and_is_told_so_once() {
    life(async {
        let host = host().await;
        let mut other = Line::to(&host).await;
        let id = other.create(1).await;
        let mut line = Line::to(&host).await;
        let (name, _) = attached(&mut line, Command::attach(id.clone())).await;
        let terminate = Command::Terminate {
            session_id: id.clone(),
        };
        other.ask(terminate).await.unwrap();
        let heard = line.rest().await;
        let is_end = |frame: &&FromHost| matches!(frame, FromHost::SessionTerminal { .. });
        assert_eq!(heard.iter().filter(is_end).count(), 1);
        assert!(is_end(&heard.last().unwrap()), "nothing follows");
        assert!(!host.engine().is_viewed(id.parse().unwrap()));
        let detach = Command::Detach {
            session_id: id.clone(),
        };
        assert_eq!(line.ask(detach).await, Ok(Answer::Done { changed: false }));
        let gone = line.ask(back(&id, &name, None, None)).await;
        assert_eq!(gone, Err("unknown-session".to_owned()));
        let (anew, replays) = attached(&mut line, Command::attach(id.clone())).await;
        assert!(anew != name && !replays);
    });
}

#[test]
fn a_run_whose_client_vanished_is_saved_by_nobody_who_vanished_too() {
    life(async {
        let host = host().await;
        let mut creator = Line::to(&host).await;
        let id = creator.create_for_me(1).await;
        creator
            .ask(enqueue(&id, QueueRef::Default {}, "think for ever"))
            .await
            .unwrap();
        drop(creator);
        pass(Duration::from_millis(10)).await;
        let mut second = Line::to(&host).await;
        attached(&mut second, Command::attach(id.clone())).await;
        drop(second);
        pass(Duration::from_secs(20)).await;
        let mut line = Line::to(&host).await;
        let row = line.ask(Command::GetSession { session_id: id }).await;
        let Ok(Answer::Session { session }) = row else {
            panic!("{row:?}");
        };
        assert_eq!(session.outcome.as_deref(), Some("interrupted"));
    });
}

#[test]
fn a_viewer_that_only_looks_changes_nothing() {
    life(async {
        let host = host().await;
        let mut other = Line::to(&host).await;
        let id = other.create(1).await;
        let mut line = Line::to(&host).await;
        let look = Command::Attach {
            session_id: id.clone(),
            resume: None,
            read_only: true,
        };
        attached(&mut line, look).await;
        let refused = Err("not-permitted".to_owned());
        let commands = [
            enqueue(&id, QueueRef::Default {}, "x"),
            Command::Terminate {
                session_id: id.clone(),
            },
            Command::Interrupt {
                session_id: id.clone(),
                tree: true,
            },
            Command::SetBudget {
                session_id: id.clone(),
                budget: "tokens=1".to_owned(),
                paused: None,
            },
        ];
        for command in commands {
            assert_eq!(line.ask(command.clone()).await, refused, "{command:?}");
        }
        let asked = Command::GetSession {
            session_id: id.clone(),
        };
        assert!(line.ask(asked).await.is_ok());
        other
            .ask(enqueue(&id, QueueRef::Default {}, "by somebody else"))
            .await
            .unwrap();
        assert!(numbers(&line.rest().await).len() > 3, "it sees all");
    });
}
