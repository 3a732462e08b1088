//! What tests are made with: a puppet model, a clock of one's own, and whole engines in memory.
//! Only tests depend on this crate.

mod clock;
mod puppet;
mod world;

pub use clock::TestTime;
pub use puppet::{Gate, Piece, Puppet, call, text};
pub use world::{World, json_of};
