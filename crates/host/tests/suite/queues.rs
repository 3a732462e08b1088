//! Queues and what waits in them, as several viewers change them.

use attache_protocol::{Answer, Command, FromHost, Immediacy, Patch, QueueRef, QueueView};

use crate::kit::{Line, enqueue, host, life};

fn queue_of(frame: &FromHost) -> Option<&QueueView> {
    match frame {
        FromHost::Delta(delta) => match &delta.patch {
            Patch::QueuePut { queue } => Some(queue),
            _ => None,
        },
        _ => None,
    }
}

fn queues(frames: &[FromHost]) -> Vec<&QueueView> {
    frames.iter().filter_map(queue_of).collect()
}

#[test]
fn a_change_against_an_old_revision_is_a_conflict_that_names_the_current_one() {
    life(async {
        let host = host().await;
        let (mut one, mut two) = (Line::to(&host).await, Line::to(&host).await);
        let id = one.create(1).await;
        let held = QueueRef::Named {
            name: "later".to_owned(),
            held: true,
        };
        let accepted = one.ask(enqueue(&id, held, "first")).await.unwrap();
        let Answer::Accepted { item_id, .. } = accepted else {
            panic!("{accepted:?}");
        };
        two.ask(Command::attach(id.clone())).await.unwrap();
        let edit = |text: &str, expected_revision| Command::EditItem {
            session_id: id.clone(),
            item_id: item_id.clone(),
            text: text.to_owned(),
            expected_revision,
        };
        let done = Ok(Answer::Done { changed: true });
        assert_eq!(one.ask(edit("by one", 0)).await, done);
        assert_eq!(
            two.ask(edit("by two", 0)).await,
            Err("revision-conflict 1".to_owned())
        );
        assert_eq!(two.ask_as("two-3", edit("by two", 1)).await, done);
        // A repeat gets its first answer, whatever the revision is by now; other content under its id is a conflict.
        assert_eq!(two.ask_as("two-3", edit("by two", 1)).await, done);
        assert_eq!(
            two.ask_as("two-3", edit("else", 1)).await,
            Err("command-id-reused".to_owned())
        );
        let heard = two.rest().await;
        let newest = queues(&heard).last().unwrap().items[0].clone();
        assert_eq!((newest.text.as_str(), newest.revision), ("by two", 2));
    });
}

#[test]
fn queues_are_made_configured_emptied_and_deleted_and_every_viewer_sees_it() {
    life(async {
        let host = host().await;
        let (mut one, mut two) = (Line::to(&host).await, Line::to(&host).await);
        let id = one.create(1).await;
        two.ask(Command::attach(id.clone())).await.unwrap();
        let session_id = || id.clone();
        let create = Command::CreateQueue {
            session_id: session_id(),
            name: Some("later".to_owned()),
            immediacy: Immediacy::Held,
        };
        let made = one.ask(create).await.unwrap();
        let Answer::QueueMade { queue_id } = made else {
            panic!("{made:?}");
        };
        let named = QueueRef::Named {
            name: "later".to_owned(),
            held: true,
        };
        let mut items = Vec::new();
        for text in ["a", "b"] {
            match one.ask(enqueue(&id, named.clone(), text)).await.unwrap() {
                Answer::Accepted { item_id, .. } => items.push(item_id),
                other => panic!("{other:?}"),
            }
        }
        let delete = |expected_revision| Command::DeleteQueue {
            session_id: session_id(),
            queue_id: queue_id.clone(),
            expected_revision,
        };
        let move_first = Command::MoveItem {
            session_id: session_id(),
            item_id: items[1].clone(),
            queue_id: queue_id.clone(),
            before_item_id: Some(items[0].clone()),
            expected_revision: 0,
        };
        one.ask(move_first).await.unwrap();
        let heard = two.rest().await;
        let last = (*queues(&heard).last().unwrap()).clone();
        let order: Vec<&str> = last.items.iter().map(|item| item.text.as_str()).collect();
        assert_eq!(
            (last.queue_id.as_str(), order),
            (queue_id.as_str(), vec!["b", "a"])
        );
        assert_eq!(
            one.ask(delete(last.revision)).await,
            Err("invalid-arguments".to_owned()),
            "it is not empty"
        );
        for item in &last.items {
            let remove = Command::RemoveItem {
                session_id: session_id(),
                item_id: item.item_id.clone(),
                expected_revision: item.revision,
            };
            one.ask(remove).await.unwrap();
        }
        let heard = two.rest().await;
        let revision = queues(&heard).last().unwrap().revision;
        let configure = Command::ConfigureQueue {
            session_id: session_id(),
            queue_id: queue_id.clone(),
            immediacy: Some(Immediacy::Queue),
            expected_revision: revision,
        };
        one.ask(configure).await.unwrap();
        let heard = two.rest().await;
        let last = (*queues(&heard).last().unwrap()).clone();
        assert_eq!(last.immediacy, Immediacy::Queue);
        one.ask(delete(last.revision)).await.unwrap();
        let gone = two.rest().await.into_iter().any(|frame| {
            matches!(frame, FromHost::Delta(delta)
                if matches!(&delta.patch, Patch::QueueGone { queue_id: gone } if *gone == queue_id))
        });
        assert!(gone, "it is told that the queue is gone");
    });
}

#[test]
fn what_is_no_queue_and_no_item_is_named() {
    life(async {
        let host = host().await;
        let mut line = Line::to(&host).await;
        let id = line.create(1).await;
        for (item_id, queue_id) in [("no id", "default"), ("", "default")] {
            let put = Command::MoveItem {
                session_id: id.clone(),
                item_id: item_id.to_owned(),
                queue_id: queue_id.to_owned(),
                before_item_id: None,
                expected_revision: 0,
            };
            assert_eq!(line.ask(put).await, Err("invalid-arguments".to_owned()));
        }
        for queue_id in ["custom-9", "custom-", "immediate ", "default"] {
            let delete = Command::DeleteQueue {
                session_id: id.clone(),
                queue_id: queue_id.to_owned(),
                expected_revision: 0,
            };
            assert_eq!(line.ask(delete).await, Err("invalid-arguments".to_owned()));
        }
    });
}
