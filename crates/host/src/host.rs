//! A host: an engine with its store, its models and its definitions, ready to serve connections.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use attache_engine::parts::{Definition, MemoryStore, OwnFacts, ProviderTerms, Store, Toolsets};
use attache_engine::{
    Config, Engine, EngineError, EngineHandle, Environment, Identity, Models, NO_MODEL, NewRoot,
    ProviderModels, SystemTime,
};
use attache_protocol::{HostView, NewSession};
use attache_session::{ErrorCode, SessionId};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use crate::attachments::Attachments;
use crate::catalog::FolderCatalog;
use crate::connection;
use crate::doors::Doors;
use crate::from_wire;
use crate::repeats::Repeats;
use crate::settings::{ConfiguredProvider, Settings, SettingsError};
use crate::streams::Streams;
use crate::tokens::{Tokens, TokensError};

/// Where sessions are kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Storage {
    /// Nowhere: they go with the process.
    Memory,
    /// In this state folder.
    Folder(PathBuf),
}

/// What a host is given.
pub struct HostConfig {
    /// Where sessions are kept.
    pub storage: Storage,
    /// The state folder, for people.
    pub state_folder: PathBuf,
    /// The user's file of settings.
    pub settings_file: Option<PathBuf>,
    /// The user's folder of definitions.
    pub definitions: Option<PathBuf>,
    /// The toolsets that definitions can ask for.
    pub toolsets: Toolsets,
    /// Scripts that `scripted/NAME` plays, with their names.
    pub scripts: Vec<(String, String)>,
    /// The host's own variables: providers' keys that it was started with.
    pub environment: Environment,
    /// Whose sessions these are.
    pub identity: Identity,
    /// Name and version, for people.
    pub program: String,
    /// Doors of other protocols, by name.
    pub doors: Doors,
}

/// Why a host does not start.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HostError {
    /// The store cannot be opened, or the engine does not start over it.
    #[error("{0}")]
    Engine(#[from] EngineError),
    /// The settings do not load.
    #[error("{0}")]
    Settings(#[from] SettingsError),
    /// The tokens do not load.
    #[error("{0}")]
    Tokens(#[from] TokensError),
}

/// How long turns may go on when a host ends.
const GRACE: Duration = Duration::from_secs(5);

/// How long connections may take to end when the host does: what each of them has for its last words,
/// and some more.
const LEAVING: Duration = Duration::from_millis(1_500);

/// How often it is looked whether they have.
const LEAVING_LOOK: Duration = Duration::from_millis(2);

pub(crate) struct Shared {
    pub(crate) engine: EngineHandle,
    pub(crate) program: String,
    state_folder: PathBuf,
    settings_file: Option<PathBuf>,
    environment: Environment,
    /// Configured providers, as the settings had them when they were last read.
    providers: Arc<Mutex<Vec<ConfiguredProvider>>>,
    /// How other providers are asked and what is known of models, as the settings had it.
    usual: Mutex<(ProviderTerms, OwnFacts)>,
    pub(crate) models: Arc<ProviderModels>,
    connections: AtomicUsize,
    pub(crate) streams: Streams,
    pub(crate) attachments: Arc<Attachments>,
    pub(crate) repeats: Arc<Repeats>,
    going_away: watch::Sender<Option<String>>,
    pub(crate) doors: Doors,
    pub(crate) tokens: Tokens,
}

/// A host that runs. Cheap to clone.
#[derive(Clone)]
pub struct Host(pub(crate) Arc<Shared>);

/// Whether the store of a state folder can be opened, for whoever looks after it while no host runs.
///
/// # Errors
///
/// [`HostError`] when another process holds it, when a newer program has written it, or when it is
/// damaged.
pub fn check_store(state_folder: &Path) -> Result<(), HostError> {
    Ok(attache_engine::check_store(state_folder)?)
}

impl Host {
    /// Opens the store and starts the engine over it.
    ///
    /// # Errors
    ///
    /// [`HostError`] when the store is held by another process or damaged, or when the settings do
    /// not load.
    pub async fn open(config: HostConfig) -> Result<Self, HostError> {
        let HostConfig {
            storage,
            state_folder,
            settings_file,
            definitions,
            toolsets,
            scripts,
            environment,
            identity,
            program,
            doors,
        } = config;
        let settings = Settings::load(settings_file.as_deref(), None, &environment)?;
        let (store, tokens): (Arc<dyn Store>, _) = match storage {
            Storage::Memory => (Arc::new(MemoryStore::new()), Tokens::in_memory()),
            Storage::Folder(folder) => {
                let store = attache_engine::open_store(&folder)?;
                // Behind the store, whose lock says that no other process writes them.
                (store, Tokens::of(&folder)?)
            }
        };
        let providers = Arc::new(Mutex::new(settings.providers));
        let configured = Arc::clone(&providers);
        let mut models = ProviderModels::new(move |environment: &Environment| {
            let configured = configured.lock().unwrap_or_else(PoisonError::into_inner);
            configured
                .iter()
                .map(|provider| provider.with_key(environment))
                .collect()
        });
        let (settings_of, host_environment) = (settings_file.clone(), environment.clone());
        models = models.with_default(move |folder, given| {
            let mut all = host_environment.clone();
            all.0.extend(given.0.clone());
            let settings = Settings::load(settings_of.as_deref(), Some(folder), &all);
            settings.ok()?.model
        });
        for (name, text) in &scripts {
            models = models.with_script(name, text);
        }
        models.set_usual(settings.terms.clone(), settings.facts.clone());
        let usual = Mutex::new((settings.terms, settings.facts));
        let models = Arc::new(models);
        let engine = Engine::start(Config {
            store,
            catalog: Arc::new(FolderCatalog {
                toolsets: toolsets.clone(),
                user_folder: definitions,
            }),
            toolsets,
            models: Arc::clone(&models) as Arc<dyn Models>,
            time: Arc::new(SystemTime),
            identity,
            iteration_limit: settings.iteration_limit,
            compact_at: settings.compact_at,
        })
        .await?;
        let attachments = Arc::new(Attachments::new());
        let streams = Streams::new(engine.clone(), Arc::clone(&attachments));
        Ok(Self(Arc::new(Shared {
            engine,
            streams,
            attachments,
            repeats: Arc::default(),
            program,
            state_folder,
            settings_file,
            environment,
            providers,
            usual,
            models,
            connections: AtomicUsize::new(0),
            going_away: watch::channel(None).0,
            doors,
            tokens,
        })))
    }

    /// The engine.
    #[must_use]
    pub fn engine(&self) -> &EngineHandle {
        &self.0.engine
    }

    /// Whether there is a token with which somebody can come from elsewhere.
    #[must_use]
    pub fn has_tokens(&self) -> bool {
        !self.0.tokens.is_empty()
    }

    /// Serves one connection of the user whose host this is, until its other end is gone.
    pub async fn serve<S>(&self, stream: S)
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        self.connected(connection::serve(self.clone(), stream))
            .await;
    }

    /// Counts a connection while it is served.
    pub(crate) async fn connected(&self, serving: impl Future<Output = ()>) {
        self.0.connections.fetch_add(1, Ordering::AcqRel);
        serving.await;
        self.0.connections.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether nothing needs this host: nobody is connected or may come back, and no session is at work.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.0.connections.load(Ordering::Acquire) == 0 && !self.0.engine.is_needed()
    }

    /// Ends all work in good order and tells every connection.
    pub async fn shutdown(&self, reason: &str) {
        self.0.engine.shutdown(GRACE).await;
        self.0.going_away.send_replace(Some(reason.to_owned()));
        // Answers that are on their way get a moment to leave.
        let left = async {
            while self.0.connections.load(Ordering::Acquire) > 0 {
                tokio::time::sleep(LEAVING_LOOK).await;
            }
        };
        // Whoever reads no further does not hold the host up.
        let _left = tokio::time::timeout(LEAVING, left).await;
    }

    pub(crate) fn going_away(&self) -> watch::Receiver<Option<String>> {
        self.0.going_away.subscribe()
    }

    pub(crate) fn view(&self) -> HostView {
        let (live, busy) = self.0.engine.load();
        HostView {
            program: self.0.program.clone(),
            process_id: std::process::id(),
            state_folder: self.0.state_folder.display().to_string(),
            live_sessions: live as u64,
            busy_sessions: busy as u64,
        }
    }

    /// Creates a root session as a viewer asks for it.
    pub(crate) async fn create(&self, new: NewSession) -> Result<SessionId, EngineError> {
        let NewSession {
            session_id,
            agent,
            model,
            parameters,
            working_directory,
            name,
            first_message,
            environment,
            detached,
            budget,
        } = new;
        let budget = from_wire::budget(budget.as_deref())?;
        let id = from_wire::session(&session_id)?;
        if let Some(text) = &first_message {
            from_wire::text(text)?;
        }
        let Prepared {
            definition,
            model,
            working_directory,
            environment,
        } = self.prepare(
            agent.as_deref(),
            model,
            &parameters,
            &working_directory,
            environment,
        )?;
        let model = model.ok_or_else(|| EngineError::new(ErrorCode::InvalidArguments, NO_MODEL))?;
        self.0
            .engine
            .create_root(NewRoot {
                id: Some(id),
                definition,
                model,
                working_directory,
                name,
                first: first_message,
                environment,
                continue_in_background: detached,
                runs_turns: true,
                budget,
            })
            .await
    }

    /// What a new root is made of, as its client's folder and the settings have it now.
    pub(crate) fn prepare(
        &self,
        agent: Option<&str>,
        model: Option<String>,
        parameters: &BTreeMap<String, String>,
        working_directory: &str,
        given: BTreeMap<String, String>,
    ) -> Result<Prepared, EngineError> {
        let invalid = |text: String| EngineError::new(ErrorCode::InvalidArguments, text);
        let folder = PathBuf::from(working_directory);
        if !folder.is_absolute() || !folder.is_dir() {
            return Err(invalid(format!(
                "{working_directory:?} is no folder that can be opened"
            )));
        }
        let mut environment = self.environment_of(given.clone());
        let settings = Settings::load(self.0.settings_file.as_deref(), Some(&folder), &environment)
            .map_err(|error| invalid(error.to_string()))?;
        if self.take_providers(settings.providers, (settings.terms, settings.facts)) {
            environment = self.environment_of(given);
        }
        let definition = self.definition(agent, &folder)?;
        let mut definition = definition
            .fill(parameters)
            .map_err(|error| invalid(error.to_string()))?;
        // What the settings say as seen from here goes with the definition, to its children too.
        let limit = &mut definition.limits.iteration_limit;
        *limit = limit.or(Some(settings.iteration_limit));
        let model = model
            .or_else(|| definition.model.clone())
            .or(settings.model);
        let working_directory = match &definition.working_directory {
            None => folder,
            Some(named) => existing(&folder.join(named))?,
        };
        Ok(Prepared {
            definition,
            model,
            working_directory,
            environment,
        })
    }

    /// The variables of a session: what its client handed over wins over what the host has.
    pub(crate) fn environment_of(&self, given: BTreeMap<String, String>) -> Environment {
        let mut all = self.0.environment.clone();
        let providers = self.0.providers.lock();
        let providers = providers.unwrap_or_else(PoisonError::into_inner);
        let variables = providers
            .iter()
            .filter_map(ConfiguredProvider::key_variable);
        let variables: Vec<String> = variables.map(str::to_owned).collect();
        all.0.extend(from_wire::environment(given, &variables).0);
        all
    }

    /// Takes the providers as the settings have them now; true when they are others than before.
    fn take_providers(
        &self,
        now: Vec<ConfiguredProvider>,
        usual: (ProviderTerms, OwnFacts),
    ) -> bool {
        let mut known = self
            .0
            .providers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut known_usual = self.0.usual.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = *known != now || *known_usual != usual;
        if changed {
            *known = now;
            let (terms, facts) = usual.clone();
            self.0.models.set_usual(terms, facts);
            *known_usual = usual;
            self.0.models.forget();
        }
        changed
    }

    fn definition(&self, name: Option<&str>, folder: &Path) -> Result<Definition, EngineError> {
        let Some(name) = name else {
            return Ok(Definition::built_in());
        };
        self.0.engine.catalog().find(name, folder).map_err(|error| {
            let code = match error {
                attache_engine::CatalogError::Unknown { .. } => ErrorCode::DefinitionUnknown,
                attache_engine::CatalogError::Invalid(_) => ErrorCode::DefinitionInvalid,
            };
            EngineError::new(code, error.to_string())
        })
    }
}

/// What a new root is made of.
pub(crate) struct Prepared {
    pub(crate) definition: Definition,
    /// None when none is chosen and the settings name none.
    pub(crate) model: Option<String>,
    pub(crate) working_directory: PathBuf,
    pub(crate) environment: Environment,
}

fn existing(folder: &Path) -> Result<PathBuf, EngineError> {
    folder
        .canonicalize()
        .ok()
        .filter(|folder| folder.is_dir())
        .ok_or_else(|| {
            EngineError::new(
                ErrorCode::DefinitionInvalid,
                format!(
                    "the definition's working-directory {} is no folder",
                    folder.display()
                ),
            )
        })
}

/// The variables that a host keeps of those that it was started with.
#[must_use]
pub fn environment(given: BTreeMap<String, String>, key_variables: &[String]) -> Environment {
    from_wire::environment(given, key_variables)
}

/// Whose sessions these are.
#[must_use]
pub fn identity(user: String, computer: String, profile: Option<String>) -> Identity {
    Identity {
        user,
        computer,
        profile,
    }
}

/// A fresh UUIDv7.
#[must_use]
pub fn fresh_id() -> uuid::Uuid {
    attache_engine::Time::fresh(&SystemTime)
}
