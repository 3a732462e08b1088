//! What a definition comes to when it runs: its tools, options and instructions, made once and
//! shared by all sessions of that definition.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use attache_agent::{Definition, Toolbelt, Toolsets};
use attache_model::Options;
use attache_session::{ErrorCode, Json};

use crate::error::EngineError;

/// A definition, ready to run.
pub(crate) struct Compiled {
    pub(crate) definition: Definition,
    pub(crate) belt: Toolbelt,
    pub(crate) options: Arc<Options>,
}

/// Definitions that are ready, by their text. Few differ on one host; when there are many, all are
/// dropped and made again as they are needed.
#[derive(Default)]
pub(crate) struct Interned(Mutex<HashMap<Json, Arc<Compiled>>>);

const MOST: usize = 256;

impl Interned {
    /// The definition that a session was started with.
    pub(crate) fn get(
        &self,
        definition: &Json,
        toolsets: &Toolsets,
    ) -> Result<Arc<Compiled>, EngineError> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(definition) {
            return Ok(Arc::clone(found));
        }
        let invalid = |text: String| EngineError::new(ErrorCode::DefinitionInvalid, text);
        let parsed = Definition::from_stored(definition).map_err(invalid)?;
        let belt = toolsets
            .belt(&parsed.tools)
            .map_err(|error| invalid(error.to_string()))?;
        let compiled = Arc::new(Compiled {
            belt,
            options: Arc::new(parsed.options.clone()),
            definition: parsed,
        });
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(definition.clone(), Arc::clone(&compiled));
        Ok(compiled)
    }
}
