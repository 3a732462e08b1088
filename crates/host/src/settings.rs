//! Settings: the user's file, then the project's, then variables `ATTACHE_…`; later ones win. A key
//! that nobody knows is an error with its line and the nearest known key.
//!
//! A project's file may set neither providers nor a listener: whoever opens a folder must not have keys sent elsewhere, or
//! others let in, by what lies in it. What stands in a file is in `written`, the parts of a provider and of the listener are in
//! files of their own.

mod listener;
mod provider;
mod written;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use attache_engine::Environment;
use attache_engine::parts::{OwnFacts, ProviderTerms};

use crate::catalog::project_folder;

pub use listener::ConfiguredListener;
pub use provider::ConfiguredProvider;
use provider::terms;
use written::{Place, Written, WrittenProvider, WrittenRequest};

/// Seconds after which a daemon that was started on demand leaves when nothing happens.
const IDLE_SECONDS: u64 = 600;

/// Rounds of a run at most.
const ITERATION_LIMIT: u32 = 50;

/// The file beside the user's settings that says what is known of models.
const MODELS_FILE: &str = "models.toml";

/// The share of a model's context at which a conversation is cut.
const COMPACT_AT: f64 = 0.8;

/// The settings in force.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The model that is used when neither caller nor definition names one.
    pub model: Option<String>,
    /// Configured providers.
    pub providers: Vec<ConfiguredProvider>,
    /// How providers are asked that say nothing else.
    pub terms: ProviderTerms,
    /// What the user knows of models: limits and prices.
    pub facts: OwnFacts,
    /// Rounds of a run at most.
    pub iteration_limit: u32,
    /// The share of a model's context at which a conversation is cut.
    pub compact_at: f64,
    /// Seconds after which an idle daemon that was started on demand leaves.
    pub idle_seconds: u64,
    /// The listener for viewers elsewhere that a daemon opens; a daemon that has one does not leave.
    pub listener: Option<ConfiguredListener>,
    /// Each setting with its value and where it came from.
    pub effective: Vec<Effective>,
}

/// One setting in force.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Effective {
    /// The key, with dots.
    pub key: String,
    /// The value; never a secret.
    pub value: String,
    /// Where it came from.
    pub source: Source,
}

/// Where a setting came from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// Nobody set it.
    Default,
    /// A file.
    File(PathBuf),
    /// A variable.
    Variable(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => path.display().fmt(f),
            Self::Variable(name) => f.write_str(name),
        }
    }
}

/// Settings that cannot be used: where, and what is wrong.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{place}: {message}")]
pub struct SettingsError {
    /// The file with its line, or the variable.
    pub place: String,
    /// What is wrong, and what to do.
    pub message: String,
}

impl Settings {
    /// The settings as seen from a working directory, with the variables of whoever asks.
    ///
    /// # Errors
    ///
    /// [`SettingsError`] for a file that does not load or a value that does not fit.
    pub fn load(
        user_file: Option<&Path>,
        working_directory: Option<&Path>,
        environment: &Environment,
    ) -> Result<Self, SettingsError> {
        let mut layers = Layers::default();
        if let Some(file) = user_file
            && let Some(written) = written::read(file)?
        {
            layers.add(written, &Source::File(file.to_path_buf()))?;
        }
        if let Some(file) = user_file {
            layers.facts = written::read_models(&file.with_file_name(MODELS_FILE))?;
        }
        if let Some(folder) = working_directory {
            let file = project_folder(folder).join(".attache/config.toml");
            if let Some(written) = written::read(&file)? {
                let provider = written.providers.keys().next();
                let provider = provider.map(|name| format!("providers (it sets `{name}`)"));
                let listens = written.daemon.listen.is_some();
                let listens = listens.then(|| "daemon.listen".to_owned());
                if let Some(what) = provider.or(listens) {
                    return Err(SettingsError {
                        place: file.display().to_string(),
                        message: format!(
                            "a project's file may not set {what}; put it into your own config.toml"
                        ),
                    });
                }
                layers.add(written, &Source::File(file))?;
            }
        }
        for (name, value) in &environment.0 {
            if let Some(written) = written::variable(name, value)? {
                layers.add(written, &Source::Variable(name.clone()))?;
            }
        }
        layers.finish()
    }
}

/// A value with where it came from; the last one that is set wins.
#[derive(Clone)]
struct Layer<T>(Option<(T, Source)>);

impl<T> Default for Layer<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Layer<T> {
    fn set(&mut self, value: Option<T>, source: &Source) {
        if let Some(value) = value {
            self.0 = Some((value, source.clone()));
        }
    }

    fn or(self, default: T) -> (T, Source) {
        self.0.unwrap_or((default, Source::Default))
    }
}

#[derive(Default)]
struct Layers {
    model: Layer<String>,
    iteration_limit: Layer<u32>,
    compact_at: Layer<f64>,
    idle_seconds: Layer<u64>,
    listener: Layer<ConfiguredListener>,
    request: WrittenRequest,
    /// Where each key of `request` came from.
    request_from: BTreeMap<&'static str, Source>,
    providers: BTreeMap<String, (WrittenProvider, Source)>,
    facts: OwnFacts,
}

impl Layers {
    fn add(&mut self, written: Written, source: &Source) -> Result<(), SettingsError> {
        let Written {
            model,
            providers,
            session,
            daemon,
            request,
        } = written;
        let place = Place(source);
        if let Some(model) = model {
            self.model.set(Some(checked_model(model, place)?), source);
        }
        if session.iteration_limit == Some(0) {
            return Err(place.error("session.iteration_limit must be at least 1"));
        }
        if let Some(share) = session.compact_at
            && !(0.1..=1.0).contains(&share)
        {
            return Err(place.error("session.compact_at must be from 0.1 to 1"));
        }
        self.compact_at.set(session.compact_at, source);
        self.iteration_limit.set(session.iteration_limit, source);
        let listener = ConfiguredListener::of(&daemon).map_err(|why| place.error(why))?;
        self.listener.set(listener, source);
        self.idle_seconds.set(daemon.idle_seconds, source);
        for (key, _) in request.entries() {
            self.request_from.insert(key, source.clone());
        }
        self.request.take(request);
        for (name, provider) in providers {
            match self.providers.get_mut(&name) {
                Some((known, from)) => {
                    known.take(provider);
                    *from = source.clone();
                }
                None => {
                    self.providers.insert(name, (provider, source.clone()));
                }
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Settings, SettingsError> {
        let Self {
            model,
            iteration_limit,
            compact_at,
            idle_seconds,
            listener,
            request,
            request_from,
            providers: written,
            facts,
        } = self;
        let mut effective = Vec::new();
        let mut note = |key: String, value: String, source: Source| {
            effective.push(Effective { key, value, source });
        };
        if let Some((model, source)) = &model.0 {
            note("model".to_owned(), model.clone(), source.clone());
        }
        let (iteration_limit, source) = iteration_limit.or(ITERATION_LIMIT);
        note(
            "session.iteration_limit".to_owned(),
            iteration_limit.to_string(),
            source,
        );
        let (compact_at, source) = compact_at.or(COMPACT_AT);
        note(
            "session.compact_at".to_owned(),
            compact_at.to_string(),
            source,
        );
        let (idle_seconds, source) = idle_seconds.or(IDLE_SECONDS);
        note(
            "daemon.idle_seconds".to_owned(),
            idle_seconds.to_string(),
            source,
        );
        if let Some((listener, source)) = &listener.0 {
            let address = listener.address.to_string();
            note("daemon.listen".to_owned(), address, source.clone());
        }
        for (key, value) in request.entries() {
            let source = request_from.get(key).cloned().unwrap_or(Source::Default);
            note(format!("request.{key}"), value, source);
        }
        let defaults = terms(&request, &ProviderTerms::default())
            .map_err(|(key, message)| wrong(&request_from, key, &message))?;
        let mut providers = Vec::with_capacity(written.len());
        for (name, (provider, source)) in written {
            let provider =
                ConfiguredProvider::of(&name, provider, &defaults).map_err(|(key, message)| {
                    Place(&source).error(format!("providers.{name}.{key} {message}"))
                })?;
            for (key, value) in provider.effective() {
                let key = format!("providers.{name}.{key}");
                note(key, value.clone(), source.clone());
            }
            providers.push(provider);
        }
        Ok(Settings {
            model: model.0.map(|(model, _)| model),
            providers,
            terms: defaults,
            facts,
            iteration_limit,
            compact_at,
            idle_seconds,
            listener: listener.0.map(|(listener, _)| listener),
            effective,
        })
    }
}

fn wrong(from: &BTreeMap<&'static str, Source>, key: &str, message: &str) -> SettingsError {
    let source = from.get(key).unwrap_or(&Source::Default);
    Place(source).error(format!("request.{key} {message}"))
}

fn checked_model(model: String, place: Place<'_>) -> Result<String, SettingsError> {
    let whole = model
        .split_once('/')
        .is_some_and(|(p, m)| !p.is_empty() && !m.is_empty());
    if whole || model == "echo" {
        return Ok(model);
    }
    Err(place.error(format!(
        "model: {model:?} must have the form PROVIDER/MODEL"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        Environment(
            pairs
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
        )
    }

    #[test]
    fn later_layers_win_and_say_where_they_come_from() {
        let folder = tempfile::tempdir().unwrap();
        let user = folder.path().join("config.toml");
        std::fs::write(&user, "model = \"a/b\"\n[session]\niteration_limit = 7\n").unwrap();
        let project = folder.path().join("work/.attache");
        std::fs::create_dir_all(&project).unwrap();
        std::fs::write(project.join("config.toml"), "model = \"c/d\"\n").unwrap();
        let work = folder.path().join("work");
        let load = |env: &[(&str, &str)]| {
            Settings::load(Some(&user), Some(&work), &environment(env)).unwrap()
        };
        let settings = load(&[]);
        assert_eq!(
            (settings.model.as_deref(), settings.iteration_limit),
            (Some("c/d"), 7)
        );
        let settings = load(&[("ATTACHE_MODEL", "e/f"), ("ATTACHE_HOME", "/x")]);
        assert_eq!(settings.model.as_deref(), Some("e/f"));
        assert_eq!(
            settings.effective[0].source,
            Source::Variable("ATTACHE_MODEL".to_owned())
        );
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.toml");
        let table = [
            ("x = 1\n", ":1: unknown field `x`"),
            ("\nmodle = \"a/b\"\n", "the nearest is `model`"),
            ("model = \"ab\"\n", "PROVIDER/MODEL"),
            ("model = \n", ":1: "),
            (
                "[providers.x]\ndialect = \"gopher\"\nbase_url = \"http://h\"\n",
                "gopher",
            ),
            ("[session]\niteration_limit = 0\n", "at least 1"),
        ];
        for (text, wanted) in table {
            std::fs::write(&file, text).unwrap();
            let error = Settings::load(Some(&file), None, &Environment::default()).unwrap_err();
            assert!(error.to_string().contains(wanted), "{text}: {error}");
        }
        std::fs::write(&file, [b'm', 0xff]).unwrap();
        let error = Settings::load(Some(&file), None, &Environment::default()).unwrap_err();
        assert!(error.to_string().contains("UTF-8"), "{error}");
        for (name, value, wanted) in [
            ("ATTACHE_MODLE", "a/b", "ATTACHE_MODEL"),
            ("ATTACHE_DAEMON__IDLE_SECONDS", "soon", "whole number"),
        ] {
            let error = Settings::load(None, None, &environment(&[(name, value)])).unwrap_err();
            assert!(error.to_string().contains(wanted), "{error}");
        }
    }

    #[test]
    fn how_providers_are_asked_is_said_for_all_and_for_each() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.toml");
        let text = "[request]\nsilence_seconds = 9\nretries = 1\n\
            [providers.openai]\nretries = 0\nrequests_per_minute = 60\n\
            [providers.mine]\nprofile = \"ollama\"\nbase_url = \"http://h/v1\"\n\
            quirks = { reminders = false }\n";
        std::fs::write(&file, text).unwrap();
        let variables = environment(&[
            ("ATTACHE_REQUEST__NO_PROGRESS_SECONDS", "0.5"),
            ("ATTACHE_PROVIDERS__OPENAI__MAX_IN_FLIGHT", "3"),
        ]);
        let settings = Settings::load(Some(&file), None, &variables).unwrap();
        assert_eq!(settings.terms.patience.silence.as_secs(), 9);
        assert_eq!(settings.terms.patience.no_progress.as_millis(), 500);
        assert_eq!(settings.terms.retries.most, 1);
        let provider = |name: &str| {
            let found = settings.providers.iter().find(|one| one.name() == name);
            found.unwrap().with_key(&Environment::default())
        };
        let (openai, mine) = (provider("openai"), provider("mine"));
        assert_eq!(openai.terms.retries.most, 0);
        assert_eq!(openai.terms.limits.in_flight, 3);
        assert_eq!(openai.terms.limits.requests_per_minute, Some(60));
        assert_eq!(openai.terms.patience, settings.terms.patience);
        assert_eq!(mine.terms, settings.terms);
        assert!(!mine.quirks.reminders && openai.quirks.reminders);
        let shown = |key: &str| {
            let found = settings.effective.iter().find(|one| one.key == key);
            found.map(|one| (one.value.as_str(), one.source.to_string()))
        };
        assert_eq!(
            shown("request.no_progress_seconds"),
            Some(("0.5", "ATTACHE_REQUEST__NO_PROGRESS_SECONDS".to_owned()))
        );
        assert_eq!(
            shown("request.retries").unwrap().1,
            file.display().to_string()
        );
        for (text, wanted) in [
            (
                "[request]\nsilence_seconds = 0\n",
                "request.silence_seconds must be more than 0",
            ),
            (
                "[providers.openai]\nmax_in_flight = 0\n",
                "providers.openai.max_in_flight must be",
            ),
            (
                "[providers.openai]\nquirks = { spin = true }\n",
                "there is no quirk",
            ),
            ("[providers.x]\nprofile = \"gopher\"\n", "none of"),
        ] {
            std::fs::write(&file, text).unwrap();
            let error = Settings::load(Some(&file), None, &Environment::default()).unwrap_err();
            assert!(error.to_string().contains(wanted), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_known_of_models_is_read_beside_the_settings() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.toml");
        let models = folder.path().join("models.toml");
        let load = |text: &str| {
            std::fs::write(&models, text).unwrap();
            Settings::load(Some(&file), None, &Environment::default())
        };
        let text = "[\"mine/m\"]\ncontext = 9\ninput_usd = 1\noutput_usd = 2.5\n";
        let facts = load(text).unwrap().facts.of("mine", "m");
        assert_eq!(facts.context, Some(9));
        assert_eq!(
            facts.prices.map(|it| (it.input, it.output)),
            Some((1.0, 2.5))
        );
        for (text, wanted) in [
            ("[\"mine\"]\ncontext = 9\n", "PROVIDER/MODEL"),
            ("[\"a/b\"]\ncontext = 0\n", "a/b: a limit"),
            ("[\"a/b\"]\ninput_usd = -1\n", "a/b: a price"),
            (
                "[\"a/b\"]\nprice = 1\n",
                "models.toml:2: unknown field `price`",
            ),
        ] {
            let error = load(text).unwrap_err();
            assert!(error.to_string().contains(wanted), "{text}: {error}");
        }
    }

    #[test]
    fn a_key_comes_from_a_command_when_no_variable_holds_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.toml");
        let text = "[providers.openai]\napi_key_command = \"echo from-command\"\n";
        std::fs::write(&file, text).unwrap();
        let settings = Settings::load(Some(&file), None, &Environment::default()).unwrap();
        let provider = &settings.providers[0];
        assert_eq!(provider.key_variable(), None);
        let config = provider.with_key(&Environment::default());
        assert!(config.key_command && config.api_key.is_some());
        std::fs::write(&file, "[providers.openai]\napi_key_command = \"exit 1\"\n").unwrap();
        let settings = Settings::load(Some(&file), None, &Environment::default()).unwrap();
        let broken = settings.providers[0].with_key(&Environment::default());
        let resolved =
            attache_engine::parts::Providers::new(|_| None, vec![broken]).resolve("openai/m");
        let error = resolved
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default();
        assert!(error.contains("printed no key"), "{error}");
        std::fs::write(&file, text).unwrap();
        let settings = Settings::load(Some(&file), None, &Environment::default()).unwrap();
        assert!(
            !format!("{:?}", settings.effective).contains("from-command"),
            "the command may hold the key itself"
        );
    }

    #[test]
    fn a_projects_file_may_not_set_providers() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join(".attache");
        std::fs::create_dir_all(&project).unwrap();
        let text = "[providers.evil]\ndialect = \"anthropic\"\nbase_url = \"http://h\"\n";
        std::fs::write(project.join("config.toml"), text).unwrap();
        let error = Settings::load(None, Some(folder.path()), &Environment::default()).unwrap_err();
        assert!(error.to_string().contains("evil"), "{error}");
    }
}
