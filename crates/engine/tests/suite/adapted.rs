//! A tool whose schema a provider would refuse, at a strict provider over HTTP. G-11.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use attache_agent::offer::{Json, ToolSpec};
use attache_agent::{CallContext, Definition, Tool, ToolFuture, ToolOutcome, Toolset, Toolsets};
use attache_engine::{
    Catalog, CatalogEntry, Config, Engine, EngineHandle, Environment, Identity, NewRoot,
    ProviderModels, Quiet,
};
use attache_session::{Command, Event, Origin, Position, QueueId, SessionId};
use attache_store::{MemoryStore, Store};
use attache_testkit::TestTime;
use attache_testkit::model::{Dialect, ProviderConfig, ProviderTerms, Quirks};
use serde_json::{Value, json};

/// The schema of the case: fine for a tool server, and not for some providers.
fn own_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "p": { "type": "string" }, "a": { "type": "string" }, "b": { "type": "string" }
        },
        "required": ["p"],
        "anyOf": [{ "required": ["a"] }, { "required": ["b"] }]
    })
}

fn plain_schema() -> Value {
    json!({ "type": "object", "properties": { "q": { "type": "string" } }, "required": ["q"] })
}

/// A tool with a schema, and what it was called with.
struct Checked {
    spec: ToolSpec,
    schema: jsonschema::Validator,
    called: Arc<Mutex<Vec<Value>>>,
}

impl Checked {
    fn tool(name: &str, schema: &Value, called: &Arc<Mutex<Vec<Value>>>) -> Arc<dyn Tool> {
        Arc::new(Self {
            spec: ToolSpec {
                name: name.into(),
                description: "A tool of some server.".into(),
                input_schema: Json::from_value(schema),
            },
            schema: jsonschema::validator_for(schema).expect("the schema is sound"),
            called: Arc::clone(called),
        })
    }
}

impl Tool for Checked {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn changes_state(&self) -> bool {
        false
    }

    fn check(&self, arguments: &Value) -> Result<(), String> {
        self.schema
            .validate(arguments)
            .map_err(|fault| fault.to_string())
    }

    fn call<'a>(&'a self, _context: CallContext, arguments: Value) -> ToolFuture<'a> {
        Box::pin(async move {
            let mut called = self.called.lock().expect("no test panics with it");
            called.push(arguments);
            ToolOutcome::json(&json!({ "ok": true }))
        })
    }
}

struct Server(Vec<Arc<dyn Tool>>);

impl Toolset for Server {
    fn kind(&self) -> &'static str {
        "server"
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.0.clone()
    }
}

struct Nobody;

impl Catalog for Nobody {
    fn list(&self, _working_directory: &std::path::Path) -> Vec<CatalogEntry> {
        Vec::new()
    }
}

/// What a strict server answers, and what it was asked.
#[derive(Default)]
struct Strict(Mutex<Vec<Value>>);

impl Strict {
    /// A server that refuses a root with `anyOf`, `oneOf` or `allOf`; else it calls the tool with too little, then as it
    /// should, and then answers.
    fn serve(self: Arc<Self>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a port");
        let port = listener.local_addr().expect("it is bound").port();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // Whoever asks may go away.
                let _gone = self.answer(stream);
            }
        });
        format!("http://127.0.0.1:{port}/v1")
    }

    fn answer(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut out = stream.try_clone()?;
        let mut input = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            input.read_line(&mut line)?;
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        input.read_exact(&mut body)?;
        let request: Value = serde_json::from_slice(&body)?;
        let refused = refused(&request);
        let reply = reply(&request);
        self.0.lock().expect("no test panics with it").push(request);
        let (status, kind, body) = match refused {
            Some(name) => {
                let message = format!("{name}: anyOf is not supported at the top level");
                let error =
                    json!({ "error": { "type": "invalid_request_error", "message": message } });
                (400, "application/json", error.to_string())
            }
            None => (200, "text/event-stream", reply),
        };
        write!(
            out,
            "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n{body}"
        )
    }

    fn asked(&self) -> Vec<Value> {
        self.0.lock().expect("no test panics with it").clone()
    }
}

fn refused(request: &Value) -> Option<String> {
    let tools = request["tools"].as_array()?;
    let bad = tools.iter().find(|tool| {
        let schema = &tool["function"]["parameters"];
        ["anyOf", "oneOf", "allOf"]
            .iter()
            .any(|key| !schema[key].is_null())
    });
    bad.map(|tool| tool["function"]["name"].to_string())
}

fn reply(request: &Value) -> String {
    let messages = request["messages"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let behind = messages.iter().rev().take_while(|it| it["role"] != "user");
    let calls = match behind.filter(|it| it["role"] == "tool").count() {
        0 => Some(("find", json!({ "p": "x" }))),
        1 => Some(("find", json!({ "p": "x", "b": "y" }))),
        2 => Some(("look", json!({ "q": "z" }))),
        _ => None,
    };
    let delta = match &calls {
        Some((name, arguments)) => json!({ "tool_calls": [{ "index": 0, "id": "call_1",
            "function": { "name": name, "arguments": arguments.to_string() } }] }),
        None => json!({ "content": "done" }),
    };
    let finish = if calls.is_some() {
        "tool_calls"
    } else {
        "stop"
    };
    let event = |delta: Value, finish: Option<&str>| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        format!("data: {}\n\n", json!({ "choices": [choice] }))
    };
    event(delta, None) + &event(json!({}), Some(finish)) + "data: [DONE]\n\n"
}

impl Strict {
    fn last_says(&self, words: &str) -> bool {
        self.asked()
            .last()
            .is_some_and(|it| it["messages"].to_string().contains(words))
    }
}

/// An engine whose one provider is this server.
async fn engine(
    store: &Arc<dyn Store>,
    url: &str,
    time: &Arc<TestTime>,
    tools: &Toolsets,
) -> EngineHandle {
    let url = url.to_owned();
    let models = ProviderModels::new(move |_| {
        vec![ProviderConfig {
            name: "strict".to_owned(),
            dialect: Dialect::OpenAiChat,
            base_url: url.clone(),
            api_key: None,
            key_variable: None,
            key_command: false,
            headers: Vec::new(),
            quirks: Quirks::default(),
            terms: ProviderTerms::default(),
        }]
    });
    let started = Engine::start(Config {
        store: Arc::clone(store),
        toolsets: tools.clone(),
        models: Arc::new(models),
        catalog: Arc::new(Nobody),
        time: Arc::clone(time) as Arc<dyn attache_engine::Time>,
        identity: Identity {
            user: "ada".to_owned(),
            computer: "engine".to_owned(),
            profile: None,
        },
        iteration_limit: 50,
        compact_at: 0.8,
    });
    started.await.expect("an engine starts over a sound store")
}

fn events(store: &Arc<dyn Store>, session: SessionId) -> Vec<Event> {
    let all = store.events(session, Position(0), 10_000);
    let all = all.expect("the log can be read").into_iter();
    all.map(|item| item.event.event.clone()).collect()
}

fn notes(events: &[Event]) -> Vec<(String, String)> {
    let noted = events.iter().filter_map(|event| match event {
        Event::Noted { code, text } => Some((code.to_string(), text.to_string())),
        _ => None,
    });
    noted.collect()
}

async fn go(engine: &EngineHandle, session: SessionId) {
    let command = Command::Enqueue {
        item: None,
        queue: QueueId::Default,
        text: "again".into(),
        origin: Origin::Viewer,
    };
    let accepted = engine.command(session, command, None).await;
    accepted.expect("the session takes input");
    quiet(engine, session).await;
}

async fn quiet(engine: &EngineHandle, session: SessionId) {
    let settled = engine.settled(session, Quiet::Tree).await;
    settled.expect("the session exists");
}

#[tokio::test]
async fn g11_a_schema_that_a_provider_refuses_is_adapted_and_a_note_names_the_tool() {
    let called: Arc<Mutex<Vec<Value>>> = Arc::default();
    let tools = Toolsets::new().with(Arc::new(Server(vec![
        Checked::tool("find", &own_schema(), &called),
        Checked::tool("look", &plain_schema(), &called),
    ])));
    let strict = Arc::new(Strict::default());
    let url = Arc::clone(&strict).serve();
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let time: Arc<TestTime> = Arc::default();
    let first = engine(&store, &url, &time, &tools).await;
    let definition = Definition {
        tools: vec!["server".to_owned()],
        ..Definition::built_in()
    };
    let new = NewRoot {
        id: None,
        definition,
        model: "strict/m".to_owned(),
        working_directory: std::env::temp_dir(),
        name: None,
        first: Some("go".to_owned()),
        environment: Environment::default(),
        continue_in_background: false,
        runs_turns: true,
        budget: attache_session::BudgetChange::default(),
    };
    let root = first.create_root(new).await.expect("a root is created");
    quiet(&first, root).await;

    // The request passes, and only the one tool is changed.
    let asked = strict.asked();
    assert_eq!(asked.len(), 4, "{asked:?}");
    for request in &asked {
        let schema = |at: usize| &request["tools"][at]["function"]["parameters"];
        let mut plain = own_schema();
        plain.as_object_mut().expect("it is one").remove("anyOf");
        assert_eq!(schema(0), &plain);
        assert_eq!(schema(1), &plain_schema());
    }
    // What does not fit the tool's own schema never reaches it, and the model is told why.
    assert_eq!(
        *called.lock().expect("no test panics with it"),
        [json!({ "p": "x", "b": "y" }), json!({ "q": "z" })]
    );
    assert!(
        asked[1]["messages"]
            .to_string()
            .contains("invalid-arguments")
    );

    // Once in the session, not once a request; not after a restart either.
    let told = notes(&events(&store, root));
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].0, "request-adapted");
    assert!(
        told[0].1.contains("tool find") && told[0].1.contains("anyOf"),
        "{told:?}"
    );
    drop(first);
    let second = engine(&store, &url, &time, &tools).await;
    second.start(root, None).await.expect("it starts");
    go(&second, root).await;
    assert_eq!(strict.asked().len(), 8);
    assert!(
        !strict.last_says("request-adapted"),
        "the model never sees it"
    );
    assert_eq!(notes(&events(&store, root)).len(), 1);
}
