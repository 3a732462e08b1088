//! The clock that never goes back: the only place of the host that reads it.

use tokio::time::Instant;

/// What it says.
#[expect(
    clippy::disallowed_methods,
    reason = "the clock of the host is read here"
)]
pub(crate) fn instant() -> Instant {
    Instant::now()
}
