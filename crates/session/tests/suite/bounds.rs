//! What binds a tree: limits that people set, and the one word of each that it is nearly used up.

use attache_session::{
    Answer, BudgetChange, Command, Decision, Event, Limit, Origin, QueueId, StopReason,
};

use crate::desk::Desk;

fn set(desk: &mut Desk, change: &str) -> Answer {
    let change = BudgetChange::parse(change).expect("a budget");
    let paused = None;
    desk.does(Command::SetBounds { change, paused }).answer
}

fn nearly(desk: &mut Desk, used: u64, most: u64) -> Decision {
    desk.does(Command::NearlySpent {
        limit: Limit::Tokens,
        used,
        most,
    })
}

fn told(decision: &Decision) -> Option<String> {
    decision
        .events
        .iter()
        .find_map(|stamped| match &stamped.event {
            Event::Queued { queue, item } => {
                assert_eq!(*queue, QueueId::Immediate);
                assert!(matches!(item.origin, Origin::Notice { .. }));
                Some(item.text.to_string())
            }
            _ => None,
        })
}

#[test]
fn a_session_is_told_once_of_each_value_of_a_limit() {
    let mut desk = Desk::new();
    assert_eq!(set(&mut desk, "tokens=100"), Answer::Done);
    assert_eq!(set(&mut desk, "tokens=100"), Answer::Unchanged);
    let first = nearly(&mut desk, 80, 100);
    let text = told(&first).expect("it is told");
    assert!(text.contains("tokens, 80 of 100"), "{text}");
    for used in [81, 99] {
        let again = nearly(&mut desk, used, 100);
        assert_eq!(again.answer, Answer::Unchanged);
    }
    // Another limit changes nothing of it; a raised one is told of anew, and an old value is no news.
    set(&mut desk, "agents=3");
    assert_eq!(nearly(&mut desk, 99, 100).answer, Answer::Unchanged);
    set(&mut desk, "tokens=200");
    assert_eq!(nearly(&mut desk, 99, 100).answer, Answer::Unchanged);
    assert!(told(&nearly(&mut desk, 160, 200)).is_some());
    set(&mut desk, "tokens=none");
    assert_eq!(nearly(&mut desk, 160, 200).answer, Answer::Unchanged);
}

#[test]
fn where_nothing_is_left_people_are_told_and_no_run_starts() {
    let mut desk = Desk::new();
    set(&mut desk, "tokens=100");
    let decision = nearly(&mut desk, 120, 100);
    let kinds: Vec<&str> = decision.events.iter().map(|it| it.event.kind()).collect();
    assert_eq!(kinds, ["bounds-set", "noted"]);
    assert!(decision.effects.is_empty());
    assert_eq!(nearly(&mut desk, 150, 100).answer, Answer::Unchanged);
}

#[test]
fn a_stopped_session_is_told_when_it_lives_again() {
    let mut desk = Desk::new();
    set(&mut desk, "tokens=100");
    desk.stops(StopReason::Terminated);
    assert_eq!(nearly(&mut desk, 90, 100).answer, Answer::Unchanged);
    desk.does(Command::Start {
        epoch: crate::desk::eid(9),
    });
    assert!(told(&nearly(&mut desk, 90, 100)).is_some());
}

#[test]
fn a_pause_stands_beside_the_limits() {
    let mut desk = Desk::new();
    set(&mut desk, "depth=2");
    let mut pause = |paused| {
        let change = BudgetChange::default();
        let paused = Some(paused);
        let answer = desk.does(Command::SetBounds { change, paused }).answer;
        let bounds = desk.state.bounds.clone();
        (answer, bounds.paused, bounds.budget.to_string())
    };
    let depth = || "depth=2".to_owned();
    assert_eq!(pause(true), (Answer::Done, true, depth()));
    assert_eq!(pause(true), (Answer::Unchanged, true, depth()));
    assert_eq!(pause(false), (Answer::Done, false, depth()));
}
