//! Rule `edges`: which crate of ours may depend on which. The table is the architecture in its shortest form; a crate
//! that is not in it may not exist, and an edge that is not in it may not be built.

use super::finding::Finding;
use crate::failure::Failure;
use crate::metadata::{self, Kind, Package};

/// From each crate, the crates that it may need to be built. Tests may need more.
const ALLOWED: &[(&str, &[&str])] = &[
    ("attache", &["client", "host", "tools", "mcp-door"]),
    ("client", &["protocol"]),
    ("host", &["engine", "protocol", "session"]),
    ("mcp-door", &["engine", "session"]),
    ("engine", &["session", "store", "agent", "model", "sandbox"]),
    ("tools", &["agent", "sandbox"]),
    ("agent", &["session", "model"]),
    ("store", &["session"]),
    ("session", &[]),
    ("protocol", &[]),
    ("model", &[]),
    ("sandbox", &[]),
    ("xtask", &[]),
];

/// What serves the tests of all: it may need anything, and only tests may need it.
const TEST_SUPPORT: &str = "testkit";

/// Asks cargo and checks the answer.
pub(super) fn run() -> Result<Vec<Finding>, Failure> {
    Ok(check(&metadata::packages()?))
}

/// Looks at the packages of the workspace.
fn check(packages: &[Package]) -> Vec<Finding> {
    let ours = |name: &str| packages.iter().any(|package| package.name == name);
    let mut found = Vec::new();
    for package in packages {
        let from = short(&package.name);
        let allowed = ALLOWED.iter().find(|(name, _)| *name == from);
        if allowed.is_none() && from != TEST_SUPPORT {
            let text = format!("`{from}` is not in the table of crates");
            found.push(Finding::error(&place(package), 0, text));
        }
        for (dependency, kind) in &package.dependencies {
            let to = short(dependency);
            if ours(dependency) && !may(from, to, *kind, allowed.map_or(&[], |(_, to)| to)) {
                let text = format!("the edge {from} -> {to} is not allowed");
                found.push(Finding::error(&place(package), 0, text));
            }
        }
    }
    found
}

fn may(from: &str, to: &str, kind: Kind, allowed: &[&str]) -> bool {
    match kind {
        Kind::Dev => from != "xtask",
        Kind::Normal | Kind::Build => {
            to != TEST_SUPPORT && (from == TEST_SUPPORT || allowed.contains(&to))
        }
    }
}

/// The name without the prefix that all libraries share.
fn short(name: &str) -> &str {
    name.strip_prefix("attache-").unwrap_or(name)
}

/// The manifest's path from the root of the workspace.
fn place(package: &Package) -> String {
    match package.manifest.rfind("/crates/") {
        Some(at) => package.manifest[at + 1..].to_owned(),
        None => format!("{}/Cargo.toml", package.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, dependencies: &[(&str, Kind)]) -> Package {
        Package {
            name: name.to_owned(),
            manifest: format!("/somewhere/crates/{}/Cargo.toml", short(name)),
            dependencies: dependencies
                .iter()
                .map(|(name, kind)| ((*name).to_owned(), *kind))
                .collect(),
            has_library: true,
        }
    }

    #[test]
    fn a_listed_edge_passes_and_another_does_not() {
        let found = check(&[
            package("attache-session", &[("uuid", Kind::Normal)]),
            package("attache-store", &[("attache-session", Kind::Normal)]),
            package("attache-tools", &[("attache-session", Kind::Normal)]),
            package("attache-protocol", &[("attache-session", Kind::Build)]),
        ]);
        let brief: Vec<_> = found.iter().map(Finding::brief).collect();
        assert_eq!(
            brief,
            [
                (0, "the edge tools -> session is not allowed"),
                (0, "the edge protocol -> session is not allowed"),
            ]
        );
        assert_eq!(
            found[0].line("edges"),
            "crates/tools/Cargo.toml:1: edges: the edge tools -> session is not allowed"
        );
    }

    #[test]
    fn the_test_support_is_for_tests() {
        let found = check(&[
            package("attache-testkit", &[("attache-protocol", Kind::Normal)]),
            package("attache-protocol", &[("attache-testkit", Kind::Dev)]),
            package("attache-client", &[("attache-testkit", Kind::Normal)]),
        ]);
        let brief: Vec<_> = found.iter().map(Finding::brief).collect();
        assert_eq!(brief, [(0, "the edge client -> testkit is not allowed")]);
    }

    #[test]
    fn the_automation_needs_none_of_ours_even_in_tests() {
        let found = check(&[
            package("attache-session", &[]),
            package("xtask", &[("attache-session", Kind::Dev)]),
        ]);
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn an_unknown_crate_must_be_entered_first() {
        let found = check(&[package("attache-common", &[])]);
        let brief: Vec<_> = found.iter().map(Finding::brief).collect();
        assert_eq!(brief, [(0, "`common` is not in the table of crates")]);
    }

    #[test]
    fn the_table_has_no_circle_and_no_unknown_name() {
        fn reaches(from: &str, to: &str) -> bool {
            let (_, next) = ALLOWED
                .iter()
                .find(|(name, _)| *name == from)
                .expect("every crate of the table has a row");
            next.iter().any(|name| *name == to || reaches(name, to))
        }
        for (name, _) in ALLOWED {
            assert!(!reaches(name, name), "{name}");
        }
    }
}
