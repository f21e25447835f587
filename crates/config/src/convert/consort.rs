//! Writing Consort's own `[mcp.NAME]`.

use super::Writer;
use super::out::Out;
use super::own;
use crate::period::Period;
use crate::server::{Address, Auth, Connect, Era, Program, ServerConfig, ToolConfig, Transport};
use crate::server_limits::WrittenLimit;

pub(super) fn write(servers: &[&ServerConfig], writer: &mut Writer) -> String {
    let inputs = writer.inputs(servers);
    let servers =
        servers.iter().map(|server| (server.name.to_string(), entry(server, writer))).collect();
    Out::table([("inputs", inputs), ("mcp", Out::Table(servers))]).to_toml()
}

pub(super) fn entry(server: &ServerConfig, writer: &mut Writer) -> Out {
    let start = Out::table([
        ("transport", Out::text(server.transport.name())),
        ("description", Out::maybe(server.description.clone(), Out::Text)),
    ]);
    let place = match &server.transport {
        Transport::Stdio(program) => stdio(server, program, writer),
        Transport::Http(address) | Transport::Sse(address) => http(server, address, writer),
    };
    let era = match server.era {
        Era::Auto => Out::Nothing,
        Era::Legacy => Out::text("legacy"),
        Era::Modern => Out::text("modern"),
    };
    let timeout = Out::table([
        ("idle", Out::maybe(server.timeout.idle, period)),
        ("total", Out::maybe(server.timeout.total, period)),
        ("connect", Out::maybe(server.timeout.connect, period)),
        ("install", Out::maybe(server.timeout.install, period)),
    ]);
    let rest = Out::table([
        ("era", era),
        ("connect", Out::when(server.connect == Connect::Call, Out::text("call"))),
        ("idle_stop", Out::maybe(server.idle_stop, period)),
        ("validate", Out::maybe(server.validate, |check| Out::text(check.as_str()))),
        ("disabled", Out::when(server.disabled, Out::Bool(true))),
        ("keep", Out::strings(&server.keep)),
        ("drop", Out::strings(&server.drop)),
        ("timeout", timeout),
        ("tools", tools(server)),
    ]);
    let limits = server.limits.written();
    let limits = Out::table(limits.map(|(key, value)| (key, Out::maybe(value, limit))));
    Out::joined([start, place, rest, limits])
}

fn stdio(server: &ServerConfig, program: &Program, writer: &mut Writer) -> Out {
    let mut command = vec![writer.command(server, program)];
    if let Out::List(arguments) = writer.arguments(server, program) {
        command.extend(arguments);
    }
    Out::table([
        ("command", Out::List(command)),
        ("directory", writer.directory(server, program)),
        ("inherit_env", Out::strings(&program.inherit)),
        ("environment", writer.environment(server, program)),
    ])
}

fn http(server: &ServerConfig, address: &Address, writer: &mut Writer) -> Out {
    let auth = match &address.auth {
        None => Out::Nothing,
        Some(Auth::Bearer(token)) => {
            Out::table([("bearer", Out::Text(writer.spell(server, "auth", token)))])
        }
        Some(Auth::ApiKey { header, key }) => Out::table([
            ("api_key", Out::Text(writer.spell(server, "auth", key))),
            ("header", Out::text(header)),
        ]),
    };
    let headers = address.headers.iter().map(|(name, text)| (name.as_str(), text.clone()));
    let network = own::network(writer, server, address);
    let address = Out::table([
        ("url", writer.url(server, address)),
        ("insecure", Out::when(address.insecure, Out::Bool(true))),
        ("session_header", Out::maybe(address.session_header.as_deref(), Out::text)),
        ("oauth", Out::maybe(address.oauth.as_ref(), |oauth| own::login(writer, server, oauth))),
        ("headers", writer.map(server, "headers", headers)),
        ("auth", auth),
    ]);
    Out::joined([address, network])
}

fn tools(server: &ServerConfig) -> Out {
    let tool = |tool: &ToolConfig| {
        let (idle, total) = (Out::maybe(tool.idle, period), Out::maybe(tool.total, period));
        Out::table([("timeout", Out::table([("idle", idle), ("total", total)]))])
    };
    let tools = server.tools.iter().map(|(name, config)| (name.to_string(), tool(config)));
    Out::Table(tools.collect())
}

/// A limit as it is written.
pub(super) fn limit(limit: WrittenLimit) -> Out {
    match limit {
        #[expect(clippy::cast_precision_loss, reason = "no limit is that large")]
        WrittenLimit::Count(count) => Out::Number(count as f64),
        WrittenLimit::Period(written) => period(written),
    }
}

fn period(period: Period) -> Out {
    Out::Text(period.to_string())
}
