//! Target `start`: from the start of the process to the first delta on its standard output.

use super::house::{House, Program};
use super::report::{Figure, middle, millis};
use super::{disk, replies, server};
use crate::failure::Failure;

const RUNS: usize = 15;

/// Measures it.
pub(super) fn run(program: &Program) -> Result<(), Failure> {
    let house = House::new(program, &server::start()?)?;
    let sync = disk::sync(&house.state())?;
    let alone = ["run", "--in-process", "--model", "openai/m", replies::HELLO];
    let served = ["run", "--model", "openai/m", replies::HELLO];

    let mut first = Vec::new();
    for _ in 0..RUNS {
        house.empty()?;
        first.push(house.run(&alone)?.first);
    }
    let mut again = Vec::new();
    for _ in 0..RUNS {
        again.push(house.run(&alone)?.first);
    }
    let daemon = house.daemon()?;
    let mut warm = Vec::new();
    for _ in 0..RUNS {
        warm.push(house.run(&served)?.first);
    }
    drop(daemon);
    let figures = [
        ("first start, to the first delta", first, Some(60.0)),
        (
            "start on an existing store, to the first delta",
            again,
            Some(25.0),
        ),
        ("run against a warm daemon, to the first delta", warm, None),
    ];
    for (name, times, goal) in figures {
        Figure {
            name,
            value: middle(times.into_iter().map(millis).collect()),
            unit: "ms",
            goal,
            runs: RUNS,
            beside: &sync,
        }
        .print();
    }
    Ok(())
}
