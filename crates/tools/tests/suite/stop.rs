//! `agent_session_stop`: what ends, what stays, and that it stays ended.

use std::sync::{Arc, Mutex};

use attache_agent::offer::{Json, ToolSpec};
use attache_agent::{
    CallContext, CreateChild, Definition, PortError, Tool, ToolFuture, ToolOutcome, Toolset,
};
use attache_session::{ErrorCode, Event, ResultOrigin, SessionId};
use attache_store::memory::MemoryStore;
use attache_testkit::{Gate, Piece, Puppet, World, call, json_of, text};
use serde_json::{Value, json};

use crate::kit::{busy_child, code, count, holding, on};

const STOP: &str = "agent_session_stop";

#[tokio::test]
async fn agent_session_stop_running_session_calls_interrupt() {
    let (world, root, child, _gate) = busy_child().await;
    let grandchild = world.child(child, Some("held below")).await;
    let stopped = on(&world, root, "stop", child).await;
    assert_eq!(stopped, json!({ "ok": true, "was_running": true }));
    world.quiet(child).await;
    for session in [child, grandchild] {
        let shown = on(&world, root, "get", session).await;
        assert_eq!(
            (&shown["status"], &shown["outcome"], &shown["end_reason"]),
            (&json!("idle"), &json!("cancelled"), &json!("cancelled"))
        );
    }
    let again = on(&world, root, "stop", child).await;
    assert_eq!(again, json!({ "ok": true, "was_running": false }));
}

#[tokio::test]
async fn agent_session_stop_interrupt_only_stops_but_retains_lease() {
    let (world, root, child, gate) = busy_child().await;
    on(&world, root, "stop", child).await;
    world.quiet(child).await;
    assert_eq!(
        count(&world, root, |e| matches!(e, Event::ChildReleased { .. })),
        0
    );
    assert_eq!(
        count(&world, child, |e| matches!(e, Event::Stopped { .. })),
        0
    );
    assert_eq!(
        on(&world, root, "acquire", child).await["already_acquired"],
        true
    );
    gate.open();
    let send = json!({ "session_id": child.to_string(), "text": "again" });
    assert_eq!(
        world.ask(root, "agent_session_send", send).await["ok"],
        true
    );
    world.quiet(child).await;
    assert_eq!(world.consumed(child), ["held work", "again"]);
}

#[tokio::test]
async fn agent_session_stop_with_dispose_disposes_session() {
    let (world, root, child, _gate) = busy_child().await;
    assert_eq!(world.engine.load().0, 2);
    let dispose = json!({ "session_id": child.to_string(), "dispose": true });
    let stopped = world.ask(root, STOP, dispose).await;
    assert_eq!(stopped, json!({ "ok": true, "was_running": true }));
    assert_eq!(world.engine.load(), (1, 0));
    let shown = on(&world, root, "get", child).await;
    assert_eq!(
        (&shown["status"], &shown["is_busy"], &shown["outcome"]),
        (&json!("stopped"), &json!(false), &json!("cancelled"))
    );
}

#[tokio::test]
async fn agent_session_stop_with_dispose_releases_lease() {
    let (world, root, child, _gate) = busy_child().await;
    let dispose = json!({ "session_id": child.to_string(), "dispose": true });
    world.ask(root, STOP, dispose.clone()).await;
    let released = count(
        &world,
        root,
        |event| matches!(event, Event::ChildReleased { child: of } if *of == child),
    );
    assert_eq!(released, 1);
    // The history stays readable, and a second dispose changes nothing.
    let read = on(&world, root, "read_events", child).await;
    assert_eq!(read["events"][0]["content_preview"], "held work");
    let again = world.ask(root, STOP, dispose).await;
    assert_eq!(again, json!({ "ok": true, "was_running": false }));
    let of_itself = json!({ "session_id": ".", "dispose": true });
    assert_eq!(
        code(&world, root, STOP, of_itself).await,
        "invalid-arguments"
    );
}

#[tokio::test]
async fn g32_what_was_stopped_stays_stopped() {
    let (world, root, child, gate) = busy_child().await;
    let dispose = json!({ "session_id": child.to_string(), "dispose": true });
    world.ask(root, STOP, dispose).await;
    // The model's answer comes after the end, and finds nobody.
    gate.open();
    world.quiet(root).await;
    let shown = on(&world, root, "get", child).await;
    assert_eq!(
        (
            &shown["status"],
            &shown["outcome"],
            &shown["result_preview"]
        ),
        (&json!("stopped"), &json!("cancelled"), &json!(null))
    );
    assert_eq!(
        count(&world, child, |e| matches!(e, Event::TurnEnded { .. })),
        1
    );
    assert_eq!(
        count(&world, child, |e| matches!(e, Event::Stopped { .. })),
        1
    );
    assert_eq!(world.puppet.requests().len(), 1);
}

#[tokio::test]
async fn g32_a_tool_that_returns_late_changes_nothing() {
    let world = World::new().await;
    let gate = Gate::default();
    let stand = gate.clone();
    world.puppet.teach(move |request| {
        let result = Puppet::results(request).pop();
        match (Puppet::task(request).as_str(), result) {
            ("boss", None) => call("agent_session_create", &json!({ "initial_message": "w" })),
            ("boss", Some(made)) => {
                let made: Value = serde_json::from_str(&made).unwrap();
                let arguments = json!({ "session_id": made["session_id"], "wait_for_idle": true });
                call("agent_session_wait", &arguments)
            }
            _ => vec![Piece::Wait(stand.clone())],
        }
    });
    let root = world.root(None).await;
    let boss = world.child(root, Some("boss")).await;
    while world.engine.waiting_for(boss).is_empty() {
        tokio::task::yield_now().await;
    }
    let requests = world.puppet.requests().len();
    let dispose = json!({ "session_id": boss.to_string(), "dispose": true });
    world.ask(root, STOP, dispose).await;
    gate.open();
    world.quiet(root).await;
    let shown = on(&world, root, "get", boss).await;
    assert_eq!(
        (&shown["status"], &shown["outcome"], &shown["is_busy"]),
        (&json!("stopped"), &json!("cancelled"), &json!(false))
    );
    let cut = count(
        &world,
        boss,
        |event| matches!(event, Event::CallEnded { result, .. } if result.origin == ResultOrigin::Cut),
    );
    assert_eq!(cut, 1);
    assert_eq!(
        count(&world, boss, |e| matches!(e, Event::TurnEnded { .. })),
        1
    );
    assert_eq!(world.puppet.requests().len(), requests);
    assert_eq!(world.engine.waiting_for(boss), []);
}

/// A tool whose work goes on when its call has been ended: behind the gate it does what a tool may
/// do to sessions, and keeps what came of it.
#[derive(Clone, Default)]
struct Late {
    gate: Gate,
    ended: Gate,
    tried: Arc<Mutex<Vec<Result<(), PortError>>>>,
}

struct LateTool(ToolSpec, Late);

impl Toolset for Late {
    fn kind(&self) -> &'static str {
        "late"
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let schema = json!({ "type": "object", "properties": {}, "additionalProperties": false });
        let spec = ToolSpec {
            name: "late_work".into(),
            description: "works on".into(),
            input_schema: Json::from_value(&schema),
        };
        vec![Arc::new(LateTool(spec, self.clone()))]
    }
}

impl Tool for LateTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call<'a>(&'a self, context: CallContext, _arguments: Value) -> ToolFuture<'a> {
        let late = self.1.clone();
        let work = tokio::spawn(async move {
            late.gate.passed().await;
            let (sessions, caller) = (&context.sessions, &context.caller);
            let new = CreateChild {
                initial_message: Some("late child".to_owned()),
                ..CreateChild::default()
            };
            let created = sessions.create(caller, new).await.map(drop);
            let own = caller.session;
            let watched = sessions.on_complete(caller, own, None).await.map(drop);
            let sent = sessions.send(caller, own, "late".to_owned(), true);
            let sent = sent.await.map(drop);
            late.tried.lock().unwrap().extend([created, watched, sent]);
            late.ended.open();
        });
        Box::pin(async move {
            work.await.unwrap();
            ToolOutcome::json(&json!({ "late": true }))
        })
    }
}

#[tokio::test]
async fn g32_work_of_a_tool_that_outlives_its_call_changes_nothing() {
    let late = Late::default();
    let world = World::with(
        Arc::new(MemoryStore::new()),
        Puppet::default(),
        attache_tools::built_in().with(Arc::new(late.clone())),
        Vec::new(),
    )
    .await;
    world.puppet.teach(|request| {
        if Puppet::after_tools(request) {
            return text("normal finish");
        }
        call("late_work", &json!({}))
    });
    let definition = Definition {
        name: "boss".to_owned(),
        tools: vec!["late".to_owned(), "agent-session".to_owned()],
        ..Definition::default()
    };
    let root = world.root_of(definition, None).await;
    let child = world.child(root, Some("work")).await;
    late.gate.reached().await;
    let dispose = json!({ "session_id": child.to_string(), "dispose": true });
    world.ask(root, STOP, dispose).await;
    let before = world.events(child).len();
    late.gate.open();
    late.ended.passed().await;
    world.quiet(root).await;
    let tried: Vec<Option<ErrorCode>> = late
        .tried
        .lock()
        .unwrap()
        .iter()
        .map(|tried| tried.as_ref().err().map(|error| error.code))
        .collect();
    assert_eq!(tried, [Some(ErrorCode::SessionStopped); 3]);
    assert_eq!(world.events(child).len(), before);
    let shown = on(&world, root, "get", child).await;
    assert_eq!(
        (&shown["status"], &shown["outcome"], &shown["is_busy"]),
        (&json!("stopped"), &json!("cancelled"), &json!(false))
    );
    assert_eq!(
        count(&world, child, |e| matches!(e, Event::TurnEnded { .. })),
        1
    );
    assert_eq!(world.puppet.requests().len(), 1);
    assert_eq!(world.engine.load().0, 1);
}

#[tokio::test]
async fn g32_what_is_sent_to_a_session_that_is_ending_is_refused_or_there_once() {
    let disposed = || Err("session-disposed".to_owned());
    // Who sends: the parent that ends it, or one further up that only sees it end.
    for from_above in [false, true] {
        // When: beside the end, or while the record of the end is on its way.
        for on_its_way in [false, true] {
            let (world, store) = holding().await;
            let top = world.root(None).await;
            let parent = world.child(top, None).await;
            let child = world.child(parent, None).await;
            let hold = store.hold(move |append| {
                let stopped = |event: &Event| matches!(event, Event::Stopped { .. });
                append.session == child && append.events.iter().any(|it| stopped(&it.event))
            });
            let sender = if from_above { top } else { parent };
            let dispose = json!({ "session_id": child.to_string(), "dispose": true });
            let (_, sent) = tokio::join!(world.ask(parent, STOP, dispose), async {
                if on_its_way {
                    hold.reached().await;
                } else {
                    hold.open();
                }
                let sent = send(&world, sender, child, "late").await;
                hold.open();
                sent
            });
            world.quiet(top).await;
            assert_eq!(on(&world, top, "get", child).await["status"], "stopped");
            // A turn took it before the end, or whoever takes the child up again finds it; once.
            assert!(!on_its_way || world.consumed(child).is_empty());
            on(&world, parent, "acquire", child).await;
            world.quiet(top).await;
            let accepted = sent.is_ok();
            assert_eq!(world.consumed(child).len(), usize::from(accepted));
            match (on_its_way, from_above) {
                // The parent has given it up by then; from above it still takes input.
                (true, false) => assert_eq!(sent, disposed()),
                (true, true) => assert_eq!(sent, Ok(())),
                // Whichever came first.
                (false, _) => assert!(accepted || sent == disposed(), "{sent:?}"),
            }
        }
    }
}

/// Sends as a model would: whether it was accepted, or the code of the refusal.
async fn send(world: &World, from: SessionId, to: SessionId, text: &str) -> Result<(), String> {
    let arguments = json!({ "session_id": to.to_string(), "text": text });
    let outcome = world.call(from, "agent_session_send", arguments).await;
    let answer = json_of(&outcome);
    if outcome.is_error {
        return Err(answer["error"]["code"].as_str().unwrap().to_owned());
    }
    assert_eq!(answer["state"], "accepted");
    Ok(())
}

#[tokio::test]
async fn a_dispose_of_what_is_no_child_changes_nothing() {
    let (world, root, child, _gate) = busy_child().await;
    let grandchild = world.child(child, Some("held below")).await;
    let dispose = json!({ "session_id": grandchild.to_string(), "dispose": true });
    assert_eq!(code(&world, root, STOP, dispose).await, "invalid-arguments");
    let shown = on(&world, root, "get", grandchild).await;
    assert_eq!(
        (&shown["status"], &shown["outcome"]),
        (&json!("running"), &json!(null))
    );
    // Without dispose, it can be stopped over two generations.
    let stopped = on(&world, root, "stop", grandchild).await;
    assert_eq!(stopped, json!({ "ok": true, "was_running": true }));
}
