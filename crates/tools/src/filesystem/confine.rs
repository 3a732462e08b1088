//! Paths that cannot leave the working directory.
//!
//! A path is walked one name at a time from an open descriptor of the working directory. No step
//! follows a link in the kernel: a link is read, and its target is walked like the rest of the path.
//! `..` goes back to the descriptor that the walk came from. So neither the spelling of a path, nor
//! a link, nor somebody who exchanges a folder for a link meanwhile leads outside. The same is done
//! on every kernel; `openat2` would refuse absolute links that stay inside, and is itself refused in
//! many containers.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use attache_agent::ToolError;
use attache_agent::session::ErrorCode;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::arguments::quoted;

/// Links that one path may go through, as many as Linux allows.
const MOST_LINKS: usize = 40;

/// How folders are opened on the way.
const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// What stands under a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    File,
    Folder,
    Link,
    /// A device, a pipe or a socket.
    Other,
}

impl Kind {
    pub(super) fn of(file_type: FileType) -> Self {
        match file_type {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Folder,
            FileType::Symlink => Self::Link,
            _ => Self::Other,
        }
    }

    pub(super) fn of_stat(stat: &Stat) -> Self {
        Self::of(FileType::from_raw_mode(stat.st_mode))
    }
}

/// Why a path cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// It leads out of the working directory.
    Outside,
    /// Nothing is there.
    Missing,
    /// A folder is needed, and this is none.
    NotAFolder,
    /// A file is needed, and this is something else.
    NotAFile(Kind),
    /// The operating system has another reason.
    System(Errno),
}

impl From<Errno> for Fault {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Self::Missing,
            Errno::NOTDIR => Self::NotAFolder,
            errno => Self::System(errno),
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Errno::from_io_error(&error).unwrap_or(Errno::IO).into()
    }
}

impl Fault {
    /// What the model is told; `path` is what it asked for.
    pub(super) fn at(self, path: &str) -> ToolError {
        let path = quoted(path);
        let (code, message, hint) = match self {
            Self::Outside => (
                ErrorCode::NotPermitted,
                format!("{path} leads out of the working directory"),
                "Use a path inside the working directory; list_directory shows what is there.",
            ),
            Self::Missing => (
                ErrorCode::InvalidArguments,
                format!("there is no {path}"),
                "Look for it with list_directory or glob; upper and lower case differ.",
            ),
            Self::NotAFolder => (
                ErrorCode::InvalidArguments,
                format!("{path} is no folder, or goes through something that is none"),
                "Use read_file for a file, and a folder that list_directory shows.",
            ),
            Self::NotAFile(Kind::Folder) => (
                ErrorCode::InvalidArguments,
                format!("{path} is a folder"),
                "Use list_directory for a folder, or name a file in it.",
            ),
            Self::NotAFile(_) => (
                ErrorCode::InvalidArguments,
                format!("{path} is a device, a pipe or a socket"),
                "Only plain files can be read and written.",
            ),
            Self::System(Errno::ACCESS | Errno::PERM | Errno::ROFS) => (
                ErrorCode::NotPermitted,
                format!("the operating system denies the access to {path}"),
                "Work on another file, or ask the user for the permission.",
            ),
            Self::System(Errno::LOOP) => (
                ErrorCode::InvalidArguments,
                format!("{path} goes through too many links, or a link came or went meanwhile"),
                "Use the path without links; list_directory shows which names are links.",
            ),
            Self::System(Errno::NAMETOOLONG) => (
                ErrorCode::InvalidArguments,
                format!("a name in {path} is too long"),
                "Use names of at most 255 bytes.",
            ),
            Self::System(Errno::NOSPC | Errno::DQUOT) => {
                return ToolError::new(
                    ErrorCode::StorageFull,
                    format!("the disk is full: {path} was not written"),
                );
            }
            Self::System(errno) => (
                ErrorCode::Internal,
                format!("{path}: {}", io::Error::from(errno).kind()),
                "Try once more; if it stays so, work without this file.",
            ),
        };
        ToolError::new(code, message).with_hint(hint)
    }
}

/// Where a path leads.
pub(super) enum Place {
    /// To a folder.
    Folder(OwnedFd),
    /// To something else that exists: no link.
    Entry {
        folder: OwnedFd,
        name: OsString,
        kind: Kind,
    },
    /// To a name that is free, in a folder that exists.
    Free { folder: OwnedFd, name: OsString },
}

/// An open working directory.
pub(super) struct Confined {
    root: OwnedFd,
    /// How absolute paths into it begin: as it was recorded, and as it is without links.
    spellings: Vec<PathBuf>,
}

impl Confined {
    /// Opens a working directory, which may itself be reached through links.
    pub(super) fn open(working_directory: &Path) -> Result<Self, ToolError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root =
            rustix::fs::openat(CWD, working_directory, flags, Mode::empty()).map_err(|errno| {
                let why = match errno {
                    Errno::NOENT | Errno::NOTDIR => "is gone",
                    _ => "cannot be opened",
                };
                ToolError::new(
                    ErrorCode::HostIncompatible,
                    format!("the working directory of this session {why}"),
                )
                .with_hint(
                    "Tell the user: the folder has to be there again before files can be used.",
                )
            })?;
        let mut spellings = vec![working_directory.to_owned()];
        if let Ok(real) = working_directory.canonicalize()
            && real != working_directory
        {
            spellings.push(real);
        }
        Ok(Self { root, spellings })
    }

    /// The descriptor of the working directory.
    pub(super) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// The path below the working directory that a model means, or why it means none.
    pub(super) fn relative(&self, path: &str) -> Result<PathBuf, ToolError> {
        if path.contains('\0') {
            return Err(ToolError::invalid("`path` holds a NUL"));
        }
        self.strip(Path::new(path))
            .ok_or_else(|| Fault::Outside.at(path))
    }

    fn strip(&self, path: &Path) -> Option<PathBuf> {
        if path.is_relative() {
            return Some(path.to_owned());
        }
        self.spellings
            .iter()
            .find_map(|root| path.strip_prefix(root).ok())
            .map(Path::to_owned)
    }

    /// Walks a path of [`Confined::relative`], through links to its end. With `make_folders`, missing
    /// folders on the way are made.
    pub(super) fn find(&self, path: &Path, make_folders: bool) -> Result<Place, Fault> {
        let mut todo = Vec::new();
        let mut opened: Vec<OwnedFd> = Vec::new();
        let mut links = 0;
        push_names(&mut todo, path)?;
        while let Some(name) = todo.pop() {
            if name == ".." {
                opened.pop().ok_or(Fault::Outside)?;
                continue;
            }
            let here = opened.last().map_or(self.root(), AsFd::as_fd);
            let stat = match rustix::fs::statat(here, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                Err(Errno::NOENT) if todo.is_empty() => {
                    let folder = self.innermost(opened)?;
                    return Ok(Place::Free { folder, name });
                }
                Err(Errno::NOENT) if make_folders => {
                    match rustix::fs::mkdirat(here, &name, Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => todo.push(name),
                        Err(errno) => return Err(errno.into()),
                    }
                    continue;
                }
                Err(errno) => return Err(errno.into()),
            };
            match Kind::of_stat(&stat) {
                Kind::Folder => {
                    let next = rustix::fs::openat(here, &name, FOLDER, Mode::empty())?;
                    opened.push(next);
                }
                Kind::Link => {
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(Fault::System(Errno::LOOP));
                    }
                    let target = match rustix::fs::readlinkat(here, &name, Vec::new()) {
                        // It is no link any more; told as when something has become one.
                        Err(Errno::INVAL) => return Err(Fault::System(Errno::LOOP)),
                        target => target?,
                    };
                    let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                    if target.is_absolute() {
                        opened.clear();
                    }
                    let target = self.strip(&target).ok_or(Fault::Outside)?;
                    push_names(&mut todo, &target)?;
                }
                kind if todo.is_empty() => {
                    let folder = self.innermost(opened)?;
                    return Ok(Place::Entry { folder, name, kind });
                }
                Kind::File | Kind::Other => return Err(Fault::NotAFolder),
            }
        }
        Ok(Place::Folder(self.innermost(opened)?))
    }

    fn innermost(&self, mut opened: Vec<OwnedFd>) -> Result<OwnedFd, Fault> {
        match opened.pop() {
            Some(folder) => Ok(folder),
            None => Ok(self.root.try_clone()?),
        }
    }

    /// The folder that a path leads to.
    pub(super) fn folder(&self, path: &Path) -> Result<OwnedFd, Fault> {
        match self.find(path, false)? {
            Place::Folder(folder) => Ok(folder),
            Place::Entry { .. } => Err(Fault::NotAFolder),
            Place::Free { .. } => Err(Fault::Missing),
        }
    }

    /// The plain file that a path leads to, opened for reading.
    pub(super) fn file(&self, path: &Path) -> Result<File, Fault> {
        match self.find(path, false)? {
            Place::Folder(_) => Err(Fault::NotAFile(Kind::Folder)),
            Place::Free { .. } => Err(Fault::Missing),
            Place::Entry { folder, name, kind } => match kind {
                Kind::File => open_file(folder.as_fd(), &name),
                kind => Err(Fault::NotAFile(kind)),
            },
        }
    }
}

/// Opens the plain file of a name for reading. Neither a link is followed nor a pipe waited for.
pub(super) fn open_file(folder: BorrowedFd<'_>, name: &OsStr) -> Result<File, Fault> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, name, flags, Mode::empty())?;
    match Kind::of_stat(&rustix::fs::fstat(&file)?) {
        Kind::File => Ok(File::from(file)),
        kind => Err(Fault::NotAFile(kind)),
    }
}

/// Opens the folder of a name. No link is followed.
pub(super) fn open_folder(folder: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Fault> {
    Ok(rustix::fs::openat(folder, name, FOLDER, Mode::empty())?)
}

/// Puts the names of a path on the stack of what is to be walked, the first one on top.
fn push_names(todo: &mut Vec<OsString>, path: &Path) -> Result<(), Fault> {
    let from = todo.len();
    for component in path.components() {
        match component {
            Component::Normal(name) => todo.push(name.to_owned()),
            Component::ParentDir => todo.push("..".into()),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return Err(Fault::Outside),
        }
    }
    todo[from..].reverse();
    Ok(())
}

/// A path as it is shown: with single slashes and without `.`; the working directory is `.`.
pub(super) fn shown(path: &Path) -> String {
    let clean: PathBuf = path
        .components()
        .filter(|c| *c != Component::CurDir)
        .collect();
    match clean.to_string_lossy() {
        clean if clean.is_empty() => ".".to_owned(),
        clean => clean.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::{FdFlags, fcntl_getfd};
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_is_opened_itself_and_at_once() {
        let top = tempfile::tempdir().unwrap();
        let root = Confined::open(top.path()).unwrap();
        std::fs::write(top.path().join("file"), "x").unwrap();
        symlink("file", top.path().join("link")).unwrap();
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(root.root(), "pipe", rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let open = |name: &str| open_file(root.root(), OsStr::new(name));
        let file = open("file").unwrap();
        // What it was a moment ago does not count: a link is not followed, a pipe is not waited for.
        assert!(matches!(open("link"), Err(Fault::System(Errno::LOOP))));
        assert!(matches!(open("pipe"), Err(Fault::NotAFile(Kind::Other))));
        // No program that is started gets them.
        for flags in [fcntl_getfd(&file), fcntl_getfd(root.root())] {
            assert_eq!(flags, Ok(FdFlags::CLOEXEC));
        }
        assert!(Confined::open(&top.path().join("file")).is_err());
    }

    #[test]
    fn folders_are_made_only_for_whoever_writes() {
        let top = tempfile::tempdir().unwrap();
        let root = Confined::open(top.path()).unwrap();
        let path = Path::new("a/b/c");
        assert!(root.find(path, false).is_err());
        assert!(!top.path().join("a").exists());
        assert!(matches!(root.find(path, true), Ok(Place::Free { .. })));
        assert!(top.path().join("a/b").is_dir() && !top.path().join("a/b/c").exists());
    }

    #[test]
    fn links_lead_on_up_to_their_bound() {
        let top = tempfile::tempdir().unwrap();
        let root = Confined::open(top.path()).unwrap();
        std::fs::write(top.path().join("0"), "x").unwrap();
        for number in 0..=MOST_LINKS {
            symlink(
                number.to_string(),
                top.path().join((number + 1).to_string()),
            )
            .unwrap();
        }
        let through = |links: usize| root.find(Path::new(&links.to_string()), false);
        assert!(matches!(through(MOST_LINKS), Ok(Place::Entry { .. })));
        let more = through(MOST_LINKS + 1);
        assert!(matches!(more, Err(Fault::System(Errno::LOOP))));
    }
}
