//! Fuzz target: any sequence of fragments of tool calls in Chat Completions. What is checked is in
//! `harness/tool_calls.rs`.

#![no_main]

#[path = "../harness/tool_calls.rs"]
mod tool_calls;

libfuzzer_sys::fuzz_target!(|data: &[u8]| tool_calls::check(data));
