//! Time that has passed, for what the product promises in seconds. Nothing is measured with it.

use std::time::{Duration, Instant};

/// A moment.
pub(crate) struct Since(Instant);

impl Since {
    #[expect(
        clippy::disallowed_methods,
        reason = "promises of seconds are kept by other processes"
    )]
    pub(crate) fn now() -> Self {
        Self(Instant::now())
    }

    /// How long ago it was.
    pub(crate) fn passed(&self) -> Duration {
        self.0.elapsed()
    }
}
