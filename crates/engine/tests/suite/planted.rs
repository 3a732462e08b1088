//! Bugs that are planted into the store below the engine: notices that are lost or doubled, charges that leak, fences
//! that are none, rows that are not true. The simulation has to find each of them: else an engine or a store with that bug
//! would pass.

use attache_testkit::Planted;

use crate::simulation;
use crate::tally::Counts;

/// Seeds in which a bug has to show. Far fewer than a run has, so that what is found is no luck.
const SEEDS: u64 = 50;

#[test]
fn every_planted_bug_is_found() {
    let mut missed = Vec::new();
    for bug in Planted::ALL {
        let holds = |seed: &u64| simulation::holds(*seed, Some(bug), &mut Counts::new());
        match (1..=SEEDS).find(|seed| !holds(seed)) {
            Some(seed) => println!("{bug:?}: found by seed {seed}"),
            None => missed.push(bug),
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}
