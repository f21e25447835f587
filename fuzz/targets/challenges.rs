//! The `WWW-Authenticate` header.
#![no_main]

#[path = "../../crates/oauth/tests/challenges/law.rs"]
mod law;

libfuzzer_sys::fuzz_target!(|text: &str| law::check(text));
