//! The list of event kinds stays short, and times are cursors without ties.

use std::collections::BTreeSet;

use attache_session::{Event, QueueId, Timestamp};
use proptest::prelude::*;

use crate::desk::{Desk, enqueue};

/// The architecture's bound; a new kind has first to ask whether an old one can carry it.
const MOST_KINDS: usize = 30;

#[test]
fn events_have_at_most_thirty_kinds() {
    let names: BTreeSet<&str> = Event::KINDS.iter().copied().collect();
    assert_eq!(names.len(), Event::KINDS.len(), "each has its own name");
    assert!(names.len() <= MOST_KINDS, "{names:?}");
}

proptest! {
    #[test]
    fn times_strictly_increase_whatever_the_clock_does(
        readings in prop::collection::vec(-5_000_000_i64..5_000_000, 1..40)
    ) {
        let mut desk = Desk::new();
        for reading in readings {
            let last = desk.state.last_at;
            // The desk winds the clock by 1 ms at each step and asserts the order itself.
            desk.now = reading;
            let decision = desk.does(enqueue(None, QueueId::Default, "go"));
            let now = Timestamp(reading + 1_000);
            let mut before = last;
            for stamped in &decision.events {
                prop_assert!(stamped.at > before);
                prop_assert_eq!(stamped.at, now.max(before.next()));
                let moved = stamped.at.0 - now.0 > 1_000_000;
                prop_assert_eq!(stamped.observed, moved.then_some(now), "{}", stamped.event.kind());
                before = stamped.at;
            }
        }
    }
}
