//! A server of the official TypeScript SDK, of both eras, with the features that the conformance suite tests.

use crate::fixtures;
use crate::listening::Listening;

/// Starts the server on a free port, at `/mcp`.
pub fn conformance_server() -> Listening {
    let mut command = std::process::Command::new(fixtures::node());
    command
        .arg("--require")
        .arg(fixtures::loopback())
        .arg(fixtures::conformance_server())
        .env("NODE_PATH", fixtures::node_modules())
        .env("PORT", "0")
        .env("LOOPBACK_CHILD", "1");
    Listening::start(command)
}
