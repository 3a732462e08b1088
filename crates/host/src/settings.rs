//! Settings: the user's file, then the project's, then variables `ATTACHE_…`; later ones win. A key
//! that nobody knows is an error with its line and the nearest known key.
//!
//! A project's file may not set providers: whoever opens a folder must not have keys sent elsewhere
//! by what lies in it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use attache_engine::Environment;
use attache_engine::parts::{Dialect, ProviderConfig, Quirks, Secret, read_small};
use serde::Deserialize;

use crate::catalog::{FILE_LIMIT, project_folder};

/// Seconds after which a daemon that was started on demand leaves when nothing happens.
const IDLE_SECONDS: u64 = 600;

/// Rounds of a run at most.
const ITERATION_LIMIT: u32 = 50;

/// The settings in force.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The model that is used when neither caller nor definition names one.
    pub model: Option<String>,
    /// Configured providers.
    pub providers: Vec<ConfiguredProvider>,
    /// Rounds of a run at most.
    pub iteration_limit: u32,
    /// Seconds after which an idle daemon that was started on demand leaves.
    pub idle_seconds: u64,
    /// Each setting with its value and where it came from.
    pub effective: Vec<Effective>,
}

/// A configured provider. Its key is looked up for each session, in that session's variables.
#[derive(Clone, PartialEq, Debug)]
pub struct ConfiguredProvider {
    config: ProviderConfig,
}

impl ConfiguredProvider {
    /// The variable that holds its key.
    #[must_use]
    pub fn key_variable(&self) -> Option<&str> {
        self.config.key_variable.as_deref()
    }

    /// The provider with the key that these variables hold.
    #[must_use]
    pub fn with_key(&self, environment: &Environment) -> ProviderConfig {
        let key = self.key_variable().and_then(|name| environment.get(name));
        let api_key = key.filter(|key| !key.trim().is_empty()).map(Secret::new);
        ProviderConfig {
            api_key,
            ..self.config.clone()
        }
    }
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

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Written {
    model: Option<String>,
    providers: BTreeMap<String, WrittenProvider>,
    session: WrittenSession,
    daemon: WrittenDaemon,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenProvider {
    dialect: Option<WrittenDialect>,
    base_url: Option<String>,
    api_key_env: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum WrittenDialect {
    #[serde(rename = "openai-chat")]
    OpenAiChat,
    Anthropic,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenSession {
    iteration_limit: Option<u32>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenDaemon {
    idle_seconds: Option<u64>,
}

/// Variables of ours that are no settings.
const NO_SETTINGS: [&str; 4] = [
    "ATTACHE_HOME",
    "ATTACHE_CONFIG_HOME",
    "ATTACHE_FAULT",
    "ATTACHE_LOG",
];

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
            && let Some(written) = read(file)?
        {
            layers.add(written, &Source::File(file.to_path_buf()))?;
        }
        if let Some(folder) = working_directory {
            let file = project_folder(folder).join(".attache/config.toml");
            if let Some(written) = read(&file)? {
                if let Some(name) = written.providers.keys().next() {
                    return Err(SettingsError {
                        place: file.display().to_string(),
                        message: format!(
                            "a project's file may not set providers (it sets `{name}`); put it \
                             into your own config.toml"
                        ),
                    });
                }
                layers.add(written, &Source::File(file))?;
            }
        }
        for (name, value) in &environment.0 {
            layers.variable(name, value)?;
        }
        Ok(layers.finish())
    }
}

#[derive(Default)]
struct Layers {
    model: Option<(String, Source)>,
    iteration_limit: Option<(u32, Source)>,
    idle_seconds: Option<(u64, Source)>,
    providers: BTreeMap<String, (ConfiguredProvider, Source)>,
}

impl Layers {
    fn add(&mut self, written: Written, source: &Source) -> Result<(), SettingsError> {
        let Written {
            model,
            providers,
            session,
            daemon,
        } = written;
        let WrittenSession { iteration_limit } = session;
        let WrittenDaemon { idle_seconds } = daemon;
        let from = |value| (value, source.clone());
        if let Some(model) = model {
            self.model = Some(from(checked_model(model, source)?));
        }
        if let Some(limit) = iteration_limit {
            self.iteration_limit = Some((at_least_one(limit, source)?, source.clone()));
        }
        if let Some(seconds) = idle_seconds {
            self.idle_seconds = Some((seconds, source.clone()));
        }
        for (name, provider) in providers {
            let WrittenProvider {
                dialect,
                base_url,
                api_key_env,
                headers,
            } = provider;
            // What is left out of a preset stays as it is.
            let preset = ProviderConfig::preset(&name).map(|preset| match &base_url {
                Some(elsewhere) => preset.at(elsewhere.clone()),
                None => preset,
            });
            let missing = |key: &str| SettingsError {
                place: source.to_string(),
                message: format!("providers.{name}.{key} is missing, and `{name}` is no preset"),
            };
            let dialect = match dialect {
                Some(WrittenDialect::OpenAiChat) => Some(Dialect::OpenAiChat),
                Some(WrittenDialect::Anthropic) => Some(Dialect::Anthropic),
                None => preset.as_ref().map(|preset| preset.dialect),
            };
            let base_url = preset
                .as_ref()
                .map(|preset| preset.base_url.clone())
                .or(base_url);
            let key_variable = api_key_env.or_else(|| preset.as_ref()?.key_variable.clone());
            let config = ProviderConfig {
                dialect: dialect.ok_or_else(|| missing("dialect"))?,
                base_url: base_url.ok_or_else(|| missing("base_url"))?,
                api_key: None,
                key_variable,
                headers: headers.into_iter().collect(),
                quirks: preset.map_or_else(Quirks::default, |preset| preset.quirks),
                name: name.clone(),
            };
            let provider = ConfiguredProvider { config };
            self.providers.insert(name, (provider, source.clone()));
        }
        Ok(())
    }

    fn variable(&mut self, name: &str, value: &str) -> Result<(), SettingsError> {
        if !name.starts_with("ATTACHE_") || NO_SETTINGS.contains(&name) {
            return Ok(());
        }
        let source = Source::Variable(name.to_owned());
        let number = || {
            value.trim().parse::<u64>().map_err(|_fault| SettingsError {
                place: name.to_owned(),
                message: format!("{value:?} is no whole number"),
            })
        };
        match name {
            "ATTACHE_MODEL" => {
                self.model = Some((checked_model(value.to_owned(), &source)?, source));
            }
            "ATTACHE_SESSION__ITERATION_LIMIT" => {
                let limit = u32::try_from(number()?).unwrap_or(u32::MAX);
                self.iteration_limit = Some((at_least_one(limit, &source)?, source));
            }
            "ATTACHE_DAEMON__IDLE_SECONDS" => self.idle_seconds = Some((number()?, source)),
            _ => {
                let known = [
                    "ATTACHE_MODEL",
                    "ATTACHE_SESSION__ITERATION_LIMIT",
                    "ATTACHE_DAEMON__IDLE_SECONDS",
                ];
                return Err(SettingsError {
                    place: name.to_owned(),
                    message: format!("no setting is named so{}", nearest(name, &known)),
                });
            }
        }
        Ok(())
    }

    fn finish(self) -> Settings {
        let Self {
            model,
            iteration_limit,
            idle_seconds,
            providers,
        } = self;
        let mut effective = Vec::new();
        let mut note = |key: &str, value: String, source: Source| {
            effective.push(Effective {
                key: key.to_owned(),
                value,
                source,
            });
        };
        let model = model.map(|(model, source)| {
            note("model", model.clone(), source);
            model
        });
        let (iteration_limit, source) =
            iteration_limit.unwrap_or((ITERATION_LIMIT, Source::Default));
        note(
            "session.iteration_limit",
            iteration_limit.to_string(),
            source,
        );
        let (idle_seconds, source) = idle_seconds.unwrap_or((IDLE_SECONDS, Source::Default));
        note("daemon.idle_seconds", idle_seconds.to_string(), source);
        let providers = providers
            .into_iter()
            .map(|(name, (provider, source))| {
                let ProviderConfig {
                    name: _,
                    dialect,
                    base_url,
                    api_key: _,
                    key_variable,
                    headers,
                    quirks: _,
                } = &provider.config;
                // Values of headers may be keys.
                let headers: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
                let headers = headers.join(", ");
                for (key, value) in [
                    ("dialect", Some(dialect.as_str())),
                    ("base_url", Some(base_url.as_str())),
                    ("api_key_env", key_variable.as_deref()),
                    (
                        "headers",
                        Some(headers.as_str()).filter(|names| !names.is_empty()),
                    ),
                ] {
                    if let Some(value) = value {
                        let key = format!("providers.{name}.{key}");
                        note(&key, value.to_owned(), source.clone());
                    }
                }
                provider
            })
            .collect();
        Settings {
            model,
            providers,
            iteration_limit,
            idle_seconds,
            effective,
        }
    }
}

fn checked_model(model: String, source: &Source) -> Result<String, SettingsError> {
    let whole = model
        .split_once('/')
        .is_some_and(|(p, m)| !p.is_empty() && !m.is_empty());
    if whole || model == "echo" {
        return Ok(model);
    }
    Err(SettingsError {
        place: source.to_string(),
        message: format!("model: {model:?} must have the form PROVIDER/MODEL"),
    })
}

fn at_least_one(limit: u32, source: &Source) -> Result<u32, SettingsError> {
    if limit > 0 {
        return Ok(limit);
    }
    Err(SettingsError {
        place: source.to_string(),
        message: "session.iteration_limit must be at least 1".to_owned(),
    })
}

/// A file's settings; none when there is no file.
fn read(file: &Path) -> Result<Option<Written>, SettingsError> {
    let fault = |place: String, message: String| SettingsError { place, message };
    let bytes = match read_small(file, FILE_LIMIT) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            let message = format!("the settings cannot be read: {error}");
            return Err(fault(file.display().to_string(), message));
        }
    };
    let text = String::from_utf8(bytes)
        .map_err(|_fault| fault(file.display().to_string(), "not UTF-8 text".to_owned()))?;
    toml::from_str(&text).map(Some).map_err(|error| {
        let line = error.span().map_or(1, |span| {
            text[..span.start.min(text.len())].matches('\n').count() + 1
        });
        let message = error.message().to_owned();
        let near = unknown_field(&message)
            .map(|(name, known)| nearest(name, &known))
            .unwrap_or_default();
        fault(
            format!("{}:{line}", file.display()),
            format!("{message}{near}"),
        )
    })
}

/// The name and the known names of the library's "unknown field" message.
fn unknown_field(message: &str) -> Option<(&str, Vec<&str>)> {
    let rest = message.strip_prefix("unknown field ")?;
    let mut quoted = rest.split('`').skip(1).step_by(2);
    let name = quoted.next()?;
    Some((name, quoted.collect()))
}

fn nearest(name: &str, known: &[&str]) -> String {
    known
        .iter()
        .min_by_key(|known| strsim::damerau_levenshtein(known, name))
        .map(|known| format!("; the nearest is `{known}`"))
        .unwrap_or_default()
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
