//! Writing Zed's `context_servers`.

use super::output_value::OutputValue;
use super::{ConfigWriter, OutputReader, headers};
use crate::server::{ServerConfig, TransportConfig};

pub(super) fn write(servers: &[&ServerConfig], writer: &mut ConfigWriter) -> String {
    let servers =
        servers.iter().map(|server| (server.name.to_string(), entry(server, writer))).collect();
    OutputValue::table([("context_servers", OutputValue::Table(servers))]).to_json()
}

pub(super) fn entry(server: &ServerConfig, writer: &mut ConfigWriter) -> OutputValue {
    // It has one timeout; several are written in Consort's format.
    let single = server.timeout.total.is_none() && server.timeout.connect.is_none();
    let known: &[&str] =
        if single || writer.reader == OutputReader::Others { &["timeout.idle"] } else { &[] };
    let more = writer.foreign(server, known);
    writer.check_transport(server);
    // Older versions want it, newer ones do not mind.
    let source = ("source", OutputValue::text("custom"));
    let enabled = ("enabled", OutputValue::value_if(server.disabled, OutputValue::Bool(false)));
    // It takes whole seconds.
    let seconds = |idle: crate::duration::ConfigDuration| idle.get().as_secs_f64().ceil();
    let idle = server.timeout.idle.filter(|_| !known.is_empty());
    let timeout =
        ("timeout", OutputValue::from_option(idle, |idle| OutputValue::Number(seconds(idle))));
    let place = match &server.transport {
        TransportConfig::Stdio(program) => OutputValue::table([
            source,
            enabled,
            ("command", writer.command(server, program)),
            ("args", writer.arguments(server, program)),
            ("env", writer.env(server, program)),
            timeout,
        ]),
        TransportConfig::Remote(address) => OutputValue::table([
            source,
            enabled,
            ("url", writer.url(server, address)),
            ("headers", writer.map(server, "headers", headers(address))),
            timeout,
        ]),
    };
    OutputValue::join_tables([place, more])
}
