//! `@modelcontextprotocol/server-everything`: the reference server written in TypeScript, legacy only.

use consort_client::ServerCommand;

use crate::fixtures;
use crate::listening::Listening;

/// Transport of `server-everything` over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Everything {
    /// HTTP+SSE, at `/sse`.
    Sse,
    /// Streamable HTTP, at `/mcp`.
    StreamableHttp,
}

/// Starts `server-everything` on a free port.
pub fn everything(way: Everything) -> Listening {
    everything_on(way, 0)
}

/// Starts `server-everything` on a port, as after a restart.
pub fn everything_on(way: Everything, port: u16) -> Listening {
    let mut command = std::process::Command::new(fixtures::node());
    command
        .arg("--require")
        .arg(fixtures::loopback())
        .arg(fixtures::server_everything())
        .arg(match way {
            Everything::Sse => "sse",
            Everything::StreamableHttp => "streamableHttp",
        })
        .env("PORT", port.to_string())
        .env("LOOPBACK_CHILD", "1");
    Listening::start(command)
}

/// `server-everything` as a program on its standard input and output.
pub fn everything_stdio() -> ServerCommand {
    ServerCommand::new(fixtures::node())
        .arguments([fixtures::server_everything().into_os_string(), "stdio".into()])
}
