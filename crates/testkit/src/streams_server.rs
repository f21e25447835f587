//! A server of the official TypeScript SDK that sends notifications on a stream of its own, legacy only.

use crate::fixtures;
use crate::listening::Listening;

/// Storage of the server's events, for resumption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventStore {
    /// None: its events have no ids.
    None,
    /// That of the SDK's example, which replays nothing of the stream that belongs to no call.
    Example,
    /// All events.
    Whole,
}

/// Starts the server on a free port, at `/mcp`.
pub fn streams_server(store: EventStore) -> Listening {
    let mut command = std::process::Command::new(fixtures::node());
    let store = match store {
        EventStore::None => "none",
        EventStore::Example => "example",
        EventStore::Whole => "whole",
    };
    command
        .arg("--require")
        .arg(fixtures::loopback())
        .arg(fixtures::streams_server())
        .env("NODE_PATH", fixtures::node_modules())
        .env("PORT", "0")
        .env("STORE", store)
        .env("LOOPBACK_CHILD", "1");
    Listening::start(command)
}
