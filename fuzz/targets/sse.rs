//! A stream of server-sent events, cut anywhere.
#![no_main]

#[path = "../../crates/protocol/tests/it/laws/sse.rs"]
mod sse;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| sse::check(bytes));
