//! Identities: their store, and a server with users between browsers, clients and an issuer.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

mod access;
mod browser;
mod explain;
mod flow;
mod issuer;
mod store;
mod threats;
mod tokens;
mod world;
