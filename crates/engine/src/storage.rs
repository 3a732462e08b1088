//! Opens the store of a state folder, and says what is wrong when it cannot be opened.

use std::path::Path;
use std::sync::Arc;

use attache_session::ErrorCode;
use attache_store::Store;
use attache_store::sqlite::{OpenError, Options, SqliteStore};

use crate::error::EngineError;

/// The database's name in the state folder.
const FILE: &str = "attache.db";

/// Opens the store of a state folder, or makes one, and holds it until it is dropped.
///
/// # Errors
///
/// [`EngineError`] when another process holds it, when a newer program has written it, or when it
/// is damaged.
pub fn open_store(folder: &Path) -> Result<Arc<dyn Store>, EngineError> {
    std::fs::create_dir_all(folder).map_err(|fault| {
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
