//! The project's own automation, run as `cargo xtask COMMAND`. It depends on nothing of ours.

fn main() {}
