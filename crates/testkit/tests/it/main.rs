//! Tests of the test peers themselves, so that later failures are not their fault.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

mod clients;
mod conformance;
mod conformant;
mod release;
