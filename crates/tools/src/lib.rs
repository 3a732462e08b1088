//! The tools that a model can call: one file each, registered by toolset.
//!
//! A tool checks its arguments, asks the port that its context gives, and shows the answer. It
//! knows neither the turn that calls it nor where sessions are kept.

mod agent_session;
mod arguments;
mod ask;
mod current_session;
mod filesystem;
mod read_result;
mod show;

use std::sync::Arc;

use attache_agent::Toolsets;

pub use agent_session::AgentSession;
pub use ask::Ask;
pub use current_session::CurrentSession;
pub use filesystem::Filesystem;

/// The toolsets that every host has.
#[must_use]
pub fn built_in() -> Toolsets {
    Toolsets::new()
        .with(Arc::new(AgentSession))
        .with(Arc::new(CurrentSession))
        .with(Arc::new(Ask))
        .with(Arc::new(Filesystem))
        .with_always(Arc::new(read_result::ReadResult::default()))
}
