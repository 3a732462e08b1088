//! What tests are made with: a puppet model, a clock of one's own, whole engines in memory, bad wires, and what
//! makes them fail. Only tests depend on this crate.

mod clock;
mod dice;
mod faulty;
mod history;
mod planted;
mod puppet;
mod questions;
mod slow;
mod teller;
mod wire;
mod world;

/// A request as a puppet gets it.
pub use attache_model::{self as model, Message, Request};
pub use clock::{TestTime, instant, pass, timed};
pub use dice::Dice;
pub use faulty::{FaultyStore, Stored};
pub use history::well_formed;
pub use planted::Planted;
pub use puppet::{Gate, Piece, Puppet, call, text};
pub use questions::AskKinds;
pub use slow::{slow_tools, tools_as_slow_as};
pub use teller::Teller;
pub use wire::{Break, NearEnd, Wire};
pub use world::{World, json_of};
