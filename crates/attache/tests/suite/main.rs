//! Walks through the product with the true binary, as a person or a script would.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod bad_input;
mod checkup;
mod clock;
mod commands;
mod costs;
mod demo;
mod door;
mod elsewhere;
mod ends;
mod field;
mod house;
#[cfg(feature = "fault")]
mod killed;
mod ledger;
mod life;
mod long_answers;
mod mcp;
mod providers;
mod reach;
mod seat;
mod shown;
mod strace;
mod stub;
#[cfg(feature = "fault")]
mod told;
mod viewers;
mod web;
