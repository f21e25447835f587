//! Writing `mcpServers`.

use super::output_value::OutputValue;
use super::{ConfigWriter, headers};
use crate::server::{ServerConfig, TransportConfig};

pub(super) fn write(servers: &[&ServerConfig], writer: &mut ConfigWriter) -> String {
    let servers =
        servers.iter().map(|server| (server.name.to_string(), entry(server, writer))).collect();
    OutputValue::table([("mcpServers", OutputValue::Table(servers))]).to_json()
}

pub(super) fn entry(server: &ServerConfig, writer: &mut ConfigWriter) -> OutputValue {
    // Clients do not agree on the unit of `timeout`, so none is written.
    let more = writer.foreign(server, &["cwd", "env_file", "headers_helper"]);
    writer.check_transport(server);
    let disabled = OutputValue::value_if(server.disabled, OutputValue::Bool(true));
    let place = match &server.transport {
        TransportConfig::Stdio(program) => OutputValue::table([
            ("command", writer.command(server, program)),
            ("args", writer.arguments(server, program)),
            ("env", writer.env(server, program)),
            ("envFile", writer.env_file(server, program)),
            ("cwd", writer.cwd(server, program)),
            ("disabled", disabled),
        ]),
        TransportConfig::Remote(address) => OutputValue::table([
            ("type", OutputValue::text(server.transport.name())),
            ("url", writer.url(server, address)),
            ("headers", writer.map(server, "headers", headers(address))),
            (
                "headersHelper",
                OutputValue::from_option(address.headers_helper.as_deref(), OutputValue::text),
            ),
            ("disabled", disabled),
        ]),
    };
    OutputValue::join_tables([place, more])
}
