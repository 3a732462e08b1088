//! Tests of the crate through its public interface, in one program.

// Tests measure the virtual clock; the ban is for the crate itself.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod decoders;
mod http;
mod scripted;
mod support;
