//! Tests of the crate through its public interface, in one program.

#![allow(clippy::unwrap_used)]

mod decoders;
mod decoders_messages;
mod http;
mod scripted;
mod support;
