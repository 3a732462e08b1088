//! Faults that people have met in the field, played to the true binary byte by byte: G-01 to G-16 and G-19 of the field cases.
//! Every model server here is strict: it answers 400 to a history that a strict provider would refuse.

mod bytes;
mod calls;
mod closed;
mod empty;
mod histories;
mod overflow;
mod pictures;
mod progress;
mod reasoning;
mod refused;
mod restarts;
mod waits;

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::house::{House, until};
use crate::stub::{
    After, Reply, Stub, after_tools, chat_calls, chat_text, last_user, session_named,
};

/// What keeps a history from being taken by a strict server.
fn fault_of(request: &Value) -> Option<String> {
    let messages = request["messages"].as_array()?;
    let mut open: Vec<String> = Vec::new();
    let mut known = HashSet::new();
    for message in messages {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if open.first().map(String::as_str) != Some(id) {
                return Some(format!("a result of {id} stands where none is due"));
            }
            open.remove(0);
            continue;
        }
        if !open.is_empty() {
            return Some(format!("{open:?} have no result"));
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let id = call["id"].as_str().unwrap_or_default().to_owned();
            let function = &call["function"];
            let arguments = function["arguments"].as_str().unwrap_or_default();
            let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            let name = function["name"].as_str().unwrap_or_default();
            if id.is_empty() || !known.insert(id.clone()) {
                return Some(format!("the id {id:?} is there twice"));
            }
            if !serde_json::from_str::<Value>(arguments).is_ok_and(|it| it.is_object()) {
                return Some(format!("the arguments of {id} are no object: {arguments}"));
            }
            if name.is_empty() || name.len() > 64 || !name.chars().all(fine) {
                return Some(format!("{name:?} is no name of a tool"));
            }
            open.push(id);
        }
    }
    (!open.is_empty()).then(|| format!("{open:?} have no result"))
}

/// What a strict server says of such a history.
fn refusal(fault: &str) -> Reply {
    let error = json!({ "message": fault, "type": "invalid_request_error" });
    Reply::Status(400, json!({ "error": error }).to_string())
}

/// A house with a strict model server.
struct Scene {
    stub: Stub,
    house: House,
}

/// What `attache run --json` told.
struct Told {
    id: String,
    deltas: String,
    result: Value,
}

impl Scene {
    /// Beside what it is told to say, the server answers `still there?`, and plays a parent of a child that is given `go`.
    fn new(say: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> Self {
        let stub = Stub::new(move |request| match fault_of(request) {
            Some(fault) => refusal(&fault),
            None if last_user(request).contains("still there?") => chat_text(&["alive"]),
            None if last_user(request).contains("has settled") => chat_text(&["told"]),
            None if last_user(request).contains("be a parent") => parent(request),
            None => say(request),
        });
        Self::of(stub)
    }

    /// With a server as it is.
    fn of(stub: Stub) -> Self {
        let house = stub.house();
        Self { stub, house }
    }

    /// The same with a setting of the environment.
    fn with(self, name: &str, value: &str) -> Self {
        let Self { stub, house } = self;
        let house = house.with(name, value);
        Self { stub, house }
    }

    /// The same with a provider of the user's settings: `[providers.field]` with these lines too.
    fn provider(self, lines: &str) -> Self {
        self.provider_of("openai-chat", lines)
    }

    /// The same in a dialect.
    fn provider_of(self, dialect: &str, lines: &str) -> Self {
        std::fs::create_dir_all(self.house.config()).unwrap();
        let url = self.stub.url("/v1");
        let text = format!(
            "[providers.field]\ndialect = \"{dialect}\"\nbase_url = \"{url}\"\napi_key_env = \"OPENAI_API_KEY\"\n{lines}\n"
        );
        std::fs::write(self.house.config().join("config.toml"), text).unwrap();
        self
    }

    fn run_as(&self, model: &str, task: &str) -> Told {
        let ended = self.house.run(&["run", "--json", "--model", model, task]);
        assert!(matches!(ended.code, 0 | 1), "{ended:?}");
        let lines = ended.lines();
        let result = lines.last().unwrap().clone();
        let id = result["session_id"].as_str().unwrap().to_owned();
        let own = |line: &&Value| line["type"] == "delta" && line["session_id"] == *id;
        Told {
            deltas: lines
                .iter()
                .filter(own)
                .map(|line| line["text"].as_str().unwrap())
                .collect(),
            id,
            result,
        }
    }

    fn run(&self) -> Told {
        self.run_as("openai/m", "go")
    }

    /// Starts a session and gives its id.
    fn start(&self, task: &str) -> String {
        let run = ["run", "--detach", "--json", "--model", "openai/m", task];
        let started = self.house.run(&run).well().json();
        started["session_id"].as_str().unwrap().to_owned()
    }

    fn wait(&self, id: &str) {
        self.house.run(&["wait", id, "--timeout", "20"]).well();
    }

    fn events(&self, id: &str) -> Vec<Value> {
        let page = self
            .house
            .run(&["events", id, "--json", "--limit", "200"])
            .well()
            .json();
        page["events"].as_array().unwrap().clone()
    }

    /// Texts of one kind of event.
    fn texts(&self, id: &str, kind: &str) -> Vec<String> {
        let list = ["events", id, "--json", "--limit", "200", "--type", kind];
        let page = self.house.run(&list).well().json();
        let events = page["events"].as_array().unwrap();
        let text = |event: &Value| event["text"].as_str().unwrap().to_owned();
        events.iter().map(text).collect()
    }

    fn show(&self, id: &str) -> Value {
        self.house.run(&["show", id, "--json"]).well().json()
    }

    /// The daemon is killed; the next command starts another.
    fn restart(&self) {
        self.house.crash();
    }

    /// A message to the session gets a well-formed request and an answer.
    fn alive(&self, id: &str) {
        self.house.run(&["send", id, "still there?"]).well();
        self.wait(id);
        let texts = self.texts(id, "assistant");
        assert_eq!(texts.last().map(String::as_str), Some("alive"), "{texts:?}");
        assert_eq!(self.show(id)["outcome"], "succeeded");
    }

    /// Runs the task in a child whose parent is told of its end, and gives both ids.
    fn run_child(&self, model: &str) -> (Told, String) {
        let told = self.run_as(model, "be a parent");
        let child = self.child_of(&told.id);
        (told, child)
    }

    fn child_of(&self, id: &str) -> String {
        let is_child = |row: &&Value| row["parent_session_ids"].to_string().contains(id);
        let rows = self.house.ls();
        let child = rows.iter().find(is_child).unwrap();
        child["session_id"].as_str().unwrap().to_owned()
    }

    /// Waits until a request is being answered.
    fn answering(&self) {
        until("a request is being answered", || self.stub.answering() > 0);
    }
}

/// What a parent says that makes a child and asks to be told of its end.
fn parent(request: &Value) -> Reply {
    let said = request["messages"].to_string();
    if !after_tools(request) {
        return chat_calls(&[("agent_session_create", json!({ "initial_message": "go" }))]);
    }
    if said.contains("fired_immediately") {
        return chat_text(&["waiting"]);
    }
    let id = session_named(&said).unwrap();
    chat_calls(&[("agent_session_on_complete", json!({ "session_id": id }))])
}

/// An event of Chat Completions with this delta.
fn delta(delta: &Value) -> String {
    chunk(delta, None)
}

fn chunk(delta: &Value, finish: Option<&str>) -> String {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
    format!("data: {}\n\n", json!({ "choices": [choice] }))
}

/// Fragments of tool calls.
fn fragments(list: &Value) -> String {
    delta(&json!({ "tool_calls": list }))
}

fn finish(reason: &str) -> String {
    chunk(&json!({}), Some(reason))
}

const DONE: &str = "data: [DONE]\n\n";

/// A reply of these events, each in one write, closed in good order.
fn events(list: &[String]) -> Reply {
    let writes = list
        .iter()
        .map(|event| event.clone().into_bytes())
        .collect();
    Reply::Writes(writes, After::Close)
}

/// The same, one byte in each write.
fn single(reply: Reply) -> Reply {
    match reply {
        Reply::Writes(writes, after) => {
            let bytes = writes.concat().into_iter().map(|byte| vec![byte]);
            Reply::Writes(bytes.collect(), after)
        }
        other => other,
    }
}

/// The reply as it is, and byte by byte.
fn both(reply: &Reply) -> [Reply; 2] {
    [reply.clone(), single(reply.clone())]
}

/// Does the same for each, all at the same time: what they wait for is time.
fn beside<T: Send>(all: impl IntoIterator<Item = T>, one: impl Fn(T) + Sync) {
    let one = &one;
    std::thread::scope(|scope| {
        for item in all {
            scope.spawn(move || one(item));
        }
    });
}

/// The error that a run came to is in its diagnostics.
fn diagnosed(scene: &Scene, id: &str, wanted: &str) {
    let notes = scene.texts(id, "diagnostic");
    assert!(
        notes.iter().any(|note| note.contains(wanted)),
        "{wanted}: {notes:?}"
    );
}
