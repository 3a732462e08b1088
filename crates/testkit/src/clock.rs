//! A clock that a test winds, and ids that count.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use attache_engine::Time;
use attache_session::Timestamp;
use uuid::{Builder, Uuid};

/// Noon of 30 November 2026.
const START: i64 = 1_796_040_000_000_000;

/// Lets virtual time pass. The runtime's time must be paused: it then goes on when nobody has anything
/// to do, so what is due meanwhile is done.
pub async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

/// What a piece of work answers, and the virtual time that it took. Under paused time that is exact:
/// work that waits for nothing takes none.
#[expect(
    clippy::disallowed_methods,
    reason = "the runtime's time is what is measured, and this is a clock.rs"
)]
pub async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let begin = tokio::time::Instant::now();
    let answer = work.await;
    (answer, begin.elapsed())
}

/// Time goes on by one microsecond with each look, unless another step is asked for, so that a test sees what it would see of a fast
/// machine; ids are UUIDv7s that count upwards.
#[derive(Debug)]
pub struct TestTime {
    now: AtomicI64,
    step: i64,
    next: AtomicU64,
    broken: AtomicBool,
}

impl Default for TestTime {
    fn default() -> Self {
        Self {
            now: AtomicI64::new(START),
            step: 1,
            next: AtomicU64::new(1),
            broken: AtomicBool::new(false),
        }
    }
}

impl TestTime {
    /// The clock of a later life of the host: hours on, and with ids that no life before has given.
    #[must_use]
    pub fn of_life(number: u32) -> Self {
        Self {
            now: AtomicI64::new(START + i64::from(number) * 3_600_000_000),
            step: 1,
            next: AtomicU64::new(u64::from(number) * 1_000_000 + 1),
            broken: AtomicBool::new(false),
        }
    }

    /// Makes each look take this long. With steps that are longer than an append has events, no
    /// stamp is moved ahead of the clock, and stamps of several sessions can be compared.
    #[must_use]
    pub fn stepping(mut self, micros: i64) -> Self {
        self.step = micros;
        self
    }

    /// Winds the clock forward, or back.
    pub fn wind(&self, micros: i64) {
        self.now.fetch_add(micros, Ordering::Relaxed);
    }
}

impl TestTime {
    /// Makes the next look panic: whoever looks fails as on a bug of its own.
    pub fn break_once(&self) {
        self.broken.store(true, Ordering::Relaxed);
    }
}

impl Time for TestTime {
    fn now(&self) -> Timestamp {
        assert!(
            !self.broken.swap(false, Ordering::Relaxed),
            "the clock was broken by the test"
        );
        Timestamp(self.now.fetch_add(self.step, Ordering::Relaxed))
    }

    fn fresh(&self) -> Uuid {
        let count = self.next.fetch_add(1, Ordering::Relaxed);
        let mut random = [0_u8; 10];
        random[2..].copy_from_slice(&count.to_be_bytes());
        let millis = u64::try_from(START / 1_000).unwrap_or(0) + count;
        Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
    }
}

/// The clock that deadlines go by, for tests that measure on a paused one.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the tests' clock")]
pub fn instant() -> tokio::time::Instant {
    tokio::time::Instant::now()
}
