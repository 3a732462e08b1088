//! The engine at work over a store in memory: crashes at every commit, and seeded simulations.

mod adapted;
mod budgets;
mod crashes;
mod endings;
mod ledger;
mod limits;
mod outside;
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
mod truth;
