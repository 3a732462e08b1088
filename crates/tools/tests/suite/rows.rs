//! What `list` and `get` tell of a session, whole rows at once: every figure, and every time beside
//! the event of the log that it is the time of.

use attache_model::Usage;
use attache_session::{Event, SessionId, Timestamp};
use attache_testkit::{Gate, Piece, Puppet, World, text};
use serde_json::{Value, json};

use crate::kit::{column, ids, no_usage, on};

const LIST: &str = "agent_session_list";

/// The second in which all of a test in virtual time happens: noon of 30 November 2026.
const NOON: i64 = 1_796_040_000_000_000;

/// RFC 3339, UTC, six digits; written apart from the code that is tested.
fn shown(at: Timestamp) -> String {
    let micros = at.0 - NOON;
    assert!((0..1_000_000).contains(&micros), "{micros}");
    format!("2026-11-30T12:00:00.{micros:06}Z")
}

/// The time of a session's newest event that fits.
fn newest(world: &World, session: SessionId, fits: impl Fn(&Event) -> bool) -> String {
    let events = world.events(session);
    let found = events.iter().rev().find(|stamped| fits(&stamped.event));
    shown(found.unwrap().at)
}

fn born(world: &World, session: SessionId) -> String {
    newest(world, session, |event| matches!(event, Event::Created(_)))
}

fn ended(world: &World, session: SessionId) -> String {
    newest(world, session, |event| {
        matches!(event, Event::TurnEnded { .. })
    })
}

/// Two steps with figures; the second does not tell all that the first told, and one more.
fn counted(request: &attache_model::Request) -> Vec<Piece> {
    let (input, said) = if Puppet::after_tools(request) {
        let usage = Usage {
            input: Some(130),
            output: Some(7),
            cache_read: Some(90),
            ..Usage::default()
        };
        (usage, Piece::Text("counted".to_owned()))
    } else {
        let usage = Usage {
            input: Some(100),
            output: Some(10),
            reasoning: Some(4),
            ..Usage::default()
        };
        let call = Piece::Call(LIST.to_owned(), "{}".to_owned());
        (usage, call)
    };
    vec![said, Piece::Usage(input)]
}

/// A root with a child of each status, oldest first: one that counted and is idle, one whose model
/// failed, one that was given up in the middle, one that runs.
struct Family {
    world: World,
    root: SessionId,
    children: [SessionId; 4],
    /// What `create` told of each.
    made: Vec<Value>,
}

async fn family() -> Family {
    let world = World::new().await;
    let gate = Gate::default();
    let stand = gate.clone();
    world
        .puppet
        .teach(move |request| match Puppet::task(request).as_str() {
            "count" => counted(request),
            "fail" => {
                let kind = attache_model::ErrorKind::Refused;
                let error = attache_model::ModelError::new(kind, "no");
                vec![Piece::Text("half".to_owned()), Piece::Fail(error)]
            }
            _ => vec![Piece::Wait(stand.clone()), Piece::Text("late".to_owned())],
        });
    let root = world.root(None).await;
    let mut children = Vec::new();
    let mut made = Vec::new();
    for task in ["count", "fail", "give up", "run"] {
        let arguments = json!({ "name": format!("to {task}"), "initial_message": task });
        let outcome = world.call(root, "agent_session_create", arguments).await;
        children.push(outcome.spawned.unwrap());
        made.push(attache_testkit::json_of(&outcome));
        if ["count", "fail"].contains(&task) {
            world.quiet(root).await;
        } else {
            // It stands before its model.
            while world
                .row(children[children.len() - 1])
                .view
                .summary
                .turn
                .is_none()
            {
                tokio::task::yield_now().await;
            }
        }
    }
    let dispose = json!({ "session_id": children[2].to_string(), "dispose": true });
    world.ask(root, "agent_session_stop", dispose).await;
    Family {
        world,
        root,
        children: children.try_into().unwrap(),
        made,
    }
}

fn totals() -> Value {
    json!({
        "input_tokens": 230, "output_tokens": 17, "cache_read_tokens": 90,
        "cache_write_tokens": null, "reasoning_tokens": 4,
    })
}

#[tokio::test(start_paused = true)]
async fn a_list_tells_of_each_child_what_its_record_says() {
    let family = family().await;
    let world = &family.world;
    let [counted, failed, given_up, running] = family.children;
    let list = world.ask(family.root, LIST, json!({})).await;
    let working = newest(world, running, |event| {
        matches!(event, Event::TurnStarted { .. })
    });
    let row = |id: SessionId, name: &str, status: &str, outcome: Value, active: String| {
        json!({
            "session_id": id.to_string(), "name": name, "status": status, "outcome": outcome,
            "created_at": born(world, id), "last_activity_at": active,
            "usage": if id == counted { totals() } else { no_usage() },
            "context_tokens": if id == counted { json!(130) } else { Value::Null },
        })
    };
    assert_eq!(
        list,
        json!([
            row(
                counted,
                "to count",
                "idle",
                json!("succeeded"),
                ended(world, counted)
            ),
            row(
                failed,
                "to fail",
                "error",
                json!("failed"),
                ended(world, failed)
            ),
            row(
                given_up,
                "to give up",
                "stopped",
                json!("cancelled"),
                ended(world, given_up)
            ),
            row(running, "to run", "running", Value::Null, working),
        ])
    );
    // Each was born at a time of its own, and `create` told the same one.
    let times = column(&list, "created_at");
    assert!(times.is_sorted_by(|one, next| one < next), "{times:?}");
    let made = Value::Array(family.made.clone());
    assert_eq!(column(&made, "created_at"), times);
    assert_eq!(column(&made, "session_id"), ids(&family.children));
}

#[tokio::test(start_paused = true)]
async fn a_list_by_status_has_the_one_child_of_it() {
    let family = family().await;
    for (status, child) in ["idle", "error", "stopped", "running"]
        .into_iter()
        .zip(family.children)
    {
        let arguments = json!({ "status": status });
        let list = family.world.ask(family.root, LIST, arguments).await;
        assert_eq!(column(&list, "session_id"), ids(&[child]), "{status}");
        assert_eq!(column(&list, "status"), [status]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_get_tells_of_each_child_what_its_record_says() {
    let family = family().await;
    let world = &family.world;
    let [counted, failed, given_up, running] = family.children;
    let rows = [
        (
            counted,
            json!({
                "status": "idle", "outcome": "succeeded", "end_reason": "completed",
                "result_preview": "counted", "usage": totals(),
                "last_activity_at": ended(world, counted),
            }),
        ),
        (
            failed,
            json!({
                "status": "error", "outcome": "failed", "end_reason": "provider-error",
                "result_preview": "half", "last_activity_at": ended(world, failed),
            }),
        ),
        (
            given_up,
            json!({
                "status": "stopped", "outcome": "cancelled", "end_reason": "cancelled",
                "last_activity_at": ended(world, given_up),
            }),
        ),
        (
            running,
            json!({
                "status": "running", "is_busy": true,
                "last_activity_at": newest(world, running, |event| {
                    matches!(event, Event::TurnStarted { .. })
                }),
            }),
        ),
        (
            family.root,
            json!({ "status": "idle", "last_activity_at": born(world, family.root) }),
        ),
    ];
    for (session, told) in rows {
        let mut whole = json!({
            "session_id": session.to_string(), "status": null, "is_busy": false,
            "running_items": [], "queued": 0, "waiting_for": [], "outcome": null,
            "end_reason": null, "result_preview": null, "last_activity_at": null,
            "usage": no_usage(),
        });
        for (member, value) in told.as_object().unwrap() {
            whole[member] = value.clone();
        }
        let mut shown = on(world, family.root, "get", session).await;
        // Receipts have tests of their own.
        let receipts = shown.as_object_mut().unwrap().remove("receipts");
        assert!(receipts.unwrap().is_array());
        assert_eq!(shown, whole);
    }
}

#[tokio::test]
async fn a_list_has_two_hundred_rows_and_at_most_a_thousand() {
    let world = World::new().await;
    let root = world.root(None).await;
    let mut children = Vec::new();
    for _ in 0..1_002 {
        children.push(world.left_behind(vec![root], true).await);
    }
    for (limit, rows) in [
        (Value::Null, 200),
        (json!(0), 1),
        (json!(-5), 1),
        (json!(1), 1),
        (json!(201), 201),
        (json!(1_000), 1_000),
        (json!(1_001), 1_000),
        (json!(u64::MAX), 1_000),
    ] {
        let list = world.ask(root, LIST, json!({ "limit": limit })).await;
        assert_eq!(
            column(&list, "session_id"),
            ids(&children[..rows]),
            "{limit}"
        );
    }
    let list = world.ask(root, LIST, json!({})).await;
    assert_eq!(list.as_array().unwrap().len(), 200);
}

#[tokio::test]
async fn a_result_that_made_a_child_names_it_and_no_other_does() {
    let world = World::new().await;
    world.puppet.teach(|request| {
        if Puppet::task(request) != "boss" || Puppet::after_tools(request) {
            return text("ok");
        }
        let call = |name: &str, arguments: Value| {
            Piece::Call(format!("agent_session_{name}"), arguments.to_string())
        };
        vec![
            call("create", json!({ "name": "one" })),
            call("create", json!({ "definition": "nobody" })),
            call("list", json!({})),
            call("create", json!({ "name": "two", "initial_message": "x" })),
        ]
    });
    let root = world.root(Some("boss")).await;
    world.quiet(root).await;
    let list = world.ask(root, LIST, json!({})).await;
    let children = column(&list, "session_id");
    assert_eq!(column(&list, "name"), ["one", "two"]);
    let arguments = json!({ "event_types": ["tool_result"], "full": true });
    let page = world
        .ask(root, "agent_session_read_events", arguments)
        .await;
    // Results stand in the order in which they came; each says itself what it is of.
    let mut spawned = Vec::new();
    for event in page["events"].as_array().unwrap() {
        let text = event["content_preview"].as_str().unwrap();
        let content: Value = serde_json::from_str(text).unwrap();
        assert_eq!(
            event.get("spawned_session_id"),
            content.get("session_id"),
            "{content}"
        );
        spawned.extend(content["session_id"].as_str().map(str::to_owned));
    }
    assert_eq!(page["total_matching"], 4);
    assert_eq!(spawned, children);
}
