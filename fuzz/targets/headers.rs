//! Values of HTTP headers, and what a schema says of them.
#![no_main]

#[path = "../../crates/protocol/tests/it/laws/headers.rs"]
mod headers;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| headers::check(bytes));
