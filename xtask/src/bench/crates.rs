//! Targets `decode`, `store` and `engine`: the benchmarks that crates have themselves. Their lines are passed through.

use super::house::Program;
use crate::failure::Failure;
use crate::shell;

/// The decoders'.
pub(super) fn decode(_program: &Program) -> Result<(), Failure> {
    bench("attache-model", &["decode"], &[])
}

/// The store's.
pub(super) fn store(_program: &Program) -> Result<(), Failure> {
    println!(
        "  goals: one session 4,000, 64 sessions 60,000 and batches of 100 100,000 durable events/s;"
    );
    println!("  a page of 200 1 ms, 10 ms of a rare kind; a search in 100,000 events 80 ms");
    let features = ["--features", "conformance"];
    bench("attache-store", &["append", "history"], &features)
}

/// The engine's.
pub(super) fn engine(_program: &Program) -> Result<(), Failure> {
    println!(
        "  goal: 60,000 durable events/s of 64 busy sessions with two or more events an append"
    );
    bench("attache-engine", &["commands"], &[])
}

/// Notices of children to their parent.
pub(super) fn notices(_program: &Program) -> Result<(), Failure> {
    println!("  no goal: an end and its notice are two commits, one after the other");
    bench("attache-engine", &["notices"], &[])
}

fn bench(package: &str, names: &[&str], more: &[&str]) -> Result<(), Failure> {
    let mut call = vec!["bench", "--quiet", "-p", package];
    for name in names {
        call.extend(["--bench", name]);
    }
    call.extend(more);
    shell::cargo(&call).run()
}
