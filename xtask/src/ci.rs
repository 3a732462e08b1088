//! `cargo xtask ci`: all that a change has to pass, in the order of what it costs, stopping at the first failure. It only
//! names the steps and takes their time; each step is a command that can be run alone.

use std::time::Duration;

use crate::failure::Failure;
use crate::shell::{self, Stopwatch};
use crate::{opinion, test, tidy};

struct Step {
    name: &'static str,
    run: fn() -> Result<(), Failure>,
}

/// Clippy and the docs use the profile of the tests, so that one set of checked dependencies serves both.
const STEPS: &[Step] = &[
    Step {
        name: "format",
        run: || shell::cargo(&["fmt", "--all", "--check"]).run(),
    },
    Step {
        name: "tidy",
        run: tidy::all_but_coverage,
    },
    Step {
        name: "clippy",
        run: || {
            shell::cargo(&[
                "clippy",
                "--workspace",
                "--all-targets",
                "--profile",
                "ci",
                "--features",
                test::TEST_FEATURES,
                "--",
                "-D",
                "warnings",
            ])
            .run()
        },
    },
    Step {
        name: "docs",
        run: || {
            shell::cargo(&[
                "doc",
                "--no-deps",
                "--workspace",
                "--document-private-items",
                "--profile",
                "ci",
            ])
            .env("RUSTDOCFLAGS", "-D warnings")
            .run()
        },
    },
    Step {
        name: "test",
        run: || test::run(&[]),
    },
    Step {
        name: "opinion",
        run: || opinion::run(&[]),
    },
    // Cheap, and still last: while a part is being built this is the page that is allowed to run ahead of it, and then
    // it must not hide what the tests say.
    Step {
        name: "coverage",
        run: tidy::only_coverage,
    },
];

/// Runs the command.
pub(crate) fn run(args: &[String]) -> Result<(), Failure> {
    if let Some(arg) = args.first() {
        return Err(Failure::Usage {
            why: format!("`ci` takes no arguments, and got `{arg}`"),
        });
    }
    let whole = Stopwatch::start();
    let mut times = Vec::new();
    for (number, step) in STEPS.iter().enumerate() {
        println!("=== {}", step.name);
        let watch = Stopwatch::start();
        let done = (step.run)();
        times.push((step.name, watch.elapsed()));
        if let Err(failure) = done {
            println!("=== {} FAILED in {}", step.name, seconds(watch.elapsed()));
            for left in &STEPS[number + 1..] {
                println!("    not run: {}", left.name);
            }
            return Err(failure);
        }
        println!("=== {} passed in {}", step.name, seconds(watch.elapsed()));
    }
    println!("=== all passed in {}", seconds(whole.elapsed()));
    for (name, time) in times {
        println!("    {name:<10}{:>10}", seconds(time));
    }
    Ok(())
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
