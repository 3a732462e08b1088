//! The text files of the repository, read once: what git tracks and what it would track. Build output and ignored files
//! are never looked at. It judges nothing.

use crate::failure::Failure;
use crate::shell;

/// Kinds of files that some rule reads.
const EXTENSIONS: &[&str] = &["rs", "md", "toml"];

/// Where sources lie that the rules hold for.
const OURS: &[&str] = &["crates/", "opinion/", "xtask/"];

/// Paths from the root with their text, in the order of the paths.
pub(super) struct Tree {
    files: Vec<(String, String)>,
}

impl Tree {
    /// Reads the working tree.
    pub(super) fn read() -> Result<Self, Failure> {
        let list = shell::program(
            "git",
            &[
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ],
        )
        .read()?;
        let root = shell::root();
        let mut paths: Vec<&str> = list
            .split('\0')
            .filter(|path| EXTENSIONS.contains(&extension(path)))
            .collect();
        paths.sort_unstable();
        paths.dedup();
        let mut files = Vec::new();
        for path in paths {
            let whole = root.join(path);
            // A file that is deleted but not yet committed is still listed.
            if !whole.is_file() {
                continue;
            }
            let text = std::fs::read_to_string(&whole).map_err(|source| Failure::Read {
                path: whole,
                source,
            })?;
            files.push((path.to_owned(), text));
        }
        Ok(Self { files })
    }

    /// All files of these kinds.
    pub(super) fn texts(&self, extensions: &[&str]) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .filter(|(path, _)| extensions.contains(&extension(path)))
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Our Rust sources.
    pub(super) fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts(&["rs"])
            .filter(|(path, _)| OURS.iter().any(|folder| path.starts_with(folder)))
    }

    /// All files below a folder.
    pub(super) fn under(&self, folder: &str) -> Vec<(&str, &str)> {
        self.texts(EXTENSIONS)
            .filter(|(path, _)| path.starts_with(folder))
            .collect()
    }

    /// One file, if it is there.
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.texts(EXTENSIONS)
            .find(|(at, _)| *at == path)
            .map(|(_, text)| text)
    }
}

fn extension(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(_, extension)| extension)
}
