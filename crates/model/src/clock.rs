//! The clocks of the shell: the only place of this crate that reads one. Decoders, encoders and scripts' rules do not.

use std::time::SystemTime;

use tokio::time::Instant;

/// The clock that timers go by; virtual when the runtime's is.
#[expect(clippy::disallowed_methods, reason = "this is the shell's clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The wall clock, for dates of providers that do not tell their own time.
#[expect(clippy::disallowed_methods, reason = "this is the shell's clock")]
pub(crate) fn wall() -> SystemTime {
    SystemTime::now()
}
