//! Toolset `filesystem`: reads, writes and searches files of the session's working directory, and
//! nothing outside of it. How that border is kept is in [`confine`]; what a folder tree holds is
//! found by [`walk`].

mod confine;
mod edit_file;
mod glob;
mod grep;
mod list_directory;
mod picture;
mod read_file;
mod walk;
mod write_file;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use attache_agent::session::ErrorCode;
use attache_agent::{CallContext, Cancel, Tool, ToolError, Toolset};
use serde_json::{Map, Value};

use crate::agent_session::Answer;
use confine::Confined;

/// Bytes of text or of paths that one answer holds.
const ANSWER_BYTES: usize = 64 * 1024;

/// Largest file that is edited or searched. Larger ones are read page by page.
const WHOLE_FILE_BYTES: u64 = 8 * 1024 * 1024;

/// The toolset.
pub struct Filesystem;

impl Toolset for Filesystem {
    fn kind(&self) -> &'static str {
        "filesystem"
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![
            Arc::new(read_file::ReadFile::default()),
            Arc::new(write_file::WriteFile::default()),
            Arc::new(edit_file::EditFile::default()),
            Arc::new(list_directory::ListDirectory::default()),
            Arc::new(glob::Glob::default()),
            Arc::new(grep::Grep::default()),
        ]
    }
}

/// Says whether work on files is still wanted.
struct Stop {
    /// The call itself was dropped.
    dropped: Arc<AtomicBool>,
    /// Its turn ends.
    cancel: Cancel,
}

impl Stop {
    /// Fails when nobody waits for the work any more. It is asked between files.
    fn check(&self) -> Result<(), ToolError> {
        if self.dropped.load(Ordering::Relaxed) || self.cancel.is_set() {
            return Err(ToolError::new(
                ErrorCode::Internal,
                "the call was ended before it was done",
            ));
        }
        Ok(())
    }
}

/// Tells the work that its call was dropped.
struct SetOnDrop(Arc<AtomicBool>);

impl Drop for SetOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Does work on files apart from the threads that sessions run on.
async fn on_files(
    context: &CallContext,
    work: impl FnOnce(&Confined, &Stop) -> Answer + Send + 'static,
) -> Answer {
    let dropped = Arc::new(AtomicBool::new(false));
    let stop = Stop {
        dropped: Arc::clone(&dropped),
        cancel: context.cancel.clone(),
    };
    let _end_with_the_call = SetOnDrop(dropped);
    let working_directory = context.working_directory.clone();
    let done = tokio::task::spawn_blocking(move || {
        let confined = Confined::open(&working_directory)?;
        work(&confined, &stop)
    });
    done.await.unwrap_or_else(|_fault| {
        Err(ToolError::new(
            ErrorCode::Internal,
            "the tool failed on a fault of its own",
        ))
    })
}

/// Who writes in a working directory.
type Writer = tokio::sync::Mutex<()>;

/// The writers of the working directories in which somebody writes now.
static WRITERS: Mutex<BTreeMap<PathBuf, Weak<Writer>>> = Mutex::new(BTreeMap::new());

fn writer(working_directory: &Path) -> Arc<Writer> {
    let mut writers = WRITERS.lock().unwrap_or_else(PoisonError::into_inner);
    writers.retain(|_, writer| writer.strong_count() > 0);
    match writers.get(working_directory).and_then(Weak::upgrade) {
        Some(writer) => writer,
        None => {
            let writer = Arc::new(Writer::new(()));
            writers.insert(working_directory.to_owned(), Arc::downgrade(&writer));
            writer
        }
    }
}

/// The same for work that changes files. In one working directory such calls follow each other in
/// the order in which they began, so that two edits of a file in one step both stand.
async fn on_files_alone(
    context: &CallContext,
    work: impl FnOnce(&Confined, &Stop) -> Answer + Send + 'static,
) -> Answer {
    let turn = writer(&context.working_directory).lock_owned().await;
    on_files(context, move |confined, stop| {
        // A call that is dropped keeps its turn until its work has ended.
        let _turn = turn;
        work(confined, stop)
    })
    .await
}

/// Adds what was adjusted to an answer.
fn with_adjusted(mut shown: Value, adjusted: Map<String, Value>) -> Value {
    if !adjusted.is_empty() {
        shown["adjusted"] = Value::Object(adjusted);
    }
    shown
}
