//! Models over the providers of `model`: presets and keys by the variables of whoever started the
//! session, configured providers, embedded scripts. One HTTP client serves them all.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use attache_model::{
    HttpClient, Model, OwnFacts, ProviderConfig, ProviderTerms, Providers, ResolveError,
};
use attache_session::ErrorCode;

use crate::config::{Environment, Models};
use crate::error::EngineError;

/// Sets of providers that are kept; one for each set of variables that clients handed over.
const MOST: usize = 64;

/// Configured providers, with the keys that a set of variables holds.
type Configured = dyn Fn(&Environment) -> Vec<ProviderConfig> + Send + Sync;

/// The model that the settings name for a folder, with a set of variables.
type DefaultModel = dyn Fn(&Path, &Environment) -> Option<String> + Send + Sync;

/// See the module.
pub struct ProviderModels {
    extra: Box<Configured>,
    default: Option<Box<DefaultModel>>,
    scripts: Vec<(String, String)>,
    client: Arc<HttpClient>,
    usual: Mutex<(ProviderTerms, OwnFacts)>,
    made: Mutex<HashMap<Environment, Arc<Providers>>>,
}

impl ProviderModels {
    /// The presets, and the configured providers that `extra` gives for a set of variables.
    #[must_use]
    pub fn new(
        extra: impl Fn(&Environment) -> Vec<ProviderConfig> + Send + Sync + 'static,
    ) -> Self {
        Self {
            extra: Box::new(extra),
            default: None,
            scripts: Vec::new(),
            client: Arc::default(),
            usual: Mutex::default(),
            made: Mutex::default(),
        }
    }

    /// Says which model the settings name for a folder.
    #[must_use]
    pub fn with_default(
        mut self,
        default: impl Fn(&Path, &Environment) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.default = Some(Box::new(default));
        self
    }

    /// Lets `scripted/NAME` play this text.
    #[must_use]
    pub fn with_script(mut self, name: &str, text: &str) -> Self {
        self.scripts.push((name.to_owned(), text.to_owned()));
        self
    }

    /// Says how presets are asked that nobody configured, and what the user knows of models.
    pub fn set_usual(&self, terms: ProviderTerms, facts: OwnFacts) {
        *self.usual.lock().unwrap_or_else(PoisonError::into_inner) = (terms, facts);
    }

    /// Forgets what was made of the configured providers: they are others now.
    pub fn forget(&self) {
        self.made
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    fn providers(&self, environment: &Environment) -> Arc<Providers> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = made.get(environment) {
            return Arc::clone(known);
        }
        let variables = environment.clone();
        let lookup = move |name: &str| variables.get(name).map(str::to_owned);
        let usual = self.usual.lock().unwrap_or_else(PoisonError::into_inner);
        let (terms, facts) = usual.clone();
        drop(usual);
        let mut providers = Providers::new(lookup, (self.extra)(environment))
            .with_client(Arc::clone(&self.client))
            .with_terms(terms)
            .with_facts(facts);
        for (name, text) in &self.scripts {
            providers = providers.with_script(name, text);
        }
        let providers = Arc::new(providers);
        if made.len() >= MOST {
            made.clear();
        }
        made.insert(environment.clone(), Arc::clone(&providers));
        providers
    }
}

impl Models for ProviderModels {
    fn resolve(
        &self,
        name: &str,
        environment: &Environment,
    ) -> Result<Arc<dyn Model>, EngineError> {
        self.providers(environment).resolve(name).map_err(|error| {
            let code = match &error {
                ResolveError::NotAModel { .. }
                | ResolveError::UnknownProvider { .. }
                | ResolveError::ScriptUnreadable { .. }
                | ResolveError::Script(_) => ErrorCode::ModelUnknown,
                ResolveError::MissingKey { .. } | ResolveError::NoKeyPrinted { .. } => {
                    ErrorCode::ProviderAuth
                }
                ResolveError::BadBaseUrl { .. } | ResolveError::MissingAddress { .. } => {
                    ErrorCode::ProviderUnreachable
                }
            };
            EngineError::new(code, error.to_string())
        })
    }

    fn default_model(&self, working_directory: &Path, environment: &Environment) -> Option<String> {
        self.default.as_ref()?(working_directory, environment)
    }
}
