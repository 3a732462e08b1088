//! The viewer's clock and its fresh ids: ages are shown by the one, commands named by the other.

use std::time::Instant;

use attache_host::fresh_id;

/// Microseconds since the Unix epoch.
#[expect(clippy::disallowed_methods, reason = "this is the viewer's clock")]
pub(crate) fn now() -> i64 {
    jiff::Timestamp::now().as_microsecond()
}

/// The monotonic clock, by which limits of time go.
#[expect(clippy::disallowed_methods, reason = "this is the viewer's clock")]
pub(crate) fn instant() -> Instant {
    Instant::now()
}

/// A fresh UUIDv7 in its usual form.
pub(crate) fn id() -> String {
    fresh_id().to_string()
}

/// Seconds since a time in RFC 3339; 0 when it cannot be read or lies ahead.
pub(crate) fn seconds_since(time: &str) -> i64 {
    time.parse::<jiff::Timestamp>()
        .map_or(0, |at| (now() - at.as_microsecond()).max(0) / 1_000_000)
}
