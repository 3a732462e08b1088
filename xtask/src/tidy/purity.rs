//! Rule `purity`: what the pure crates must never pull in, however far down. The direct edges are looked at elsewhere;
//! this is about the whole tree of outside crates that a pure crate is built from.

use super::finding::Finding;
use crate::failure::Failure;
use crate::{metadata, shell};

/// A pure crate, and the outside crates that would make it impure.
const PURE: &[(&str, &[&str])] = &[
    (
        // The rules: no runtime, no serialisation, no randomness.
        "session",
        &[
            "tokio",
            "serde",
            "serde_core",
            "serde_json",
            "getrandom",
            "rand",
        ],
    ),
    // The wire: it serialises, and never waits.
    ("protocol", &["tokio"]),
];

/// Asks cargo for the tree of each pure crate that exists.
pub(super) fn run() -> Result<Vec<Finding>, Failure> {
    let packages = metadata::packages()?;
    let mut found = Vec::new();
    for (name, banned) in PURE {
        let package = format!("attache-{name}");
        if packages.iter().all(|known| known.name != package) {
            continue;
        }
        let tree = shell::cargo(&[
            "tree",
            "--package",
            &package,
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--format",
            "{p}",
        ])
        .read()?;
        found.extend(check(name, banned, &tree));
    }
    Ok(found)
}

/// Looks at a tree as cargo prints it: one crate a line, the name first.
fn check(name: &str, banned: &[&str], tree: &str) -> Vec<Finding> {
    let built_from = |outside: &str| {
        tree.lines()
            .any(|line| line.split_whitespace().next() == Some(outside))
    };
    banned
        .iter()
        .filter(|outside| built_from(outside))
        .map(|outside| {
            let text = format!("`{name}` is pure and must not be built from `{outside}`");
            Finding::error(&format!("crates/{name}/Cargo.toml"), 0, text)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_banned_crate_is_found_at_any_depth() {
        let tree = "attache-session v0.1.0 (/x)\nuuid v1.29.0\nserde v1.0.0\nserde_derive v1.0.0 (proc-macro)\n";
        let found = check("session", &["tokio", "serde"], tree);
        let brief: Vec<_> = found.iter().map(Finding::brief).collect();
        assert_eq!(
            brief,
            [(0, "`session` is pure and must not be built from `serde`")]
        );
    }

    #[test]
    fn a_name_that_only_begins_alike_is_another_crate() {
        assert!(check("protocol", &["tokio"], "tokio-util v0.7.0\n").is_empty());
    }
}
