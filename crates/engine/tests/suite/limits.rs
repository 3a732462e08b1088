//! Limits in time, tries again, and the line before a provider, with a clock that only moves when everybody waits.
//! G-04, G-12, G-13.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use attache_engine::SessionRow;
use attache_session::{Command, EndReason, Event, Origin, QueueId, SessionId, Status};
use attache_store::{MemoryStore, RowFilter};
use attache_testkit::model::{
    ErrorKind, Gate as Line, GateLimits, ModelError, Patience, Retries, Terms,
};
use attache_testkit::{Gate, Piece, Puppet, World, call, instant, pass, text};
use serde_json::json;
use tokio::time::Instant;

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

async fn world(puppet: Puppet) -> World {
    let store = Arc::new(MemoryStore::new());
    World::with(store, puppet, attache_tools::built_in(), Vec::new()).await
}

fn short() -> Terms {
    Terms {
        patience: Patience {
            first_byte: s(20),
            silence: s(10),
            no_progress: s(3),
        },
        ..Terms::default()
    }
}

fn said(world: &World, session: SessionId) -> Vec<String> {
    let events = world.events(session).into_iter();
    let texts = events.filter_map(|stamped| match stamped.event {
        Event::Said { step, .. } => Some(step.text.to_string()),
        _ => None,
    });
    texts.collect()
}

async fn say(world: &World, session: SessionId, queue: QueueId, text: &str) {
    let command = Command::Enqueue {
        item: None,
        queue,
        text: text.into(),
        origin: Origin::Viewer,
    };
    let accepted = world.engine.command(session, command, None).await;
    accepted.expect("the session takes input");
}

fn tree(world: &World, root: SessionId) -> Vec<SessionRow> {
    let rows = world.engine.rows(RowFilter::Tree(root));
    rows.expect("the rows can be read")
}

fn note_of(world: &World, session: SessionId) -> Option<String> {
    world.row(session).note.map(|note| note.to_string())
}

/// One piece, then what a wedged stream does.
fn wedged(kind: &str) -> Vec<Piece> {
    let mut pieces = text("one");
    match kind {
        "breathes" => {
            for _ in 0..1_000 {
                pieces.extend([Piece::Pause(Duration::from_millis(500)), Piece::Ping]);
            }
        }
        "is silent" => pieces.push(Piece::Wait(Gate::default())),
        "thinks" => {
            for _ in 0..30 {
                pieces.extend([Piece::Pause(s(2)), Piece::Reasoning("hm".to_owned())]);
            }
        }
        _ => pieces.clear(),
    }
    if kind == "says nothing" {
        pieces.push(Piece::Wait(Gate::default()));
    }
    pieces
}

#[tokio::test(start_paused = true)]
async fn g04_a_wedged_stream_ends_by_its_limit_and_a_slow_one_is_left_alone() {
    for (kind, terms, want, took) in [
        (
            "breathes",
            short(),
            Some("no piece of the reply came for 3 s"),
            3..5,
        ),
        (
            "is silent",
            Terms {
                patience: Patience {
                    silence: s(2),
                    ..short().patience
                },
                ..short()
            },
            Some("nothing came for 2 s"),
            2..3,
        ),
        ("thinks", short(), None, 60..61),
        (
            "says nothing",
            Terms {
                retries: Retries {
                    most: 0,
                    ..Retries::default()
                },
                ..short()
            },
            Some("no answer came within 20 s"),
            20..21,
        ),
    ] {
        let world = world(Puppet::new(move |_| wedged(kind)).with_terms(terms)).await;
        let begun = instant();
        let root = world.root(Some("go")).await;
        world.quiet(root).await;
        assert!(
            took.contains(&begun.elapsed().as_secs()),
            "{kind}: {:?}",
            begun.elapsed()
        );
        let row = world.row(root);
        match want {
            None => assert_eq!(row.view.end_reason(), Some(EndReason::Completed), "{kind}"),
            Some(wanted) => {
                assert_eq!(
                    row.view.end_reason(),
                    Some(EndReason::ProviderError),
                    "{kind}"
                );
                let told = world.events(root).into_iter().any(
                    |stamped| matches!(&stamped.event, Event::Noted { text: t, .. } if t.contains(wanted)),
                );
                assert!(told, "{kind}");
                // The session is alive: the next message gets an answer.
                world.puppet.teach(|_| text("alive"));
                say(&world, root, QueueId::Default, "and now?").await;
                world.quiet(root).await;
                assert_eq!(said(&world, root).last().map(String::as_str), Some("alive"));
            }
        }
        // Once something was seen, nothing is asked twice.
        let asked = world.puppet.requests().len();
        assert_eq!(asked, if want.is_some() { 2 } else { 1 }, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn g04_an_interrupt_ends_a_wedged_request_within_a_second_and_what_waits_runs() {
    for kind in ["breathes", "is silent", "says nothing"] {
        let world = world(Puppet::new(move |request| {
            if Puppet::last_user(request) == "go" {
                wedged(kind)
            } else {
                text("next")
            }
        }))
        .await;
        let root = world.root(Some("go")).await;
        pass(s(5)).await;
        say(&world, root, QueueId::Default, "next please").await;
        let begun = instant();
        world.engine.interrupt(root, false).await.expect("it runs");
        world.quiet(root).await;
        assert!(begun.elapsed() < s(1), "{kind}: {:?}", begun.elapsed());
        assert_eq!(
            said(&world, root).last().map(String::as_str),
            Some("next"),
            "{kind}"
        );
    }
}

fn overloaded(status: u16, retry_after: Option<Duration>) -> ModelError {
    ModelError {
        retry_after,
        ..ModelError::new(ErrorKind::Overloaded, "Overloaded").with_status(status)
    }
}

/// Fails the first requests of each session, then answers.
fn failing(times: usize, pieces: impl Fn() -> Vec<Piece> + Send + Sync + 'static) -> Puppet {
    let seen: Mutex<HashMap<String, usize>> = Mutex::default();
    Puppet::new(move |request| {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let count = seen.entry(Puppet::task(request)).or_default();
        *count += 1;
        if *count <= times {
            pieces()
        } else {
            text("done")
        }
    })
}

#[tokio::test(start_paused = true)]
async fn g12_a_failure_before_the_first_content_is_tried_again_unseen_and_shown_while_it_waits() {
    let puppet = failing(2, || vec![Piece::Fail(overloaded(529, Some(s(4))))]);
    let world = world(puppet).await;
    let root = world.root(Some("go")).await;
    pass(s(1)).await;
    assert_eq!(world.row(root).status, Status::Running);
    assert_eq!(
        note_of(&world, root).as_deref(),
        Some("retrying in 4 s: overloaded")
    );
    world.quiet(root).await;
    assert_eq!(note_of(&world, root), None);
    assert_eq!(said(&world, root), ["done"]);
    assert_eq!(world.puppet.requests().len(), 3);
    assert_eq!(
        world.row(root).view.end_reason(),
        Some(EndReason::Completed)
    );
}

#[tokio::test(start_paused = true)]
async fn g12_what_was_seen_is_kept_once_and_the_run_fails() {
    let puppet = failing(1, || {
        let mut pieces = text("Partial");
        pieces.push(Piece::Fail(overloaded(529, None)));
        pieces
    });
    let world = world(puppet).await;
    let root = world.root(Some("go")).await;
    world.quiet(root).await;
    assert_eq!(said(&world, root), ["Partial"]);
    assert_eq!(
        world.row(root).view.end_reason(),
        Some(EndReason::ProviderError)
    );
    assert_eq!(world.puppet.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn g13_a_wanted_wait_is_obeyed_holds_up_nobody_else_and_ends_with_an_interrupt() {
    let world = world(failing(1, || {
        vec![Piece::Fail(overloaded(429, Some(s(30))))]
    }))
    .await;
    let patient = world.root(Some("patient")).await;
    let hasty = world.root(Some("hasty")).await;
    pass(s(2)).await;
    // The other one has waited for nothing.
    world.puppet.teach(|_| text("at once"));
    let third = world.root(Some("third")).await;
    let begun = instant();
    world.quiet(third).await;
    assert!(begun.elapsed() < s(1));
    world.engine.interrupt(hasty, false).await.expect("it runs");
    world.quiet(hasty).await;
    assert!(begun.elapsed() < s(1), "the interrupt ends the wait");
    assert_eq!(
        world.row(hasty).view.end_reason(),
        Some(EndReason::Interrupted)
    );
    world.quiet(patient).await;
    assert!(begun.elapsed() >= s(28), "{:?}", begun.elapsed());
    assert_eq!(said(&world, patient), ["at once"]);
}

#[tokio::test(start_paused = true)]
async fn two_hundred_children_share_a_narrow_provider_fairly_and_none_is_lost() {
    const CHILDREN: usize = 200;
    let limits = GateLimits {
        in_flight: 8,
        requests_per_minute: Some(60),
        tokens_per_minute: None,
    };
    let terms = Terms {
        gate: Some(Arc::new(Line::new("narrow", &limits))),
        ..Terms::default()
    };
    // When each request came, and whose it was.
    let came: Arc<Mutex<Vec<(Instant, String)>>> = Arc::default();
    let record = Arc::clone(&came);
    let puppet = Puppet::new(move |request| {
        let task = Puppet::task(request);
        let mut came = record.lock().unwrap_or_else(PoisonError::into_inner);
        came.push((instant(), task.clone()));
        drop(came);
        if task == "boss" {
            return match Puppet::rounds(request) {
                0 => (0..CHILDREN)
                    .flat_map(|number| {
                        let first = format!("child {number}");
                        call("agent_session_create", &json!({ "initial_message": first }))
                    })
                    .collect(),
                _ => text("made"),
            };
        }
        // Two steps each, with some time in each of them.
        let mut pieces = vec![Piece::Pause(s(3))];
        match Puppet::rounds(request) {
            0 => pieces.extend(call("agent_session_list", &json!({}))),
            _ => pieces.extend(text("child done")),
        }
        pieces
    })
    .with_terms(terms);
    let world = world(puppet).await;
    let boss = world.root(Some("boss")).await;
    pass(s(30)).await;
    // The tree shows who waits for what.
    let rows = tree(&world, boss);
    let waiting: Vec<String> = rows
        .iter()
        .filter_map(|row| row.note.as_ref().map(ToString::to_string))
        .collect();
    assert!(waiting.len() > 150, "{}", waiting.len());
    assert!(
        waiting
            .iter()
            .all(|note| note.starts_with("waits for narrow (")),
        "{waiting:?}"
    );
    assert!(
        waiting
            .iter()
            .any(|note| note.contains("60 requests a minute")),
        "{waiting:?}"
    );
    world.quiet(boss).await;
    let rows = tree(&world, boss);
    assert_eq!(rows.len(), CHILDREN + 1);
    for row in &rows {
        assert_eq!(row.view.end_reason(), Some(EndReason::Completed));
        assert_eq!(row.note, None);
    }
    let came = came.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(
        came.len(),
        2 + 2 * CHILDREN,
        "each asked twice, nobody more often"
    );
    let minute = s(60);
    for (at, _) in came.iter() {
        let within = came
            .iter()
            .filter(|(other, _)| *other >= *at && *other - *at < minute);
        assert!(within.count() <= 60, "no minute sees more than 60");
    }
    // Fair: nobody has its second turn before everybody had the first.
    let mut firsts: Vec<&str> = Vec::new();
    let mut seconds_begun = false;
    for (_, task) in came.iter().filter(|(_, task)| task != "boss") {
        if firsts.contains(&task.as_str()) {
            seconds_begun = true;
        } else {
            assert!(
                !seconds_begun,
                "{task} waits for its first while others have had two"
            );
            firsts.push(task);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_thousand_sessions_do_not_hammer_a_provider_that_is_down() {
    const SESSIONS: usize = 1_000;
    let terms = Terms {
        gate: Some(Arc::new(Line::new("dead", &GateLimits::default()))),
        ..Terms::default()
    };
    let puppet = Puppet::new(|_| {
        let error = ModelError::new(ErrorKind::Unreachable, "connection refused");
        vec![Piece::Pause(Duration::from_millis(1)), Piece::Fail(error)]
    })
    .with_terms(terms);
    let world = world(puppet).await;
    let mut roots = Vec::new();
    for number in 0..SESSIONS {
        roots.push(world.root(Some(&format!("session {number}"))).await);
    }
    pass(s(10)).await;
    let notes = roots.iter().filter_map(|root| note_of(&world, *root));
    assert!(
        notes
            .filter(|note| note.contains("it is down: connection refused"))
            .count()
            > 500
    );
    for root in &roots {
        world.quiet(*root).await;
    }
    let asked = world.puppet.requests().len();
    assert!(asked < 100, "{asked} requests for {SESSIONS} sessions");
    for root in &roots {
        assert_eq!(
            world.row(*root).view.end_reason(),
            Some(EndReason::ProviderError)
        );
    }
    // It is up again: whoever asks next has to wait for a probe at most.
    world.puppet.teach(|_| text("back"));
    pass(s(31)).await;
    say(&world, roots[7], QueueId::Default, "again").await;
    world.quiet(roots[7]).await;
    assert_eq!(said(&world, roots[7]), ["back"]);
}
