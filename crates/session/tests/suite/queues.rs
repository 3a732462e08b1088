//! Queues: accepting, editing, taking back, moving; immediacy, priority, holding and deleting.

use QueueId::{Custom, Default as Usual, Immediate};
use attache_session::{
    Answer, Command, EndReason, Immediacy, ItemId, Origin, QueueId, Rejected, StopReason,
};

use crate::desk::{Desk, created, enqueue, iid, kinds, sid, texts};

/// A session at work, so that input waits.
fn busy() -> Desk {
    let mut desk = Desk::new();
    desk.says(Usual, "work");
    desk
}

fn queue(desk: &mut Desk, immediacy: Immediacy) -> QueueId {
    let made = desk.does(Command::CreateQueue {
        name: None,
        immediacy,
    });
    match made.answer {
        Answer::QueueMade { queue } => queue,
        other => panic!("{other:?}"),
    }
}

fn configure(
    desk: &mut Desk,
    queue: QueueId,
    immediacy: Option<Immediacy>,
) -> Result<Answer, Rejected> {
    let command = Command::ConfigureQueue {
        queue,
        immediacy,
        expected: None,
    };
    desk.attempt(&command).map(|done| done.answer)
}

fn moved(item: ItemId, queue: QueueId, before: Option<ItemId>, expected: u32) -> Command {
    Command::Move {
        item,
        queue,
        before,
        expected,
    }
}

fn edit(item: ItemId, text: &str, expected: u32) -> Command {
    Command::Edit {
        item,
        text: text.into(),
        expected,
    }
}

#[test]
fn accepted_input_waits_at_the_end_of_its_queue() {
    for kind in [Immediate, Usual, Custom(0)] {
        let mut desk = busy();
        queue(&mut desk, Immediacy::Queue);
        for text in ["one", "two", "three"] {
            let done = desk.does(enqueue(None, kind, text));
            assert_eq!(kinds(&done.events), "queued");
            assert!(done.effects.is_empty() && done.mail.is_empty());
        }
        assert_eq!(desk.waiting(kind), ["one", "two", "three"], "{kind:?}");
    }
}

#[test]
fn input_keeps_the_id_that_it_was_given() {
    let mut desk = busy();
    let done = desk.does(enqueue(Some(iid(7)), Usual, "x"));
    assert_eq!(done.answer, Answer::Accepted { item: iid(7) });
    assert!(desk.state.item(iid(7)).is_some());
}

#[test]
fn what_cannot_be_accepted_is_refused() {
    let mut desk = busy();
    for text in ["", " ", "\n\t "] {
        for kind in [Immediate, Usual, Custom(9)] {
            assert_eq!(desk.refuses(enqueue(None, kind, text)), Rejected::EmptyText);
        }
    }
    assert_eq!(
        desk.refuses(enqueue(None, Custom(0), "x")),
        Rejected::UnknownQueue
    );
    let mut closed = created(sid(1), &[]);
    closed.takes_input = false;
    let mut desk = Desk::of(closed);
    for origin in [Origin::Viewer, Origin::Session(sid(2))] {
        let command = Command::Enqueue {
            item: None,
            queue: Usual,
            text: "x".into(),
            origin,
        };
        assert_eq!(desk.refuses(command), Rejected::NoUserInput);
    }
}

#[test]
fn a_change_names_the_revision_that_it_was_made_against() {
    let mut desk = busy();
    let item = desk.says(Usual, "one");
    let stale = Rejected::RevisionConflict {
        expected: 4,
        current: 0,
    };
    assert_eq!(desk.refuses(edit(item, "x", 4)), stale);
    let withdraw = |expected| Command::Withdraw { item, expected };
    assert_eq!(desk.refuses(withdraw(4)), stale);
    assert_eq!(desk.refuses(moved(item, Immediate, None, 4)), stale);

    assert_eq!(kinds(&desk.does(edit(item, "two", 0)).events), "edited");
    assert_eq!(desk.waiting(Usual), ["two"]);
    let late = Rejected::RevisionConflict {
        expected: 0,
        current: 1,
    };
    assert_eq!(desk.refuses(edit(item, "three", 0)), late);
    assert_eq!(desk.refuses(withdraw(0)), late);
    // A move is no new revision of the item: its text is the same.
    assert_eq!(
        kinds(&desk.does(moved(item, Immediate, None, 1)).events),
        "moved"
    );
    assert_eq!(kinds(&desk.does(withdraw(1)).events), "withdrawn");
    for command in [edit(item, "x", 1), withdraw(1), moved(item, Usual, None, 1)] {
        assert_eq!(desk.refuses(command), Rejected::UnknownItem);
    }
    let item = desk.says(Usual, "four");
    assert_eq!(desk.refuses(edit(item, " ", 0)), Rejected::EmptyText);
    assert_eq!(desk.waiting(Usual), ["four"]);
}

#[test]
fn what_a_turn_took_can_no_longer_be_changed() {
    let mut desk = Desk::new();
    let item = desk.says(Usual, "work");
    let taken = [
        edit(item, "x", 0),
        Command::Withdraw { item, expected: 0 },
        moved(item, Usual, None, 0),
    ];
    for command in taken {
        assert_eq!(desk.refuses(command), Rejected::UnknownItem);
    }
}

#[test]
fn a_move_goes_to_the_end_or_before_another_item() {
    let mut desk = busy();
    let [a, b, c] = ["a", "b", "c"].map(|text| desk.says(Usual, text));
    desk.does(moved(c, Usual, Some(a), 0));
    assert_eq!(desk.waiting(Usual), ["c", "a", "b"]);
    desk.does(moved(c, Usual, None, 0));
    assert_eq!(desk.waiting(Usual), ["a", "b", "c"]);
    desk.does(moved(b, Immediate, None, 0));
    desk.does(moved(a, Immediate, Some(b), 0));
    assert_eq!(desk.waiting(Immediate), ["a", "b"]);
    assert_eq!(desk.waiting(Usual), ["c"]);
    for before in [c, a, iid(99)] {
        // Not in that queue, itself, nowhere.
        let refused = desk.refuses(moved(a, Immediate, Some(before), 0));
        assert_eq!(refused, Rejected::UnknownItem);
    }
    assert_eq!(
        desk.refuses(moved(a, Custom(3), None, 0)),
        Rejected::UnknownQueue
    );
}

#[test]
fn input_is_taken_by_priority_immediate_then_default_then_the_newest_custom_queue() {
    let mut desk = busy();
    let old = queue(&mut desk, Immediacy::Queue);
    let new = queue(&mut desk, Immediacy::Queue);
    for (queue, text) in [
        (old, "old 1"),
        (new, "new 1"),
        (Usual, "default 1"),
        (Immediate, "immediate 1"),
        (old, "old 2"),
        (new, "new 2"),
        (Usual, "default 2"),
        (Immediate, "immediate 2"),
    ] {
        desk.says(queue, text);
    }
    let priority = |id| desk.state.queue(id).unwrap().priority();
    assert!(priority(Immediate) > priority(Usual) && priority(Usual) > priority(new));
    assert_eq!((priority(old), priority(new)), (10, 11));
    let done = desk.ends(EndReason::Completed);
    let expected = [
        "immediate 1",
        "immediate 2",
        "default 1",
        "default 2",
        "new 1",
        "new 2",
        "old 1",
        "old 2",
    ];
    assert_eq!(texts(&done.events), expected);
}

#[test]
fn immediacy_says_when_input_is_taken() {
    // At a tool boundary, and at the start of a turn.
    let table = [
        (Immediacy::Immediate, true, true),
        (Immediacy::Queue, false, true),
        (Immediacy::Held, false, false),
    ];
    assert_eq!(table.len(), Immediacy::ALL.len());
    for (immediacy, at_boundary, at_start) in table {
        let mut desk = busy();
        let queue = queue(&mut desk, immediacy);
        assert_eq!(desk.state.queue(queue).unwrap().starts_turn(), at_start);
        assert_eq!(desk.state.queue(queue).unwrap().steers(), at_boundary);
        desk.steps(&["a", "b"]);
        desk.says(queue, "steer");
        assert!(
            texts(&desk.results(&["a"]).events).is_empty(),
            "no boundary yet"
        );
        let boundary = desk.results(&["b"]);
        assert_eq!(texts(&boundary.events).len(), usize::from(at_boundary));
        let Answer::Steered { items } = &boundary.answer else {
            panic!("{:?}", boundary.answer)
        };
        assert_eq!(items.len(), usize::from(at_boundary));
        let end = desk.ends(EndReason::Completed);
        let starts = at_start && !at_boundary;
        assert_eq!(!texts(&end.events).is_empty(), starts, "{immediacy:?}");
        assert_eq!(desk.state.turn.is_some(), starts);
        assert_eq!(desk.state.deliverable(), 0);
    }
}

#[test]
fn a_release_restores_what_was_there_before_the_hold() {
    use Immediacy::{Held, Immediate as Now, Queue};
    for before in [Now, Queue] {
        let mut desk = busy();
        let id = queue(&mut desk, before);
        let look = |desk: &Desk| {
            let queue = desk.state.queue(id).unwrap();
            (queue.immediacy, queue.before_hold)
        };
        assert_eq!(configure(&mut desk, id, None), Err(Rejected::NotHeld));
        assert_eq!(configure(&mut desk, id, Some(Held)), Ok(Answer::Done));
        assert_eq!(look(&desk), (Held, Some(before)));
        // A second hold does not forget what was there before the first.
        assert_eq!(configure(&mut desk, id, Some(Held)), Ok(Answer::Unchanged));
        assert_eq!(configure(&mut desk, id, None), Ok(Answer::Done));
        assert_eq!(look(&desk), (before, None));
        assert_eq!(
            configure(&mut desk, id, Some(before)),
            Ok(Answer::Unchanged)
        );
        // Setting another one ends the hold and forgets it.
        configure(&mut desk, id, Some(Held)).unwrap();
        let other = if before == Now { Queue } else { Now };
        assert_eq!(configure(&mut desk, id, Some(other)), Ok(Answer::Done));
        assert_eq!(look(&desk), (other, None));
        assert_eq!(configure(&mut desk, id, None), Err(Rejected::NotHeld));
    }
    let mut desk = busy();
    let born_held = queue(&mut desk, Held);
    configure(&mut desk, born_held, None).unwrap();
    assert_eq!(desk.state.queue(born_held).unwrap().immediacy, Queue);
    for built_in in [Immediate, Usual] {
        let before = desk.state.queue(built_in).unwrap().immediacy;
        configure(&mut desk, built_in, Some(Held)).unwrap();
        configure(&mut desk, built_in, None).unwrap();
        assert_eq!(desk.state.queue(built_in).unwrap().immediacy, before);
    }
}

#[test]
fn a_release_sets_an_idle_session_to_work() {
    let mut desk = Desk::new();
    let id = queue(&mut desk, Immediacy::Held);
    desk.says(id, "later");
    assert!(desk.state.turn.is_none());
    let done = desk.does(Command::ConfigureQueue {
        queue: id,
        immediacy: None,
        expected: None,
    });
    assert_eq!(kinds(&done.events), "queue-set turn-started consumed");
}

#[test]
fn a_queue_that_changed_since_is_not_configured() {
    let mut desk = busy();
    let id = queue(&mut desk, Immediacy::Queue);
    let seen = desk.state.queue(id).unwrap().revision;
    desk.says(id, "x");
    let stale = Rejected::RevisionConflict {
        expected: seen,
        current: seen + 1,
    };
    let configure = |expected| Command::ConfigureQueue {
        queue: id,
        immediacy: Some(Immediacy::Held),
        expected: Some(expected),
    };
    assert_eq!(desk.refuses(configure(seen)), stale);
    assert_eq!(desk.does(configure(seen + 1)).answer, Answer::Done);
    let unknown = Command::ConfigureQueue {
        queue: Custom(7),
        immediacy: None,
        expected: None,
    };
    assert_eq!(desk.refuses(unknown), Rejected::UnknownQueue);
}

#[test]
fn only_an_empty_custom_queue_is_deleted_and_its_number_is_not_used_again() {
    let mut desk = busy();
    let delete = |queue, expected| Command::DeleteQueue { queue, expected };
    for built_in in [Immediate, Usual] {
        assert_eq!(desk.refuses(delete(built_in, 0)), Rejected::BuiltInQueue);
    }
    assert_eq!(desk.refuses(delete(Custom(0), 0)), Rejected::UnknownQueue);
    let id = queue(&mut desk, Immediacy::Queue);
    assert_eq!(id, Custom(0));
    let item = desk.says(id, "x");
    let revision = desk.state.queue(id).unwrap().revision;
    assert_eq!(
        desk.refuses(delete(id, revision - 1)),
        Rejected::RevisionConflict {
            expected: revision - 1,
            current: revision,
        }
    );
    assert_eq!(desk.refuses(delete(id, revision)), Rejected::QueueNotEmpty);
    desk.does(Command::Withdraw { item, expected: 0 });
    let done = desk.does(delete(id, revision + 1));
    assert_eq!(kinds(&done.events), "queue-deleted");
    assert!(desk.state.queue(id).is_none());
    assert_eq!(queue(&mut desk, Immediacy::Queue), Custom(1));
}

#[test]
fn a_queue_has_a_name() {
    let mut desk = busy();
    let first = queue(&mut desk, Immediacy::Queue);
    assert_eq!(&*desk.state.queue(first).unwrap().name, "queue 1");
    let named = |name: &str| Command::CreateQueue {
        name: Some(name.into()),
        immediacy: Immediacy::Immediate,
    };
    desk.does(named("later"));
    assert_eq!(&*desk.state.queue(Custom(1)).unwrap().name, "later");
    for name in ["", "  ", &"é".repeat(101)] {
        assert_eq!(desk.refuses(named(name)), Rejected::QueueName { most: 100 });
    }
    desk.does(named(&"é".repeat(100)));
}

#[test]
fn queues_survive_a_stop_and_are_consumed_once_by_the_next_start() {
    let mut desk = busy();
    desk.says(Usual, "default");
    desk.says(Immediate, "immediate");
    let held = queue(&mut desk, Immediacy::Held);
    desk.says(held, "held");
    desk.stops(StopReason::Terminated);
    desk.says(Usual, "while stopped");
    assert!(desk.state.turn.is_none());
    let done = desk.starts(2);
    assert_eq!(
        texts(&done.events),
        ["immediate", "default", "while stopped"]
    );
    assert_eq!(desk.waiting(held), ["held"]);
    desk.ends(EndReason::Completed);
    assert_eq!(
        desk.consumed(),
        ["work", "immediate", "default", "while stopped"]
    );
}
