//! What an engine is given: where sessions are kept, how models, definitions and tools are found,
//! and whose sessions they are.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use attache_agent::Toolsets;
use attache_model::Model;
use attache_store::Store;

use crate::catalog::Catalog;
use crate::clock::Time;
use crate::error::EngineError;

/// What an engine is given.
#[derive(Clone)]
pub struct Config {
    /// Where everything is kept.
    pub store: Arc<dyn Store>,
    /// The toolsets that definitions can ask for.
    pub toolsets: Toolsets,
    /// How a model is found.
    pub models: Arc<dyn Models>,
    /// How a definition is found.
    pub catalog: Arc<dyn Catalog>,
    /// Time and fresh ids.
    pub time: Arc<dyn Time>,
    /// Whose sessions these are.
    pub identity: Identity,
    /// Rounds of a run at most, where the definition says nothing.
    pub iteration_limit: u32,
    /// The share of a model's context at which a conversation is cut, from 0 to 1.
    pub compact_at: f64,
}

/// A login and a machine, by their names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The login.
    pub user: String,
    /// The host name.
    pub computer: String,
    /// The name of their pair, which owns sessions; made from both when there is none.
    pub profile: Option<String>,
}

/// Variables that a client handed over for the sessions that it starts. Kept in memory, never
/// stored and never shown.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Environment(pub BTreeMap<String, String>);

impl Environment {
    /// A variable's value.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Adds what is not there yet, and says whether that was anything. A provider's address does not
    /// join a key of it that is there: the key would go where its owner never sent it.
    pub fn fill_in(&mut self, more: Self) -> bool {
        let before = self.0.clone();
        for (name, value) in more.0 {
            let key = name
                .strip_suffix("_BASE_URL")
                .or_else(|| name.strip_suffix("_ENDPOINT"));
            let key = key.map(|provider| format!("{provider}_API_KEY"));
            if !key.is_some_and(|key| before.contains_key(&key)) {
                self.0.entry(name).or_insert(value);
            }
        }
        self.0.len() > before.len()
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// How a model is found.
pub trait Models: Send + Sync {
    /// The model of a name `PROVIDER/MODEL`, with the variables of the session that asks.
    ///
    /// # Errors
    ///
    /// [`EngineError`] with a safe text that says what is wrong and what to do.
    fn resolve(&self, name: &str, environment: &Environment)
    -> Result<Arc<dyn Model>, EngineError>;

    /// The model that the settings name for a folder, for who has chosen none.
    fn default_model(
        &self,
        _working_directory: &Path,
        _environment: &Environment,
    ) -> Option<String> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Environment(pairs.iter().map(own).collect())
    }

    #[test]
    fn variables_are_filled_in_and_never_replaced() {
        let (key, url) = (("A_API_KEY", "k"), ("A_BASE_URL", "u"));
        let other = ("A_API_KEY", "other");
        for (there, more, filled, then) in [
            (&[][..], &[key, url][..], true, &[key, url][..]),
            (&[key], &[other], false, &[key]),
            (&[url], &[key], true, &[key, url]),
            // The key that is there goes nowhere else.
            (&[key], &[url], false, &[key]),
            (&[key], &[("A_ENDPOINT", "e")], false, &[key]),
            (
                &[key],
                &[other, url, ("B_API_KEY", "b")],
                true,
                &[key, ("B_API_KEY", "b")],
            ),
        ] {
            let mut variables = environment(there);
            assert_eq!(variables.fill_in(environment(more)), filled, "{more:?}");
            assert_eq!(variables, environment(then));
        }
    }
}
