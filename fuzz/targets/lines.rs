//! A stream of lines, cut anywhere.
#![no_main]

#[path = "../../crates/protocol/tests/it/laws/lines.rs"]
mod lines;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| lines::check(bytes));
