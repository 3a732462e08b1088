//! Which providers there are and how `PROVIDER/MODEL` becomes a model: presets, the environment, configured providers,
//! scripts. It sends nothing; a wrong address or key shows at the first request.

mod known;
mod presets;

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use self::known::Known;
use self::presets::{PRESETS, Preset, ollama_base, preset_of};
use crate::dialect::Dialect;
use crate::echo::Echo;
use crate::facts::{ModelFacts, OwnFacts};
use crate::http::{self, Endpoint, HttpClient, HttpModel};
use crate::model::Model;
use crate::quirks::Quirks;
use crate::scripted::{ScriptError, Scripted};
use crate::small_file::read_small;
use crate::terms::ProviderTerms;
use crate::text_calls::TextCalls;

/// Largest script file, in bytes.
const SCRIPT_LIMIT: u64 = 1 << 20;

/// A key. It is never printed.
#[derive(Clone, PartialEq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Wraps a key.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(Arc::from(text.as_ref().trim()))
    }

    /// The key itself, for the request that needs it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A provider beside (or instead of) the presets.
#[derive(Clone, PartialEq)]
pub struct ProviderConfig {
    /// Its name in `PROVIDER/MODEL`.
    pub name: String,
    /// What it speaks.
    pub dialect: Dialect,
    /// Its base URL, in any of the usual spellings.
    pub base_url: String,
    /// Its key.
    pub api_key: Option<Secret>,
    /// The variable that has to hold its key; none for a provider without one.
    pub key_variable: Option<String>,
    /// Its key comes from a command. Without a key that command has failed.
    pub key_command: bool,
    /// Further headers of each request; they may replace ours.
    pub headers: Vec<(String, String)>,
    /// How it differs from the usual form of its dialect.
    pub quirks: Quirks,
    /// How it is to be asked.
    pub terms: ProviderTerms,
}

impl fmt::Debug for ProviderConfig {
    /// Values of headers may be keys, so only their names are printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            dialect,
            base_url: _,
            api_key,
            key_variable,
            key_command,
            headers,
            quirks,
            terms,
        } = self;
        let headers: Vec<_> = headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("ProviderConfig")
            .field("name", name)
            .field("dialect", dialect)
            .field("api_key", api_key)
            .field("key_variable", key_variable)
            .field("key_command", key_command)
            .field("headers", &headers)
            .field("quirks", quirks)
            .field("terms", terms)
            .finish_non_exhaustive()
    }
}

/// Why `PROVIDER/MODEL` is not a model. The texts say what to do.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// There is no slash, or nothing on one side of it.
    #[error(
        "{given:?} does not name a model: write PROVIDER/MODEL, with one of the providers {known}"
    )]
    NotAModel {
        /// What was given.
        given: String,
        /// The known providers.
        known: String,
    },
    /// No such provider.
    #[error(
        "there is no provider {provider:?}; known are {known}. Others are set up under [providers.{provider}]"
    )]
    UnknownProvider {
        /// What was given.
        provider: String,
        /// The known providers.
        known: String,
    },
    /// The provider needs a key.
    #[error(
        "provider {provider} needs a key: set {variable}, or use another provider (echo/any needs none)"
    )]
    MissingKey {
        /// The provider.
        provider: String,
        /// The variable that would hold the key.
        variable: String,
    },
    /// The provider has no usual address.
    #[error(
        "provider {provider} has no usual address: set {variable}, or base_url of [providers.{provider}]"
    )]
    MissingAddress {
        /// The provider.
        provider: String,
        /// The variable that would hold the address.
        variable: String,
    },
    /// The command that prints the provider's key has not done so.
    #[error(
        "the api_key_command of provider {provider} printed no key: run it in a shell to see why (it has ten seconds, no \
         input, and prints the key as its first line)"
    )]
    NoKeyPrinted {
        /// The provider.
        provider: String,
    },
    /// The base URL cannot be used.
    #[error("the base URL of provider {provider} ({from}) is not an http or https URL: {reason}")]
    BadBaseUrl {
        /// The provider.
        provider: String,
        /// Where it came from.
        from: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The script cannot be read.
    #[error("the script {name:?} cannot be read ({reason})")]
    ScriptUnreadable {
        /// The name as it was given.
        name: String,
        /// Why.
        reason: String,
    },
    /// The script has a fault.
    #[error(transparent)]
    Script(#[from] ScriptError),
}

/// What a variable is set to, if it is.
type Lookup = Box<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Finds models by name.
pub struct Providers {
    lookup: Lookup,
    extra: Vec<ProviderConfig>,
    client: Arc<HttpClient>,
    default_terms: ProviderTerms,
    facts: OwnFacts,
    scripts: Vec<(String, String)>,
    script_folder: Option<PathBuf>,
    /// Scripts that were loaded, so that their kept counters live as long as this value.
    loaded: Mutex<HashMap<String, (String, Scripted)>>,
}

impl fmt::Debug for Providers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Providers")
            .field("extra", &self.extra)
            .finish_non_exhaustive()
    }
}

impl Providers {
    /// Presets by the variables that `lookup` knows (a session's own, say), and the providers of `extra`, which win over
    /// presets of the same name.
    pub fn new(
        lookup: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
        extra: Vec<ProviderConfig>,
    ) -> Self {
        Self {
            lookup: Box::new(lookup),
            extra,
            client: Arc::default(),
            default_terms: ProviderTerms::default(),
            facts: OwnFacts::default(),
            scripts: Vec::new(),
            script_folder: None,
            loaded: Mutex::default(),
        }
    }

    /// Uses connections that are shared with others.
    #[must_use]
    pub fn with_client(mut self, client: Arc<HttpClient>) -> Self {
        self.client = client;
        self
    }

    /// How presets are to be asked that nobody configured.
    #[must_use]
    pub fn with_terms(mut self, terms: ProviderTerms) -> Self {
        self.default_terms = terms;
        self
    }

    /// What a user knows of models; it wins over the table that comes with the program.
    #[must_use]
    pub fn with_facts(mut self, facts: OwnFacts) -> Self {
        self.facts = facts;
        self
    }

    /// Lets `scripted/NAME` play `text` instead of a file. Faults in it show when it is resolved.
    #[must_use]
    pub fn with_script(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.scripts.push((name.into(), text.into()));
        self
    }

    /// Where relative paths of `scripted/PATH` begin; without it, in the working folder of the process.
    #[must_use]
    pub fn with_script_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.script_folder = Some(folder.into());
        self
    }

    /// Names of all providers.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .extra
            .iter()
            .map(|config| config.name.clone())
            .collect();
        names.extend(PRESETS.iter().map(|preset| preset.name.to_owned()));
        names.extend(["scripted".to_owned(), "echo".to_owned()]);
        names.sort();
        names.dedup();
        names
    }

    /// The model of `PROVIDER/MODEL`, with what is known of it. The model's part may hold slashes.
    ///
    /// # Errors
    /// When the name has another form, the provider is unknown or lacks its key, or the script cannot be loaded.
    pub fn resolve(&self, name: &str) -> Result<Arc<dyn Model>, ResolveError> {
        let model = self.find(name)?;
        let facts = self.facts.of(model.provider(), model.id());
        Ok(if facts == ModelFacts::default() {
            model
        } else {
            Arc::new(Known { model, facts })
        })
    }

    fn find(&self, name: &str) -> Result<Arc<dyn Model>, ResolveError> {
        let known = || self.names().join(", ");
        let (provider, id) = match name.trim().split_once('/') {
            Some((provider, id)) if !provider.is_empty() && !id.is_empty() => (provider, id),
            None if name.trim() == "echo" => ("echo", "echo"),
            _ => {
                return Err(ResolveError::NotAModel {
                    given: name.to_owned(),
                    known: known(),
                });
            }
        };
        if let Some(config) = self.extra.iter().find(|config| config.name == provider) {
            let of_preset = PRESETS.iter().any(|preset| {
                preset.name == provider && preset.needed_key() == config.key_variable.as_deref()
            });
            // Servers on this machine seldom ask for a key, unless somebody says so.
            let local = reqwest::Url::parse(&config.base_url)
                .is_ok_and(|url| of_preset && http::is_loopback(&url));
            if let (None, Some(variable)) = (&config.api_key, &config.key_variable)
                && !local
            {
                return Err(ResolveError::MissingKey {
                    provider: provider.to_owned(),
                    variable: variable.clone(),
                });
            }
            if config.key_command && config.api_key.is_none() {
                return Err(ResolveError::NoKeyPrinted {
                    provider: provider.to_owned(),
                });
            }
            let source = if config.key_command {
                "api_key_command"
            } else {
                "api_key_env"
            };
            let endpoint = Endpoint {
                provider: provider.into(),
                dialect: config.dialect,
                base_url: config.base_url.clone(),
                base_url_from: format!("base_url of [providers.{provider}]"),
                api_key: config.api_key.clone(),
                api_key_from: format!("{source} of [providers.{provider}]"),
                headers: config.headers.clone(),
                quirks: config.quirks.clone(),
                terms: config.terms.clone(),
            };
            return self.over_http(endpoint, id);
        }
        match provider {
            "echo" => Ok(Arc::new(Echo::new(id))),
            "scripted" => Ok(Arc::new(self.script(id)?)),
            _ => match preset_of(provider) {
                Some(preset) => self.over_http(self.preset(preset), id),
                None => Err(ResolveError::UnknownProvider {
                    provider: provider.to_owned(),
                    known: known(),
                }),
            },
        }
    }

    fn variable(&self, name: &str) -> Option<String> {
        (self.lookup)(name)
            .map(|value| value.trim().to_owned())
            .filter(|value| !value.is_empty())
    }

    fn preset(&self, preset: &Preset) -> Endpoint {
        let set = preset
            .base_variable
            .and_then(|name| Some((name, self.variable(name)?)));
        let elsewhere = set.as_ref().and(preset.elsewhere);
        let (base_url, base_url_from) = match set {
            Some((name @ "OLLAMA_HOST", value)) => (ollama_base(&value), name.to_owned()),
            Some((name, value)) => (value, name.to_owned()),
            None => {
                let from = preset.base_variable.map_or_else(
                    || {
                        format!(
                            "the usual one; base_url of [providers.{}] sets another",
                            preset.name
                        )
                    },
                    |name| format!("the usual one; {name} sets another"),
                );
                (preset.base_url.to_owned(), from)
            }
        };
        Endpoint {
            provider: preset.name.into(),
            dialect: elsewhere.unwrap_or(preset.dialect),
            base_url,
            base_url_from,
            api_key: preset
                .key_variable()
                .and_then(|name| self.variable(name))
                .map(Secret::new),
            api_key_from: preset.key_variable().unwrap_or("it has none").to_owned(),
            headers: Vec::new(),
            quirks: match elsewhere {
                Some(_) => Quirks::default(),
                None => preset.quirks(),
            },
            terms: self.default_terms.clone(),
        }
    }

    fn over_http(&self, endpoint: Endpoint, id: &str) -> Result<Arc<dyn Model>, ResolveError> {
        let bad = |reason: String| ResolveError::BadBaseUrl {
            provider: endpoint.provider.to_string(),
            from: endpoint.base_url_from.clone(),
            reason,
        };
        if endpoint.base_url.is_empty()
            && let Some(variable) = preset_of(&endpoint.provider).and_then(|p| p.base_variable)
        {
            return Err(ResolveError::MissingAddress {
                provider: endpoint.provider.to_string(),
                variable: variable.to_owned(),
            });
        }
        let url =
            reqwest::Url::parse(&endpoint.base_url).map_err(|fault| bad(fault.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(bad("it names no host".to_owned()));
        }
        // Servers on this machine seldom ask for a key.
        let needs_key = endpoint.api_key.is_none() && !http::is_loopback(&url);
        let variable = preset_of(&endpoint.provider)
            .and_then(Preset::needed_key)
            .filter(|_| {
                !self
                    .extra
                    .iter()
                    .any(|config| *config.name == *endpoint.provider)
            });
        if let Some(variable) = variable
            && needs_key
        {
            return Err(ResolveError::MissingKey {
                provider: endpoint.provider.to_string(),
                variable: variable.to_owned(),
            });
        }
        let gate = self.client.gate(
            &endpoint.provider,
            &endpoint.base_url,
            &endpoint.terms.limits,
        );
        let as_text = endpoint.quirks.text_tool_calls;
        let model = Arc::new(HttpModel {
            endpoint: Arc::new(endpoint),
            id: id.into(),
            client: Arc::clone(&self.client),
            gate,
        });
        Ok(if as_text {
            Arc::new(TextCalls(model))
        } else {
            model
        })
    }

    fn script(&self, name: &str) -> Result<Scripted, ResolveError> {
        let text = match self.scripts.iter().find(|(known, _)| known == name) {
            Some((_, text)) => text.clone(),
            None => self.script_file(name)?,
        };
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, script)) = loaded.get(name)
            && *known == text
        {
            return Ok(script.clone());
        }
        let script = Scripted::from_text(name, &text)?;
        loaded.insert(name.to_owned(), (text, script.clone()));
        Ok(script)
    }

    fn script_file(&self, name: &str) -> Result<String, ResolveError> {
        let unreadable = |reason: String| ResolveError::ScriptUnreadable {
            name: name.to_owned(),
            reason,
        };
        let path = match &self.script_folder {
            Some(folder) => folder.join(name),
            None => Path::new(name).to_owned(),
        };
        let bytes =
            read_small(&path, SCRIPT_LIMIT).map_err(|fault| unreadable(fault.to_string()))?;
        String::from_utf8(bytes).map_err(|_fault| unreadable("it is not UTF-8 text".to_owned()))
    }
}

impl ProviderConfig {
    /// Names of the presets that are providers.
    pub fn preset_names() -> Vec<&'static str> {
        PRESETS.iter().map(|preset| preset.name).collect()
    }

    /// The preset of a name, as somebody would configure it: without what variables say.
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        let preset = preset_of(name)?;
        Some(Self {
            name: name.to_owned(),
            dialect: preset.dialect,
            base_url: preset.base_url.to_owned(),
            api_key: None,
            key_variable: preset.needed_key().map(str::to_owned),
            key_command: false,
            headers: Vec::new(),
            quirks: preset.quirks(),
            terms: ProviderTerms::default(),
        })
    }

    /// The same provider at another base URL. What is there under the name of a provider that others imitate is taken
    /// for an imitation, which wants the usual form of the dialect that is imitated most.
    #[must_use]
    pub fn at(mut self, base_url: impl Into<String>) -> Self {
        self.base_url = base_url.into();
        if let Some(dialect) = preset_of(&self.name).and_then(|preset| preset.elsewhere) {
            self.dialect = dialect;
            self.quirks = Quirks::default();
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openai_is_itself_at_its_own_address_only() {
        let dialects = |base: Option<&'static str>| {
            let providers = Providers::new(
                move |name| (name == "OPENAI_BASE_URL").then(|| base.map(str::to_owned))?,
                Vec::new(),
            );
            let endpoint = providers.preset(preset_of("openai").unwrap());
            (endpoint.dialect, endpoint.quirks == Quirks::default())
        };
        assert_eq!(dialects(None), (Dialect::OpenAiResponses, false));
        assert_eq!(dialects(Some("http://h/v1")), (Dialect::OpenAiChat, true));
        let config = ProviderConfig::preset("openai").unwrap();
        assert_eq!(config.dialect, Dialect::OpenAiResponses);
        let config = config.at("http://h/v1");
        assert_eq!(
            (config.dialect, &*config.base_url),
            (Dialect::OpenAiChat, "http://h/v1")
        );
        let azure = ProviderConfig::preset("azure").unwrap();
        assert_eq!(azure.clone().at("https://r").quirks, azure.quirks);
    }

    #[test]
    fn every_preset_has_a_profile() {
        let presets: Vec<_> = PRESETS.iter().map(|preset| preset.name).collect();
        assert_eq!(presets, Quirks::profiles().collect::<Vec<_>>());
    }

    #[test]
    fn every_way_to_name_an_ollama_server() {
        for (value, want) in [
            ("127.0.0.1:11434", "http://127.0.0.1:11434/v1"),
            ("0.0.0.0", "http://127.0.0.1:11434/v1"),
            (":8080", "http://127.0.0.1:8080/v1"),
            ("8080", "http://127.0.0.1:8080/v1"),
            ("gpu.lan", "http://gpu.lan:11434/v1"),
            ("http://gpu.lan", "http://gpu.lan:80/v1"),
            ("https://gpu.lan/", "https://gpu.lan:443/v1"),
            ("http://gpu.lan:9/v1", "http://gpu.lan:9/v1"),
            ("[::1]", "http://[::1]:11434/v1"),
            ("[::1]:9", "http://[::1]:9/v1"),
        ] {
            assert_eq!(ollama_base(value), want, "{value}");
        }
    }
}
