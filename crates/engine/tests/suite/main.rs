//! The engine at work over a store in memory: crashes at every commit, and seeded simulations.

mod adapted;
mod budgets;
mod counters;
mod crashes;
mod endings;
mod late_limits;
mod ledger;
mod limits;
mod outside;
mod people;
mod pictures;
mod planted;
mod players;
mod recoveries;
mod rooms;
mod scenarios;
mod script;
mod simulation;
mod stalls;
mod stored;
mod tally;
mod told;
mod tree_ends;
mod truth;
mod witness;
