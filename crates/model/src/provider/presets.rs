//! The providers that are known by name, as a table.

use crate::dialect::Dialect;
use crate::quirks::Quirks;

/// A provider that is known by name.
pub(super) struct Preset {
    pub(super) name: &'static str,
    pub(super) dialect: Dialect,
    /// Empty when it has no usual one.
    pub(super) base_url: &'static str,
    /// The variable that may hold another base URL.
    pub(super) base_variable: Option<&'static str>,
    key: Key,
    /// What is assumed of another base URL: a server that only speaks like this provider wants the usual form of this
    /// dialect. Without it, every server is one of its own.
    pub(super) elsewhere: Option<Dialect>,
}

/// The variable that holds a key.
#[derive(Clone, Copy)]
pub(super) enum Key {
    /// Not needed by servers on this machine.
    Needed(&'static str),
    Optional(&'static str),
    None,
}

impl Preset {
    pub(super) fn quirks(&self) -> Quirks {
        Quirks::profile(self.name).unwrap_or_default()
    }

    pub(super) fn key_variable(&self) -> Option<&'static str> {
        match self.key {
            Key::Needed(name) | Key::Optional(name) => Some(name),
            Key::None => None,
        }
    }

    pub(super) fn needed_key(&self) -> Option<&'static str> {
        match self.key {
            Key::Needed(name) => Some(name),
            Key::Optional(_) | Key::None => None,
        }
    }
}

pub(super) const PRESETS: [Preset; 8] = [
    Preset {
        name: "openai",
        dialect: Dialect::OpenAiResponses,
        base_url: "https://api.openai.com/v1",
        base_variable: Some("OPENAI_BASE_URL"),
        key: Key::Needed("OPENAI_API_KEY"),
        elsewhere: Some(Dialect::OpenAiChat),
    },
    Preset {
        name: "anthropic",
        dialect: Dialect::Anthropic,
        base_url: "https://api.anthropic.com",
        base_variable: Some("ANTHROPIC_BASE_URL"),
        key: Key::Needed("ANTHROPIC_API_KEY"),
        elsewhere: Some(Dialect::Anthropic),
    },
    Preset {
        name: "gemini",
        dialect: Dialect::Gemini,
        base_url: "https://generativelanguage.googleapis.com",
        base_variable: Some("GEMINI_BASE_URL"),
        key: Key::Needed("GEMINI_API_KEY"),
        elsewhere: None,
    },
    Preset {
        name: "openrouter",
        dialect: Dialect::OpenAiChat,
        base_url: "https://openrouter.ai/api/v1",
        base_variable: None,
        key: Key::Needed("OPENROUTER_API_KEY"),
        elsewhere: None,
    },
    Preset {
        name: "ollama",
        dialect: Dialect::OpenAiChat,
        base_url: "http://127.0.0.1:11434/v1",
        base_variable: Some("OLLAMA_HOST"),
        key: Key::None,
        elsewhere: None,
    },
    Preset {
        name: "vllm",
        dialect: Dialect::OpenAiChat,
        base_url: "http://127.0.0.1:8000/v1",
        base_variable: Some("VLLM_BASE_URL"),
        key: Key::Optional("VLLM_API_KEY"),
        elsewhere: None,
    },
    Preset {
        name: "llama.cpp",
        dialect: Dialect::OpenAiChat,
        base_url: "http://127.0.0.1:8080/v1",
        base_variable: Some("LLAMA_CPP_BASE_URL"),
        key: Key::Optional("LLAMA_API_KEY"),
        elsewhere: None,
    },
    Preset {
        name: "azure",
        dialect: Dialect::OpenAiChat,
        base_url: "",
        base_variable: Some("AZURE_OPENAI_ENDPOINT"),
        key: Key::Needed("AZURE_OPENAI_API_KEY"),
        elsewhere: None,
    },
];

pub(super) fn preset_of(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// The address of an Ollama server from what `OLLAMA_HOST` may hold: a host, a port, an address to listen on, a URL.
pub(super) fn ollama_base(value: &str) -> String {
    let (scheme, rest) = match value.split_once("://") {
        Some((scheme, rest)) => (scheme, rest),
        None => ("http", value),
    };
    let rest = rest.trim_end_matches('/');
    let (host, path) = rest
        .split_once('/')
        .map_or((rest, ""), |(host, path)| (host, path));
    let (host, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => {
            (name, port.to_owned())
        }
        _ if host.bytes().all(|b| b.is_ascii_digit()) && !host.is_empty() => ("", host.to_owned()),
        _ => {
            let usual = match value.split_once("://") {
                Some(("https", _)) => "443",
                Some(_) => "80",
                None => "11434",
            };
            (host, usual.to_owned())
        }
    };
    // What a server listens on is not always what one can call.
    let host = match host {
        "" | "0.0.0.0" | "[::]" => "127.0.0.1",
        other => other,
    };
    let path = if path.is_empty() { "v1" } else { path };
    format!("{scheme}://{host}:{port}/{path}")
}
