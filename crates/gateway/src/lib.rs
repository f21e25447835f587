//! A toolbox out to the world: one MCP endpoint for every client.

pub mod ledger;
pub mod metrics;
pub mod otlp;
pub mod trace;
