//! Any names of the tools of any servers, in front of clients.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| consort_gateway::fuzzing::names(bytes));
