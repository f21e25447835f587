//! Any bytes as JSON and as a message.
#![no_main]

#[path = "../../crates/protocol/tests/it/laws/envelope.rs"]
mod envelope;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| envelope::check(bytes));
