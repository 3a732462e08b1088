//! What a sync costs on the disk of a folder: without it a figure that waits for the disk cannot be read.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use super::report::{middle, millis};
use crate::failure::Failure;
use crate::shell::Stopwatch;

/// Syncs that are taken.
const SYNCS: usize = 200;

/// What is written before each: about one event.
const BYTES: [u8; 300] = [b'x'; 300];

/// The middle of the times, as text that stands beside a figure.
pub(super) fn sync(folder: &Path) -> Result<String, Failure> {
    let path = folder.join("sync-time");
    let measured = measure(&path).map_err(|source| Failure::Read { path, source })?;
    Ok(format!("fdatasync p50 {measured:.3} ms"))
}

fn measure(path: &Path) -> std::io::Result<f64> {
    let mut file = File::create(path)?;
    let mut times = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        file.write_all(&BYTES)?;
        let watch = Stopwatch::start();
        file.sync_data()?;
        times.push(millis(watch.elapsed()));
    }
    std::fs::remove_file(path)?;
    Ok(middle(times))
}
