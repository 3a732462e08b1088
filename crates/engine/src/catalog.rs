//! How agent definitions are found by name. Where they lie is the host's business.

use std::path::Path;

use attache_agent::Definition;

/// A definition that can be named, or the reason why it cannot be used.
#[derive(Clone, PartialEq, Debug)]
pub struct CatalogEntry {
    /// Its name.
    pub name: String,
    /// Where it was found, for people.
    pub source: String,
    /// What it says, or what is wrong with it.
    pub definition: Result<Definition, String>,
}

/// Why a definition is not given.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CatalogError {
    /// Nobody knows it.
    #[error("there is no agent definition `{name}`{}", known_names(.known))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// It does not load.
    #[error("{0}")]
    Invalid(String),
}

fn known_names(known: &[String]) -> String {
    if known.is_empty() {
        String::new()
    } else {
        format!("; known ones: {}", known.join(", "))
    }
}

/// The definitions of a host.
pub trait Catalog: Send + Sync {
    /// All of them, as seen from a working directory.
    fn list(&self, working_directory: &Path) -> Vec<CatalogEntry>;

    /// One of them.
    ///
    /// # Errors
    ///
    /// [`CatalogError`] when there is none of that name or it does not load.
    fn find(&self, name: &str, working_directory: &Path) -> Result<Definition, CatalogError> {
        let mut entries = self.list(working_directory);
        let named = |entry: &CatalogEntry| entry.name == name;
        let loads = entries
            .iter()
            .position(|entry| named(entry) && entry.definition.is_ok());
        match loads.or_else(|| entries.iter().position(named)) {
            Some(found) => entries
                .swap_remove(found)
                .definition
                .map_err(CatalogError::Invalid),
            None => Err(CatalogError::Unknown {
                name: name.to_owned(),
                known: entries.into_iter().map(|entry| entry.name).collect(),
            }),
        }
    }
}
