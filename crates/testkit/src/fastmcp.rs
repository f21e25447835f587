//! A server written with `FastMCP`, in Python, of both eras.

use consort_wire::Command;

use crate::fixtures;
use crate::listening::Listening;

/// Starts the server on a free port, at `/mcp`.
pub fn fastmcp() -> Listening {
    let mut command = std::process::Command::new(fixtures::python("python3"));
    command.arg(fixtures::fastmcp_server()).arg("http");
    Listening::start(command)
}

/// Starts the server on a free port, at `/mcp`, where it lets in those who log in, for a time.
pub fn fastmcp_with_login(seconds: u32) -> Listening {
    let mut command = std::process::Command::new(fixtures::python("python3"));
    command.arg(fixtures::fastmcp_server()).arg("oauth").arg(seconds.to_string());
    Listening::start(command)
}

/// Starts a server that adds tools while it runs without telling anybody, on a free port, at `/mcp`.
pub fn fastmcp_growing() -> Listening {
    let mut command = std::process::Command::new(fixtures::python("python3"));
    command.arg(fixtures::fastmcp_growing());
    Listening::start(command)
}

/// The server as a program on its standard input and output.
pub fn fastmcp_stdio() -> Command {
    Command::new(fixtures::python("python3")).arguments([fixtures::fastmcp_server()])
}
