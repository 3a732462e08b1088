//! The clock of the benchmarks, and the time that a sync takes on the disk they run on.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// A moment to measure from.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
pub(crate) fn moment() -> Instant {
    Instant::now()
}

/// How long `work` takes.
pub(crate) fn time<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = moment();
    let value = work();
    (value, start.elapsed())
}

/// The middle of some durations.
pub(crate) fn middle(mut all: Vec<Duration>) -> Duration {
    all.sort_unstable();
    all[all.len() / 2]
}

/// The middle of what a sync of 4 KiB takes in a folder.
pub(crate) fn sync_time(folder: &Path) -> Duration {
    let mut file = File::create(folder.join("sync-time")).expect("a scratch file");
    let page = [7_u8; 4096];
    let times = (0..200).map(|_| {
        file.write_all(&page).expect("room");
        time(|| file.sync_data().expect("a sync")).1
    });
    middle(times.collect())
}
