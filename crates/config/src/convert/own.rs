//! Consort's own keys, which every format accepts.

use super::consort::limit;
use super::out::Out;
use super::{Target, Writer};
use crate::period::Period;
use crate::server::{Address, Connect, Era, Grant, OAuth, ServerConfig, Transport};
use crate::text::Text;

/// Returns true if Consort reads this key in the format of another client.
pub(super) fn can_say(target: Target, key: &str) -> bool {
    // Codex has words of its own for times; the rest have `timeout`, which takes ours.
    key != "tools" && (target != Target::Codex || !key.starts_with("timeout."))
}

/// Returns the values of these keys of a server.
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
        ("install", period("timeout.install", server.timeout.install)),
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
        ("validate", Out::maybe(server.validate, |check| Out::text(check.as_str()))),
        ("keep", strings("keep", &server.keep)),
        ("drop", strings("drop", &server.drop)),
        ("timeout", timeout),
    ]);
    let limits = server.limits.written();
    let limits = limits.map(|(key, value)| (key, Out::maybe(value.filter(|_| is(key)), limit)));
    // Those that have no HTTP+SSE have no word for it either; we know this one.
    let names_sse = !matches!(target, Target::Zed | Target::Codex);
    let place = match &server.transport {
        Transport::Stdio(program) => {
            let inherit = strings("inherit_env", &program.inherit);
            let directory =
                if is("cwd") { writer.directory(server, program) } else { Out::Nothing };
            Out::table([("inherit_env", inherit), ("cwd", directory)])
        }
        Transport::Http(address) | Transport::Sse(address) => Out::joined([
            Out::table([
                (
                    "type",
                    Out::when(
                        matches!(server.transport, Transport::Sse(_)) && !names_sse,
                        Out::text("sse"),
                    ),
                ),
                ("insecure", Out::when(address.insecure, Out::Bool(true))),
                ("session_header", Out::maybe(address.session_header.as_deref(), Out::text)),
                ("oauth", Out::maybe(address.oauth.as_ref(), |oauth| login(writer, server, oauth))),
            ]),
            network(writer, server, address),
        ]),
    };
    Out::joined([place, own, Out::table(limits)])
}

/// The proxy and the certificates of a server.
pub(super) fn network(writer: &mut Writer, server: &ServerConfig, address: &Address) -> Out {
    let texts = address.network.texts();
    let spelled =
        texts.map(|(key, text)| (key.to_owned(), Out::Text(writer.spell(server, key, text))));
    Out::Table(spelled.collect())
}

/// Returns the OAuth settings of a server.
pub(super) fn login(writer: &mut Writer, server: &ServerConfig, oauth: &OAuth) -> Out {
    let mut text = |key: &str, text: &Option<Text>| {
        let key = format!("oauth.{key}");
        Out::maybe(text.as_ref(), |text| Out::Text(writer.spell(server, &key, text)))
    };
    let (id, secret) =
        (text("client_id", &oauth.client_id), text("client_secret", &oauth.client_secret));
    let alone = oauth.grant == Grant::ClientCredentials;
    Out::table([
        ("client_id", id),
        ("client_secret", secret),
        ("client_metadata", Out::maybe(oauth.client_metadata.as_deref(), Out::text)),
        ("scope", Out::maybe(oauth.scope.as_deref(), Out::text)),
        ("issuer", Out::maybe(oauth.issuer.as_deref(), Out::text)),
        ("grant", Out::when(alone, Out::text("client_credentials"))),
        ("callback_port", Out::maybe(oauth.callback_port, |port| Out::Number(port.into()))),
    ])
}
