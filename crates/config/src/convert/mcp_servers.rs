//! Writing `mcpServers`.

use super::out::Out;
use super::{Writer, headers};
use crate::server::{ServerConfig, Transport};

pub(super) fn write(servers: &[&ServerConfig], writer: &mut Writer) -> String {
    let servers =
        servers.iter().map(|server| (server.name.to_string(), entry(server, writer))).collect();
    Out::table([("mcpServers", Out::Table(servers))]).to_json()
}

pub(super) fn entry(server: &ServerConfig, writer: &mut Writer) -> Out {
    // Clients do not agree on the unit of `timeout`, so none is written.
    let more = writer.foreign(server, &["cwd"]);
    let disabled = Out::when(server.disabled, Out::Bool(true));
    let place = match &server.transport {
        Transport::Stdio(program) => Out::table([
            ("command", writer.command(server, program)),
            ("args", writer.arguments(server, program)),
            ("env", writer.environment(server, program)),
            ("cwd", writer.directory(server, program)),
            ("disabled", disabled),
        ]),
        Transport::Http(address) | Transport::Sse(address) => Out::table([
            ("type", Out::text(server.transport.name())),
            ("url", writer.url(server, address)),
            ("headers", writer.map(server, "headers", headers(address))),
            ("disabled", disabled),
        ]),
    };
    Out::joined([place, more])
}
