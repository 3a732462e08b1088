//! Time that has passed, for what the product promises in seconds. Nothing is measured with it.

use std::time::{Duration, Instant};

/// A moment.
#[derive(Clone, Copy)]
pub(crate) struct Since(Instant);

impl Since {
    #[expect(
        clippy::disallowed_methods,
        reason = "promises of seconds are kept by other processes"
    )]
    pub(crate) fn now() -> Self {
        Self(Instant::now())
    }

    /// How long behind an earlier one.
    pub(crate) fn behind(&self, earlier: &Self) -> Duration {
        self.0.duration_since(earlier.0)
    }

    /// How long ago it was.
    pub(crate) fn passed(&self) -> Duration {
        self.0.elapsed()
    }
}
