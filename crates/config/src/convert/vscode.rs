//! Writing VS Code's `servers` and `inputs`.

use super::out::Out;
use super::{Writer, headers};
use crate::server::{ServerConfig, Transport};

pub(super) fn write(servers: &[&ServerConfig], writer: &mut Writer) -> String {
    let (disabled, enabled): (Vec<&ServerConfig>, _) =
        servers.iter().partition(|server| server.disabled);
    for server in disabled {
        let message = "left out: VS Code has no way to write that a server is disabled";
        writer.warn(server, message.to_owned(), None);
    }
    let inputs = writer.inputs(&enabled);
    let servers =
        enabled.iter().map(|server| (server.name.to_string(), entry(server, writer))).collect();
    Out::joined([
        Out::table([("inputs", inputs)]),
        Out::Table(vec![("servers".to_owned(), Out::Table(servers))]),
    ])
    .to_json()
}

pub(super) fn entry(server: &ServerConfig, writer: &mut Writer) -> Out {
    let more = writer.foreign(server, &["cwd"]);
    let kind = ("type", Out::text(server.transport.name()));
    let place = match &server.transport {
        Transport::Stdio(program) => Out::table([
            kind,
            ("command", writer.command(server, program)),
            ("args", writer.arguments(server, program)),
            ("env", writer.environment(server, program)),
            ("cwd", writer.directory(server, program)),
        ]),
        Transport::Http(address) | Transport::Sse(address) => Out::table([
            kind,
            ("url", writer.url(server, address)),
            ("headers", writer.map(server, "headers", headers(address))),
        ]),
    };
    // Only we have such a key, and others were not told of this server.
    let disabled = Out::table([("disabled", Out::when(server.disabled, Out::Bool(true)))]);
    Out::joined([place, disabled, more])
}
