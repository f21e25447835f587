//! A server written with `FastMCP`, in Python, of both eras.

use consort_client::ServerCommand;

use crate::fixtures;
use crate::listening::Listening;

/// Starts the server on a free port, at `/mcp`.
pub fn fastmcp() -> Listening {
    let mut command = std::process::Command::new(fixtures::python("python3"));
    command.arg(fixtures::fastmcp_server()).arg("http");
    Listening::start(command)
}

/// Starts the server on a free port, at `/mcp`, with OAuth and tokens that expire after some seconds.
pub fn fastmcp_with_login(seconds: u32) -> Listening {
    let mut command = std::process::Command::new(fixtures::python("python3"));
    command.arg(fixtures::fastmcp_server()).arg("oauth").arg(seconds.to_string());
    Listening::start(command)
}

/// Starts the server on a free port, at `/mcp`, for those who show this bearer token.
pub fn fastmcp_with_token(token: &str) -> Listening {
    let mut command = std::process::Command::new(fixtures::python("python3"));
    command.arg(fixtures::fastmcp_server()).arg("token").arg(token);
    Listening::start(command)
}

/// Starts a server that adds tools while it runs without a notification, on a free port, at `/mcp`.
pub fn fastmcp_growing() -> Listening {
    let mut command = std::process::Command::new(fixtures::python("python3"));
    command.arg(fixtures::fastmcp_growing());
    Listening::start(command)
}

/// Starts a server that lists a tool only to sessions that unlocked it, on a free port, at `/mcp`.
pub fn fastmcp_sessions() -> Listening {
    let mut command = std::process::Command::new(fixtures::python("python3"));
    command.arg(fixtures::fastmcp_sessions());
    Listening::start(command)
}

/// The server as a program on its standard input and output.
pub fn fastmcp_stdio() -> ServerCommand {
    ServerCommand::new(fixtures::python("python3")).arguments([fixtures::fastmcp_server()])
}

/// Starts a server of both eras whose tools request input in the way of one era each, on a free port, at `/mcp`.
pub fn fastmcp_elicit() -> Listening {
    let mut command = std::process::Command::new(fixtures::python("python3"));
    command.arg(fixtures::fastmcp_elicit()).arg("http");
    Listening::start(command)
}

/// The same server over HTTP+SSE, at `/sse`.
pub fn fastmcp_elicit_sse() -> Listening {
    let mut command = std::process::Command::new(fixtures::python("python3"));
    command.arg(fixtures::fastmcp_elicit()).arg("sse");
    Listening::start(command)
}

/// The same server as a program on its standard input and output.
pub fn fastmcp_elicit_stdio() -> ServerCommand {
    ServerCommand::new(fixtures::python("python3")).arguments([fixtures::fastmcp_elicit()])
}

/// Starts a server of both eras with the features that the conformance suite tests, on a free port, at `/mcp`.
pub fn fastmcp_conformance() -> Listening {
    let mut command = std::process::Command::new(fixtures::python("python3"));
    command.arg(fixtures::fastmcp_conformance());
    Listening::start(command)
}
