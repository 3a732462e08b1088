//! A whole engine in memory, with a puppet for a model.

use std::path::Path;
use std::sync::Arc;

use attache_agent::{CallContext, Caller, Cancel, Definition, ToolOutcome, Toolsets};
use attache_engine::{
    Catalog, CatalogEntry, Config, Engine, EngineHandle, Environment, Identity, NewRoot, Quiet,
    SessionRow,
};
use attache_session::{
    BudgetChange, Command, Created, Event, Generation, Json, Origin, Position, QueueId, SessionId,
    Stamped, State, Summary, TurnId,
};
use attache_store::memory::MemoryStore;
use attache_store::{Append, Store};
use serde_json::Value;

use crate::clock::TestTime;
use crate::history::well_formed;
use crate::puppet::Puppet;

/// Definitions that a test names.
#[derive(Default)]
struct Named(Vec<Definition>);

impl Catalog for Named {
    fn list(&self, _working_directory: &Path) -> Vec<CatalogEntry> {
        self.0
            .iter()
            .map(|definition| CatalogEntry {
                name: definition.name.clone(),
                source: "test".to_owned(),
                definition: Ok(definition.clone()),
            })
            .collect()
    }
}

/// What a tree is not bound by unless a test says so.
fn unlimited() -> BudgetChange {
    BudgetChange::parse("concurrent=none,agents=none,depth=none").expect("it is a budget")
}

/// See the module.
pub struct World {
    /// The engine.
    pub engine: EngineHandle,
    /// Its model.
    pub puppet: Puppet,
    /// Its clock.
    pub time: Arc<TestTime>,
    store: Arc<dyn Store>,
    toolsets: Toolsets,
    definitions: Vec<Definition>,
    budget: BudgetChange,
}

impl World {
    /// An engine over an empty store in memory.
    pub async fn new() -> Self {
        Self::over(Arc::new(MemoryStore::new())).await
    }

    /// An engine over a store, as after a restart of the host.
    pub async fn over(store: Arc<dyn Store>) -> Self {
        Self::with(
            store,
            Puppet::default(),
            attache_tools::built_in(),
            Vec::new(),
        )
        .await
    }

    /// An engine with all its parts given.
    pub async fn with(
        store: Arc<dyn Store>,
        puppet: Puppet,
        toolsets: Toolsets,
        definitions: Vec<Definition>,
    ) -> Self {
        Self::at(Arc::default(), store, puppet, toolsets, definitions).await
    }

    /// The same with a clock of its own. A store's next life needs one that goes on: what gives an
    /// id a second time is no restart.
    pub async fn at(
        time: Arc<TestTime>,
        store: Arc<dyn Store>,
        puppet: Puppet,
        toolsets: Toolsets,
        definitions: Vec<Definition>,
    ) -> Self {
        let config = Config {
            store: Arc::clone(&store),
            toolsets: toolsets.clone(),
            models: Arc::new(puppet.clone()),
            catalog: Arc::new(Named(definitions.clone())),
            time: Arc::clone(&time) as Arc<dyn attache_engine::Time>,
            identity: Identity {
                user: "ada".to_owned(),
                computer: "engine".to_owned(),
                profile: None,
            },
            iteration_limit: 50,
            compact_at: 0.8,
        };
        let engine = Engine::start(config)
            .await
            .expect("an engine starts over a sound store");
        Self {
            engine,
            puppet,
            time,
            store,
            toolsets,
            definitions,
            budget: unlimited(),
        }
    }

    /// Roots have these limits from now on, over those that every root has.
    #[must_use]
    pub fn with_budget(mut self, budget: &str) -> Self {
        self.budget = BudgetChange::parse(budget).expect("it is a budget");
        self
    }

    /// The same store in the hands of another life of the host. Nothing of this one may run on.
    pub async fn restarted(self) -> Self {
        let store = Arc::clone(&self.store);
        let puppet = self.puppet.clone();
        let toolsets = self.toolsets.clone();
        let definitions = self.definitions.clone();
        let time = Arc::clone(&self.time);
        let budget = self.budget.clone();
        drop(self);
        let mut world = Self::at(time, store, puppet, toolsets, definitions).await;
        world.budget = budget;
        world
    }

    /// A root session, at work on `first` if there is one.
    pub async fn root(&self, first: Option<&str>) -> SessionId {
        self.root_of(Definition::built_in(), first).await
    }

    /// A root session of a definition.
    pub async fn root_of(&self, definition: Definition, first: Option<&str>) -> SessionId {
        self.root_at(&std::env::temp_dir(), definition, first).await
    }

    /// A root session of a definition, at work in a folder.
    pub async fn root_at(
        &self,
        folder: &Path,
        mut definition: Definition,
        first: Option<&str>,
    ) -> SessionId {
        definition
            .tools
            .retain(|tool| self.toolsets.belt(std::slice::from_ref(tool)).is_ok());
        let new = NewRoot {
            id: None,
            definition,
            model: "puppet/puppet".to_owned(),
            working_directory: folder.to_owned(),
            name: None,
            first: first.map(str::to_owned),
            environment: Environment::default(),
            continue_in_background: false,
            runs_turns: true,
            budget: self.budget.clone(),
        };
        self.engine
            .create_root(new)
            .await
            .expect("a root is created")
    }

    /// A root session that runs no turns; no model is chosen for it when `model` is empty.
    pub async fn turnless_root(&self, model: &str) -> SessionId {
        let new = NewRoot {
            id: None,
            definition: Definition::built_in(),
            model: model.to_owned(),
            working_directory: std::env::temp_dir(),
            name: None,
            first: None,
            environment: Environment::default(),
            continue_in_background: true,
            runs_turns: false,
            budget: self.budget.clone(),
        };
        self.engine
            .create_root(new)
            .await
            .expect("a root is created")
    }

    /// Calls a tool as a session would.
    pub async fn call(&self, caller: SessionId, tool: &str, arguments: Value) -> ToolOutcome {
        let belt = self
            .toolsets
            .belt(&[tool.to_owned()])
            .expect("the tool exists");
        let tool = belt.get(tool).expect("the belt has the tool");
        // The setter lives until the call has ended.
        let (_set, cancel) = Cancel::new();
        let caller = Caller {
            session: caller,
            turn: TurnId(1),
            call: format!("call-{}", self.next()).into(),
        };
        let sessions = self.engine.sessions();
        let context = CallContext {
            // A caller that does not exist works nowhere in particular.
            working_directory: sessions
                .working_directory(&caller)
                .unwrap_or_else(std::env::temp_dir),
            caller,
            sessions,
            cancel,
        };
        tool.call(context, arguments).await
    }

    /// The same, as the object that the model would read.
    pub async fn ask(&self, caller: SessionId, tool: &str, arguments: Value) -> Value {
        json_of(&self.call(caller, tool, arguments).await)
    }

    /// A child of a session; the id that the tool gave.
    pub async fn child(&self, parent: SessionId, first: Option<&str>) -> SessionId {
        let arguments = match first {
            Some(first) => serde_json::json!({ "initial_message": first }),
            None => serde_json::json!({}),
        };
        let made = self.ask(parent, "agent_session_create", arguments).await;
        made["session_id"]
            .as_str()
            .expect("a session id")
            .parse()
            .expect("an id in its usual form")
    }

    /// A session as an earlier life of the host would have left it: stopped, with these parents.
    pub async fn left_behind(&self, parents: Vec<SessionId>, takes_input: bool) -> SessionId {
        let id = SessionId(attache_engine::Time::fresh(&*self.time));
        let root = parents
            .iter()
            .find_map(|parent| self.engine.row(*parent).ok());
        let created = Created {
            name: "left".into(),
            agent: "left".into(),
            definition: Definition::built_in().to_json(),
            model: "puppet/puppet".into(),
            working_directory: std::env::temp_dir().display().to_string().into(),
            root: root.map_or(id, |row| row.root),
            parents,
            takes_input,
            runs_turns: true,
            owning_profile: attache_engine::Time::fresh(&*self.time),
            executor_bindings: Json::from_checked("[]"),
            trust: None,
            continue_in_background: false,
            budget: attache_session::Budget::NONE,
        };
        let stamped = Stamped {
            at: attache_engine::Time::now(&*self.time),
            observed: None,
            event: Event::Created(Arc::new(created)),
        };
        let mut state = State::empty(id);
        state.apply(&stamped);
        let append = Append {
            session: id,
            generation: Generation(1),
            expected: Position(0),
            events: vec![stamped],
            summary: Summary::of(&state).expect("it was created"),
            mail: Vec::new(),
            taken: Vec::new(),
            charges: Vec::new(),
            births: Vec::new(),
            links: Vec::new(),
            command: None,
            expects: Vec::new(),
        };
        self.store
            .commit(append)
            .await
            .expect("the store takes a birth");
        id
    }

    /// Gives a session input, as a viewer does, and waits until it and all below it have settled.
    pub async fn say(&self, session: SessionId, text: &str) {
        let command = Command::Enqueue {
            item: None,
            queue: QueueId::Default,
            text: text.into(),
            origin: Origin::Viewer,
        };
        let accepted = self.engine.command(session, command, None).await;
        accepted.expect("the session takes input");
        self.quiet(session).await;
    }

    /// Waits until a session and all below it have settled.
    pub async fn quiet(&self, session: SessionId) {
        self.engine
            .settled(session, Quiet::Tree)
            .await
            .expect("the session exists");
    }

    /// Waits until a session has taken the mail that lies unread for it now.
    pub async fn quiet_mail(&self, session: SessionId) {
        let state = self.engine.state(session).await;
        state.expect("the session can be loaded");
    }

    /// A session's row.
    #[must_use]
    pub fn row(&self, session: SessionId) -> SessionRow {
        self.engine.row(session).expect("the session exists")
    }

    /// All events of a session.
    #[must_use]
    pub fn events(&self, session: SessionId) -> Vec<Stamped> {
        let items = self
            .engine
            .log(session, Position(0), 100_000)
            .expect("the log can be read");
        items.into_iter().map(|item| item.event).collect()
    }

    /// The texts that turns of a session took as input, in order.
    #[must_use]
    pub fn consumed(&self, session: SessionId) -> Vec<String> {
        let texts = |stamped: Stamped| match stamped.event {
            Event::Consumed { item, .. } => Some(item.text.to_string()),
            _ => None,
        };
        self.events(session).into_iter().filter_map(texts).collect()
    }

    fn next(&self) -> String {
        attache_engine::Time::fresh(&*self.time).to_string()
    }
}

impl Drop for World {
    /// No test passes in which a model was sent a history that is not well formed.
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        for (number, request) in self.puppet.requests().iter().enumerate() {
            if let Err(why) = well_formed(request) {
                panic!("request {number}: {why}\n{:#?}", request.messages);
            }
        }
    }
}

/// What a model would read, as JSON.
#[must_use]
pub fn json_of(outcome: &ToolOutcome) -> Value {
    serde_json::from_str(&outcome.content).expect("a tool answers with JSON")
}
