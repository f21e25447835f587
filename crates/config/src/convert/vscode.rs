//! Writing VS Code's `servers` and `inputs`.

use super::output_value::OutputValue;
use super::{ConfigWriter, headers};
use crate::server::{ServerConfig, TransportConfig};

pub(super) fn write(servers: &[&ServerConfig], writer: &mut ConfigWriter) -> String {
    let (disabled, enabled): (Vec<&ServerConfig>, _) =
        servers.iter().partition(|server| server.disabled);
    for server in disabled {
        let message = "omitted: VS Code has no setting for a disabled server";
        writer.warn(server, message.to_owned(), None);
    }
    let inputs = writer.inputs(&enabled);
    let servers =
        enabled.iter().map(|server| (server.name.to_string(), entry(server, writer))).collect();
    OutputValue::join_tables([
        OutputValue::table([("inputs", inputs)]),
        OutputValue::Table(vec![("servers".to_owned(), OutputValue::Table(servers))]),
    ])
    .to_json()
}

pub(super) fn entry(server: &ServerConfig, writer: &mut ConfigWriter) -> OutputValue {
    let more = writer.foreign(server, &["cwd", "env_file"]);
    writer.check_transport(server);
    let kind = ("type", OutputValue::text(server.transport.name()));
    let place = match &server.transport {
        TransportConfig::Stdio(program) => OutputValue::table([
            kind,
            ("command", writer.command(server, program)),
            ("args", writer.arguments(server, program)),
            ("env", writer.env(server, program)),
            ("envFile", writer.env_file(server, program)),
            ("cwd", writer.cwd(server, program)),
        ]),
        TransportConfig::Remote(address) => OutputValue::table([
            kind,
            ("url", writer.url(server, address)),
            ("headers", writer.map(server, "headers", headers(address))),
        ]),
    };
    // Only Consort reads this key.
    let disabled = OutputValue::table([(
        "disabled",
        OutputValue::value_if(server.disabled, OutputValue::Bool(true)),
    )]);
    OutputValue::join_tables([place, disabled, more])
}
