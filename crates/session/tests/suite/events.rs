//! The list of event kinds stays short, and times are cursors without ties.

use attache_session::{QueueId, Timestamp};
use proptest::prelude::*;

use crate::desk::{Desk, enqueue, kind};

/// The architecture's bound; a new kind has first to ask whether an old one can carry it.
const MOST_KINDS: usize = 30;

#[test]
fn events_have_at_most_thirty_kinds() {
    // `kind` has one arm for each variant and does not build without it.
    let source = include_str!("desk.rs");
    let arms: Vec<&str> = source
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Event::"))
        .filter(|line| line.contains("=> \""))
        .collect();
    let names: std::collections::BTreeSet<&str> = arms
        .iter()
        .filter_map(|arm| arm.split('"').nth(1))
        .collect();
    assert_eq!(names.len(), arms.len(), "each kind has its own name");
    assert!(names.len() > 20, "the arms were found: {arms:?}");
    assert!(
        names.len() <= MOST_KINDS,
        "{} kinds: {names:?}",
        names.len()
    );
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
                prop_assert_eq!(stamped.observed, moved.then_some(now), "{}", kind(&stamped.event));
                before = stamped.at;
            }
        }
    }
}
