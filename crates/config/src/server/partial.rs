//! A partially read server: its parts, before they are combined and checked.

mod field_names;

use std::collections::BTreeMap;
use std::mem::take;

use consort_core::{ServerId, ToolName};

use crate::error::ConfigErrorKind;
use crate::server::endpoint::{check_header, check_url};
use crate::server::limits::ServerLimits;
use crate::server::network::NetworkConfig;
use crate::server::oauth;
use crate::server::options::ServerOptions;
use crate::server::transport::{
    RemoteTransport, TRANSPORT_ALIASES, TRANSPORTS, TransportKind, WEB_SOCKET,
};
use crate::server::{
    AuthConfig, HttpConfig, OAuthConfig, ServerConfig, ServerOrigin, ServerTimeouts, StdioConfig,
    ToolConfig, TransportConfig,
};
use crate::syntax::table_reader::TableReader;
use crate::syntax::tree::{SyntaxNode, SyntaxValue};
use crate::template::input::InputVariable;
use crate::template::{SecretMasking, TemplateString};
pub(crate) use field_names::{COMMON_NAMES, FieldNames};
use field_names::{FOR_ADDRESSES, FOR_PROGRAMS};

/// Above this many seconds a bare number means milliseconds: some clients count in these, others in seconds, and none
/// allows a call longer than an hour.
const MOST_SECONDS: f64 = 3_600.0;

/// Unit of a bare number as a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeoutUnit {
    Seconds,
    Milliseconds,
    /// Seconds or milliseconds, depending on the client.
    Unclear,
}

/// The parts of a server.
#[derive(Debug, Default)]
pub(crate) struct PartialServer {
    pub(crate) kind: Option<TransportKind>,
    pub(crate) command: Option<TemplateString>,
    pub(crate) arguments: Vec<TemplateString>,
    pub(crate) env: BTreeMap<String, TemplateString>,
    pub(crate) env_file: Option<TemplateString>,
    pub(crate) inherit: Vec<String>,
    pub(crate) cwd: Option<TemplateString>,
    pub(crate) url: Option<TemplateString>,
    pub(crate) headers: BTreeMap<String, TemplateString>,
    pub(crate) headers_helper: Option<String>,
    pub(crate) auth: Option<AuthConfig>,
    pub(crate) oauth: Option<OAuthConfig>,
    pub(crate) insecure: bool,
    pub(crate) session_header: Option<String>,
    pub(crate) network: NetworkConfig,
    pub(crate) timeout: ServerTimeouts,
    pub(crate) options: ServerOptions,
    pub(crate) tools: BTreeMap<ToolName, ToolConfig>,
    pub(crate) disabled: bool,
    pub(crate) inputs: Vec<InputVariable>,
    pub(crate) limits: ServerLimits,
    /// True if the reason for leaving the server out was already reported.
    pub(crate) left_out: bool,
    command_at: Option<usize>,
    url_at: Option<(&'static str, usize)>,
}

impl PartialServer {
    /// Reads the keys that formats have in common, by these names, and Consort's own keys, which every format accepts.
    pub(crate) fn read(fields: &TableReader<'_>, keys: &FieldNames) -> Self {
        let mut partial = Self::read_consort_keys(fields);
        partial.kind = transport(fields, keys.transport);
        partial.read_transport(fields, keys);
        partial
    }

    /// Reads the keys of the transport.
    pub(crate) fn read_transport(&mut self, fields: &TableReader<'_>, keys: &FieldNames) {
        self.command(fields);
        if let Some((key, node)) = fields.any_of(keys.arguments) {
            self.arguments.extend(fields.texts(key, node));
        }
        self.env.extend(fields.text_map(keys.env));
        self.cwd = fields.text(keys.cwd, SecretMasking::LikelySecrets).or(self.cwd.take());
        if let Some((key, node)) = fields.any_of(keys.url) {
            self.url_at = Some((key, node.at));
            self.url = fields.text(&[key], SecretMasking::UrlCredentials);
        }
        self.headers.extend(fields.text_map(keys.headers));
    }

    /// Reads Consort's own keys, which every format accepts.
    pub(crate) fn read_consort_keys(fields: &TableReader<'_>) -> Self {
        let inherit = fields.strings("inherit_env");
        if inherit.iter().any(|name| name == "*") {
            let hint = "list only the variables it needs".to_owned();
            let message =
                "`inherit_env` passes every environment variable to the server, including secrets";
            fields.warn(fields.at_of("inherit_env"), message, Some(hint));
        }
        if fields.get("keep").is_some_and(SyntaxNode::is_empty) {
            fields.error(fields.at_of("keep"), ConfigErrorKind::EmptyList("keep".to_owned()));
        }
        Self {
            inherit,
            env_file: fields.text(&["env_file"], SecretMasking::LikelySecrets),
            headers_helper: fields.string("headers_helper").map(str::to_owned),
            insecure: fields.bool("insecure").unwrap_or_default(),
            session_header: fields.string("session_header").map(str::to_owned),
            oauth: oauth::read(fields),
            network: NetworkConfig::read(fields),
            disabled: read_disabled(fields),
            options: ServerOptions::read(fields),
            limits: ServerLimits::read(fields),
            ..Self::default()
        }
    }

    /// Reads `command`: a program, or a program with its arguments.
    pub(crate) fn command(&mut self, fields: &TableReader<'_>) {
        let Some(node) = fields.get("command") else { return };
        self.command_at = Some(node.at);
        match &node.value {
            SyntaxValue::Text(text) => {
                self.command = fields.parse("command", text, node.at, SecretMasking::LikelySecrets);
                let blanks = text.trim().contains(char::is_whitespace);
                // A path may have blanks; a name that has them is a line meant for a shell.
                if blanks && !text.contains(['/', '\\']) && fields.get("args").is_none() {
                    let hint = "separate the program and its arguments: `command` and `args`";
                    let message = "`command` contains spaces: it must be the name of one program";
                    fields.warn(node.at, message, Some(hint.to_owned()));
                }
            }
            SyntaxValue::List(_) => {
                let mut words = fields.texts("command", node).into_iter();
                self.command = words.next();
                self.arguments = words.collect();
                if self.command.is_none() {
                    fields.error(node.at, ConfigErrorKind::Empty("command".to_owned()));
                }
            }
            _ => {
                fields.report_wrong_type::<()>("command", node, "a string or a list of strings");
            }
        }
    }

    /// Sets a program that was not written as `command`.
    pub(crate) fn run(
        &mut self,
        at: usize,
        command: TemplateString,
        arguments: Vec<TemplateString>,
    ) {
        (self.command_at, self.command, self.arguments) = (Some(at), Some(command), arguments);
    }

    /// Reads `timeout`: a duration, or a table of them.
    pub(crate) fn timeout(&mut self, fields: &TableReader<'_>, count: TimeoutUnit) {
        let Some(node) = fields.get("timeout") else { return };
        if let SyntaxValue::Table(table) = &node.value {
            let fields = fields.inner("timeout", node, table);
            self.timeout = ServerTimeouts {
                idle: fields.period("idle"),
                total: fields.period("total"),
                connect: fields.period("connect"),
                install: fields.period("install"),
            };
            if self.timeout.idle.zip(self.timeout.total).is_some_and(|(idle, total)| idle > total) {
                let message = "`timeout.idle` is longer than `timeout.total` and has no effect";
                fields.warn(node.at, message, None);
            }
            return fields.finish();
        }
        let number = match &node.value {
            SyntaxValue::Number(number) => number.parse().unwrap_or(f64::NAN),
            _ => 0.0,
        };
        let unit = match count {
            TimeoutUnit::Unclear if number > MOST_SECONDS => {
                let hint = "add a unit, such as `\"60s\"`, if that is not intended";
                let message = format!("`timeout` is interpreted as {number} milliseconds");
                fields.warn(node.at, &message, Some(hint.to_owned()));
                0.001
            }
            TimeoutUnit::Milliseconds => 0.001,
            _ => 1.0,
        };
        self.timeout.idle = fields.period_of("timeout", node, unit);
    }

    /// Combines the parts to a server, if they are consistent.
    pub(crate) fn into_server(
        mut self,
        name: ServerId,
        origin: ServerOrigin,
        fields: &TableReader<'_>,
    ) -> Option<ServerConfig> {
        let url_key = self.url_at.map_or("url", |(key, _)| key);
        let remote = match (self.command_at.is_some(), self.url_at.is_some(), self.kind) {
            (true, true, _) => {
                let mistake =
                    ConfigErrorKind::ConflictingKeys("command".to_owned(), url_key.to_owned());
                return report_error(fields, mistake);
            }
            (true, false, None | Some(TransportKind::Program)) => None,
            (false, true, None) => Some(RemoteTransport::default()),
            (false, _, Some(TransportKind::Program)) => {
                let hint = "a server with the transport `stdio` requires a `command`";
                return report_missing(fields, "command", hint);
            }
            (false, true, Some(kind)) => kind.remote(),
            (_, false, Some(_)) => {
                return report_missing(
                    fields,
                    "url",
                    "a server with this transport requires a `url`",
                );
            }
            (false, false, None) => {
                return report_error(fields, ConfigErrorKind::NoTransport("command", url_key));
            }
        };
        let transport = match remote {
            None => TransportConfig::Stdio(Box::new(self.program(fields)?)),
            Some(remote) => TransportConfig::Remote(Box::new(self.address(remote, fields)?)),
        };
        Some(ServerConfig {
            name,
            transport,
            timeout: self.timeout,
            options: self.options,
            tools: self.tools,
            disabled: self.disabled,
            inputs: self.inputs,
            origin,
            limits: self.limits,
        })
    }

    fn program(&mut self, fields: &TableReader<'_>) -> Option<StdioConfig> {
        let (command, at) = (self.command.take()?, self.command_at?);
        if command.as_literal().is_some_and(|text| text.trim().is_empty()) {
            fields.error(at, ConfigErrorKind::Empty("command".to_owned()));
        }
        let wrong = |name: &str| name.is_empty() || name.contains(['=', '\0']);
        for (_, value) in self.env.iter().filter(|(name, _)| wrong(name)) {
            fields.error_in(value, ConfigErrorKind::VariableName("env"));
        }
        if self.inherit.iter().any(|name| wrong(name)) {
            fields.error(fields.at(), ConfigErrorKind::VariableName("inherit_env"));
        }
        fields.warn_unused(&FOR_ADDRESSES, "the server is a local process");
        Some(StdioConfig {
            command,
            arguments: take(&mut self.arguments),
            env: take(&mut self.env),
            env_file: self.env_file.take(),
            inherit: take(&mut self.inherit),
            cwd: self.cwd.take(),
        })
    }

    fn address(
        &mut self,
        transport: RemoteTransport,
        fields: &TableReader<'_>,
    ) -> Option<HttpConfig> {
        fields.warn_unused(&FOR_PROGRAMS, "the server is remote");
        let ((key, at), url) = (self.url_at?, self.url.take()?);
        let (headers, auth, insecure) = (take(&mut self.headers), self.auth.take(), self.insecure);
        let (session_header, oauth) = (self.session_header.take(), self.oauth.take());
        if let Some(Err(mistake)) = session_header.as_deref().map(check_header) {
            fields.error(fields.at_of("session_header"), mistake);
        }
        let network = take(&mut self.network);
        let headers_helper = self.headers_helper.take();
        let address = HttpConfig {
            transport,
            url,
            headers,
            headers_helper,
            auth,
            oauth,
            insecure,
            session_header,
            network,
        };
        if let Err(mistake) = check_url(key, &address) {
            fields.error(at, mistake);
        }
        for (name, value) in &address.headers {
            if let Err(mistake) = check_header(name) {
                fields.error_in(value, mistake);
            }
        }
        if let Some(auth) = &address.auth {
            let (header, text) = auth.header();
            if let Err(mistake) = check_header(header) {
                fields.error_in(&text, mistake);
            }
            if address.oauth.is_some() {
                let mistake =
                    ConfigErrorKind::ConflictingKeys("auth".to_owned(), "oauth".to_owned());
                fields.error_in(&text, mistake);
            }
            let same = |(name, _): &(&String, &TemplateString)| name.eq_ignore_ascii_case(header);
            if let Some((name, value)) = address.headers.iter().find(same) {
                let mistake =
                    ConfigErrorKind::ConflictingKeys("auth".to_owned(), format!("headers.{name}"));
                fields.error_in(value, mistake);
            }
        }
        Some(address)
    }
}

fn transport(fields: &TableReader<'_>, keys: &[&'static str]) -> Option<TransportKind> {
    let (key, _) = fields.any_of(keys)?;
    let others = [TRANSPORT_ALIASES.as_slice(), &WEB_SOCKET].concat();
    let kind = fields.word(key, &TRANSPORTS, &others)?;
    if kind == TransportKind::WebSocket {
        let message = format!("`{key}` is interpreted as `http`: MCP has no WebSocket transport");
        let hint = "use `http` (Streamable HTTP)".to_owned();
        fields.warn(fields.at_of(key), &message, Some(hint));
    }
    Some(kind)
}

/// Reads `disabled`, or its inverse `enabled`.
fn read_disabled(fields: &TableReader<'_>) -> bool {
    let (disabled, enabled) = (fields.bool("disabled"), fields.bool("enabled"));
    if disabled.is_some() && enabled.is_some() {
        let mistake = ConfigErrorKind::ConflictingKeys("disabled".to_owned(), "enabled".to_owned());
        fields.error(fields.at_of("enabled"), mistake);
    }
    disabled.or(enabled.map(|enabled| !enabled)).unwrap_or_default()
}

fn report_error<T>(fields: &TableReader<'_>, mistake: ConfigErrorKind) -> Option<T> {
    fields.error(fields.at(), mistake);
    None
}

fn report_missing<T>(fields: &TableReader<'_>, key: &'static str, hint: &'static str) -> Option<T> {
    report_error(fields, ConfigErrorKind::Missing { key, hint })
}
