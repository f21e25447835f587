//! The entry of the gateway, as each client writes it.

use super::ExportMode;
use crate::convert::output_value::OutputValue;

/// Package that connects a client limited to stdio to a URL. Earlier versions run commands sent by a server.
const BRIDGE: &str = "mcp-remote@^0.1.16";

/// Seconds of a call in Goose: its own default, which it wants written.
const GOOSE_SECONDS: f64 = 300.0;

/// `command` and `args`, or `url` and `headers`.
pub(crate) fn untyped(mode: &ExportMode) -> OutputValue {
    entry(mode, None, "url", "headers")
}

/// The same with `type`, as the names of transports.
pub(crate) fn typed(mode: &ExportMode) -> OutputValue {
    entry(mode, Some(("stdio", "http")), "url", "headers")
}

/// `command` and `args` also for a URL, for clients that start programs only.
pub(crate) fn bridged(mode: &ExportMode) -> OutputValue {
    let ExportMode::Url { url, token } = mode else { return untyped(mode) };
    let plain = url.starts_with("http://").then_some("--allow-http");
    // A blank in an argument does not survive on every system, one in a variable does.
    let header = ["--header", "Authorization:${CONSORT_TOKEN}"];
    let header = header.into_iter().filter(|_| token.is_some());
    let words = ["-y", BRIDGE, url].into_iter().chain(plain).chain(header);
    OutputValue::table([
        ("command", OutputValue::text("npx")),
        ("args", OutputValue::List(words.map(OutputValue::text).collect())),
        ("env", bearer("CONSORT_TOKEN", token.as_deref())),
    ])
}

/// Windsurf's `serverUrl`.
pub(crate) fn windsurf(mode: &ExportMode) -> OutputValue {
    entry(mode, None, "serverUrl", "headers")
}

/// Zed's entry; older versions want its `source`.
pub(crate) fn zed(mode: &ExportMode) -> OutputValue {
    let source = OutputValue::table([("source", OutputValue::text("custom"))]);
    OutputValue::join_tables([source, untyped(mode)])
}

/// Codex's `http_headers`.
pub(crate) fn codex(mode: &ExportMode) -> OutputValue {
    entry(mode, None, "url", "http_headers")
}

/// Gemini CLI's `httpUrl`; its `url` is for HTTP+SSE.
pub(crate) fn gemini(mode: &ExportMode) -> OutputValue {
    entry(mode, None, "httpUrl", "headers")
}

/// Copilot's entry, which must name the tools to use.
pub(crate) fn copilot(mode: &ExportMode) -> OutputValue {
    let tools = OutputValue::table([("tools", OutputValue::List(vec![OutputValue::text("*")]))]);
    OutputValue::join_tables([entry(mode, Some(("local", "http")), "url", "headers"), tools])
}

/// OpenCode's entry, with the program and its arguments in one list. Version 2 reads it too.
pub(crate) fn opencode(mode: &ExportMode) -> OutputValue {
    let enabled = OutputValue::table([("enabled", OutputValue::Bool(true))]);
    let place = match mode {
        ExportMode::Program { command, arguments } => {
            let words = std::iter::once(command).chain(arguments);
            OutputValue::table([
                ("type", OutputValue::text("local")),
                ("command", OutputValue::strings(words)),
            ])
        }
        ExportMode::Url { .. } => entry(mode, Some(("local", "remote")), "url", "headers"),
    };
    OutputValue::join_tables([place, enabled])
}

/// Goose's entry.
pub(crate) fn goose(mode: &ExportMode) -> OutputValue {
    let common = OutputValue::table([
        ("enabled", OutputValue::Bool(true)),
        ("name", OutputValue::text(super::ENTRY_NAME)),
        ("description", OutputValue::text("All MCP servers of Consort")),
        ("timeout", OutputValue::Number(GOOSE_SECONDS)),
    ]);
    let place = match mode {
        ExportMode::Program { command, arguments } => OutputValue::table([
            ("type", OutputValue::text("stdio")),
            ("cmd", OutputValue::text(command)),
            ("args", OutputValue::strings(arguments)),
        ]),
        ExportMode::Url { url, token } => OutputValue::table([
            ("type", OutputValue::text("streamable_http")),
            ("uri", OutputValue::text(url)),
            ("headers", bearer("Authorization", token.as_deref())),
        ]),
    };
    OutputValue::join_tables([common, place])
}

/// Continue's item of a list, with its name.
pub(crate) fn continue_item(mode: &ExportMode) -> OutputValue {
    let name = OutputValue::table([("name", OutputValue::text(super::ENTRY_NAME))]);
    let place = match mode {
        ExportMode::Program { .. } => untyped(mode),
        ExportMode::Url { url, token } => {
            let headers = bearer("Authorization", token.as_deref());
            OutputValue::table([
                ("type", OutputValue::text("streamable-http")),
                ("url", OutputValue::text(url)),
                ("requestOptions", OutputValue::table([("headers", headers)])),
            ])
        }
    };
    OutputValue::join_tables([name, place])
}

/// LibreChat's names of transports.
pub(crate) fn librechat(mode: &ExportMode) -> OutputValue {
    entry(mode, Some(("stdio", "streamable-http")), "url", "headers")
}

/// The usual entry, with these types, and these keys for a URL.
fn entry(
    mode: &ExportMode,
    types: Option<(&str, &str)>,
    url_key: &'static str,
    headers_key: &'static str,
) -> OutputValue {
    let kind = |kind: Option<&str>| OutputValue::from_option(kind, OutputValue::text);
    match mode {
        ExportMode::Program { command, arguments } => OutputValue::table([
            ("type", kind(types.map(|(stdio, _)| stdio))),
            ("command", OutputValue::text(command)),
            ("args", OutputValue::strings(arguments)),
        ]),
        ExportMode::Url { url, token } => OutputValue::table([
            ("type", kind(types.map(|(_, http)| http))),
            (url_key, OutputValue::text(url)),
            (headers_key, bearer("Authorization", token.as_deref())),
        ]),
    }
}

fn bearer(name: &'static str, token: Option<&str>) -> OutputValue {
    let header = |token| OutputValue::table([(name, OutputValue::Text(format!("Bearer {token}")))]);
    OutputValue::from_option(token, header)
}
