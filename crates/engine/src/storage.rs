//! Opens the store of a state folder, and says what is wrong when it cannot be opened.

use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;

use attache_session::ErrorCode;
use attache_store::Store;
use attache_store::sqlite::{OpenError, Options, SqliteStore};

use crate::error::EngineError;

/// The database's name in the state folder.
const FILE: &str = "attache.db";

/// Whether the store of a state folder can be opened; one that is not there yet can be made.
///
/// # Errors
///
/// As for [`open_store`], which this does for a moment.
pub fn check_store(folder: &Path) -> Result<(), EngineError> {
    if folder.join(FILE).exists() {
        open_store(folder).map(drop)
    } else {
        Ok(())
    }
}

/// Opens the store of a state folder, or makes one, and holds it until it is dropped.
///
/// # Errors
///
/// [`EngineError`] when another process holds it, when a newer program has written it, or when it
/// is damaged.
pub fn open_store(folder: &Path) -> Result<Arc<dyn Store>, EngineError> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|fault| {
            let text = format!(
                "the state folder {} cannot be made: {fault}",
                folder.display()
            );
            EngineError::new(ErrorCode::Internal, text)
        })?;
    match SqliteStore::open(&folder.join(FILE), Options::default()) {
        Ok(store) => Ok(Arc::new(store)),
        Err(error) => {
            let code = match &error {
                OpenError::Locked { .. } => ErrorCode::StoreLocked,
                OpenError::TooNew { .. } => ErrorCode::HostIncompatible,
                OpenError::Corrupt(_) => ErrorCode::StorageCorrupt,
                OpenError::Failed(_) => ErrorCode::Internal,
            };
            Err(EngineError::new(code, error.to_string()))
        }
    }
}
