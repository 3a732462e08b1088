//! The registry by which toolsets join, and the belt of tools that one definition gets.
//!
//! Tools are opt-in: a definition names toolset kinds or single tools, and gets those in the order
//! in which the registry has them, so that the tool part of a request is the same each time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use attache_model::ToolSet;

use crate::tool::Tool;

/// A group of tools that a definition can ask for by its kind.
pub trait Toolset: Send + Sync {
    /// The kind, as definitions name it.
    fn kind(&self) -> &'static str;

    /// Its tools, in the order in which models are offered them.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;
}

/// All toolsets of a host.
#[derive(Clone, Default)]
pub struct Toolsets {
    sets: Vec<Arc<dyn Toolset>>,
    /// Tools that every belt has that has any: they serve the others.
    always: Vec<Arc<dyn Tool>>,
}

/// A definition asks for what nobody has.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ToolsetError {
    /// Neither a kind nor a tool.
    #[error("there is no toolset or tool `{name}`; known toolsets: {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The kinds that exist.
        known: String,
    },
}

impl Toolsets {
    /// No toolsets.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a toolset; a later one of the same kind replaces the earlier.
    #[must_use]
    pub fn with(mut self, set: Arc<dyn Toolset>) -> Self {
        self.sets.retain(|other| other.kind() != set.kind());
        self.sets.push(set);
        self
    }

    /// Adds a tool that every definition gets that has any.
    #[must_use]
    pub fn with_always(mut self, tool: Arc<dyn Tool>) -> Self {
        self.always.push(tool);
        self
    }

    /// The kinds, in order.
    #[must_use]
    pub fn kinds(&self) -> Vec<&'static str> {
        self.sets.iter().map(|set| set.kind()).collect()
    }

    /// The names of all tools whose calls only look after the work.
    #[must_use]
    pub fn bookkeeping(&self) -> BTreeSet<Arc<str>> {
        let tools = self.sets.iter().flat_map(|set| set.tools());
        tools
            .chain(self.always.iter().map(Arc::clone))
            .filter(|tool| tool.is_bookkeeping())
            .map(|tool| Arc::clone(&tool.spec().name))
            .collect()
    }

    /// The belt for a definition that names these kinds or tools.
    ///
    /// # Errors
    ///
    /// [`ToolsetError::Unknown`] for a name that is neither.
    pub fn belt(&self, names: &[String]) -> Result<Toolbelt, ToolsetError> {
        self.tools(names, !names.is_empty())
    }

    /// The tools of these kinds and names and no others, for whoever is no model.
    ///
    /// # Errors
    ///
    /// [`ToolsetError::Unknown`] for a name that is neither.
    pub fn only(&self, names: &[String]) -> Result<Toolbelt, ToolsetError> {
        self.tools(names, false)
    }

    fn tools(&self, names: &[String], always: bool) -> Result<Toolbelt, ToolsetError> {
        let mut wanted: Vec<Arc<dyn Tool>> = Vec::new();
        let mut left: Vec<&String> = names.iter().collect();
        for set in &self.sets {
            let whole = names.iter().any(|name| name == set.kind());
            left.retain(|name| *name != set.kind());
            for tool in set.tools() {
                let by_name = left.iter().any(|name| **name == *tool.spec().name);
                left.retain(|name| **name != *tool.spec().name);
                if whole || by_name {
                    wanted.push(tool);
                }
            }
        }
        left.retain(|name| !self.always.iter().any(|tool| **name == *tool.spec().name));
        match left.first() {
            Some(name) => Err(ToolsetError::Unknown {
                name: (*name).clone(),
                known: self.kinds().join(", "),
            }),
            None => {
                if always {
                    wanted.extend(self.always.iter().map(Arc::clone));
                }
                Ok(Toolbelt::new(wanted))
            }
        }
    }
}

/// The tools that one definition gets. Shared by all sessions of that definition.
#[derive(Clone, Default)]
pub struct Toolbelt {
    by_name: BTreeMap<Arc<str>, Arc<dyn Tool>>,
    offered: Arc<ToolSet>,
}

impl Toolbelt {
    /// A belt of these tools.
    #[must_use]
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        let offered = Arc::new(ToolSet::new(
            tools.iter().map(|t| t.spec().clone()).collect(),
        ));
        let by_name = tools
            .into_iter()
            .map(|t| (Arc::clone(&t.spec().name), t))
            .collect();
        Self { by_name, offered }
    }

    /// The belt without tools of these names; the same where it has none of them.
    #[must_use]
    pub fn without(&self, names: &[Arc<str>]) -> Self {
        if !names.iter().any(|name| self.by_name.contains_key(name)) {
            return self.clone();
        }
        let offered = self.offered.specs().iter();
        let rest = offered
            .filter(|spec| !names.contains(&spec.name))
            .filter_map(|spec| self.by_name.get(&spec.name))
            .map(Arc::clone);
        Self::new(rest.collect())
    }

    /// How the tools are offered to a model.
    #[must_use]
    pub fn offered(&self) -> &Arc<ToolSet> {
        &self.offered
    }

    /// The tool of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.by_name.get(name)
    }

    /// Up to three names that are close to a name that nobody has, for the model to choose from.
    #[must_use]
    pub fn close_to(&self, name: &str) -> Vec<&str> {
        let wanted = words(name);
        let mut scored: Vec<(usize, &str)> = self
            .by_name
            .keys()
            .map(|known| {
                (
                    words(known)
                        .iter()
                        .filter(|word| wanted.contains(word))
                        .count(),
                    &**known,
                )
            })
            .filter(|(shared, _)| *shared > 0)
            .collect();
        scored.sort_by_key(|(shared, known)| (std::cmp::Reverse(*shared), *known));
        scored.into_iter().take(3).map(|(_, known)| known).collect()
    }
}

fn words(name: &str) -> Vec<String> {
    name.split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.len() > 1)
        .map(str::to_lowercase)
        .collect()
}
