//! Fuzz target: any bytes as a frame. What is checked is in `harness/frames.rs`.

#![no_main]

#[path = "../harness/frames.rs"]
mod frames;

libfuzzer_sys::fuzz_target!(|data: &[u8]| frames::check(data));
