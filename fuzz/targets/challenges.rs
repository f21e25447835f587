//! The `WWW-Authenticate` header.
#![no_main]

#[path = "../../crates/login/tests/challenges/law.rs"]
mod law;

libfuzzer_sys::fuzz_target!(|text: &str| law::check(text));
