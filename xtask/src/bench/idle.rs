//! Target `idle`: what a daemon holds when it has nothing to do, and what each live session adds that has had one turn.

use std::time::Duration;

use super::house::{House, Program};
use super::process;
use super::report::Figure;
use super::wire::Wire;
use crate::failure::Failure;

/// Sessions that come before the count begins, so that tables and threads are there.
const BEFORE: usize = 100;

const SESSIONS: usize = 1_000;

/// How long a daemon may take until it holds no more than it needs.
const CALM: Duration = Duration::from_millis(500);

/// Measures it.
pub(super) fn run(program: &Program) -> Result<(), Failure> {
    let house = House::new(program, "http://127.0.0.1:9/v1")?;
    let daemon = house.daemon()?;
    let base = process::memory(daemon.process())?;
    let mut wire = Wire::new(&daemon)?;
    let mut create = |count: usize| -> Result<(), Failure> {
        for number in 0..count {
            let text = format!("Say this back, number {number}.");
            let session = wire.create("echo/any", &house.work(), &text)?;
            wire.settled(&session)?;
        }
        Ok(())
    };
    create(BEFORE)?;
    std::thread::park_timeout(CALM);
    let before = process::memory(daemon.process())?;
    create(SESSIONS)?;
    std::thread::park_timeout(CALM);
    let after = process::memory(daemon.process())?;
    Figure {
        name: "memory of a daemon without sessions",
        value: base.now / 1_024.0,
        unit: "MB",
        goal: Some(20.0),
        runs: 1,
        beside: "",
    }
    .print();
    let beside = format!(
        "{:.1} MB with {BEFORE} sessions, {:.1} MB with {}",
        before.now / 1_024.0,
        after.now / 1_024.0,
        BEFORE + SESSIONS
    );
    Figure {
        name: "memory of an idle live session after one turn",
        value: (after.now - before.now) / SESSIONS as f64,
        unit: "KB",
        goal: Some(10.0),
        runs: SESSIONS,
        beside: &beside,
    }
    .print();
    Ok(())
}
