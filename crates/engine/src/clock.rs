//! The wall clock and fresh ids: the only place of the engine that reads the one and draws the
//! other. Tests give their own.

use attache_session::Timestamp;
use uuid::{Builder, Uuid};

/// Time and chance, as the engine needs them.
pub trait Time: Send + Sync {
    /// What the wall clock says.
    fn now(&self) -> Timestamp;

    /// A fresh UUIDv7.
    fn fresh(&self) -> Uuid;
}

/// The clock that deadlines go by; virtual when the runtime's is.
#[expect(clippy::disallowed_methods, reason = "this is the shell's clock")]
pub(crate) fn instant() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

/// The machine's clock and the operating system's randomness.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemTime;

impl Time for SystemTime {
    #[expect(clippy::disallowed_methods, reason = "this is the shell's clock")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }

    fn fresh(&self) -> Uuid {
        let mut random = [0_u8; 10];
        // Without randomness the operating system is unusable; an id of the clock alone is still
        // unique within one process that is asked this seldom.
        if getrandom::fill(&mut random).is_err() {
            random.copy_from_slice(&self.now().0.to_be_bytes().repeat(2)[..10]);
        }
        let millis = u64::try_from(self.now().0 / 1_000).unwrap_or(0);
        Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
    }
}
