//! A host and its viewers over a wire that is none: no socket, time that stands still, and connections that are cut at any
//! byte.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod attach;
mod detail;
mod gate;
mod kit;
mod modals;
mod queues;
