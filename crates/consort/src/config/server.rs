//! One server as the user described it, in whatever format.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use consort_core::{ServerId, ToolName};
use serde::Serialize;

use super::input::Input;
use super::network::NetworkConfig;
use super::period::Period;
use super::place::{Place, Spot};
use super::text::Text;

/// What the user wrote about one server. References are not followed yet; see
/// [`ServerConfig::to_settings`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ServerConfig {
    /// What we call it.
    pub name: ServerId,
    /// What it is for, in the user's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How it is reached.
    #[serde(flatten)]
    pub transport: Transport,
    /// Which era to speak.
    #[serde(skip_serializing_if = "is_default")]
    pub era: Era,
    /// How long we wait.
    #[serde(skip_serializing_if = "is_default")]
    pub timeout: Timeouts,
    /// The tools to keep, as patterns; all if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keep: Vec<String>,
    /// The tools to drop, as patterns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drop: Vec<String>,
    /// How single tools are treated.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<ToolName, ToolConfig>,
    /// When to connect.
    #[serde(skip_serializing_if = "is_default")]
    pub connect: Connect,
    /// How long it may be unused before it is stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_stop: Option<Period>,
    /// Whether it is left alone.
    #[serde(skip_serializing_if = "is_default")]
    pub disabled: bool,
    /// What is asked before it can start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<Input>,
    /// Where it is written.
    pub origin: Origin,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "transport", rename_all = "lowercase")]
pub enum Transport {
    /// A program's standard input and output.
    Stdio(Program),
    /// Streamable HTTP or, failing that, HTTP+SSE.
    Http(Address),
    /// HTTP+SSE.
    Sse(Address),
}

/// A program to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Program {
    /// Which one.
    pub command: Text,
    /// Its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<Text>,
    /// Variables set for it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, Text>,
    /// Variables of ours it gets besides the harmless ones; `*` means all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inherit: Vec<String>,
    /// Where it starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<Text>,
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Address {
    /// Its URL.
    pub url: Text,
    /// Headers of every request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Text>,
    /// How we prove who we are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<Auth>,
    /// What a login needs to know beforehand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth: Option<OAuth>,
    /// Whether plain HTTP to another machine is allowed.
    #[serde(skip_serializing_if = "is_default")]
    pub insecure: bool,
    /// The header that tells the server of a call's session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_header: Option<String>,
    /// The proxy and the certificates of its connections.
    #[serde(flatten)]
    pub network: NetworkConfig,
}

/// How we prove who we are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Auth {
    /// `Authorization: Bearer …`.
    Bearer(Text),
    /// A key in a header of its own.
    ApiKey {
        /// Which header.
        header: String,
        /// What it says.
        key: Text,
    },
}

/// What a login by OAuth needs to know beforehand; most need nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OAuth {
    /// Who we are, if we were registered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<Text>,
    /// What proves it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<Text>,
    /// The address of a document that describes us.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_metadata: Option<String>,
    /// What to ask for, instead of what the server says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The authorization server, instead of the one that the server names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// Who is let in.
    #[serde(skip_serializing_if = "is_default")]
    pub grant: Grant,
    /// Where the browser comes back to on this machine, if that was registered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub callback_port: Option<u16>,
}

/// Who is let in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Grant {
    /// A person, who agrees in a browser.
    #[default]
    Code,
    /// The client itself.
    ClientCredentials,
}

/// Which era to speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// Find out.
    #[default]
    Auto,
    /// With a handshake.
    Legacy,
    /// Without.
    Modern,
}

/// When to connect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Connect {
    /// At the start.
    #[default]
    Start,
    /// At the first call.
    Call,
}

/// How long we wait for a server; absent means the default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Timeouts {
    /// A call without a word from it; progress renews it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<Period>,
    /// A call altogether.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<Period>,
    /// From starting or reaching it to knowing what it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect: Option<Period>,
    /// The same, for a program that may have to fetch its package first, such as `npx`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install: Option<Period>,
}

/// How one tool is treated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ToolConfig {
    /// A call of it without a word from the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle: Option<Period>,
    /// A call of it altogether.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<Period>,
}

/// Where a server is described.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// The file.
    pub file: PathBuf,
    /// Where in it.
    #[serde(flatten)]
    pub spot: Spot,
    /// The project it belongs to, if the file describes several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<PathBuf>,
}

impl ServerConfig {
    /// Every text in it with the key it stands under.
    pub(super) fn texts(&self) -> Vec<(String, &Text)> {
        match &self.transport {
            Transport::Stdio(program) => {
                let mut texts = vec![("command".to_owned(), &program.command)];
                texts.extend(program.arguments.iter().map(|text| ("args".to_owned(), text)));
                texts.extend(named("env", &program.environment));
                texts.extend(program.directory.iter().map(|text| ("cwd".to_owned(), text)));
                texts
            }
            Transport::Http(address) | Transport::Sse(address) => {
                let mut texts = vec![("url".to_owned(), &address.url)];
                texts.extend(named("headers", &address.headers));
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

    pub(super) fn place(&self, spot: Spot) -> Place {
        Place { file: self.origin.file.clone(), spot: Some(spot) }
    }
}

impl Transport {
    /// What it is called in a config.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Stdio(_) => "stdio",
            Self::Http(_) => "http",
            Self::Sse(_) => "sse",
        }
    }
}

impl Auth {
    pub(super) fn text(&self) -> &Text {
        match self {
            Self::Bearer(text) | Self::ApiKey { key: text, .. } => text,
        }
    }

    /// The header it is sent in.
    pub(super) fn header(&self) -> (&str, Text) {
        match self {
            Self::Bearer(token) => ("Authorization", token.after("Bearer ")),
            Self::ApiKey { header, key } => (header, key.clone()),
        }
    }
}

impl Origin {
    /// The folder the server is described for: where an editor would be opened.
    pub(super) fn folder(&self) -> PathBuf {
        if let Some(project) = &self.project {
            return project.clone();
        }
        let beside = self.file.parent().unwrap_or(Path::new(""));
        let hidden = [".vscode", ".cursor", ".zed", ".codex"];
        if beside.file_name().is_some_and(|name| hidden.iter().any(|hidden| name == *hidden)) {
            return beside.parent().unwrap_or(Path::new("")).to_owned();
        }
        beside.to_owned()
    }
}

fn named<'a>(
    map: &'static str,
    texts: &'a BTreeMap<String, Text>,
) -> impl Iterator<Item = (String, &'a Text)> {
    texts.iter().map(move |(name, text)| (format!("{map}.{name}"), text))
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
