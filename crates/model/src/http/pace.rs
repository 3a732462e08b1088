//! How often a fast reply is told of. Each telling wakes the turn, its viewers and their sockets; a reply that is much
//! faster than a screen is told of a thousand times a second, with all that came in between.

use std::time::Duration;

use tokio::time::Instant;

/// The least time between two tellings of a fast reply: far below what an eye or a viewer's socket notices.
const APART: Duration = Duration::from_millis(1);

/// Tellings that may follow one another faster than that: words that come in one burst are told of at once.
const BURST: u32 = 16;

/// When a reply was told of, as far as it matters for the next time.
#[derive(Default)]
pub(super) struct Pace {
    told: Option<Instant>,
    quick: u32,
}

impl Pace {
    /// Something came at `now`: the moment to wait for before it is told of, none for at once.
    pub(super) fn came(&mut self, now: Instant) -> Option<Instant> {
        let due = self.told? + APART;
        if due <= now {
            self.quick = 0;
            return None;
        }
        self.quick = (self.quick + 1).min(BURST);
        (self.quick == BURST).then_some(due)
    }

    /// It is told of at `now`.
    pub(super) fn told(&mut self, now: Instant) {
        self.told = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces that come this many microseconds after one another: how many are told of at once before the first that is
    /// not, and how long that one waits.
    fn first_wait(apart: u64, pieces: u32) -> Option<(u32, Duration)> {
        let mut now = crate::clock::now();
        let mut pace = Pace::default();
        for piece in 0..pieces {
            if let Some(until) = pace.came(now) {
                return Some((piece, until - now));
            }
            pace.told(now);
            now += Duration::from_micros(apart);
        }
        None
    }

    #[test]
    fn only_what_is_long_faster_than_a_screen_waits() {
        for (apart, want) in [
            (0, Some((16, Duration::from_micros(1_000)))),
            (100, Some((16, Duration::from_micros(900)))),
            (999, Some((16, Duration::from_micros(1)))),
            (1_000, None),
            (2_174, None),
        ] {
            assert_eq!(first_wait(apart, 1_000), want, "{apart}");
        }
    }

    #[test]
    fn a_pause_allows_the_next_burst() {
        let mut now = crate::clock::now();
        let mut pace = Pace::default();
        for _ in 0..100 {
            for _ in 0..BURST {
                assert_eq!(pace.came(now), None);
                pace.told(now);
            }
            now += APART;
        }
    }

    #[test]
    fn a_reply_that_stays_fast_is_told_of_at_most_a_thousand_times_a_second() {
        let begun = crate::clock::now();
        let mut now = begun;
        let mut pace = Pace::default();
        let mut told = 0;
        while now < begun + Duration::from_secs(1) {
            now = pace.came(now).unwrap_or(now);
            pace.told(now);
            told += 1;
            now += Duration::from_micros(8);
        }
        assert!((1_000..=1_000 + BURST).contains(&told), "{told}");
    }
}
