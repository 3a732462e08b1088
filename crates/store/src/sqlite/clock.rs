//! The clock of the writer: it measures how long a commit takes, and never dates anything.

use std::time::Instant;

/// A moment to measure from.
#[expect(
    clippy::disallowed_methods,
    reason = "how long a commit takes decides how long the next one gathers"
)]
pub(super) fn moment() -> Instant {
    Instant::now()
}
