//! The turn, the history and definitions as values: inputs in, outputs out, no runtime.

mod definitions;
mod endings;
mod history;
mod pictures;
mod reports;
mod toolset;
mod turn;
