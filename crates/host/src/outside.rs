//! Roots of programs outside, which come through doors of other protocols: how one is made, and how
//! one is gone on with.

use std::collections::BTreeMap;

use attache_engine::{EngineError, Models, NewRoot};
use attache_session::{BudgetChange, ErrorCode, SessionId};

use crate::from_wire;
use crate::host::{Host, Prepared};

/// What a root of a program outside is made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutsideRoot {
    /// Its agent definition; none is the built-in one.
    pub agent: Option<String>,
    /// The model as `PROVIDER/MODEL`; none is the definition's, or what the settings name.
    pub model: Option<String>,
    /// Absolute path in which its sessions work.
    pub working_directory: String,
    /// Variables of the program's surroundings.
    pub environment: BTreeMap<String, String>,
}

/// Longest name of a root.
const NAME_CHARS: usize = 100;

impl Host {
    /// Whether a root could be made of this: a definition or a model that does not exist is told at
    /// once. That no model is chosen, or that its key is missing, is told when one is needed.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when it could not.
    pub fn check_outside(&self, root: &OutsideRoot) -> Result<(), EngineError> {
        let Prepared { environment, .. } = self.prepare_outside(root)?;
        let Some(model) = &root.model else {
            return Ok(());
        };
        match self.0.models.resolve(model, &environment) {
            Err(error) if error.code == ErrorCode::ModelUnknown => Err(error),
            _ => Ok(()),
        }
    }

    fn prepare_outside(&self, root: &OutsideRoot) -> Result<Prepared, EngineError> {
        let OutsideRoot {
            agent,
            model,
            working_directory,
            environment,
        } = root;
        self.prepare(
            agent.as_deref(),
            model.clone(),
            &BTreeMap::new(),
            working_directory,
            environment.clone(),
        )
    }

    /// Makes a root that runs no turns, for a program of this name.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when the definition does not load or the store refuses.
    pub async fn create_outside(
        &self,
        root: &OutsideRoot,
        name: &str,
    ) -> Result<SessionId, EngineError> {
        let Prepared {
            definition,
            model,
            working_directory,
            environment,
        } = self.prepare_outside(root)?;
        let (name, _) = attache_session::preview(name, NAME_CHARS);
        let new = NewRoot {
            id: None,
            definition,
            model: model.unwrap_or_default(),
            working_directory,
            name: Some(name.to_owned()),
            first: None,
            environment,
            continue_in_background: true,
            runs_turns: false,
            budget: BudgetChange::default(),
        };
        self.engine().create_root(new).await
    }

    /// The root that runs no turns of this id.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when there is none.
    pub fn outside_root(&self, id: &str) -> Result<SessionId, EngineError> {
        let root = from_wire::session(id)?;
        self.engine().outside_root(root).map(|_row| root)
    }

    /// Goes on with a root that runs no turns: it gets the variables that it lacks, and is started if
    /// it is stopped.
    ///
    /// # Errors
    ///
    /// [`EngineError`] when there is no such root.
    pub async fn go_on_outside(
        &self,
        root: SessionId,
        environment: &BTreeMap<String, String>,
    ) -> Result<(), EngineError> {
        let engine = self.engine();
        engine.outside_root(root)?;
        engine.provide(root, self.environment_of(environment.clone()))?;
        engine.start(root, None).await.map(drop)
    }
}
