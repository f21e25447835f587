//! One server as configured, in any format.

pub(crate) mod endpoint;
pub(crate) mod installer;
pub(crate) mod keys;
pub(crate) mod limits;
pub(crate) mod network;
pub(crate) mod oauth;
pub(crate) mod options;
pub(crate) mod origin;
pub(crate) mod partial;
pub(crate) mod transport;

use std::collections::BTreeMap;

use consort_core::{ServerId, ToolName};
use serde::Serialize;

use crate::duration::ConfigDuration;
use crate::server::limits::ServerLimits;
use crate::server::network::NetworkConfig;
use crate::server::options::{ServerOptions, WrittenValue};
use crate::server::origin::ServerOrigin;
use crate::server::transport::RemoteTransport;
use crate::source_location::{LineColumn, SourceLocation};
use crate::template::input::InputVariable;
use crate::template::secret_scheme;
use crate::template::{TemplateString, ValueReference};

/// Configuration of one server. References are not resolved yet; see [`ServerConfig::to_settings`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServerConfig {
    /// Id of the server.
    pub name: ServerId,
    /// Transport and its settings.
    #[serde(flatten)]
    pub transport: TransportConfig,
    /// Timeouts.
    #[serde(skip_serializing_if = "is_default")]
    pub timeout: ServerTimeouts,
    /// Settings of any server.
    #[serde(flatten)]
    pub options: ServerOptions,
    /// Settings of single tools.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<ToolName, ToolConfig>,
    /// True if it is disabled.
    #[serde(skip_serializing_if = "is_default")]
    pub disabled: bool,
    /// Inputs requested before it can start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<InputVariable>,
    /// Place of its description.
    pub origin: ServerOrigin,
    /// Limits of calls and connections.
    #[serde(flatten)]
    pub limits: ServerLimits,
}

/// Transport of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum TransportConfig {
    /// A program's standard input and output.
    #[serde(serialize_with = "transport::serialize_program")]
    Stdio(Box<StdioConfig>),
    /// A server at a URL.
    Remote(Box<HttpConfig>),
}

/// A program to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StdioConfig {
    /// The command.
    pub command: TemplateString,
    /// Its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<TemplateString>,
    /// Environment variables set for it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, TemplateString>,
    /// File of environment variables; those of `env` take precedence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env_file: Option<TemplateString>,
    /// Environment variables of Consort passed to it besides the harmless ones; `*` means all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inherit: Vec<String>,
    /// Working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<TemplateString>,
}

/// URL of a server, with the settings of its connections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HttpConfig {
    /// The transport.
    pub transport: RemoteTransport,
    /// Its URL.
    pub url: TemplateString,
    /// Headers of every request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, TemplateString>,
    /// Shell command that prints a JSON object of further headers, for each connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers_helper: Option<String>,
    /// Authentication by a static credential.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<AuthConfig>,
    /// OAuth settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth: Option<OAuthConfig>,
    /// True if plain HTTP to another machine is allowed.
    #[serde(skip_serializing_if = "is_default")]
    pub insecure: bool,
    /// The header that identifies the session of a call to the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_header: Option<String>,
    /// The proxy and the certificates of its connections.
    #[serde(flatten)]
    pub network: NetworkConfig,
}

/// Authentication by a static credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthConfig {
    /// `Authorization: Bearer …`.
    Bearer(TemplateString),
    /// An API key in its own header.
    ApiKey {
        /// Name of the header.
        header: String,
        /// The key.
        key: TemplateString,
    },
}

/// OAuth settings; most servers need none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OAuthConfig {
    /// Client id, if the client is registered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<TemplateString>,
    /// Client secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<TemplateString>,
    /// URL of the client metadata document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_metadata: Option<String>,
    /// Scopes to request, instead of those that the server names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The authorization server, instead of the one that the server names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// OAuth grant.
    #[serde(skip_serializing_if = "is_default")]
    pub grant: OAuthGrant,
    /// Port of the redirect URI on this machine, if one was registered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callback_port: Option<u16>,
}

/// OAuth grant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OAuthGrant {
    /// Authorization code: a person consents in a browser.
    #[default]
    Code,
    /// Client credentials: no person is involved.
    ClientCredentials,
}

/// Protocol era to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EraSetting {
    /// Detected.
    #[default]
    Auto,
    /// With the `initialize` handshake.
    Legacy,
    /// Without a handshake.
    Modern,
}

/// Time of the first connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ConnectTime {
    /// At the start.
    #[default]
    Start,
    /// At the first call.
    Call,
}

/// Check of the arguments of calls against input schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ValidationMode {
    /// No check.
    Off,
    /// The call is sent; if its server answers with an error, problems are logged.
    Warn,
    /// The call is refused.
    Refuse,
}

impl ValidationMode {
    /// All variants, with their names in a config.
    pub(crate) const WORDS: [(&'static str, Self); 3] =
        [("off", Self::Off), ("warn", Self::Warn), ("refuse", Self::Refuse)];
}

impl From<ValidationMode> for consort_hub::ArgumentCheck {
    fn from(validate: ValidationMode) -> Self {
        match validate {
            ValidationMode::Off => Self::Off,
            ValidationMode::Warn => Self::Warn,
            ValidationMode::Refuse => Self::Refuse,
        }
    }
}

/// Timeouts of a server; absent means the default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ServerTimeouts {
    /// Time of a call without a message from it; progress renews it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<ConfigDuration>,
    /// Total time of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<ConfigDuration>,
    /// Time from the start of the connection to the end of the handshake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect: Option<ConfigDuration>,
    /// The same, for a program that may have to fetch its package first, such as `npx`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install: Option<ConfigDuration>,
}

/// Settings of one tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ToolConfig {
    /// Time of a call of it without a message from the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<ConfigDuration>,
    /// Total time of a call of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<ConfigDuration>,
}

impl ServerConfig {
    /// Consort's own keys that are set and that every transport has, with their values as they are written.
    pub(crate) fn written_options(&self) -> impl Iterator<Item = (&'static str, WrittenValue)> {
        self.options.written().chain(self.limits.written())
    }

    /// Every text with its key.
    pub(crate) fn texts(&self) -> Vec<(String, &TemplateString)> {
        match &self.transport {
            TransportConfig::Stdio(program) => {
                let mut texts = vec![("command".to_owned(), &program.command)];
                texts.extend(program.arguments.iter().map(|text| ("args".to_owned(), text)));
                texts.extend(prefix_keys("env", &program.env));
                texts.extend(program.env_file.iter().map(|text| ("env_file".to_owned(), text)));
                texts.extend(program.cwd.iter().map(|text| ("cwd".to_owned(), text)));
                texts
            }
            TransportConfig::Remote(address) => {
                let mut texts = vec![("url".to_owned(), &address.url)];
                texts.extend(prefix_keys("headers", &address.headers));
                texts.extend(address.auth.iter().map(|auth| ("auth".to_owned(), auth.text())));
                let oauth = address.oauth.iter().flat_map(|oauth| {
                    let id = oauth.client_id.iter().map(|id| ("oauth.client_id", id));
                    id.chain(
                        oauth.client_secret.iter().map(|secret| ("oauth.client_secret", secret)),
                    )
                });
                let keys = oauth.chain(address.network.texts());
                texts.extend(keys.map(|(key, text)| (key.to_owned(), text)));
                texts
            }
        }
    }

    /// Command lines of the programs that print its values, as written: `cmd:` and `headersHelper`.
    pub fn value_commands(&self) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for (_, text) in self.texts() {
            let written = text.references().into_iter().filter_map(|reference| match reference {
                ValueReference::Program(words) => Some(secret_scheme::join_words(words)),
                _ => None,
            });
            lines.extend(written);
        }
        if let Some(address) = self.transport.remote() {
            lines.extend(address.headers_helper.iter().map(|line| format!("sh -c {line}")));
        }
        lines
    }

    pub(crate) fn place(&self, spot: LineColumn) -> SourceLocation {
        SourceLocation { file: self.origin.file.clone(), spot: Some(spot) }
    }
}

impl AuthConfig {
    pub(crate) fn text(&self) -> &TemplateString {
        match self {
            Self::Bearer(text) | Self::ApiKey { key: text, .. } => text,
        }
    }

    /// The header that carries it.
    pub(crate) fn header(&self) -> (&str, TemplateString) {
        match self {
            Self::Bearer(token) => (self.header_name(), token.with_prefix("Bearer ")),
            Self::ApiKey { key, .. } => (self.header_name(), key.clone()),
        }
    }

    /// The name of the header that carries it.
    pub(crate) fn header_name(&self) -> &str {
        match self {
            Self::Bearer(_) => "Authorization",
            Self::ApiKey { header, .. } => header,
        }
    }
}

fn prefix_keys<'a>(
    map: &'static str,
    texts: &'a BTreeMap<String, TemplateString>,
) -> impl Iterator<Item = (String, &'a TemplateString)> {
    texts.iter().map(move |(name, text)| (format!("{map}.{name}"), text))
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
