//! A configured provider: its written keys over those of its preset, and how it is to be asked. Its key is looked up
//! for each session, in that session's variables or by a command.

use std::time::Duration;

use attache_engine::Environment;
use attache_engine::parts::{
    Dialect, GateLimits, Patience, ProviderConfig, ProviderTerms, Quirks, Retries, Secret,
};

use super::written::{WrittenProvider, WrittenRequest};
use crate::key_command::KeyCommand;

/// A configured provider.
#[derive(Clone, PartialEq, Debug)]
pub struct ConfiguredProvider {
    config: ProviderConfig,
    command: Option<KeyCommand>,
    /// What its settings say, key by key, with what a preset adds.
    effective: Vec<(String, String)>,
}

/// A key of the settings with what is wrong with its value.
pub(super) type Wrong = (String, String);

impl ConfiguredProvider {
    /// The name that it is called by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// What its settings say, key by key, with what a preset adds. No secret is in it.
    pub(super) fn effective(&self) -> &[(String, String)] {
        &self.effective
    }

    /// The variable that holds its key.
    #[must_use]
    pub fn key_variable(&self) -> Option<&str> {
        self.config.key_variable.as_deref()
    }

    /// The provider with the key that these variables hold, or that its command prints.
    #[must_use]
    pub fn with_key(&self, environment: &Environment) -> ProviderConfig {
        let variable = self.key_variable().and_then(|name| environment.get(name));
        let variable = variable.filter(|key| !key.trim().is_empty());
        let api_key = match (variable, &self.command) {
            (Some(key), _) => Some(Secret::new(key)),
            (None, Some(command)) => command.key().map(Secret::new),
            (None, None) => None,
        };
        ProviderConfig {
            api_key,
            ..self.config.clone()
        }
    }

    pub(super) fn of(
        name: &str,
        written: WrittenProvider,
        defaults: &ProviderTerms,
    ) -> Result<Self, Wrong> {
        let mut effective = written.entries();
        let terms = terms(&written.request(), defaults).map_err(|(k, m)| (k.to_owned(), m))?;
        let WrittenProvider {
            dialect,
            profile,
            base_url,
            api_key_env,
            api_key_command,
            headers,
            quirks: changes,
            ..
        } = written;
        let is_wrong = |key: &str, message: String| (key.to_owned(), message);
        // What is left out of a preset stays as it is.
        let preset = ProviderConfig::preset(profile.as_deref().unwrap_or(name));
        let preset = preset.map(|preset| match (&base_url, &profile) {
            (Some(elsewhere), None) => preset.at(elsewhere.clone()),
            (Some(elsewhere), Some(_)) => ProviderConfig {
                base_url: elsewhere.clone(),
                ..preset
            },
            (None, _) => preset,
        });
        if let (Some(profile), None) = (&profile, &preset) {
            let known = ProviderConfig::preset_names().join(", ");
            return Err(is_wrong(
                "profile",
                format!("is {profile:?}, which is none of {known}"),
            ));
        }
        let missing = |key: &str| is_wrong(key, format!("is missing, and `{name}` is no preset"));
        let dialect = match dialect {
            Some(written) => Some(Dialect::parse(&written).ok_or_else(|| {
                let known = Dialect::ALL.map(Dialect::as_str).join(", ");
                is_wrong(
                    "dialect",
                    format!("is {written:?}, which is none of {known}"),
                )
            })?),
            None => preset.as_ref().map(|preset| preset.dialect),
        };
        let base_url = preset
            .as_ref()
            .map(|preset| preset.base_url.clone())
            .or(base_url)
            .filter(|url| !url.is_empty());
        let key_variable = match (api_key_env, &api_key_command) {
            (Some(variable), _) => Some(variable),
            (None, Some(_)) => None,
            (None, None) => preset
                .as_ref()
                .and_then(|preset| preset.key_variable.clone()),
        };
        let mut quirks = preset.map_or_else(Quirks::default, |preset| preset.quirks);
        for (key, value) in &changes {
            let text = match value {
                toml::Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            quirks
                .set(key, &text)
                .map_err(|fault| is_wrong(&format!("quirks.{key}:"), fault.to_string()))?;
        }
        let dialect = dialect.ok_or_else(|| missing("dialect"))?;
        let base_url = base_url.ok_or_else(|| missing("base_url"))?;
        for (key, value) in [
            ("dialect", Some(dialect.as_str().to_owned())),
            ("base_url", Some(base_url.clone())),
            ("api_key_env", key_variable.clone()),
        ] {
            if let Some(value) = value
                && !effective.iter().any(|(known, _)| known == key)
            {
                effective.push((key.to_owned(), value));
            }
        }
        Ok(Self {
            effective,
            config: ProviderConfig {
                dialect,
                base_url,
                api_key: None,
                key_command: api_key_command.is_some(),
                key_variable,
                headers: headers.into_iter().collect(),
                quirks,
                terms,
                name: name.to_owned(),
            },
            command: api_key_command.map(|command| KeyCommand::new(&command)),
        })
    }
}

/// How a provider is asked: what is written over what is usual.
pub(super) fn terms(
    written: &WrittenRequest,
    usual: &ProviderTerms,
) -> Result<ProviderTerms, (&'static str, String)> {
    let WrittenRequest {
        first_byte_seconds,
        silence_seconds,
        no_progress_seconds,
        retries,
        longest_wait_seconds,
        max_in_flight,
        requests_per_minute,
        tokens_per_minute,
    } = written;
    let time = |key, value: &Option<f64>, usual: Duration| match value {
        None => Ok(usual),
        Some(seconds) if *seconds > 0.0 => {
            Duration::try_from_secs_f64(*seconds).map_err(|_fault| (key, "is too large".to_owned()))
        }
        Some(_) => Err((key, "must be more than 0 seconds".to_owned())),
    };
    let least_one = |key, zero: bool| {
        if zero {
            Err((key, "must be at least 1".to_owned()))
        } else {
            Ok(())
        }
    };
    least_one("max_in_flight", *max_in_flight == Some(0))?;
    least_one("requests_per_minute", *requests_per_minute == Some(0))?;
    least_one("tokens_per_minute", *tokens_per_minute == Some(0))?;
    Ok(ProviderTerms {
        patience: Patience {
            first_byte: time(
                "first_byte_seconds",
                first_byte_seconds,
                usual.patience.first_byte,
            )?,
            silence: time("silence_seconds", silence_seconds, usual.patience.silence)?,
            no_progress: time(
                "no_progress_seconds",
                no_progress_seconds,
                usual.patience.no_progress,
            )?,
        },
        retries: Retries {
            most: retries.unwrap_or(usual.retries.most),
            longest_wait: time(
                "longest_wait_seconds",
                longest_wait_seconds,
                usual.retries.longest_wait,
            )?,
        },
        limits: GateLimits {
            in_flight: max_in_flight.map_or(usual.limits.in_flight, |limit| limit as usize),
            requests_per_minute: requests_per_minute.or(usual.limits.requests_per_minute),
            tokens_per_minute: tokens_per_minute.or(usual.limits.tokens_per_minute),
        },
    })
}
