//! Fuzz target: a viewer's end that hears anything. What is checked is in `harness/viewer_end.rs`.

#![no_main]

#[path = "../harness/viewer_end.rs"]
mod viewer_end;

libfuzzer_sys::fuzz_target!(|data: &[u8]| viewer_end::check(data));
