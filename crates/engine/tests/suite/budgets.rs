//! What a tree may use: places of turns at once, living sessions, generations, tokens, money, time and calls. Each limit
//! refuses or ends by its name, gives back exactly once, and holds over a restart.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use attache_model::Usage;
use attache_session::{
    BudgetChange, EndReason, ErrorCode, Event, Limit, Outcome, SessionId, Status,
};
use attache_store::{MemoryStore, RowFilter};
use attache_testkit::{Piece, Puppet, World, call, json_of, pass, text};
use serde_json::{Value, json};

use crate::players::priced;

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) async fn world(puppet: Puppet, budget: &str) -> World {
    let store = Arc::new(MemoryStore::new());
    let world = World::with(store, puppet, attache_tools::built_in(), Vec::new()).await;
    world.with_budget(budget)
}

pub(crate) async fn set(world: &World, session: SessionId, change: &str) {
    let change = BudgetChange::parse(change).expect("a budget");
    let done = world.engine.set_budget(session, change, None).await;
    assert!(done.expect("it is set"));
}

pub(crate) fn used(world: &World, session: SessionId, limit: Limit) -> u64 {
    let (limits, _) = world.engine.budget(session).expect("a session");
    let found = limits.iter().find(|it| it.limit == limit);
    found.expect("it is limited").used.expect("it is counted")
}

fn notes(world: &World, session: SessionId) -> Vec<String> {
    let noted = |event| match event {
        Event::Noted { text, .. } => Some(text.to_string()),
        _ => None,
    };
    let events = world.events(session).into_iter();
    events.filter_map(|stamped| noted(stamped.event)).collect()
}

/// The code and message of a refused call.
pub(crate) async fn refused(
    world: &World,
    caller: SessionId,
    tool: &str,
    arguments: Value,
) -> (String, String) {
    let outcome = world.call(caller, tool, arguments).await;
    assert!(outcome.is_error, "{outcome:?}");
    let error = &json_of(&outcome)["error"];
    let part = |name: &str| error[name].as_str().expect("a text").to_owned();
    (part("code"), part("message"))
}

/// A boss that makes so many children, waits for each of them, and is done; and how many turns ran at once at most.
fn boss_of(children: usize, at_work: &Arc<Mutex<(usize, usize)>>) -> Puppet {
    let at_work = Arc::clone(at_work);
    let change = move |by: isize| {
        let mut at_work = at_work.lock().unwrap_or_else(PoisonError::into_inner);
        at_work.0 = at_work
            .0
            .checked_add_signed(by)
            .expect("as many end as begin");
        at_work.1 = at_work.1.max(at_work.0);
    };
    Puppet::new(move |request| {
        if Puppet::task(request) == "boss" {
            return match Puppet::rounds(request) {
                0 => (0..children)
                    .flat_map(|number| {
                        let first = format!("child {number}");
                        call("agent_session_create", &json!({ "initial_message": first }))
                    })
                    .collect(),
                1 => Puppet::results(request)
                    .iter()
                    .flat_map(|made| {
                        let made: Value = serde_json::from_str(made).expect("it was made");
                        let wait = json!({ "session_id": made["session_id"], "wait_for_idle": true, "timeout_seconds": 300 });
                        call("agent_session_wait", &wait)
                    })
                    .collect(),
                _ => text("all done"),
            };
        }
        // Two steps; from the first to the last it is at work.
        match Puppet::rounds(request) {
            0 => {
                change(1);
                let mut pieces = vec![Piece::Pause(s(1))];
                pieces.extend(call("agent_session_list", &json!({})));
                pieces
            }
            _ => {
                change(-1);
                text("child done")
            }
        }
    })
}

#[tokio::test(start_paused = true)]
async fn turns_at_once_stay_under_their_limit_and_who_waits_holds_no_place() {
    for (children, budget, most) in [
        (20, "concurrent=3", 3),
        (5, "concurrent=1", 1),
        (20, "concurrent=none", 20),
    ] {
        let at_work = Arc::default();
        let world = world(boss_of(children, &at_work), budget).await;
        let boss = world.root(Some("boss")).await;
        pass(Duration::from_millis(1_500)).await;
        let rows = world.engine.rows(RowFilter::Tree(boss)).expect("rows");
        let waiting = rows.iter().filter_map(|row| row.note.as_ref());
        let waiting: Vec<String> = waiting.map(ToString::to_string).collect();
        if most < children {
            assert!(waiting.len() > children / 3, "{waiting:?}");
            let words =
                format!("waits for a place: {most} turns run (limit concurrent of session {boss})");
            assert!(waiting.iter().all(|note| *note == words), "{waiting:?}");
        } else {
            assert!(waiting.is_empty(), "{waiting:?}");
        }
        world.quiet(boss).await;
        let rows = world.engine.rows(RowFilter::Tree(boss)).expect("rows");
        assert_eq!(rows.len(), children + 1);
        for row in &rows {
            assert_eq!(row.view.end_reason(), Some(EndReason::Completed));
            assert_eq!((row.status, &row.note), (Status::Idle, &None));
        }
        let at_work = *at_work.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(at_work, (0, most), "{budget}");
        if most < children {
            assert_eq!(
                used(&world, boss, Limit::Concurrent),
                0,
                "every place is back"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_ended_while_it_waits_for_a_place_takes_none() {
    let puppet = Puppet::new(|_| [vec![Piece::Pause(s(10))], text("done")].concat());
    let world = world(puppet, "concurrent=1").await;
    let root = world.root(None).await;
    let first = world.child(root, Some("first")).await;
    let second = world.child(root, Some("second")).await;
    pass(s(1)).await;
    assert!(world.row(second).note.is_some(), "it waits");
    world
        .engine
        .interrupt(second, false)
        .await
        .expect("it ends");
    pass(s(1)).await;
    assert_eq!(world.row(second).view.outcome(), Some(Outcome::Interrupted));
    let third = world.child(root, Some("third")).await;
    pass(s(9)).await;
    assert_eq!(world.row(first).view.outcome(), Some(Outcome::Succeeded));
    world.quiet(root).await;
    pass(s(11)).await;
    assert_eq!(world.row(third).view.outcome(), Some(Outcome::Succeeded));
    assert_eq!(used(&world, root, Limit::Concurrent), 0);
}

#[tokio::test(start_paused = true)]
async fn a_raised_limit_lets_those_go_on_who_wait() {
    let puppet = Puppet::new(|_| [vec![Piece::Pause(s(10))], text("done")].concat());
    let world = world(puppet, "concurrent=1").await;
    let root = world.root(None).await;
    for name in ["a", "b", "c"] {
        world.child(root, Some(name)).await;
    }
    pass(s(1)).await;
    assert_eq!(used(&world, root, Limit::Concurrent), 1);
    set(&world, root, "concurrent=3").await;
    pass(s(1)).await;
    assert_eq!(used(&world, root, Limit::Concurrent), 3);
}

#[tokio::test]
async fn living_sessions_are_limited_and_each_end_gives_its_place_back_once() {
    let world = world(Puppet::new(|_| text("done")), "agents=3").await;
    let root = world.root(None).await;
    let mut children = Vec::new();
    for name in ["a", "b", "c"] {
        children.push(world.child(root, Some(name)).await);
    }
    // A grandchild counts as much.
    for caller in [root, children[0]] {
        let (code, message) = refused(
            &world,
            caller,
            "agent_session_create",
            json!({ "initial_message": "d" }),
        )
        .await;
        assert_eq!(code, "limit-reached");
        assert!(
            message.contains(&format!(
                "limit agents of session {root} is reached: 3 of 3"
            )) && message.contains("agent_session_list")
                && message.contains("agent_session_stop"),
            "{message}"
        );
    }
    assert_eq!(used(&world, root, Limit::Agents), 3);
    // Stopped in each way, and started again: one place each.
    let give_up = json!({ "session_id": children[0].to_string(), "dispose": true });
    world.ask(root, "agent_session_stop", give_up).await;
    assert_eq!(used(&world, root, Limit::Agents), 2);
    world.engine.terminate(children[1]).await.expect("it ends");
    world
        .engine
        .terminate(children[1])
        .await
        .expect("it has ended");
    assert_eq!(used(&world, root, Limit::Agents), 1);
    let again = json!({ "session_id": children[0].to_string() });
    world.ask(root, "agent_session_acquire", again).await;
    world.quiet(root).await;
    assert_eq!(used(&world, root, Limit::Agents), 2);
    world.child(root, Some("d")).await;
    assert_eq!(used(&world, root, Limit::Agents), 3);
    // What the life before left open holds no place in the next one.
    let world = world.restarted().await;
    world.engine.start(root, None).await.expect("it starts");
    for child in children {
        let _row = world.row(child);
        world
            .engine
            .state(child)
            .await
            .expect("its end is written down");
    }
    world.quiet(root).await;
    let rows = world.engine.rows(RowFilter::Tree(root)).expect("rows");
    let living = rows
        .iter()
        .filter(|row| row.session != root && row.view.is_live());
    assert_eq!(living.count(), 0);
    for row in rows {
        world.engine.state(row.session).await.expect("a session");
    }
    assert_eq!(used(&world, root, Limit::Agents), 0);
}

#[tokio::test]
async fn generations_are_limited_and_a_child_has_a_part_of_them() {
    let world = world(Puppet::new(|_| text("done")), "depth=2").await;
    let root = world.root(None).await;
    let child = world.child(root, Some("a")).await;
    let grandchild = world.child(child, Some("b")).await;
    let (code, message) = refused(
        &world,
        grandchild,
        "agent_session_create",
        json!({ "initial_message": "c" }),
    )
    .await;
    assert_eq!(code, "limit-reached");
    assert!(
        message.contains(&format!("limit depth=2 of session {root}")),
        "{message}"
    );
    let more = json!({ "initial_message": "d", "budget": { "depth": 2 } });
    let (code, message) = refused(&world, root, "agent_session_create", more).await;
    assert_eq!(code, "exceeds-parent");
    assert!(message.contains("depth=2: 1 is left"), "{message}");
    set(&world, root, "depth=none").await;
    world.child(grandchild, Some("c")).await;
}

#[tokio::test]
async fn a_paused_tree_grows_no_further_until_a_person_lets_it() {
    let world = world(Puppet::new(|_| text("done")), "").await;
    let root = world.root(None).await;
    let child = world.child(root, Some("a")).await;
    let pause = |paused| {
        world
            .engine
            .set_budget(root, BudgetChange::default(), Some(paused))
    };
    assert!(pause(true).await.expect("it is paused"));
    let (code, message) = refused(
        &world,
        child,
        "agent_session_create",
        json!({ "initial_message": "b" }),
    )
    .await;
    assert_eq!(code, "limit-reached");
    assert!(
        message.contains(&format!("attache resume {root}")),
        "{message}"
    );
    assert!(pause(false).await.expect("it goes on"));
    world.child(child, Some("b")).await;
}

/// Each step takes 30 tokens; a child of each task works for so many steps as it says.
pub(crate) fn spender() -> Puppet {
    Puppet::new(|request| {
        let usage = Piece::Usage(Usage {
            input: Some(20),
            output: Some(10),
            ..Usage::default()
        });
        let task = Puppet::last_user(request);
        let steps = task
            .split_whitespace()
            .last()
            .and_then(|last| last.parse().ok());
        let mut pieces = if Puppet::rounds(request) < steps.unwrap_or(0) {
            call("agent_session_get", &json!({}))
        } else {
            text("done")
        };
        pieces.push(usage);
        pieces
    })
}

#[tokio::test]
async fn at_four_fifths_the_root_is_told_and_at_the_limit_every_run_ends_until_it_is_raised() {
    let world = world(spender(), "tokens=200").await;
    let root = world.root(None).await;
    let child = world.child(root, Some("steps 3")).await;
    world.quiet(root).await;
    assert_eq!(used(&world, root, Limit::Tokens), 120);
    assert!(world.consumed(root).is_empty());
    // 150, then the step at 180 makes the root speak too.
    let other = world.child(root, Some("steps 9")).await;
    world.quiet(root).await;
    let told = world.consumed(root);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("tokens,") && told[0].contains("of 200"),
        "{told:?}"
    );
    let row = world.row(other);
    assert_eq!(row.view.end_reason(), Some(EndReason::Budget));
    assert_eq!(row.view.outcome(), Some(Outcome::OutOfBudget));
    assert_eq!(row.status, Status::Error);
    let why = notes(&world, other);
    assert!(
        why.iter()
            .any(|note| note.contains(&format!("limit tokens=200 of session {root} is used up"))),
        "{why:?}"
    );
    // Nobody below it runs on, and nothing is spawned.
    let before = world.puppet.requests().len();
    world.say(child, "steps 1").await;
    assert_eq!(world.puppet.requests().len(), before, "no model is asked");
    assert_eq!(world.row(child).view.end_reason(), Some(EndReason::Budget));
    let (code, message) = refused(&world, root, "agent_session_create", json!({})).await;
    assert_eq!(code, "limit-reached");
    assert!(message.contains("tokens=200"), "{message}");
    // What was counted is what the rows have.
    let rows = world.engine.rows(RowFilter::Tree(root)).expect("rows");
    let sum: u64 = rows
        .iter()
        .map(|row| row.view.summary.usage)
        .map(|usage| usage.input.unwrap_or(0) + usage.output.unwrap_or(0))
        .sum();
    assert_eq!(used(&world, root, Limit::Tokens), sum);
    // A person raises it, also over a restart.
    let world = world.restarted().await;
    assert_eq!(used(&world, root, Limit::Tokens), sum);
    set(&world, root, "tokens=1000").await;
    for session in [root, child] {
        world.engine.start(session, None).await.expect("it starts");
    }
    world.say(child, "steps 1").await;
    assert_eq!(
        world.row(child).view.end_reason(),
        Some(EndReason::Completed)
    );
}

#[tokio::test]
async fn a_limit_that_is_set_later_counts_what_was_used_before() {
    let world = world(spender(), "").await;
    let root = world.root(Some("steps 1")).await;
    world.quiet(root).await;
    world.child(root, Some("steps 0")).await;
    world.quiet(root).await;
    set(&world, root, "tokens=1000,agents=5").await;
    assert_eq!(used(&world, root, Limit::Tokens), 90);
    assert_eq!(used(&world, root, Limit::Agents), 1);
    world.say(root, "steps 0").await;
    assert_eq!(used(&world, root, Limit::Tokens), 120);
    // Lifted and set again, it counts what was used meanwhile.
    set(&world, root, "tokens=none").await;
    world.say(root, "steps 0").await;
    set(&world, root, "tokens=1000").await;
    assert_eq!(used(&world, root, Limit::Tokens), 150);
}

#[tokio::test]
async fn a_child_with_a_budget_of_its_own_ends_alone() {
    let world = world(spender(), "tokens=1000").await;
    let root = world.root(None).await;
    let new = json!({ "initial_message": "steps 9", "budget": { "tokens": 60, "tool-calls": 50 } });
    let made = world.ask(root, "agent_session_create", new).await;
    let child: SessionId = made["session_id"]
        .as_str()
        .and_then(|id| id.parse().ok())
        .expect("an id");
    world.quiet(root).await;
    assert_eq!(world.row(child).view.end_reason(), Some(EndReason::Budget));
    assert_eq!(used(&world, child, Limit::Tokens), 60);
    assert_eq!(used(&world, child, Limit::ToolCalls), 2);
    assert_eq!(used(&world, root, Limit::Tokens), 60);
    let sibling = world.child(root, Some("steps 1")).await;
    world.quiet(root).await;
    assert_eq!(
        world.row(sibling).view.end_reason(),
        Some(EndReason::Completed)
    );
    let more = json!({ "budget": { "tokens": 900 } });
    let (code, message) = refused(&world, root, "agent_session_create", more).await;
    assert_eq!(code, "exceeds-parent");
    assert!(message.contains("tokens=900: 880 is left"), "{message}");
    for bad in [
        json!({ "tokens": -1 }),
        json!({ "money": 1 }),
        json!("tokens=1"),
    ] {
        let (code, _) = refused(
            &world,
            root,
            "agent_session_create",
            json!({ "budget": bad }),
        )
        .await;
        assert_eq!(code, "invalid-arguments");
    }
}

#[tokio::test]
async fn money_is_limited_only_where_prices_are_known() {
    // A step costs three cents.
    let world = world(spender().with_facts(priced()), "usd=0.05").await;
    let root = world.root(Some("steps 5")).await;
    world.quiet(root).await;
    assert_eq!(world.row(root).view.end_reason(), Some(EndReason::Budget));
    assert_eq!(used(&world, root, Limit::Usd), 60_000_000);

    let world = self::world(spender(), "").await;
    let root = world.root(None).await;
    let (code, message) = refused(
        &world,
        root,
        "agent_session_create",
        json!({ "budget": { "usd": 1 } }),
    )
    .await;
    assert_eq!(code, "price-unknown");
    assert!(message.contains("puppet/puppet"), "{message}");
    let change = BudgetChange::parse("usd=1").expect("a budget");
    let error = world
        .engine
        .set_budget(root, change, None)
        .await
        .expect_err("it is refused");
    assert_eq!(error.code, ErrorCode::PriceUnknown);
}

#[tokio::test(start_paused = true)]
async fn time_counts_while_a_turn_is_in_flight_however_many_are() {
    let rounds = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&rounds);
    let puppet = Puppet::new(move |request| {
        counted.fetch_add(1, Ordering::SeqCst);
        let mut pieces = vec![Piece::Pause(s(10))];
        let steps = if Puppet::task(request) == "d" { 9 } else { 1 };
        pieces.extend(if Puppet::rounds(request) < steps {
            call("agent_session_get", &json!({}))
        } else {
            text("done")
        });
        pieces
    });
    let world = world(puppet, "wall=55").await;
    let root = world.root(None).await;
    for name in ["a", "b"] {
        world.child(root, Some(name)).await;
    }
    pass(s(25)).await;
    // Both at once took twenty seconds; nothing is counted while nobody works.
    assert_eq!(used(&world, root, Limit::Wall) / 1_000, 20);
    pass(s(1_000)).await;
    let child = world.child(root, Some("c")).await;
    pass(s(25)).await;
    assert_eq!(used(&world, root, Limit::Wall) / 1_000, 40);
    assert_eq!(
        world.row(child).view.end_reason(),
        Some(EndReason::Completed)
    );
    let last = world.child(root, Some("d")).await;
    pass(s(60)).await;
    // The root was told meanwhile and has spoken, in the same time.
    assert_eq!(world.row(last).view.end_reason(), Some(EndReason::Budget));
    assert!(rounds.load(Ordering::SeqCst) >= 7);
}
