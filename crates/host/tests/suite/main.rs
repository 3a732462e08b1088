//! A host and its viewers over a wire that is none: no socket, time that stands still, and connections that are cut at any
//! byte. Where the listener itself is meant, the wire is a true one of this machine.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod attach;
mod confined;
mod detail;
mod gate;
mod kit;
mod modals;
mod queues;
mod races;
mod simulation;
mod slash;
mod web;
mod web_doors;
mod web_kit;
