//! What went wrong where two things met, as the simulation of both ends found it: one case each.

use std::time::Duration;

use attache_protocol::{Answer, Command, FromHost, FromViewer, QueueRef, Status};
use attache_testkit::pass;

use crate::attach::{attached, back, numbers};
use crate::kit::{Line, enqueue, host, life};

#[test]
fn what_an_older_connection_says_late_takes_no_attachment_back() {
    life(async {
        let host = host().await;
        let mut other = Line::to(&host).await;
        let id = other.create(1).await;
        let mut first = Line::to(&host).await;
        let (name, _) = attached(&mut first, Command::attach(id.clone())).await;
        drop(first);
        // Its viewer gave the old one up, and what it had said there comes behind what it says on the new one.
        let (mut old, mut new) = (Line::to(&host).await, Line::to(&host).await);
        let again = || back(&id, &name, None, None);
        assert_eq!(attached(&mut new, again()).await, (name.clone(), false));
        assert_ne!(attached(&mut old, again()).await.0, name);
        new.rest().await;
        other
            .ask(enqueue(&id, QueueRef::Default {}, "one"))
            .await
            .unwrap();
        assert!(!numbers(&new.rest().await).is_empty(), "it is told still");
    });
}

#[test]
fn nothing_follows_the_answer_to_who_leaves() {
    life(async {
        let host = host().await;
        let mut other = Line::to(&host).await;
        let id = other.create(1).await;
        let mut line = Line::to(&host).await;
        let (name, _) = attached(&mut line, Command::attach(id.clone())).await;
        let place = numbers(&line.rest().await)[0].clone();
        drop(line);
        other
            .ask(enqueue(&id, QueueRef::Default {}, "missed"))
            .await
            .unwrap();
        // It comes back to much that it has missed, and leaves in the same breath.
        let mut line = Line::to(&host).await;
        let again = back(&id, &name, Some(place.1), place.2.as_deref());
        line.say(&FromViewer::command("back", again)).await;
        let detach = Command::Detach {
            session_id: id.clone(),
        };
        assert_eq!(line.ask(detach).await, Ok(Answer::Done { changed: true }));
        let heard = line.rest().await;
        assert!(numbers(&heard).is_empty(), "{heard:#?}");
    });
}

#[test]
fn who_comes_back_while_the_end_is_on_its_way_hears_it_again() {
    life(async {
        let host = host().await;
        let mut other = Line::to(&host).await;
        let id = other.create(1).await;
        let mut line = Line::through(&host, 256).await;
        let (name, _) = attached(&mut line, Command::attach(id.clone())).await;
        let place = numbers(&line.rest().await)[0].clone();
        // Its end is on the way, and does not fit into the pipe.
        let terminate = Command::Terminate {
            session_id: id.clone(),
        };
        other.ask(terminate).await.unwrap();
        pass(Duration::from_millis(10)).await;
        let again = back(&id, &name, Some(place.1), place.2.as_deref());
        line.say(&FromViewer::command("back", again)).await;
        pass(Duration::from_millis(10)).await;
        let heard = line.rest().await;
        let is_end = |frame: &&FromHost| matches!(frame, FromHost::SessionTerminal { .. });
        assert_eq!(heard.iter().filter(is_end).count(), 2, "{heard:#?}");
        assert!(is_end(&heard.last().unwrap()), "nothing follows");
    });
}

#[test]
fn a_place_in_a_stream_that_is_gone_is_none_in_a_later_one() {
    life(async {
        let host = host().await;
        let mut other = Line::to(&host).await;
        let id = other.create(1).await;
        let mut line = Line::to(&host).await;
        attached(&mut line, Command::attach(id.clone())).await;
        let (_, next, epoch) = numbers(&line.rest().await)[0].clone();
        let detach = Command::Detach {
            session_id: id.clone(),
        };
        line.ask(detach).await.unwrap();
        // Nobody looks while this happens.
        let held = QueueRef::Named {
            name: "later".to_owned(),
            held: true,
        };
        other.ask(enqueue(&id, held, "missed")).await.unwrap();
        // It attaches anew, and loses its connection before the snapshot comes: it stands where it stood before.
        let (name, _) = attached(&mut line, Command::attach(id.clone())).await;
        drop(line);
        let mut line = Line::to(&host).await;
        let again = back(&id, &name, Some(next), epoch.as_deref());
        assert_eq!(attached(&mut line, again).await, (name, false));
        assert!(numbers(&line.rest().await)[0].0, "it begins anew");
    });
}

#[test]
fn input_that_is_said_again_makes_no_queue_and_starts_no_epoch() {
    life(async {
        let host = host().await;
        let mut line = Line::to(&host).await;
        let id = line.create(1).await;
        let held = || QueueRef::Named {
            name: "later".to_owned(),
            held: true,
        };
        let first = line.ask_as("k", enqueue(&id, held(), "once")).await;
        let Ok(Answer::Accepted { item_id, .. }) = first else {
            panic!("{first:?}");
        };
        // What it was said to is gone since: the queue is deleted, and the epoch has ended.
        let commands = [
            Command::RemoveItem {
                session_id: id.clone(),
                item_id: item_id.clone(),
                expected_revision: 0,
            },
            Command::DeleteQueue {
                session_id: id.clone(),
                queue_id: "custom-0".to_owned(),
                expected_revision: 3,
            },
            Command::Terminate {
                session_id: id.clone(),
            },
        ];
        for command in commands {
            assert_eq!(line.ask(command).await, Ok(Answer::Done { changed: true }));
        }
        match line.ask_as("k", enqueue(&id, held(), "once")).await {
            Ok(Answer::Accepted { item_id: again, .. }) => assert_eq!(again, item_id),
            other => panic!("{other:?}"),
        }
        match line
            .ask(Command::GetSession {
                session_id: id.clone(),
            })
            .await
        {
            Ok(Answer::Session { session }) => assert_eq!(session.status, Status::Stopped),
            other => panic!("{other:?}"),
        }
        let state = host.engine().state(id.parse().unwrap()).await.unwrap();
        assert_eq!(state.queues.len(), 2, "no queue was made again");
    });
}

#[test]
fn a_snapshot_fits_into_a_frame_whatever_is_in_it() {
    // Bytes of a definition, and whether there is room for it beside all the rest.
    for (definition, has_room) in [
        (1_000, true),
        (100_000, true),
        (380_000, false),
        (800_000, false),
    ] {
        snapshot_fits(definition, has_room);
    }
}

fn snapshot_fits(definition: usize, has_room: bool) {
    life(async {
        let host = host().await;
        let mut other = Line::to(&host).await;
        let id = other.create_large(1, "i".repeat(definition)).await;
        // Each of these characters takes six bytes in a frame.
        let text = format!("long {}", "\u{1}".repeat(128 * 1024));
        other
            .ask(enqueue(&id, QueueRef::Default {}, &text))
            .await
            .unwrap();
        for queue in 0..12 {
            for _ in 0..16 {
                let name = format!("later {queue}");
                let held = QueueRef::Named { name, held: true };
                other
                    .ask(enqueue(&id, held, &"\u{1}".repeat(1_024)))
                    .await
                    .unwrap();
            }
        }
        pass(Duration::from_millis(25)).await;
        let mut line = Line::to(&host).await;
        attached(&mut line, Command::attach(id.clone())).await;
        let heard = line.rest().await;
        let Some(FromHost::Snapshot(snapshot)) = heard.first() else {
            panic!("{heard:?}");
        };
        let runs = snapshot.running.as_ref().map(|it| it.text.len());
        assert!(runs > Some(50 * 1024), "{runs:?}");
        let waiting: usize = snapshot.queues.iter().map(|it| it.items.len()).sum();
        assert!(waiting > 30, "{waiting}");
        let known = snapshot.detail.as_ref().unwrap().information.clone();
        assert_eq!(known.agent_definition.is_some(), has_room, "{definition}");
        assert!(!snapshot.history.is_empty(), "the newest item is there");
        let largest = heard.iter().map(attache_protocol::encoded_len).max();
        assert!(
            largest <= Some(attache_protocol::FRAME_LIMIT),
            "{largest:?}"
        );
    });
}

#[test]
fn who_only_looks_changes_nothing_either_when_it_is_not_attached() {
    life(async {
        let host = host().await;
        let mut other = Line::to(&host).await;
        let id = other.create(1).await;
        let terminate = Command::Terminate {
            session_id: id.clone(),
        };
        other.ask(terminate).await.unwrap();
        // It comes back to what is over, and says behind it what had no answer before its connection was lost.
        let mut line = Line::to(&host).await;
        let mut look = back(&id, "gone", None, None);
        if let Command::Attach { read_only, .. } = &mut look {
            *read_only = true;
        }
        assert_eq!(line.ask(look).await, Err("unknown-session".to_owned()));
        let input = enqueue(&id, QueueRef::Default {}, "x");
        assert_eq!(line.ask(input).await, Err("not-permitted".to_owned()));
    });
}
