//! Any schema, and any arguments against it.
#![no_main]

#[path = "../../crates/hub/tests/it/laws/schema.rs"]
mod schema;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| schema::check(bytes));
