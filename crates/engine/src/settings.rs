//! What people can set for a session, as far as it needs what only the engine knows: its tools and its models.

use std::sync::Arc;

use attache_session::{ErrorCode, Limit, SessionId, Setting, State};

use crate::ask::Shared;
use crate::error::EngineError;
use crate::lineage;

/// A tool of a session's definition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolSwitch {
    /// Its name.
    pub name: Arc<str>,
    /// What it is for, as the model reads it.
    pub description: Arc<str>,
    /// Whether it changes anything outside of the session.
    pub changes_state: bool,
    /// Whether the model is offered it, from the session's next run on.
    pub offered: bool,
}

impl Shared {
    /// Whether a setting can be meant: there is such a tool, the model can be had and has prices where money is limited.
    pub(crate) fn may_set(&self, session: SessionId, setting: &Setting) -> Result<(), EngineError> {
        let row = self.known_row(session)?;
        match setting {
            Setting::ContinueInBackground(_) | Setting::Name(_) => Ok(()),
            Setting::Tool { name, .. } => {
                let created = lineage::created(self, session)?;
                let toolsets = &self.config.toolsets;
                let compiled = self.interned.get(&created.definition, toolsets)?;
                if compiled.belt.get(name).is_some() {
                    return Ok(());
                }
                let mut text = format!("session {session} has no tool {name}");
                let close = compiled.belt.close_to(name);
                if !close.is_empty() {
                    text.push_str("; there is ");
                    text.push_str(&close.join(", "));
                }
                Err(EngineError::new(ErrorCode::InvalidArguments, text))
            }
            Setting::Model(model) => {
                if !row.view.summary.runs_turns {
                    let text = format!("session {session} runs no turns and has no model");
                    return Err(EngineError::new(ErrorCode::InvalidArguments, text));
                }
                let environment = self.environment(row.root);
                self.config.models.resolve(model, &environment)?;
                let payers = self.chain(session)?;
                let counts_money = payers
                    .iter()
                    .any(|payer| payer.bounds.budget.get(Limit::Usd).is_some());
                if counts_money {
                    lineage::priced(self, model, &environment)?;
                }
                Ok(())
            }
        }
    }

    /// See [`EngineHandle::tools`](crate::EngineHandle::tools).
    pub(crate) fn tools(&self, state: &State) -> Result<Vec<ToolSwitch>, EngineError> {
        let Some(created) = &state.created else {
            return Ok(Vec::new());
        };
        let compiled = self
            .interned
            .get(&created.definition, &self.config.toolsets)?;
        let specs = compiled.belt.offered().specs().iter();
        Ok(specs
            .map(|spec| ToolSwitch {
                name: Arc::clone(&spec.name),
                description: Arc::clone(&spec.description),
                changes_state: compiled
                    .belt
                    .get(&spec.name)
                    .is_none_or(|tool| tool.changes_state()),
                offered: state.settings.offers(&spec.name),
            })
            .collect())
    }
}
