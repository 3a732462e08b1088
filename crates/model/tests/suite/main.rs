//! Tests of the crate through its public interface, in one program.

mod decoders;
mod http;
mod scripted;
mod support;
