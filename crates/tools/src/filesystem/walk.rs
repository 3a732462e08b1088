//! What a folder and the folders below it hold, in order. Links are met and never entered.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use attache_agent::ToolError;
use globset::{GlobBuilder, GlobMatcher};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{AtFlags, Dir, FileType};

use super::Stop;
use super::confine::{Confined, Fault, Kind, open_file, open_folder, shown};

/// Folders that a search goes down at most; each one on the way is open meanwhile.
const DEEPEST: usize = 64;

/// Largest file of ignore rules that is read.
const RULES_BYTES: u64 = 1024 * 1024;

/// Something that a walk meets.
pub(super) struct Found<'a> {
    /// The folder that it is in.
    pub(super) folder: BorrowedFd<'a>,
    pub(super) name: &'a OsStr,
    pub(super) kind: Kind,
    /// Its path from the working directory.
    pub(super) path: &'a str,
}

/// Who is shown what a walk meets, and can end it.
pub(super) type Visit<'a> = dyn FnMut(&Found<'_>) -> Result<ControlFlow<()>, ToolError> + 'a;

/// Ignore rules of one folder.
struct Rules {
    /// Where paths below that folder begin in a path from the working directory.
    from: usize,
    rules: Gitignore,
}

/// A walk.
pub(super) struct Walk<'a> {
    stop: &'a Stop,
    depth: usize,
    /// Rules from the outside inwards; none when everything is shown.
    rules: Option<Vec<Rules>>,
}

impl<'a> Walk<'a> {
    /// A walk that meets everything, down to a depth.
    pub(super) fn of_all(stop: &'a Stop, depth: usize) -> Self {
        Self {
            stop,
            depth,
            rules: None,
        }
    }

    /// A walk below `path` that passes over `.git` and over what `.gitignore` files say, those of the
    /// folders above `path` included.
    pub(super) fn of_sources(stop: &'a Stop, confined: &Confined, path: &Path) -> Self {
        let mut rules = Vec::new();
        let plain = |c: &Component<'_>| matches!(c, Component::Normal(_) | Component::CurDir);
        // Where the path goes up, nobody can say which folders are above it.
        if path.components().all(|c| plain(&c)) {
            for above in path.ancestors().skip(1) {
                if let Ok(folder) = confined.folder(above) {
                    let from = prefix_of(above).len();
                    rules.extend(read_rules(folder.as_fd(), from));
                }
            }
        }
        rules.reverse();
        Self {
            stop,
            depth: DEEPEST,
            rules: Some(rules),
        }
    }

    /// Walks the folder of a path.
    pub(super) fn run(
        &mut self,
        folder: BorrowedFd<'_>,
        path: &Path,
        visit: &mut Visit<'_>,
    ) -> Result<(), ToolError> {
        let mut at = prefix_of(path);
        // The first folder must be readable; one that is met on the way is passed over.
        let names = entries(folder).map_err(|fault| fault.at(&shown(path)))?;
        self.enter(folder, names, &mut at, 1, visit).map(drop)
    }

    fn enter(
        &mut self,
        folder: BorrowedFd<'_>,
        names: Vec<(OsString, Kind)>,
        at: &mut String,
        depth: usize,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, ToolError> {
        let outer = self.rules.as_ref().map_or(0, Vec::len);
        if let Some(rules) = &mut self.rules {
            rules.extend(read_rules(folder, at.len()));
        }
        let from = at.len();
        let mut flow = ControlFlow::Continue(());
        for (name, kind) in names {
            self.stop.check()?;
            at.push_str(&name.to_string_lossy());
            if !self.is_ignored(&name, at, kind) {
                let found = Found {
                    folder,
                    name: &name,
                    kind,
                    path: at,
                };
                flow = visit(&found)?;
                if flow.is_continue() && kind == Kind::Folder && depth < self.depth {
                    let inner = open_folder(folder, &name)
                        .and_then(|inner| entries(inner.as_fd()).map(|names| (inner, names)));
                    if let Ok((inner, names)) = inner {
                        at.push('/');
                        flow = self.enter(inner.as_fd(), names, at, depth + 1, visit)?;
                    }
                }
            }
            at.truncate(from);
            if flow.is_break() {
                break;
            }
        }
        if let Some(rules) = &mut self.rules {
            rules.truncate(outer);
        }
        Ok(flow)
    }

    fn is_ignored(&self, name: &OsStr, path: &str, kind: Kind) -> bool {
        let Some(rules) = &self.rules else {
            return false;
        };
        if name == ".git" {
            return true;
        }
        // The innermost rule that says something counts.
        for Rules { from, rules } in rules.iter().rev() {
            match rules.matched(&path[*from..], kind == Kind::Folder) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

/// How paths of what is in a folder begin.
fn prefix_of(path: &Path) -> String {
    match shown(path) {
        here if here == "." => String::new(),
        path => path + "/",
    }
}

/// What a folder holds, by name.
fn entries(folder: BorrowedFd<'_>) -> Result<Vec<(OsString, Kind)>, Fault> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let kind = match entry.file_type() {
            // Some file systems do not say it here.
            FileType::Unknown => {
                match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => Kind::of_stat(&stat),
                    Err(_gone) => continue,
                }
            }
            known => Kind::of(known),
        };
        names.push((name.to_owned(), kind));
    }
    names.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    Ok(names)
}

fn read_rules(folder: BorrowedFd<'_>, from: usize) -> Option<Rules> {
    let file = open_file(folder, OsStr::new(".gitignore")).ok()?;
    let mut bytes = Vec::new();
    file.take(RULES_BYTES).read_to_end(&mut bytes).ok()?;
    let mut rules = GitignoreBuilder::new(".");
    for line in String::from_utf8_lossy(&bytes).lines() {
        // A line that cannot be understood ignores nothing, as in git.
        let _understood = rules.add_line(None, line);
    }
    let rules = rules.build().ok()?;
    Some(Rules { from, rules })
}

/// A pattern of paths. Without a slash it fits a name in any folder, as in `.gitignore`.
pub(super) fn pattern(name: &str, pattern: &str) -> Result<GlobMatcher, ToolError> {
    let anywhere;
    let full = match pattern.strip_prefix('/') {
        Some(rest) => rest,
        None if pattern.contains('/') => pattern.strip_prefix("./").unwrap_or(pattern),
        None => {
            anywhere = format!("**/{pattern}");
            &anywhere
        }
    };
    GlobBuilder::new(full)
        .literal_separator(true)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|error| ToolError::invalid(format!("`{name}` is no pattern: {}", error.kind())))
}

/// The part of a met path that lies below the folder where the walk began.
pub(super) fn below<'a>(path: &'a str, start: &Path) -> &'a str {
    &path[prefix_of(start).len()..]
}
