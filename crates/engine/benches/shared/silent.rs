//! An engine over SQLite whose models say nothing, for benchmarks that play the model's part themselves.

use std::path::Path;
use std::sync::Arc;

use attache_agent::{Definition, Toolsets};
use attache_engine::{
    Catalog, CatalogEntry, Config, Engine, EngineError, EngineHandle, Environment, Identity,
    Models, NewRoot, SystemTime,
};
use attache_model::{BoxFuture, Deltas, Model, ModelStream, Request, StreamStep};
use attache_session::{BudgetChange, SessionId};

/// Says nothing, for ever.
struct Silent;

impl Models for Silent {
    fn resolve(
        &self,
        _name: &str,
        _environment: &Environment,
    ) -> Result<Arc<dyn Model>, EngineError> {
        Ok(Arc::new(Self))
    }
}

impl Model for Silent {
    fn start(&self, _request: Request) -> Box<dyn ModelStream> {
        Box::new(Self)
    }

    fn provider(&self) -> &'static str {
        "silent"
    }

    fn id(&self) -> &'static str {
        "silent"
    }
}

impl ModelStream for Silent {
    fn next<'a>(&'a mut self, _out: &'a mut Deltas) -> BoxFuture<'a, StreamStep> {
        Box::pin(std::future::pending())
    }
}

struct Nothing;

impl Catalog for Nothing {
    fn list(&self, _working_directory: &Path) -> Vec<CatalogEntry> {
        Vec::new()
    }
}

/// An engine over a store in this folder.
pub(crate) async fn engine(folder: &Path) -> EngineHandle {
    let config = Config {
        store: attache_engine::open_store(folder).expect("a store"),
        toolsets: Toolsets::new(),
        models: Arc::new(Silent),
        catalog: Arc::new(Nothing),
        time: Arc::new(SystemTime),
        identity: Identity {
            user: "bench".to_owned(),
            computer: "bench".to_owned(),
            profile: None,
        },
        iteration_limit: 50,
        compact_at: 0.8,
    };
    Engine::start(config).await.expect("an engine")
}

/// A root without limits: with a turn that its model leaves open, or one that runs none.
pub(crate) async fn root(engine: &EngineHandle, runs_turns: bool) -> SessionId {
    let new = NewRoot {
        id: None,
        definition: Definition {
            tools: Vec::new(),
            ..Definition::built_in()
        },
        model: "silent/silent".to_owned(),
        working_directory: std::env::temp_dir(),
        name: None,
        first: runs_turns.then(|| "go".to_owned()),
        environment: Environment::default(),
        continue_in_background: true,
        runs_turns,
        budget: BudgetChange::parse("concurrent=none,agents=none").expect("a budget"),
    };
    engine.create_root(new).await.expect("a root")
}
