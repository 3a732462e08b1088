//! Seeded simulations of both ends of the attach protocol over a bad wire: a host, its viewers, and all that happens to the
//! connections between them. When all is quiet, each viewer mirrors what the owner has, and each command took effect once.
//!
//! `ATTACHE_SEED=n` runs one seed, `ATTACHE_FROM` and `ATTACHE_SEEDS` others than those of a usual run, `ATTACHE_PLAN=file` a
//! plan that was written down; `cargo xtask soak attach` runs many. The plan of a seed that fails is written down.

mod book;
mod checks;
mod plan;
mod planted;
mod shown;
mod tally;
mod viewer;
mod world;

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use book::Counts;
use plan::Plan;
use planted::Planted;

/// Seeds of a run.
const SEEDS: u64 = 2_000;

/// Seeds in which a planted bug has to show. Far fewer than a run has, so that what is found is no luck.
const PLANTED_SEEDS: u64 = 50;

/// How a plan is played again.
const REPLAY: &str = "cargo xtask test -p attache-host seeded_viewers";

/// What is wrong in the world of a plan; nothing when it holds.
fn play(plan: &Plan, bug: Option<Planted>, counts: &mut Counts) -> Vec<String> {
    let run = std::panic::AssertUnwindSafe(|| world::play(plan, bug));
    match std::panic::catch_unwind(run) {
        Ok((own, wrong)) => {
            for (what, number) in own {
                *counts.entry(what).or_default() += number;
            }
            wrong
        }
        Err(_panic) => vec!["a panic, as above".to_owned()],
    }
}

/// Writes a plan down, for whoever wants to play it again or to take steps out of it.
fn write_down(seed: u64, plan: &Plan) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("plans");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join(format!("attach-{seed}.plan"));
    std::fs::write(&file, plan.to_text()).unwrap();
    file
}

/// A number that a run is given from outside.
fn given(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("the variable is a number"))
}

#[test]
fn seeded_viewers_mirror_what_the_owner_has_and_commands_take_effect_once() {
    if let Ok(file) = std::env::var("ATTACHE_PLAN") {
        let plan = Plan::from_text(&std::fs::read_to_string(file).unwrap());
        let mut counts = Counts::new();
        let wrong = play(&plan, None, &mut counts);
        println!("{counts:#?}");
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        return;
    }
    let one = given("ATTACHE_SEED");
    let first = one.or(given("ATTACHE_FROM")).unwrap_or(1);
    let count = given("ATTACHE_SEEDS").unwrap_or(SEEDS);
    let count = one.map_or(count, |_| 1);
    let next = AtomicU64::new(first);
    let all = Mutex::new((Counts::new(), Vec::new()));
    let work = || {
        let mut counts = Counts::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + count {
                break;
            }
            let plan = Plan::of(seed);
            let wrong = play(&plan, None, &mut counts);
            if !wrong.is_empty() {
                let file = write_down(seed, &plan);
                println!("{}", wrong.join("\n"));
                println!("seed {seed} failed, and does again by: ATTACHE_SEED={seed} {REPLAY}");
                println!("or by: ATTACHE_PLAN={} {REPLAY}", file.display());
                all.lock().unwrap().1.push(seed);
            }
        }
        let mut all = all.lock().unwrap();
        for (what, number) in counts {
            *all.0.entry(what).or_default() += number;
        }
    };
    // Each world has a runtime of its own and shares nothing with others.
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let (mut counts, failed) = all.into_inner().unwrap();
    for (what, _) in tally::MUST {
        counts.entry((*what).to_owned()).or_default();
    }
    for (what, number) in &counts {
        println!("{number:>8} {what}");
    }
    assert!(failed.is_empty(), "run these with ATTACHE_SEED: {failed:?}");
    if first == 1 && count >= SEEDS {
        let rare: Vec<_> = tally::MUST
            .iter()
            .filter(|(what, least)| counts[*what] < *least)
            .collect();
        assert!(rare.is_empty(), "occurred less often than that: {rare:?}");
    }
}

#[test]
fn a_plan_is_played_in_the_same_way_again() {
    for seed in 1..=20 {
        let plan = Plan::from_text(&Plan::of(seed).to_text());
        let mut counts = [Counts::new(), Counts::new()];
        for counts in &mut counts {
            assert_eq!(play(&plan, None, counts), [""; 0], "seed {seed}");
        }
        assert_eq!(counts[0], counts[1], "seed {seed}");
    }
}

#[test]
fn every_planted_bug_of_a_wire_is_found() {
    let mut missed = Vec::new();
    for bug in Planted::ALL {
        let found = (1..=PLANTED_SEEDS).find_map(|seed| {
            let wrong = play(&Plan::of(seed), Some(bug), &mut Counts::new());
            let first = wrong.first()?;
            let first: String = first.chars().take(120).collect();
            Some((seed, first.replace('\n', " ")))
        });
        match found {
            Some((seed, why)) => println!("{bug:?}: found by seed {seed}: {why}"),
            None => missed.push(bug),
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}
