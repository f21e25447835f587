//! Any text as a config of any format.
#![no_main]

#[path = "../../crates/config/tests/it/law.rs"]
mod law;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    law::check(text);
});
