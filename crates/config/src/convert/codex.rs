//! Writing Codex's `[mcp_servers.NAME]`.

use super::out::Out;
use super::spell::variable_for;
use super::{Writer, headers};
use crate::period::Period;
use crate::server::{Address, Program, ServerConfig, Transport};
use crate::text::{Part, Reference, Text};

pub(super) fn write(servers: &[&ServerConfig], writer: &mut Writer) -> String {
    let servers =
        servers.iter().map(|server| (server.name.to_string(), entry(server, writer))).collect();
    Out::table([("mcp_servers", Out::Table(servers))]).to_toml()
}

pub(super) fn entry(server: &ServerConfig, writer: &mut Writer) -> Out {
    let more = writer.foreign(
        server,
        &["cwd", "inherit_env", "timeout.idle", "timeout.connect", "keep", "drop"],
    );
    writer.without_sse(server);
    let place = match &server.transport {
        Transport::Stdio(program) => stdio(server, program, writer),
        Transport::Http(address) | Transport::Sse(address) => http(server, address, writer),
    };
    let seconds = |period: Period| Out::Number(period.get().as_secs_f64());
    let rest = Out::table([
        ("startup_timeout_sec", Out::maybe(server.timeout.connect, seconds)),
        ("tool_timeout_sec", Out::maybe(server.timeout.idle, seconds)),
        ("enabled", Out::when(server.disabled, Out::Bool(false))),
        ("enabled_tools", Out::strings(&server.keep)),
        ("disabled_tools", Out::strings(&server.drop)),
    ]);
    Out::joined([place, rest, more])
}

fn stdio(server: &ServerConfig, program: &Program, writer: &mut Writer) -> Out {
    // A variable that keeps its name is passed on by name.
    let passed = |(name, text): &(&String, &Text)| variable(text, "").as_ref() == Some(*name);
    let (named, set): (Vec<_>, Vec<_>) = program.environment.iter().partition(passed);
    for (_, text) in &named {
        writer.asked(server, text);
    }
    let inherited = program.inherit.iter().chain(named.into_iter().map(|(name, _)| name));
    let set = set.into_iter().map(|(name, text)| (name.as_str(), text.clone()));
    Out::table([
        ("command", writer.command(server, program)),
        ("args", writer.arguments(server, program)),
        ("cwd", writer.directory(server, program)),
        ("env_vars", Out::strings(inherited)),
        ("env", writer.map(server, "env", set)),
    ])
}

fn http(server: &ServerConfig, address: &Address, writer: &mut Writer) -> Out {
    let (mut bearer, mut named, mut set) = (Out::Nothing, Vec::new(), Vec::new());
    for (name, text) in headers(address) {
        let authorization = name.eq_ignore_ascii_case("authorization");
        if let Some(variable) = variable(&text, "Bearer ").filter(|_| authorization) {
            writer.asked(server, &text);
            bearer = Out::Text(variable);
        } else if let Some(variable) = variable(&text, "") {
            writer.asked(server, &text);
            named.push((name.to_owned(), Out::Text(variable)));
        } else {
            set.push((name, text));
        }
    }
    Out::table([
        ("url", writer.url(server, address)),
        ("bearer_token_env_var", bearer),
        ("http_headers", writer.map(server, "headers", set)),
        ("env_http_headers", Out::Table(named)),
    ])
}

/// The name of the variable if the text is this prefix and one reference to a variable or an input.
fn variable(text: &Text, prefix: &str) -> Option<String> {
    let parts = match text.parts() {
        [Part::Literal(start), rest @ ..] if start == prefix => rest,
        parts if prefix.is_empty() => parts,
        _ => return None,
    };
    match parts {
        [Part::Reference(Reference::Variable { name, default: None }, _)] => Some(name.clone()),
        [Part::Reference(Reference::Input(id), _)] => Some(variable_for(id)),
        _ => None,
    }
}
