//! A tool that gives pictures, with everything else as in earnest: they are recorded before they are shown, they are in
//! every request after a restart too, and a model that refuses them is asked without.

use std::sync::Arc;

use attache_agent::offer::{Json, ToolSpec};
use attache_agent::session::Picture;
use attache_agent::{CallContext, Definition, Tool, ToolFuture, ToolOutcome, Toolset};
use attache_model::{ErrorKind, Message, ModelError, Request};
use attache_session::{Event, Position, SessionId};
use attache_store::{Kind, MemoryStore, PageQuery};
use attache_testkit::{Piece, Puppet, World, call, text};
use serde_json::{Value, json};

/// Gives two pictures and something that is none.
struct Camera(ToolSpec);

impl Tool for Camera {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn changes_state(&self) -> bool {
        false
    }

    fn call<'a>(&'a self, _context: CallContext, _arguments: Value) -> ToolFuture<'a> {
        Box::pin(async {
            ToolOutcome::json(&json!({ "taken": true }))
                .with_image(shot(1))
                .with_image(Picture::of_bytes("application/pdf", b"%PDF"))
                .with_image(shot(2))
        })
    }
}

fn shot(fill: u8) -> Picture {
    Picture::of_bytes("image/jpeg", &[fill; 3_000])
}

struct Studio;

impl Toolset for Studio {
    fn kind(&self) -> &'static str {
        "studio"
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let schema = json!({ "type": "object", "properties": {}, "additionalProperties": false });
        vec![Arc::new(Camera(ToolSpec {
            name: "camera".into(),
            description: "Takes pictures.".into(),
            input_schema: Json::from_value(&schema),
        }))]
    }
}

async fn world(puppet: Puppet) -> (World, SessionId) {
    let tools = attache_tools::built_in().with(Arc::new(Studio));
    let world = World::with(Arc::new(MemoryStore::new()), puppet, tools, Vec::new()).await;
    let definition = Definition {
        name: "photographer".to_owned(),
        tools: vec!["studio".to_owned(), "agent-session".to_owned()],
        ..Definition::default()
    };
    let root = world.root_of(definition, Some("take some")).await;
    world.quiet(root).await;
    (world, root)
}

fn takes_some(request: &Request) -> Vec<Piece> {
    if Puppet::last_user(request) == "take some" && !Puppet::after_tools(request) {
        call("camera", &json!({}))
    } else {
        text("I see.")
    }
}

/// The base64 of all pictures of a request.
fn sent(request: &Request) -> Vec<Arc<str>> {
    let results = request.messages.iter().flat_map(|message| match message {
        Message::Tool(results) => results.as_slice(),
        _ => &[],
    });
    let images = results.flat_map(|result| &result.images);
    images.map(|image| Arc::clone(&image.base64)).collect()
}

fn recorded(world: &World, session: SessionId) -> attache_session::CallResult {
    let log = world.engine.log(session, Position(0), 99);
    let result = log
        .expect("a log")
        .into_iter()
        .find_map(|item| match item.event.event {
            Event::CallEnded { result, .. } => Some(result),
            _ => None,
        });
    result.expect("the result is on record")
}

#[tokio::test]
async fn pictures_of_a_tool_are_recorded_and_sent_also_after_a_restart() {
    let (world, root) = world(Puppet::new(takes_some)).await;
    let result = recorded(&world, root);
    assert_eq!(result.images, [shot(1), shot(2)]);
    assert!(
        result.content.contains("application/pdf, 4 bytes"),
        "{}",
        result.content
    );
    let both = [shot(1).base64, shot(2).base64];
    assert_eq!(sent(&world.puppet.requests()[1]), both);
    let world = world.restarted().await;
    world.engine.start(root, None).await.expect("it starts");
    world.say(root, "what did you see?").await;
    let requests = world.puppet.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!(sent(&requests[2]), both);
    // Those who only look are told.
    let query = PageQuery {
        after: None,
        up_to: None,
        kinds: vec![Kind::ToolResult],
        search: None,
        limit: 9,
        newest: false,
    };
    let page = world.engine.page(root, &query).unwrap();
    let Event::CallEnded { result, .. } = &page.items[0].event.event else {
        panic!("a result was expected, not {page:?}");
    };
    assert_eq!(result.images, [shot(1).told(), shot(2).told()]);
    let asked = json!({ "event_types": ["tool_result"], "full": true });
    let shown = world.ask(root, "agent_session_read_events", asked).await;
    let told = json!({ "media_type": "image/jpeg", "bytes": 3_000 });
    assert_eq!(shown["events"][0]["pictures"], json!([told, told]));
    assert!(!shown.to_string().contains(&*both[0]));
}

#[tokio::test]
async fn a_model_that_refuses_pictures_goes_on_without_them_in_every_run() {
    let puppet = Puppet::new(|request| {
        if sent(request).is_empty() {
            takes_some(request)
        } else {
            let error = ModelError::new(ErrorKind::Refused, "no image input here");
            vec![Piece::Fail(error.with_status(400))]
        }
    });
    let (world, root) = world(puppet).await;
    world.say(root, "and now?").await;
    let requests = world.puppet.requests();
    let pictures: Vec<usize> = requests.iter().map(|it| sent(it).len()).collect();
    assert_eq!(pictures, [0, 2, 0, 2, 0]);
    let last = Puppet::results(&requests[2]);
    assert_eq!(
        last[0].matches("A picture is left out here").count(),
        3,
        "{last:?}"
    );
    assert_eq!(
        recorded(&world, root).images.len(),
        2,
        "the record keeps them"
    );
    let row = world.engine.row(root).unwrap();
    assert_eq!(
        row.view.outcome(),
        Some(attache_session::Outcome::Succeeded)
    );
    let log = world.engine.log(root, Position(0), 99).unwrap();
    let notes = log.iter().filter(|item| {
        matches!(&item.event.event, Event::Noted { code, text }
            if **code == *"request-adapted" && text.contains("no image input here"))
    });
    assert_eq!(notes.count(), 1, "people are told once");
}
