//! The keys of our own that every format takes.

use super::super::period::Period;
use super::super::server::{Connect, Era, ServerConfig, Transport};
use super::out::Out;
use super::{Target, Writer};

/// Whether we read this key in a format that is not ours.
pub(super) fn can_say(target: Target, key: &str) -> bool {
    // Codex has words of its own for times; the rest have `timeout`, which takes ours.
    key != "tools" && (target != Target::Codex || !key.starts_with("timeout."))
}

/// What these keys say of a server.
pub(super) fn keys(writer: &mut Writer, server: &ServerConfig, wanted: &[&str]) -> Out {
    let target = writer.target;
    let is = |key: &str| wanted.contains(&key) && can_say(target, key);
    let period = |key: &str, period: Option<Period>| {
        let period = period.filter(|_| is(key));
        Out::maybe(period, |period| Out::Text(period.to_string()))
    };
    let timeout = Out::table([
        ("idle", period("timeout.idle", server.timeout.idle)),
        ("total", period("timeout.total", server.timeout.total)),
        ("connect", period("timeout.connect", server.timeout.connect)),
    ]);
    let era = match server.era {
        Era::Legacy => Out::text("legacy"),
        Era::Modern => Out::text("modern"),
        Era::Auto => Out::Nothing,
    };
    let strings = |key: &str, texts: &[String]| Out::when(is(key), Out::strings(texts));
    let own = Out::table([
        ("description", Out::maybe(server.description.clone(), Out::Text)),
        ("era", era),
        ("connect", Out::when(server.connect == Connect::Call, Out::text("call"))),
        ("idle_stop", period("idle_stop", server.idle_stop)),
        ("keep", strings("keep", &server.keep)),
        ("drop", strings("drop", &server.drop)),
        ("timeout", timeout),
    ]);
    // Those that have no HTTP+SSE have no word for it either; we know this one.
    let names_sse = !matches!(target, Target::Zed | Target::Codex);
    let place = match &server.transport {
        Transport::Stdio(program) => {
            let inherit = strings("inherit_env", &program.inherit);
            let directory =
                if is("cwd") { writer.directory(server, program) } else { Out::Nothing };
            Out::table([("inherit_env", inherit), ("cwd", directory)])
        }
        Transport::Http(address) | Transport::Sse(address) => Out::table([
            (
                "type",
                Out::when(
                    matches!(server.transport, Transport::Sse(_)) && !names_sse,
                    Out::text("sse"),
                ),
            ),
            ("insecure", Out::when(address.insecure, Out::Bool(true))),
            ("session_header", Out::maybe(address.session_header.as_deref(), Out::text)),
        ]),
    };
    Out::joined([place, own])
}
