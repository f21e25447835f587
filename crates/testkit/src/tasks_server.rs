//! A server of the official TypeScript SDK with the tasks of 2025-11-25, legacy only.

use consort_client::ServerCommand;

use crate::fixtures;
use crate::listening::Listening;

/// Starts the server on a free port, at `/mcp`.
pub fn tasks_server() -> Listening {
    Listening::start(command())
}

/// The same with tasks that outlive the session they were created in.
pub fn shared_tasks_server() -> Listening {
    let mut command = command();
    command.env("SHARED_TASKS", "1");
    Listening::start(command)
}

fn command() -> std::process::Command {
    let mut command = std::process::Command::new(fixtures::node());
    command
        .arg("--require")
        .arg(fixtures::loopback())
        .arg(fixtures::tasks_server())
        .env("NODE_PATH", fixtures::node_modules())
        .env("PORT", "0")
        .env("LOOPBACK_CHILD", "1");
    command
}

/// The server as a program on its standard input and output.
pub fn tasks_server_stdio() -> ServerCommand {
    let modules = fixtures::node_modules();
    ServerCommand::new(fixtures::node())
        .arguments([fixtures::tasks_server()])
        .variable("NODE_PATH", modules.to_str().expect("the path of the fixtures is text"))
}
