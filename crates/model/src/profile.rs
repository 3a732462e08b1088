//! Which provider differs in which ways: a table a provider, with the case beside each entry that made it necessary. The
//! cases named G-… are those of the project's list of field cases; the others are rules that the provider documents.

use crate::quirks::Quirks;

/// The differences of one provider.
pub(crate) struct Profile {
    /// Its name in settings.
    pub(crate) name: &'static str,
    entries: &'static [Entry],
}

/// One difference: the quirk, its value, and why.
struct Entry {
    key: &'static str,
    value: &'static str,
    why: &'static str,
}

const fn entry(key: &'static str, value: &'static str, why: &'static str) -> Entry {
    Entry { key, value, why }
}

const PROFILES: [Profile; 8] = [
    Profile {
        name: "openai",
        entries: &[
            entry(
                "max_tokens_field",
                "max_completion_tokens",
                "reasoning models refuse max_tokens",
            ),
            entry(
                "system_role",
                "developer",
                "the role of instructions since the first reasoning models; system is taken for it elsewhere",
            ),
            entry(
                "prompt_cache_key",
                "true",
                "requests with one key are led to the machine that holds their prefix",
            ),
            entry(
                "strict_ids",
                "true",
                "G-07: ids of calls from elsewhere are longer than the 64 characters that are taken here",
            ),
        ],
    },
    Profile {
        name: "anthropic",
        entries: &[],
    },
    Profile {
        name: "gemini",
        entries: &[entry(
            "plain_root_schema",
            "false",
            "G-11: schemas go as JSON Schema, where a choice at the root is lawful",
        )],
    },
    Profile {
        name: "openrouter",
        entries: &[
            entry(
                "reasoning_details",
                "true",
                "G-10: models that sign their reasoning want it back, in the order and form in which it came",
            ),
            entry(
                "chat_cache_marks",
                "true",
                "Anthropic's models cache only what is marked, and the marks are passed on",
            ),
            entry(
                "strict_ids",
                "true",
                "G-07: whichever provider is behind it, this spelling is taken",
            ),
        ],
    },
    Profile {
        name: "ollama",
        entries: &[
            entry(
                "reasoning_back",
                "tool-loop",
                "G-10: templates of reasoning models show the model its reasoning until the answer",
            ),
            entry(
                "reasoning_field",
                "reasoning",
                "G-10: the field in which it comes and in which it is read",
            ),
        ],
    },
    Profile {
        name: "vllm",
        entries: &[
            entry(
                "reasoning_back",
                "tool-loop",
                "G-10: templates of reasoning models show the model its reasoning until the answer",
            ),
            entry(
                "reasoning_field",
                "reasoning",
                "G-10: the field in which it comes and in which it is read",
            ),
            entry(
                "plain_root_schema",
                "false",
                "G-11: schemas only guide the output, and a choice at the root can be guided",
            ),
        ],
    },
    Profile {
        name: "llama.cpp",
        entries: &[
            entry(
                "reasoning_back",
                "tool-loop",
                "G-10: templates of reasoning models show the model its reasoning until the answer",
            ),
            entry(
                "plain_root_schema",
                "false",
                "G-11: schemas only guide the output, and a choice at the root can be guided",
            ),
        ],
    },
    Profile {
        name: "azure",
        entries: &[
            entry(
                "max_tokens_field",
                "max_completion_tokens",
                "reasoning models refuse max_tokens",
            ),
            entry(
                "prompt_cache_key",
                "true",
                "requests with one key are led to the machine that holds their prefix",
            ),
            entry(
                "strict_ids",
                "true",
                "G-07: ids of calls from elsewhere are longer than the 64 characters that are taken here",
            ),
            entry(
                "key_header",
                "api-key",
                "a key goes in this header; authorization is for tokens",
            ),
            entry(
                "address",
                "azure-v1",
                "the endpoint of a resource names no path; deployments are named like models",
            ),
        ],
    },
];

impl Quirks {
    /// The quirks of a provider that is known by name.
    #[must_use]
    pub fn profile(name: &str) -> Option<Self> {
        let profile = PROFILES.iter().find(|profile| profile.name == name)?;
        let mut quirks = Self::default();
        for Entry { key, value, why } in profile.entries {
            let set = quirks.set(key, value);
            debug_assert!(set.is_ok(), "{key} ({why}): {set:?}");
        }
        Some(quirks)
    }

    /// Names of the providers that have a profile.
    pub fn profiles() -> impl Iterator<Item = &'static str> {
        PROFILES.iter().map(|profile| profile.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_says_why_and_changes_something() {
        for profile in &PROFILES {
            for entry in profile.entries {
                let mut quirks = Quirks::default();
                quirks.set(entry.key, entry.value).unwrap();
                assert_ne!(quirks, Quirks::default(), "{} {}", profile.name, entry.key);
                assert!(!entry.why.is_empty());
            }
            assert!(Quirks::profile(profile.name).is_some());
        }
        assert!(Quirks::profile("nobody").is_none());
        assert_eq!(Quirks::profiles().count(), PROFILES.len());
    }
}
