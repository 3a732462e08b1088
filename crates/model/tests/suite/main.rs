//! Tests of the crate through its public interface, in one program.

#![allow(clippy::unwrap_used)]

mod corpus;
mod decoders;
mod decoders_gemini;
mod decoders_messages;
mod decoders_responses;
mod http;
mod http_dialects;
mod replies;
mod scripted;
mod streams;
mod support;
