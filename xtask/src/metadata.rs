//! What `cargo metadata` says of the workspace's own packages: their names, what they depend on, and whether they have a
//! library; and where the build goes. It reads the answer; what is allowed is decided elsewhere.

use std::path::PathBuf;

use serde_json::Value;

use crate::failure::Failure;
use crate::shell;

/// When a dependency is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Normal,
    Build,
    Dev,
}

/// One package of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Path of the manifest as cargo gives it.
    pub(crate) manifest: String,
    pub(crate) dependencies: Vec<(String, Kind)>,
    pub(crate) has_library: bool,
}

/// The folder of the build.
pub(crate) fn target() -> Result<PathBuf, Failure> {
    let text = shell::cargo(&["metadata", "--no-deps", "--format-version", "1"]).read()?;
    let all: Option<Value> = serde_json::from_str(&text).ok();
    let target = all.and_then(|all| Some(PathBuf::from(all["target_directory"].as_str()?)));
    target.ok_or_else(|| Failure::Answer {
        program: "cargo metadata".to_owned(),
        why: "no folder of the build".to_owned(),
    })
}

/// Asks cargo, without resolving the outside dependencies.
pub(crate) fn packages() -> Result<Vec<Package>, Failure> {
    let text = shell::cargo(&["metadata", "--no-deps", "--format-version", "1"]).read()?;
    parse(&text)
}

/// Reads the JSON answer of `cargo metadata --no-deps`.
pub(crate) fn parse(text: &str) -> Result<Vec<Package>, Failure> {
    let odd = |why: String| Failure::Answer {
        program: "cargo metadata".to_owned(),
        why,
    };
    let whole: Value = serde_json::from_str(text).map_err(|bad| odd(bad.to_string()))?;
    let list = whole["packages"]
        .as_array()
        .ok_or_else(|| odd("no list of packages".to_owned()))?;
    list.iter()
        .map(|package| read(package).ok_or_else(|| odd("a package without a name".to_owned())))
        .collect()
}

fn read(package: &Value) -> Option<Package> {
    let dependencies = package["dependencies"]
        .as_array()?
        .iter()
        .filter_map(|dependency| {
            let kind = match dependency["kind"].as_str() {
                Some("dev") => Kind::Dev,
                Some("build") => Kind::Build,
                _ => Kind::Normal,
            };
            Some((dependency["name"].as_str()?.to_owned(), kind))
        })
        .collect();
    let has_library = package["targets"].as_array()?.iter().any(|target| {
        target["doctest"].as_bool() == Some(true)
            && target["kind"]
                .as_array()
                .is_some_and(|kinds| kinds.iter().any(|kind| kind == "lib"))
    });
    Some(Package {
        name: package["name"].as_str()?.to_owned(),
        manifest: package["manifest_path"].as_str()?.to_owned(),
        dependencies,
        has_library,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_libraries_are_read() {
        let text = r#"{"packages": [{
            "name": "attache-host", "manifest_path": "/x/crates/host/Cargo.toml",
            "dependencies": [
                {"name": "attache-engine", "kind": null},
                {"name": "attache-testkit", "kind": "dev"},
                {"name": "cc", "kind": "build"}],
            "targets": [{"kind": ["lib"], "doctest": true}]}]}"#;
        let packages = parse(text).expect("well formed");
        assert_eq!(
            packages,
            [Package {
                name: "attache-host".to_owned(),
                manifest: "/x/crates/host/Cargo.toml".to_owned(),
                dependencies: vec![
                    ("attache-engine".to_owned(), Kind::Normal),
                    ("attache-testkit".to_owned(), Kind::Dev),
                    ("cc".to_owned(), Kind::Build),
                ],
                has_library: true,
            }]
        );
    }

    #[test]
    fn an_odd_answer_is_an_error() {
        assert!(parse("{}").is_err());
        assert!(parse("not json").is_err());
    }
}
