//! `write_file`: a file with new content. It is written beside the old one and put in its place, so
//! that a reader sees the old or the new content and never a part.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use attache_agent::{CallContext, ToolError, ToolOutcome};
use rustix::fs::{Access, AtFlags, Mode, OFlags};
use rustix::io::Errno;
use serde_json::{Value, json};

use super::confine::{Fault, Kind, Place, shown};
use super::on_files_alone;
use crate::agent_session::{Answer, tool};
use crate::arguments::Arguments;
use crate::show;

tool!(
    /// The tool.
    WriteFile,
    true,
    show::spec(
        "write_file",
        "Write a whole file of the working directory: a new one with its folders, or in place of \
         the old content. To change a part of a file use edit_file.",
        &json!({
            "path": { "type": "string", "description": "The file, from the working directory." },
            "content": { "type": "string", "description": "The whole new content, at most 1 MiB." }
        }),
        &["path", "content"]
    ),
    call
);

async fn call(context: CallContext, arguments: Value) -> Answer {
    let mut arguments = Arguments::new(arguments)?;
    let path = arguments.required_text("path")?;
    let content = arguments
        .exact_text("content")?
        .ok_or_else(|| ToolError::invalid("`content` is missing"))?;
    arguments.done()?;
    on_files_alone(&context, move |confined, stop| {
        let relative = confined.relative(&path)?;
        if path.ends_with('/') {
            return Err(Fault::NotAFile(Kind::Folder).at(&path));
        }
        stop.check()?;
        let (folder, name, created) = match confined.find(&relative, true) {
            Ok(Place::Free { folder, name }) => (folder, name, true),
            Ok(Place::Entry {
                folder,
                name,
                kind: Kind::File,
            }) => (folder, name, false),
            Ok(Place::Entry { kind, .. }) => return Err(Fault::NotAFile(kind).at(&path)),
            Ok(Place::Folder(_)) => return Err(Fault::NotAFile(Kind::Folder).at(&path)),
            Err(fault) => return Err(fault.at(&path)),
        };
        put(folder.as_fd(), &name, content.as_bytes()).map_err(|fault| fault.at(&path))?;
        Ok(ToolOutcome::json(&json!({
            "path": shown(&relative),
            "created": created,
            "bytes": content.len(),
        })))
    })
    .await
}

/// Tells apart the files of writes that are under way.
static WRITES: AtomicU64 = AtomicU64::new(0);

/// Files of that name that earlier writes may have left behind and that are passed over.
const LEFT_OVERS: usize = 100;

/// Puts content in the place of a file, or where there is none. The mode of a file that was there
/// stays, and one that may not be written is not written.
pub(super) fn put(folder: BorrowedFd<'_>, name: &OsStr, content: &[u8]) -> Result<(), Fault> {
    let mode = match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => match Kind::of_stat(&stat) {
            Kind::File => {
                rustix::fs::accessat(folder, name, Access::WRITE_OK, AtFlags::EACCESS)?;
                Some(Mode::from_raw_mode(stat.st_mode & 0o7777))
            }
            // It was exchanged meanwhile.
            Kind::Link => return Err(Fault::System(Errno::LOOP)),
            kind => return Err(Fault::NotAFile(kind)),
        },
        Err(Errno::NOENT) => None,
        Err(errno) => return Err(errno.into()),
    };
    let (beside, file) = create_beside(folder)?;
    let written = write_all(file, content, mode)
        .and_then(|()| Ok(rustix::fs::renameat(folder, &beside, folder, name)?));
    if written.is_err() {
        // What cannot be taken away is left; the failure that is told is the first one.
        let _taken_away = rustix::fs::unlinkat(folder, &beside, AtFlags::empty());
    }
    written
}

fn create_beside(folder: BorrowedFd<'_>) -> Result<(String, File), Fault> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut tries = 0;
    loop {
        let number = WRITES.fetch_add(1, Ordering::Relaxed);
        let name = format!(".attache-{}-{number}.new", std::process::id());
        match rustix::fs::openat(folder, &name, flags, Mode::from_raw_mode(0o666)) {
            Ok(file) => return Ok((name, File::from(file))),
            Err(Errno::EXIST) if tries < LEFT_OVERS => tries += 1,
            Err(errno) => return Err(errno.into()),
        }
    }
}

fn write_all(mut file: File, content: &[u8], mode: Option<Mode>) -> Result<(), Fault> {
    file.write_all(content)?;
    if let Some(mode) = mode {
        rustix::fs::fchmod(&file, mode)?;
    }
    Ok(())
}
