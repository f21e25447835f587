//! Observability of the gateway: its ledger, its traces.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

mod ledger;
mod live_calls;
mod otlp;
