//! Writing Consort's own `[mcp.NAME]`.

use super::ConfigWriter;
use super::consort_keys;
use super::output_value::OutputValue;
use crate::duration::ConfigDuration;
use crate::server::{
    AuthConfig, HttpConfig, ServerConfig, StdioConfig, ToolConfig, TransportConfig,
};

pub(super) fn write(servers: &[&ServerConfig], writer: &mut ConfigWriter) -> String {
    let inputs = writer.inputs(servers);
    let servers =
        servers.iter().map(|server| (server.name.to_string(), entry(server, writer))).collect();
    OutputValue::table([("inputs", inputs), ("mcp", OutputValue::Table(servers))]).to_toml()
}

pub(super) fn entry(server: &ServerConfig, writer: &mut ConfigWriter) -> OutputValue {
    let start = OutputValue::table([("transport", OutputValue::text(server.transport.name()))]);
    let place = match &server.transport {
        TransportConfig::Stdio(program) => stdio(server, program, writer),
        TransportConfig::Remote(address) => http(server, address, writer),
    };
    let timeout = OutputValue::table([
        ("idle", OutputValue::from_option(server.timeout.idle, period)),
        ("total", OutputValue::from_option(server.timeout.total, period)),
        ("connect", OutputValue::from_option(server.timeout.connect, period)),
        ("install", OutputValue::from_option(server.timeout.install, period)),
    ]);
    let rest = OutputValue::table([
        ("disabled", OutputValue::value_if(server.disabled, OutputValue::Bool(true))),
        ("timeout", timeout),
        ("tools", tools(server)),
    ]);
    let options = consort_keys::options(server, |_| true);
    OutputValue::join_tables([start, place, options, rest])
}

fn stdio(server: &ServerConfig, program: &StdioConfig, writer: &mut ConfigWriter) -> OutputValue {
    let mut command = vec![writer.command(server, program)];
    if let OutputValue::List(arguments) = writer.arguments(server, program) {
        command.extend(arguments);
    }
    OutputValue::table([
        ("command", OutputValue::List(command)),
        ("cwd", writer.cwd(server, program)),
        ("inherit_env", OutputValue::strings(&program.inherit)),
        ("env_file", writer.env_file(server, program)),
        ("env", writer.env(server, program)),
    ])
}

fn http(server: &ServerConfig, address: &HttpConfig, writer: &mut ConfigWriter) -> OutputValue {
    let auth = match &address.auth {
        None => OutputValue::Nothing,
        Some(AuthConfig::Bearer(token)) => OutputValue::table([(
            "bearer",
            OutputValue::Text(writer.write_text(server, "auth", token)),
        )]),
        Some(AuthConfig::ApiKey { header, key }) => OutputValue::table([
            ("api_key", OutputValue::Text(writer.write_text(server, "auth", key))),
            ("header", OutputValue::text(header)),
        ]),
    };
    let headers = address.headers.iter().map(|(name, text)| (name.as_str(), text.clone()));
    let network = consort_keys::network(writer, server, address);
    let address = OutputValue::table([
        ("url", writer.url(server, address)),
        ("insecure", OutputValue::value_if(address.insecure, OutputValue::Bool(true))),
        (
            "session_header",
            OutputValue::from_option(address.session_header.as_deref(), OutputValue::text),
        ),
        (
            "headers_helper",
            OutputValue::from_option(address.headers_helper.as_deref(), OutputValue::text),
        ),
        (
            "oauth",
            OutputValue::from_option(address.oauth.as_ref(), |oauth| {
                consort_keys::login(writer, server, oauth)
            }),
        ),
        ("headers", writer.map(server, "headers", headers)),
        ("auth", auth),
    ]);
    OutputValue::join_tables([address, network])
}

fn tools(server: &ServerConfig) -> OutputValue {
    let tool = |tool: &ToolConfig| {
        let (idle, total) = (
            OutputValue::from_option(tool.idle, period),
            OutputValue::from_option(tool.total, period),
        );
        OutputValue::table([("timeout", OutputValue::table([("idle", idle), ("total", total)]))])
    };
    let tools = server.tools.iter().map(|(name, config)| (name.to_string(), tool(config)));
    OutputValue::Table(tools.collect())
}

fn period(period: ConfigDuration) -> OutputValue {
    OutputValue::Text(period.to_string())
}
