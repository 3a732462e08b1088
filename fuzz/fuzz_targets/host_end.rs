//! Fuzz target: a host's end that is put to anything. What is checked is in `harness/host_end.rs`.

#![no_main]

#[path = "../harness/host_end.rs"]
mod host_end;

libfuzzer_sys::fuzz_target!(|data: &[u8]| host_end::check(data));
