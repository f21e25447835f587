//! Writing Zed's `context_servers`.

use super::out::Out;
use super::{Reader, Writer, headers};
use crate::server::{ServerConfig, Transport};

pub(super) fn write(servers: &[&ServerConfig], writer: &mut Writer) -> String {
    let servers =
        servers.iter().map(|server| (server.name.to_string(), entry(server, writer))).collect();
    Out::table([("context_servers", Out::Table(servers))]).to_json()
}

pub(super) fn entry(server: &ServerConfig, writer: &mut Writer) -> Out {
    // It takes one time; several are said in our own way.
    let single = server.timeout.total.is_none() && server.timeout.connect.is_none();
    let known: &[&str] =
        if single || writer.reader == Reader::Others { &["timeout.idle"] } else { &[] };
    let more = writer.foreign(server, known);
    writer.without_sse(server);
    // Older versions want it, newer ones do not mind.
    let source = ("source", Out::text("custom"));
    let enabled = ("enabled", Out::when(server.disabled, Out::Bool(false)));
    // It takes whole seconds.
    let seconds = |idle: crate::period::Period| idle.get().as_secs_f64().ceil();
    let idle = server.timeout.idle.filter(|_| !known.is_empty());
    let timeout = ("timeout", Out::maybe(idle, |idle| Out::Number(seconds(idle))));
    let place = match &server.transport {
        Transport::Stdio(program) => Out::table([
            source,
            enabled,
            ("command", writer.command(server, program)),
            ("args", writer.arguments(server, program)),
            ("env", writer.environment(server, program)),
            timeout,
        ]),
        Transport::Http(address) | Transport::Sse(address) => Out::table([
            source,
            enabled,
            ("url", writer.url(server, address)),
            ("headers", writer.map(server, "headers", headers(address))),
            timeout,
        ]),
    };
    Out::joined([place, more])
}
