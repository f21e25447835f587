//! The parsers against a public test suite, and their properties.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

mod jsontestsuite;
mod laws;
