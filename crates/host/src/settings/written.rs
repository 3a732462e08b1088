//! What stands in a file of settings or in a variable `ATTACHE_…`, key by key. Closed: a key that nobody knows is an
//! error. What the values mean is not decided here.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use attache_engine::parts::{OwnFacts, OwnRow, read_small};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{SettingsError, Source};
use crate::catalog::FILE_LIMIT;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Written {
    pub(super) model: Option<String>,
    pub(super) providers: BTreeMap<String, WrittenProvider>,
    pub(super) session: WrittenSession,
    pub(super) daemon: WrittenDaemon,
    pub(super) request: WrittenRequest,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenSession {
    pub(super) iteration_limit: Option<u32>,
    pub(super) compact_at: Option<f64>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WrittenDaemon {
    pub(super) idle_seconds: Option<u64>,
    pub(super) listen: Option<String>,
    pub(super) tls_cert: Option<PathBuf>,
    pub(super) tls_key: Option<PathBuf>,
    pub(super) allow_hosts: Option<Vec<String>>,
}

/// A structure of optional keys: later layers are laid over earlier ones, and what is set can be listed.
macro_rules! keys {
    ($(#[$doc:meta])* $name:ident { $($key:ident: $type:ty,)* } $(tables { $($table:ident: $value:ty,)* })?) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Default, Debug, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub(super) struct $name {
            $(pub(super) $key: Option<$type>,)*
            $($(pub(super) $table: BTreeMap<String, $value>,)*)?
        }

        impl $name {
            /// Takes over what a later layer sets.
            pub(super) fn take(&mut self, later: Self) {
                $(if later.$key.is_some() { self.$key = later.$key; })*
                $($(self.$table.extend(later.$table);)*)?
            }
        }
    };
}

keys! {
    /// How providers are asked.
    WrittenRequest {
        first_byte_seconds: f64,
        silence_seconds: f64,
        no_progress_seconds: f64,
        retries: u32,
        longest_wait_seconds: f64,
        max_in_flight: u32,
        requests_per_minute: u32,
        tokens_per_minute: u64,
    }
}

keys! {
    /// A provider.
    WrittenProvider {
        dialect: String,
        profile: String,
        base_url: String,
        api_key_env: String,
        api_key_command: String,
        first_byte_seconds: f64,
        silence_seconds: f64,
        no_progress_seconds: f64,
        retries: u32,
        longest_wait_seconds: f64,
        max_in_flight: u32,
        requests_per_minute: u32,
        tokens_per_minute: u64,
    }
    tables {
        headers: String,
        quirks: toml::Value,
    }
}

impl WrittenRequest {
    /// What is set, key by key.
    pub(super) fn entries(&self) -> Vec<(&'static str, String)> {
        let Self {
            first_byte_seconds,
            silence_seconds,
            no_progress_seconds,
            retries,
            longest_wait_seconds,
            max_in_flight,
            requests_per_minute,
            tokens_per_minute,
        } = self;
        [
            (
                "first_byte_seconds",
                first_byte_seconds.map(|v| v.to_string()),
            ),
            ("silence_seconds", silence_seconds.map(|v| v.to_string())),
            (
                "no_progress_seconds",
                no_progress_seconds.map(|v| v.to_string()),
            ),
            ("retries", retries.map(|v| v.to_string())),
            (
                "longest_wait_seconds",
                longest_wait_seconds.map(|v| v.to_string()),
            ),
            ("max_in_flight", max_in_flight.map(|v| v.to_string())),
            (
                "requests_per_minute",
                requests_per_minute.map(|v| v.to_string()),
            ),
            (
                "tokens_per_minute",
                tokens_per_minute.map(|v| v.to_string()),
            ),
        ]
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
        .collect()
    }
}

impl WrittenProvider {
    /// How it is asked, as far as it says.
    pub(super) fn request(&self) -> WrittenRequest {
        WrittenRequest {
            first_byte_seconds: self.first_byte_seconds,
            silence_seconds: self.silence_seconds,
            no_progress_seconds: self.no_progress_seconds,
            retries: self.retries,
            longest_wait_seconds: self.longest_wait_seconds,
            max_in_flight: self.max_in_flight,
            requests_per_minute: self.requests_per_minute,
            tokens_per_minute: self.tokens_per_minute,
        }
    }

    /// What is set, key by key. Values of headers may be keys, and a command may hold one: only that there are some is
    /// said.
    pub(super) fn entries(&self) -> Vec<(String, String)> {
        let texts = [
            ("dialect", &self.dialect),
            ("profile", &self.profile),
            ("base_url", &self.base_url),
            ("api_key_env", &self.api_key_env),
        ];
        let mut entries: Vec<(String, String)> = texts
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value.clone()?)))
            .collect();
        if self.api_key_command.is_some() {
            entries.push(("api_key_command".to_owned(), "set".to_owned()));
        }
        if !self.headers.is_empty() {
            let names: Vec<&str> = self.headers.keys().map(String::as_str).collect();
            entries.push(("headers".to_owned(), names.join(", ")));
        }
        for (key, value) in &self.quirks {
            entries.push((format!("quirks.{key}"), value.to_string()));
        }
        let request = self.request().entries().into_iter();
        entries.extend(request.map(|(key, value)| (key.to_owned(), value)));
        entries
    }
}

/// Where something is written, for errors.
#[derive(Clone, Copy)]
pub(super) struct Place<'a>(pub(super) &'a Source);

impl Place<'_> {
    pub(super) fn error(self, message: impl Into<String>) -> SettingsError {
        SettingsError {
            place: self.0.to_string(),
            message: message.into(),
        }
    }
}

/// What the user's file says of models, by `PROVIDER/MODEL`: limits in tokens, prices in US dollars a million tokens.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenModel {
    context: Option<u64>,
    output: Option<u64>,
    input_usd: Option<f64>,
    output_usd: Option<f64>,
    cache_read_usd: Option<f64>,
    cache_write_usd: Option<f64>,
    reasoning_usd: Option<f64>,
}

/// A file of models; empty when there is none.
pub(super) fn read_models(file: &Path) -> Result<OwnFacts, SettingsError> {
    let written: BTreeMap<String, WrittenModel> = read_toml(file)?.unwrap_or_default();
    let mut rows = HashMap::with_capacity(written.len());
    for (name, model) in written {
        let WrittenModel {
            context,
            output,
            input_usd,
            output_usd,
            cache_read_usd,
            cache_write_usd,
            reasoning_usd,
        } = model;
        let wrong = |what: &str| SettingsError {
            place: file.display().to_string(),
            message: format!("{name}: {what}"),
        };
        if !name.contains('/') {
            return Err(wrong("must have the form \"PROVIDER/MODEL\""));
        }
        if context == Some(0) || output == Some(0) {
            return Err(wrong("a limit must be at least 1"));
        }
        let prices = [
            input_usd,
            output_usd,
            cache_read_usd,
            cache_write_usd,
            reasoning_usd,
        ];
        if prices
            .iter()
            .flatten()
            .any(|price| !(0.0..1e9).contains(price))
        {
            return Err(wrong("a price must be 0 or more"));
        }
        rows.insert(
            name,
            OwnRow {
                context,
                output,
                input_usd,
                output_usd,
                cache_read_usd,
                cache_write_usd,
                reasoning_usd,
            },
        );
    }
    Ok(OwnFacts::new(rows))
}

/// A file's settings; none when there is no file.
pub(super) fn read(file: &Path) -> Result<Option<Written>, SettingsError> {
    read_toml(file)
}

fn read_toml<T: DeserializeOwned>(file: &Path) -> Result<Option<T>, SettingsError> {
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
        fault(
            format!("{}:{line}", file.display()),
            with_nearest(error.message(), |name| name.to_owned()),
        )
    })
}

/// Variables of ours that are no settings.
const NO_SETTINGS: [&str; 7] = [
    "ATTACHE_HOME",
    "ATTACHE_CONFIG_HOME",
    "ATTACHE_FAULT",
    "ATTACHE_LOG",
    "ATTACHE_NOTIFY",
    "ATTACHE_HOST",
    "ATTACHE_TOKEN",
];

/// The setting of a variable: `ATTACHE_A__B` is `a.b`. None for a variable that is no setting.
pub(super) fn variable(name: &str, value: &str) -> Result<Option<Written>, SettingsError> {
    let Some(path) = name.strip_prefix("ATTACHE_") else {
        return Ok(None);
    };
    if NO_SETTINGS.contains(&name) {
        return Ok(None);
    }
    let path: Vec<String> = path.split("__").map(str::to_lowercase).collect();
    // A number where one is wanted, a text where that is.
    let mut tries = Vec::new();
    if let Ok(number) = value.trim().parse::<i64>() {
        tries.push(toml::Value::Integer(number));
        tries.push(toml::Value::Float(number as f64));
    } else if let Ok(number) = value.trim().parse::<f64>() {
        tries.push(toml::Value::Float(number));
    } else if let Ok(truth) = value.trim().parse::<bool>() {
        tries.push(toml::Value::Boolean(truth));
    }
    tries.push(toml::Value::String(value.to_owned()));
    let mut first = None;
    for value in tries {
        let mut nested = value;
        for key in path.iter().rev() {
            nested = toml::Value::Table(toml::Table::from_iter([(key.clone(), nested)]));
        }
        match Written::deserialize(nested) {
            Ok(written) => return Ok(Some(written)),
            Err(fault) => first = first.or(Some(fault)),
        }
    }
    let message = first.map_or_else(String::new, |fault: toml::de::Error| {
        if fault.message().contains("expected u") {
            return format!("{value:?} is no whole number");
        }
        if fault.message().contains("expected f") {
            return format!("{value:?} is no number");
        }
        let parent = &path[..path.len() - 1];
        with_nearest(fault.message(), |key| {
            let mut whole = parent.to_vec();
            whole.push(key.to_owned());
            format!("ATTACHE_{}", whole.join("__").to_uppercase())
        })
    });
    Err(SettingsError {
        place: name.to_owned(),
        message,
    })
}

/// The library's message, with the nearest known name where a name is unknown.
fn with_nearest(message: &str, show: impl Fn(&str) -> String) -> String {
    let near = unknown_field(message)
        .map(|(name, known)| nearest(name, &known, show))
        .unwrap_or_default();
    format!("{message}{near}")
}

/// The name and the known names of the library's "unknown field" message.
fn unknown_field(message: &str) -> Option<(&str, Vec<&str>)> {
    let rest = message.strip_prefix("unknown field ")?;
    let mut quoted = rest.split('`').skip(1).step_by(2);
    let name = quoted.next()?;
    Some((name, quoted.collect()))
}

fn nearest(name: &str, known: &[&str], show: impl Fn(&str) -> String) -> String {
    known
        .iter()
        .min_by_key(|known| strsim::damerau_levenshtein(known, name))
        .map(|known| format!("; the nearest is `{}`", show(known)))
        .unwrap_or_default()
}
