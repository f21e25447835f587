//! Writing Codex's `[mcp_servers.NAME]`.

use super::output_value::OutputValue;
use super::reference_syntax::variable_for;
use super::{ConfigWriter, headers};
use crate::duration::ConfigDuration;
use crate::server::{HttpConfig, ServerConfig, StdioConfig, TransportConfig};
use crate::template::{TemplatePart, TemplateString, ValueReference};

pub(super) fn write(servers: &[&ServerConfig], writer: &mut ConfigWriter) -> String {
    let servers =
        servers.iter().map(|server| (server.name.to_string(), entry(server, writer))).collect();
    OutputValue::table([("mcp_servers", OutputValue::Table(servers))]).to_toml()
}

pub(super) fn entry(server: &ServerConfig, writer: &mut ConfigWriter) -> OutputValue {
    let more = writer.foreign(
        server,
        &["cwd", "inherit_env", "timeout.idle", "timeout.connect", "keep", "drop"],
    );
    writer.check_transport(server);
    let place = match &server.transport {
        TransportConfig::Stdio(program) => stdio(server, program, writer),
        TransportConfig::Remote(address) => http(server, address, writer),
    };
    let seconds = |period: ConfigDuration| OutputValue::Number(period.get().as_secs_f64());
    let rest = OutputValue::table([
        ("startup_timeout_sec", OutputValue::from_option(server.timeout.connect, seconds)),
        ("tool_timeout_sec", OutputValue::from_option(server.timeout.idle, seconds)),
        ("enabled", OutputValue::value_if(server.disabled, OutputValue::Bool(false))),
        ("enabled_tools", OutputValue::strings(&server.options.keep)),
        ("disabled_tools", OutputValue::strings(&server.options.drop)),
    ]);
    OutputValue::join_tables([place, rest, more])
}

fn stdio(server: &ServerConfig, program: &StdioConfig, writer: &mut ConfigWriter) -> OutputValue {
    // A variable that keeps its name is passed on by name.
    let passed =
        |(name, text): &(&String, &TemplateString)| variable(text, "").as_ref() == Some(*name);
    let (named, set): (Vec<_>, Vec<_>) = program.env.iter().partition(passed);
    for (_, text) in &named {
        writer.warn_of_inputs(server, text);
    }
    let inherited = program.inherit.iter().chain(named.into_iter().map(|(name, _)| name));
    let set = set.into_iter().map(|(name, text)| (name.as_str(), text.clone()));
    OutputValue::table([
        ("command", writer.command(server, program)),
        ("args", writer.arguments(server, program)),
        ("cwd", writer.cwd(server, program)),
        ("env_vars", OutputValue::strings(inherited)),
        ("env", writer.map(server, "env", set)),
    ])
}

fn http(server: &ServerConfig, address: &HttpConfig, writer: &mut ConfigWriter) -> OutputValue {
    let (mut bearer, mut named, mut set) = (OutputValue::Nothing, Vec::new(), Vec::new());
    for (name, text) in headers(address) {
        let authorization = name.eq_ignore_ascii_case("authorization");
        if let Some(variable) = variable(&text, "Bearer ").filter(|_| authorization) {
            writer.warn_of_inputs(server, &text);
            bearer = OutputValue::Text(variable);
        } else if let Some(variable) = variable(&text, "") {
            writer.warn_of_inputs(server, &text);
            named.push((name.to_owned(), OutputValue::Text(variable)));
        } else {
            set.push((name, text));
        }
    }
    OutputValue::table([
        ("url", writer.url(server, address)),
        ("bearer_token_env_var", bearer),
        ("http_headers", writer.map(server, "headers", set)),
        ("env_http_headers", OutputValue::Table(named)),
    ])
}

/// The name of the variable if the text is this prefix and one reference to a variable or an input.
fn variable(text: &TemplateString, prefix: &str) -> Option<String> {
    let parts = match text.parts() {
        [TemplatePart::Literal(start), rest @ ..] if start == prefix => rest,
        parts if prefix.is_empty() => parts,
        _ => return None,
    };
    match parts {
        [TemplatePart::Reference(ValueReference::Variable { name, default: None }, _)] => {
            Some(name.clone())
        }
        [TemplatePart::Reference(ValueReference::Input(id), _)] => Some(variable_for(id)),
        _ => None,
    }
}
