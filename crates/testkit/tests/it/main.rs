//! The peers that others are measured with, measured themselves: what fails later is not their fault.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

mod clients;
mod conformance;
mod conformant;
