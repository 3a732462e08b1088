//! Literal keys in a definition. What viewers and models see of one must need no redaction, so a key
//! that somebody wrote into it is refused when it is loaded, wherever it stands.

use serde_json::Value;

/// Beginnings of keys of well-known services, and how many characters follow at least.
const BEGINNINGS: [(&str, usize); 12] = [
    ("sk-", 20),
    ("sk_live_", 16),
    ("rk_live_", 16),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghs_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("xoxb-", 16),
    ("xoxp-", 16),
    ("AKIA", 16),
    ("AIza", 30),
];

/// Names of members that hold a key whatever it looks like.
const NAMES: [&str; 6] = [
    "apikey",
    "xapikey",
    "authorization",
    "accesstoken",
    "secret",
    "password",
];

/// The field of a definition, as JSON, in which a key stands, with the beginning of the key when it
/// is one by its looks.
pub(super) fn find(definition: &Value) -> Option<(String, Option<&'static str>)> {
    let options = definition.get("options").and_then(|all| all.get("extra"));
    let named = options.and_then(named);
    let named = named.map(|name| (format!("options.extra.{name}"), None));
    named.or_else(|| seen(definition, String::new()))
}

/// The first member, at any depth, that holds a key by its name.
fn named(value: &Value) -> Option<String> {
    match value {
        Value::Object(members) => members.iter().find_map(|(name, value)| {
            let plain = name.to_ascii_lowercase().replace(['-', '_'], "");
            let holds = value.as_str().is_some_and(|text| !text.is_empty());
            if holds && NAMES.contains(&plain.as_str()) {
                return Some(name.clone());
            }
            named(value).map(|below| format!("{name}.{below}"))
        }),
        Value::Array(items) => items.iter().find_map(named),
        _ => None,
    }
}

/// The first text, at any depth, in which something stands that looks like a key.
fn seen(value: &Value, path: String) -> Option<(String, Option<&'static str>)> {
    match value {
        Value::String(text) => key_in(text).map(|key| (path, Some(key))),
        Value::Object(members) => members.iter().find_map(|(name, value)| {
            let dot = if path.is_empty() { "" } else { "." };
            seen(value, format!("{path}{dot}{name}"))
        }),
        Value::Array(items) => items.iter().find_map(|item| seen(item, path.clone())),
        _ => None,
    }
}

/// A piece of a text that looks like a key: its beginning, which may be shown.
pub(super) fn key_in(text: &str) -> Option<&'static str> {
    let of_key = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let by_beginning = BEGINNINGS.iter().find(|(beginning, more)| {
        text.match_indices(beginning).any(|(at, _)| {
            let alone = !text[..at].ends_with(|c: char| c.is_alphanumeric());
            let rest = &text[at + beginning.len()..];
            let rest = &rest[..rest.find(|c| !of_key(c)).unwrap_or(rest.len())];
            // Words that are joined by hyphens have no digits.
            alone && rest.len() >= *more && rest.bytes().any(|byte| byte.is_ascii_digit())
        })
    });
    let block = text.contains("-----BEGIN ") && text.contains("PRIVATE KEY-----");
    by_beginning
        .map(|(beginning, _)| *beginning)
        .or_else(|| block.then_some("-----BEGIN"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_are_known_by_their_looks() {
        let long = "a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6";
        for (beginning, _) in BEGINNINGS {
            let text = format!("use {beginning}{long}, please");
            assert_eq!(key_in(&text), Some(beginning));
            assert_eq!(key_in(&format!("use x{beginning}{long}")), None);
            assert_eq!(key_in(&format!("{beginning}a1")), None);
        }
        assert_eq!(
            key_in("-----BEGIN RSA PRIVATE KEY-----"),
            Some("-----BEGIN")
        );
        for text in [
            "",
            "keys begin with sk- or ghp_",
            "sk-learn-is-used-for-classification-here",
            "a task-with-a-long-hyphenated-name-of-2026-11-30",
        ] {
            assert_eq!(key_in(text), None, "{text}");
        }
    }

    #[test]
    fn a_key_is_found_wherever_it_stands() {
        let key = "sk-proj-a1b2c3d4e5f6g7h8i9j0";
        let bearer = format!("Bearer {key}");
        for (definition, field) in [
            (
                json!({ "instructions": format!("use {key}") }),
                "instructions",
            ),
            (
                json!({ "parameters": [{ "name": "a", "default": key }] }),
                "parameters.default",
            ),
            (
                json!({ "options": { "extra": { "x": { "y": [key] } } } }),
                "options.extra.x.y",
            ),
            (
                json!({ "options": { "extra": { "headers": { "Authorization": bearer } } } }),
                "options.extra.headers.Authorization",
            ),
            (
                json!({ "options": { "extra": { "api-key": "x" } } }),
                "options.extra.api-key",
            ),
            (
                json!({ "sub-agents": [{ "definition": { "description": key } }] }),
                "sub-agents.definition.description",
            ),
        ] {
            assert_eq!(
                find(&definition).map(|(field, _)| field).as_deref(),
                Some(field)
            );
        }
        let none = json!({ "options": { "extra": { "secret": "", "password": null } } });
        assert_eq!(find(&none), None);
    }
}
