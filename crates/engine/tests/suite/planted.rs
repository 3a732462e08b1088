//! Bugs that are planted into the store below the engine. The simulation or the crashes have to find each
//! of them: else an engine or a store with that bug would pass.

use attache_testkit::Planted;

use crate::crashes;
use crate::simulation::{self, Counts};

/// Seeds in which a bug has to show. Far fewer than a run has, so that what is found is no luck.
const SEEDS: u64 = 50;

#[test]
fn every_planted_bug_is_found() {
    let mut missed = Vec::new();
    for bug in Planted::ALL {
        let seed =
            (1..=SEEDS).find(|seed| !simulation::holds(*seed, Some(bug), &mut Counts::new()));
        match seed {
            Some(seed) => println!("{bug:?}: found by seed {seed}"),
            None if !crashes::hold(Some(bug)) => println!("{bug:?}: found by a crash"),
            None => missed.push(bug),
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}
