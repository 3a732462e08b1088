//! Fuzz target: any bytes as a stream of any dialect. What is checked is in `harness/stream.rs`.

#![no_main]

#[path = "../harness/stream.rs"]
mod stream;

libfuzzer_sys::fuzz_target!(|data: &[u8]| stream::check(data));
