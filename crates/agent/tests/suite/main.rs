//! The turn, the history and definitions as values: inputs in, outputs out, no runtime.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod definitions;
mod history;
mod toolset;
mod turn;
