//! Conversations that are cut: by themselves in the middle of a turn and from outside, with children told again, over a
//! restart, and with the whole history still there. G-14.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use attache_model::{ErrorKind, Message, ModelError, ModelFacts, Part, Prices, Request, Usage};
use attache_session::{EndReason, ErrorCode, Event, Timestamp};
use attache_store::{Kind, MemoryStore, PageQuery};
use attache_testkit::{Piece, Puppet, World, call, text};
use serde_json::json;

async fn world(puppet: Puppet) -> World {
    let store = Arc::new(MemoryStore::new());
    World::with(store, puppet, attache_tools::built_in(), Vec::new()).await
}

/// All that a request says, as one text.
fn said(request: &Request) -> String {
    let of = |part: &Part| match part {
        Part::Text(text) => text.to_string(),
        _ => String::new(),
    };
    let messages = request.messages.iter().map(|message| match message {
        Message::User(parts) | Message::Assistant(parts) => parts.iter().map(of).collect(),
        Message::Tool(results) => results.iter().map(|it| it.content.to_string()).collect(),
    });
    messages.collect::<Vec<String>>().join("\n")
}

fn asks_for_a_summary(request: &Request) -> bool {
    Puppet::last_user(request).contains("Write a summary")
}

fn overflow() -> Vec<Piece> {
    let error = ModelError::new(
        ErrorKind::ContextOverflow,
        "prompt is too long: 210000 > 200000",
    );
    vec![Piece::Fail(error)]
}

/// What holds `limit` bytes and no more: longer requests do not fit.
fn narrow(limit: usize, say: impl Fn(&Request) -> Vec<Piece> + Send + Sync + 'static) -> Puppet {
    Puppet::new(move |request| {
        let length: usize = request.messages.iter().map(Message::text_len).sum();
        if length > limit {
            overflow()
        } else if asks_for_a_summary(request) {
            text("The boss made a worker and it found the number 7.")
        } else {
            say(request)
        }
    })
}

#[tokio::test]
async fn g14_a_conversation_that_does_not_fit_is_cut_and_its_children_are_told_again() {
    let world = world(narrow(9_000, |request| {
        match Puppet::task(request).as_str() {
            "find it" => text(&format!("the number is 7{}", " ".repeat(7_900))),
            _ if said(request).contains("find it") && said(request).contains("was cut") => {
                text("it is 7, said the worker")
            }
            _ => match Puppet::rounds(request) {
                0 => call(
                    "agent_session_create",
                    &json!({ "initial_message": "find it" }),
                ),
                1 => {
                    let made: serde_json::Value =
                        serde_json::from_str(&Puppet::results(request)[0]).expect("it was made");
                    let wait = json!({ "session_id": made["session_id"], "wait_for_idle": true });
                    call("agent_session_wait", &wait)
                }
                _ => call("agent_session_read_events", &json!({ "full": true })),
            },
        }
    }))
    .await;
    let root = world.root(Some("boss, go")).await;
    world.quiet(root).await;
    assert_eq!(
        world.row(root).view.end_reason(),
        Some(EndReason::Completed)
    );
    let requests = world.puppet.requests();
    let last = said(requests.last().expect("it was asked"));
    for wanted in [
        "found the number 7",
        "[The request that is being worked on]\nboss, go",
        "[Your sub-agents",
        "task \"find it\"",
        "succeeded",
    ] {
        assert!(last.contains(wanted), "{wanted}: {last}");
    }
    // The cut is on record, and so is everything before it.
    let events = world.events(root);
    let cuts = events
        .iter()
        .filter(|it| matches!(it.event, Event::Compacted { .. }));
    assert_eq!(cuts.count(), 1);
    let results = events
        .iter()
        .filter(|it| matches!(it.event, Event::CallEnded { .. }));
    assert!(results.count() >= 3);
    // After a restart the next request begins with the summary too.
    let asked = requests.len();
    let world = world.restarted().await;
    world.engine.start(root, None).await.expect("it starts");
    world.say(root, "and again?").await;
    let request = &world.puppet.requests()[asked];
    assert!(said(request).starts_with("[The conversation before this point was cut"));
    assert!(!said(request).contains("agent_session_read_events"));
}

#[tokio::test]
async fn g14_a_model_that_nothing_fits_ends_the_run_and_the_session_goes_on() {
    let world = world(Puppet::new(|_| overflow())).await;
    let root = world.root(Some("go")).await;
    world.quiet(root).await;
    assert_eq!(
        world.row(root).view.end_reason(),
        Some(EndReason::ProviderError)
    );
    let asked = world.puppet.requests().len();
    assert!(asked <= 3, "{asked} requests");
    let told = world
        .events(root)
        .into_iter()
        .find_map(|it| match it.event {
            Event::Noted { text, .. } => Some(text),
            _ => None,
        });
    let told = told.expect("a person is told");
    assert!(
        told.contains("does not fit") && told.contains("210000"),
        "{told}"
    );
    world.puppet.teach(|_| text("alive"));
    world.say(root, "and now?").await;
    assert_eq!(
        world.row(root).view.end_reason(),
        Some(EndReason::Completed)
    );
}

#[tokio::test]
async fn g14_a_limit_that_was_named_is_known_to_the_sessions_after() {
    let refused = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&refused);
    let world = world(Puppet::new(move |request| {
        let length: usize = request.messages.iter().map(Message::text_len).sum();
        if length > 60_000 {
            counted.fetch_add(1, Ordering::SeqCst);
            let words = "maximum context length is 12000 tokens";
            return vec![Piece::Fail(ModelError::new(
                ErrorKind::ContextOverflow,
                words,
            ))];
        }
        text("noted")
    }))
    .await;
    for overflows in [1, 1] {
        let root = world.root(Some(&"a long story ".repeat(3_000))).await;
        world.quiet(root).await;
        world.say(root, &"and another one ".repeat(1_700)).await;
        assert_eq!(
            world.row(root).view.end_reason(),
            Some(EndReason::Completed)
        );
        let cuts = world
            .events(root)
            .into_iter()
            .filter(|it| matches!(it.event, Event::Compacted { .. }));
        assert_eq!(cuts.count(), 1);
        assert_eq!(
            refused.load(Ordering::SeqCst),
            overflows,
            "only the first had to be told"
        );
    }
}

#[tokio::test]
async fn a_cut_from_outside_works_on_any_session_and_says_when_there_is_nothing_to_cut() {
    let world = world(Puppet::new(|request| {
        if asks_for_a_summary(request) {
            let mut pieces = text("short: hello was said");
            pieces.push(Piece::Usage(Usage {
                input: Some(100),
                output: Some(10),
                ..Usage::default()
            }));
            pieces
        } else {
            text("hello to you")
        }
    }))
    .await;
    let root = world.root(Some("hello")).await;
    world.quiet(root).await;
    let ended = (
        world.row(root).view.end_reason(),
        world.row(root).view.summary.result.clone(),
    );
    world.engine.compact(root).await.expect("it is cut");
    let row = world.row(root);
    assert_eq!(
        (row.view.end_reason(), row.view.summary.result.clone()),
        ended
    );
    assert_eq!(
        row.view.summary.usage.input,
        Some(100),
        "what it took is counted"
    );
    let again = world
        .engine
        .compact(root)
        .await
        .expect_err("nothing is left");
    assert_eq!(again.code, ErrorCode::RevisionConflict);
    assert!(again.message.contains("nothing to cut"), "{again:?}");
    world.say(root, "more").await;
    let requests = world.puppet.requests();
    let last = said(requests.last().expect("it was asked"));
    assert!(
        last.contains("short: hello was said") && last.ends_with("more"),
        "{last}"
    );
    assert!(!last.contains("hello to you"));
    // The history has all of it, the summary as a note.
    let query = PageQuery {
        after: None,
        up_to: None,
        kinds: vec![Kind::User, Kind::Assistant, Kind::Diagnostic],
        search: None,
        limit: 50,
        newest: false,
    };
    let page = world.engine.page(root, &query).expect("it is read");
    let at: Vec<Timestamp> = page.items.iter().map(|item| item.event.at).collect();
    assert_eq!(at.len(), 5, "two exchanges and the cut");
    // A stopped session is cut too: nothing of it starts.
    world.engine.terminate(root).await.expect("it ends");
    world.engine.compact(root).await.expect("it is cut");
    assert!(!world.row(root).view.is_live());
}

#[tokio::test]
async fn a_cut_that_fails_changes_nothing() {
    let world = world(Puppet::new(|request| {
        if asks_for_a_summary(request) {
            return vec![Piece::Fail(ModelError::new(ErrorKind::Auth, "no key"))];
        }
        text("hello to you")
    }))
    .await;
    let root = world.root(Some("hello")).await;
    world.quiet(root).await;
    let before = world.events(root).len();
    let error = world
        .engine
        .compact(root)
        .await
        .expect_err("the key is wrong");
    assert_eq!(error.code, ErrorCode::ProviderAuth);
    assert_eq!(world.events(root).len(), before);
    world.say(root, "more").await;
    let last = said(world.puppet.requests().last().expect("it was asked"));
    assert!(last.contains("hello to you"), "{last}");
}

#[tokio::test]
async fn calls_are_priced_and_what_is_unknown_is_said_to_be() {
    let facts = ModelFacts {
        prices: Some(Prices {
            input: 3.0,
            output: 15.0,
            cache_read: Some(0.3),
            cache_write: None,
            reasoning: None,
            version: "table 9".into(),
        }),
        ..ModelFacts::default()
    };
    let puppet = Puppet::new(|request| {
        let mut pieces = text("x");
        if Puppet::last_user(request) != "uncounted" {
            pieces.push(Piece::Usage(Usage {
                input: Some(1_000),
                output: Some(100),
                cache_read: Some(500),
                ..Usage::default()
            }));
        }
        pieces
    })
    .with_facts(facts);
    let world = world(puppet).await;
    let root = world.root(Some("counted")).await;
    world.quiet(root).await;
    let spent = world.row(root).view.summary.spent;
    // 500 at 3, 500 at 0.3, 100 at 15.
    let each = 500 * 3_000 + 500 * 300 + 100 * 15_000;
    assert_eq!((spent.usd_nanos, spent.at_least), (Some(each), false));
    let prices = world
        .events(root)
        .into_iter()
        .find_map(|it| match it.event {
            Event::Said { step, .. } => step.cost.map(|cost| cost.prices),
            _ => None,
        });
    assert_eq!(prices.as_deref(), Some("table 9"));
    world.say(root, "uncounted").await;
    world.say(root, "counted").await;
    let spent = world.row(root).view.summary.spent;
    assert_eq!((spent.usd_nanos, spent.at_least), (Some(2 * each), true));
    let world = world.restarted().await;
    assert_eq!(world.row(root).view.summary.spent, spent, "it is stored");
}
