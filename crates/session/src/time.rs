//! Time as a number, and the rule that makes a time stamp a cursor without ties.

/// Microseconds since the Unix epoch, UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// One microsecond later.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// A stamp that was moved further than this keeps the observed time beside it.
const NOTABLE_SHIFT_MICROS: i64 = 1_000_000;

/// Hands out the times of one session's events: `at = max(now, last + 1 µs)`.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    now: Timestamp,
    last: Timestamp,
}

impl Clock {
    /// A clock that reads `now` in a session whose newest event is of `last`.
    #[must_use]
    pub fn new(now: Timestamp, last: Timestamp) -> Self {
        Self { now, last }
    }

    /// The next event's time, and the observed time where the two differ by more than a second.
    pub fn stamp(&mut self) -> (Timestamp, Option<Timestamp>) {
        let at = self.now.max(self.last.next());
        self.last = at;
        let moved = at.0.saturating_sub(self.now.0) > NOTABLE_SHIFT_MICROS;
        (at, moved.then_some(self.now))
    }

    /// What the wall clock said, for ages and reports.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_strictly_increase_whatever_the_clock_does() {
        let mut last = Timestamp(0);
        for now in [5, 5, 5, 2_000_000, 3, 3] {
            let mut clock = Clock::new(Timestamp(now), last);
            for _ in 0..3 {
                let (at, _) = clock.stamp();
                assert!(at > last);
                last = at;
            }
        }
    }

    #[test]
    fn a_stamp_moved_by_more_than_a_second_keeps_the_observed_time() {
        let mut back = Clock::new(Timestamp(1_000_000), Timestamp(9_000_000));
        assert_eq!(
            back.stamp(),
            (Timestamp(9_000_001), Some(Timestamp(1_000_000)))
        );
        let mut tie = Clock::new(Timestamp(7), Timestamp(7));
        assert_eq!(tie.stamp(), (Timestamp(8), None));
    }
}
