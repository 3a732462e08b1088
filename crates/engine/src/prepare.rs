//! What a turn of a session runs with: its history, its definition, its model and what is known of it.

use std::path::PathBuf;
use std::sync::Arc;

use attache_agent::{History, TurnConfig, system_prompt};
use attache_model::{Model, ModelFacts, Options};
use attache_session::{
    Cost, Created, EndReason, Event, Payer, Position, SessionId, Settings, StepText, TurnId,
};

use crate::ask::Shared;
use crate::compiled::Compiled;
use crate::error::EngineError;

/// Events that are read at once for the history; few, because a result may have pictures of 10 MiB.
const HISTORY_AT_ONCE: usize = 256;

pub(crate) struct Prepared {
    pub(crate) config: TurnConfig,
    pub(crate) history: History,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) model_name: Arc<str>,
    pub(crate) facts: ModelFacts,
    pub(crate) compiled: Arc<Compiled>,
    pub(crate) working_directory: PathBuf,
    /// Those whose limits bind it.
    pub(crate) chain: Vec<Payer>,
}

/// Reads all that a turn of a session needs; where that fails, how the turn ends and what is said of it.
pub(crate) fn prepare(
    shared: &Arc<Shared>,
    session: SessionId,
    turn: TurnId,
) -> Result<Prepared, (EndReason, String)> {
    let storage = |error: EngineError| (EndReason::StorageError, error.message);
    let (history, created, settings) = read_history(shared, session).map_err(storage)?;
    let model_name = settings.model.as_ref().unwrap_or(&created.model);
    let compiled = shared
        .interned
        .get(&created.definition, &shared.config.toolsets)
        .map_err(|error| (EndReason::ProviderError, error.message))?;
    let model = shared
        .config
        .models
        .resolve(model_name, &shared.environment(created.root))
        .map_err(|error| (EndReason::ProviderError, error.message))?;
    let facts = model.facts();
    let definition = &compiled.definition;
    let system = system_prompt(
        &definition.instructions,
        &created.working_directory,
        !created.parents.is_empty(),
    );
    let config = TurnConfig {
        turn,
        model_id: model.id().into(),
        model: Arc::clone(model_name),
        system: system.into(),
        tools: compiled.belt.without(&settings.switched_off),
        options: Arc::new(Options {
            // The beginning of a session's requests stays the same: the provider may keep it.
            cache_key: Some(session.to_string().into()),
            ..(*compiled.options).clone()
        }),
        iteration_limit: definition
            .limits
            .iteration_limit
            .unwrap_or(shared.config.iteration_limit)
            .max(1),
        reminders: model.terms().reminders,
        context_limit: shared.limits.of(model_name, facts.context),
        compact_at: shared.config.compact_at,
    };
    Ok(Prepared {
        config,
        history,
        facts,
        model,
        model_name: Arc::clone(model_name),
        compiled,
        working_directory: PathBuf::from(&*created.working_directory),
        chain: shared
            .chain(session)
            .map_err(|error| storage(error.into()))?,
    })
}

fn read_history(
    shared: &Shared,
    session: SessionId,
) -> Result<(History, Arc<Created>, Arc<Settings>), EngineError> {
    let mut history = History::new();
    let mut created = None;
    let mut settings = Arc::default();
    let mut after = Position(0);
    loop {
        let events = shared
            .config
            .store
            .events(session, after, HISTORY_AT_ONCE)?;
        for item in &events {
            after = item.position;
            history.push(&item.event.event);
            match &item.event.event {
                Event::Created(facts) => created = Some(Arc::clone(facts)),
                Event::SettingsSet { settings: set } => settings = Arc::clone(set),
                _ => {}
            }
        }
        if events.len() < HISTORY_AT_ONCE {
            break;
        }
    }
    created
        .map(|created| (history, created, settings))
        .ok_or_else(|| EngineError::unknown(session))
}

impl Prepared {
    /// A step with what it cost, where the prices are known.
    pub(crate) fn priced(&self, mut step: StepText) -> StepText {
        let usage = attache_model::Usage {
            input: step.usage.input,
            output: step.usage.output,
            cache_read: step.usage.cache_read,
            cache_write: step.usage.cache_write,
            reasoning: step.usage.reasoning,
        };
        step.cost = self.facts.prices.as_ref().and_then(|prices| {
            Some(Cost {
                usd_nanos: prices.usd_nanos(&usage)?,
                prices: Arc::clone(&prices.version),
            })
        });
        step
    }
}
