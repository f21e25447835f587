//! Consort's own keys, which every format accepts.

use super::output_value::OutputValue;
use super::{ConfigWriter, TargetFormat};
use crate::duration::ConfigDuration;
use crate::server::options::WrittenValue;
use crate::server::transport::RemoteTransport;
use crate::server::{HttpConfig, OAuthConfig, OAuthGrant, ServerConfig, TransportConfig};
use crate::template::TemplateString;

/// Returns true if Consort reads this key in the format of another client.
pub(super) fn can_say(target: TargetFormat, key: &str) -> bool {
    // Codex has words of its own for times; the rest have `timeout`, which takes ours.
    key != "tools" && (target != TargetFormat::Codex || !key.starts_with("timeout."))
}

/// Returns the values of these keys of a server.
pub(super) fn keys(
    writer: &mut ConfigWriter,
    server: &ServerConfig,
    wanted: &[&str],
) -> OutputValue {
    let target = writer.target;
    let is = |key: &str| wanted.contains(&key) && can_say(target, key);
    let period = |key: &str, period: Option<ConfigDuration>| {
        let period = period.filter(|_| is(key));
        OutputValue::from_option(period, |period| OutputValue::Text(period.to_string()))
    };
    let timeout = OutputValue::table([
        ("idle", period("timeout.idle", server.timeout.idle)),
        ("total", period("timeout.total", server.timeout.total)),
        ("connect", period("timeout.connect", server.timeout.connect)),
        ("install", period("timeout.install", server.timeout.install)),
    ]);
    let strings =
        |key: &str, texts: &[String]| OutputValue::value_if(is(key), OutputValue::strings(texts));
    let own = OutputValue::table([("timeout", timeout)]);
    let place = match &server.transport {
        TransportConfig::Stdio(program) => {
            let inherit = strings("inherit_env", &program.inherit);
            let directory =
                if is("cwd") { writer.cwd(server, program) } else { OutputValue::Nothing };
            let env_file = if is("env_file") {
                writer.env_file(server, program)
            } else {
                OutputValue::Nothing
            };
            OutputValue::table([
                ("inherit_env", inherit),
                ("env_file", env_file),
                ("cwd", directory),
            ])
        }
        TransportConfig::Remote(address) => {
            OutputValue::join_tables([
                OutputValue::table([
                    (
                        "type",
                        // Formats without a key for the transport mean the usual one; Consort reads this key in all.
                        OutputValue::value_if(
                            address.transport != RemoteTransport::default()
                                && !target.names_transports(),
                            OutputValue::text(address.transport.name()),
                        ),
                    ),
                    ("insecure", OutputValue::value_if(address.insecure, OutputValue::Bool(true))),
                    (
                        "session_header",
                        OutputValue::from_option(
                            address.session_header.as_deref(),
                            OutputValue::text,
                        ),
                    ),
                    (
                        "headers_helper",
                        OutputValue::from_option(
                            address.headers_helper.as_deref().filter(|_| is("headers_helper")),
                            OutputValue::text,
                        ),
                    ),
                    (
                        "oauth",
                        OutputValue::from_option(address.oauth.as_ref(), |oauth| {
                            login(writer, server, oauth)
                        }),
                    ),
                ]),
                network(writer, server, address),
            ])
        }
    };
    OutputValue::join_tables([place, options(server, is), own])
}

/// The keys of a server that every transport has, if they are wanted.
pub(super) fn options(server: &ServerConfig, is_wanted: impl Fn(&str) -> bool) -> OutputValue {
    let write = |value: WrittenValue| match value {
        WrittenValue::Text(text) => OutputValue::Text(text),
        WrittenValue::Texts(texts) => OutputValue::strings(&texts),
        #[expect(clippy::cast_precision_loss, reason = "no limit is that large")]
        WrittenValue::Count(count) => OutputValue::Number(count as f64),
        WrittenValue::Duration(written) => OutputValue::Text(written.to_string()),
    };
    let wanted = server.written_options().filter(|(key, _)| is_wanted(key));
    OutputValue::Table(wanted.map(|(key, value)| (key.to_owned(), write(value))).collect())
}

/// The proxy and the certificates of a server.
pub(super) fn network(
    writer: &mut ConfigWriter,
    server: &ServerConfig,
    address: &HttpConfig,
) -> OutputValue {
    let texts = address.network.texts();
    let spelled = texts.map(|(key, text)| {
        (key.to_owned(), OutputValue::Text(writer.write_text(server, key, text)))
    });
    OutputValue::Table(spelled.collect())
}

/// Returns the OAuth settings of a server.
pub(super) fn login(
    writer: &mut ConfigWriter,
    server: &ServerConfig,
    oauth: &OAuthConfig,
) -> OutputValue {
    let mut text = |key: &str, text: &Option<TemplateString>| {
        let key = format!("oauth.{key}");
        OutputValue::from_option(text.as_ref(), |text| {
            OutputValue::Text(writer.write_text(server, &key, text))
        })
    };
    let (id, secret) =
        (text("client_id", &oauth.client_id), text("client_secret", &oauth.client_secret));
    let alone = oauth.grant == OAuthGrant::ClientCredentials;
    OutputValue::table([
        ("client_id", id),
        ("client_secret", secret),
        (
            "client_metadata",
            OutputValue::from_option(oauth.client_metadata.as_deref(), OutputValue::text),
        ),
        ("scope", OutputValue::from_option(oauth.scope.as_deref(), OutputValue::text)),
        ("issuer", OutputValue::from_option(oauth.issuer.as_deref(), OutputValue::text)),
        ("grant", OutputValue::value_if(alone, OutputValue::text("client_credentials"))),
        (
            "callback_port",
            OutputValue::from_option(oauth.callback_port, |port| OutputValue::Number(port.into())),
        ),
    ])
}
