//! Stored sessions that are not as they should be: a result that no call stands before (G-15), and a log that needs a newer
//! reader. And long ones, of which a load reads what is new.

use std::sync::Arc;

use attache_agent::Definition;
use attache_engine::{Environment, NewRoot, Time};
use attache_session::{
    BudgetChange, CallResult, Command, EndReason, Event, Generation, Origin, Position, QueueId,
    ResultOrigin, SessionId, Setting, Settings, Stamped, State, Summary, Timestamp, TurnId,
};
use attache_store::{Append, MemoryStore, Store};
use attache_testkit::{FaultyStore, Puppet, World, text};

/// Puts events behind those that a session has.
async fn put(world: &World, store: &Arc<dyn Store>, session: SessionId, events: Vec<Event>) {
    let mut state = State::empty(session);
    let before = world.events(session);
    before.iter().for_each(|stamped| state.apply(stamped));
    let events: Vec<Stamped> = events
        .into_iter()
        .map(|event| {
            let stamped = Stamped {
                at: world.time.now().max(Timestamp(state.last_at.0 + 1)),
                observed: None,
                event,
            };
            state.apply(&stamped);
            stamped
        })
        .collect();
    let append = Append {
        session,
        generation: Generation(1),
        expected: Position(before.len() as u64),
        events,
        summary: Summary::of(&state).expect("it was created"),
        mail: Vec::new(),
        taken: Vec::new(),
        charges: Vec::new(),
        births: Vec::new(),
        links: Vec::new(),
        command: None,
        expects: Vec::new(),
    };
    store.commit(append).await.expect("the store takes it");
}

async fn say(world: &World, session: SessionId) {
    let command = Command::Enqueue {
        item: None,
        queue: QueueId::Default,
        text: "go".into(),
        origin: Origin::Viewer,
    };
    let accepted = world.engine.command(session, command, None).await;
    accepted.expect("the session takes input");
    world.quiet(session).await;
}

#[tokio::test(start_paused = true)]
async fn g15_a_result_without_its_call_is_left_out_with_a_note() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let puppet = Puppet::new(|_| text("answer"));
    let tools = attache_tools::built_in();
    let world = World::with(Arc::clone(&store), puppet, tools, Vec::new()).await;
    let session = world.left_behind(Vec::new(), true).await;
    let turn = TurnId(1);
    let result = CallResult {
        call: "call_9".into(),
        content: "a result of nothing".into(),
        is_error: false,
        spawned: None,
        origin: ResultOrigin::Tool,
        images: Vec::new(),
        took_micros: None,
        report: None,
    };
    let stored = vec![
        Event::TurnStarted { turn },
        Event::CallEnded { turn, result },
        Event::TurnEnded {
            turn,
            reason: EndReason::Completed,
            result: None,
        },
    ];
    put(&world, &store, session, stored).await;
    let world = world.restarted().await;
    world.engine.start(session, None).await.expect("it starts");
    // It is told once; the world looks at each request itself.
    for _ in 0..2 {
        say(&world, session).await;
        assert_eq!(
            world.row(session).view.end_reason(),
            Some(EndReason::Completed)
        );
    }
    let noted = world
        .events(session)
        .into_iter()
        .filter_map(|it| match it.event {
            Event::Noted { code, text } => Some(format!("{code}: {text}")),
            _ => None,
        });
    let noted: Vec<String> = noted.collect();
    assert_eq!(noted.len(), 1, "{noted:?}");
    assert!(
        noted[0].starts_with("history-mended") && noted[0].contains("call_9"),
        "{noted:?}"
    );
    let sent = format!("{:?}", world.puppet.requests());
    assert!(!sent.contains("a result of nothing") && sent.contains("answer"));
}

#[tokio::test(start_paused = true)]
async fn mail_to_a_session_that_cannot_be_loaded_lies_there_and_says_why() {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
    let puppet = Puppet::new(|_| text("answer"));
    let tools = attache_tools::built_in();
    let world = World::with(
        Arc::clone(&store) as Arc<dyn Store>,
        puppet,
        tools,
        Vec::new(),
    )
    .await;
    let root = world.root(None).await;
    let child = world.child(root, None).await;
    world.quiet(root).await;
    store.needs_newer(Some(child));
    let send = |text: &str| serde_json::json!({ "session_id": child.to_string(), "text": text });
    world.ask(root, "agent_session_send", send("hello")).await;
    while world.row(child).note.is_none() {
        tokio::task::yield_now().await;
    }
    let row = world.row(child);
    assert_eq!(
        row.view.unread.inputs, 1,
        "nothing is lost, and nothing is re-addressed"
    );
    let note = row.note.expect("it says why").to_string();
    assert!(
        note.starts_with("cannot be loaded: ") && note.contains("newer version"),
        "{note}"
    );
    // Once it can be read, the next word brings it to what lay there, and nothing is said any more.
    store.needs_newer(None);
    world.ask(root, "agent_session_send", send("again")).await;
    world.quiet(child).await;
    assert_eq!(world.consumed(child), ["hello", "again"]);
    assert_eq!(world.row(child).note, None);
}

#[tokio::test(start_paused = true)]
async fn a_long_session_is_loaded_from_where_it_stood() {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
    let read = {
        let store = Arc::clone(&store);
        async move |world: &World, session, name: usize| {
            let before = store.read();
            let name = Setting::Name(format!("name {name}").into());
            let command = Command::Set { setting: name };
            let renamed = world.engine.command(session, command, None).await;
            renamed.expect("it takes a name");
            world.quiet(session).await;
            store.read() - before
        }
    };
    let store: Arc<dyn Store> = store;
    let world = World::over(Arc::clone(&store)).await;
    let session = world.root(Some("begin")).await;
    world.quiet(session).await;
    for name in 0..100 {
        read(&world, session, name).await;
    }
    assert_eq!(read(&world, session, 100).await, 0, "nothing is new");
    let settings = Arc::new(Settings {
        name: Some("a name from elsewhere".into()),
        ..Settings::default()
    });
    put(
        &world,
        &store,
        session,
        vec![Event::SettingsSet { settings }],
    )
    .await;
    assert_eq!(read(&world, session, 101).await, 1, "and now one is");
    // Another session may get the id of one that is gone.
    world.engine.delete(session).await.expect("it is idle");
    let again = NewRoot {
        id: Some(session),
        definition: Definition::built_in(),
        model: "puppet/puppet".to_owned(),
        working_directory: std::env::temp_dir(),
        name: None,
        first: None,
        environment: Environment::default(),
        continue_in_background: true,
        runs_turns: true,
        budget: BudgetChange::default(),
    };
    let again = world.engine.create_root(again).await;
    assert_eq!(again.expect("the id is free"), session);
    let begun = world.engine.state(session).await.expect("it is there");
    assert_eq!(begun.settings.name, None);
    assert!(
        read(&world, session, 0).await < 10,
        "it has a beginning of its own"
    );
    assert_eq!(world.row(session).view.summary.name.as_ref(), "name 0");
    for name in 0..100 {
        read(&world, session, name).await;
    }
    let world = world.restarted().await;
    let all = read(&world, session, 102).await;
    assert!(all > 100, "another life begins with all of it: {all}");
}
