//! Conversion of servers to the formats of other clients.

mod codex;
mod common_keys;
mod consort;
mod consort_keys;
mod mcp_servers;
pub(crate) mod output_value;
mod reference_syntax;
mod vscode;
mod zed;

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use consort_core::{Problem, ServerId};
use serde::Serialize;
use toml_edit::DocumentMut;

use crate::config::Config;
use crate::options::ConsortOptions;
use crate::read::options::KEY;
use crate::server::transport::RemoteTransport;
use crate::server::{AuthConfig, HttpConfig, ServerConfig, TransportConfig};
use crate::syntax::names::{list_names, shorten_name};
use crate::template::TemplateString;
use output_value::OutputValue;

/// An output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TargetFormat {
    /// A map `mcpServers`: Claude, Cursor, Windsurf and many others.
    McpServers,
    /// VS Code's `servers` and `inputs`.
    VsCode,
    /// Zed's `context_servers`.
    Zed,
    /// Codex's `mcp_servers`.
    Codex,
    /// Consort's own `mcp`.
    Consort,
}

impl TargetFormat {
    /// All formats, with their names.
    pub const ALL: [(&str, Self); 5] = [
        ("mcpServers", Self::McpServers),
        ("vscode", Self::VsCode),
        ("zed", Self::Zed),
        ("codex", Self::Codex),
        ("consort", Self::Consort),
    ];

    /// Returns true if the format has a key for the transport of a server.
    fn names_transports(self) -> bool {
        !matches!(self, Self::Zed | Self::Codex)
    }
}

impl FromStr for TargetFormat {
    type Err = UnknownFormat;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
        known.map(|(_, target)| target).ok_or_else(|| UnknownFormat { word: shorten_name(word) })
    }
}

impl fmt::Display for TargetFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::McpServers => "`mcpServers`",
            Self::VsCode => "VS Code",
            Self::Zed => "Zed",
            Self::Codex => "Codex",
            Self::Consort => "Consort",
        })
    }
}

/// The error for an unknown format name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown format `{word}`: expected {}", list_names(&TargetFormat::ALL.map(|(name, _)| name)))]
pub struct UnknownFormat {
    word: String,
}

/// Servers in an output format.
#[derive(Clone, PartialEq, Eq)]
pub struct ConvertedConfig {
    /// The text. Secrets that were written literally are in it.
    pub text: String,
    /// Settings that the format cannot express.
    pub problems: Vec<Problem>,
}

impl fmt::Debug for ConvertedConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The text may hold secrets.
        f.debug_struct("ConvertedConfig").field("problems", &self.problems).finish_non_exhaustive()
    }
}

/// Writes servers in the format of `target`. References stay references, in the syntax of the target; settings that it
/// cannot express are reported as problems.
///
/// ```
/// use std::path::Path;
///
/// use consort_config::{Config, TargetFormat, convert};
///
/// let text = r#"{"servers": {"x": {"url": "https://x.example/mcp", "headers": {"K": "${env:KEY}"}}}}"#;
/// let config = Config::parse(Path::new("mcp.json"), text)?;
/// let converted = convert(&config.servers, TargetFormat::Consort);
/// assert!(converted.text.contains(r#"K = "env:KEY""#));
/// # Ok::<(), consort_config::UnusableFile>(())
/// ```
pub fn convert(servers: &[ServerConfig], target: TargetFormat) -> ConvertedConfig {
    let mut problems = Vec::new();
    let mut names: BTreeSet<&ServerId> = BTreeSet::new();
    let servers: Vec<&ServerConfig> = servers
        .iter()
        .filter(|server| {
            let new = names.insert(&server.name);
            if !new {
                let message = format!("omitted: another server is named `{}`", server.name);
                problems.push(Problem::error(message).of(&server.name));
            }
            new
        })
        .collect();
    let mut writer = ConfigWriter { target, reader: OutputReader::Others, problems };
    let text = match target {
        TargetFormat::McpServers => mcp_servers::write(&servers, &mut writer),
        TargetFormat::VsCode => vscode::write(&servers, &mut writer),
        TargetFormat::Zed => zed::write(&servers, &mut writer),
        TargetFormat::Codex => codex::write(&servers, &mut writer),
        TargetFormat::Consort => consort::write(&servers, &mut writer),
    };
    ConvertedConfig { text, problems: writer.problems }
}

impl Config {
    /// Converts the whole config to `target`. Options for all servers fit only in Consort's own format.
    pub fn convert(&self, target: TargetFormat) -> ConvertedConfig {
        let mut converted = convert(&self.servers, target);
        if self.options == ConsortOptions::default() {
            return converted;
        }
        match options_text(&self.options) {
            Some(text) if target == TargetFormat::Consort => {
                converted.text = format!("{text}\n{}", converted.text);
            }
            _ => {
                let message = format!("`consort` is omitted: {target} has no equivalent");
                converted.problems.push(Problem::warning(message));
            }
        }
        converted
    }
}

/// The table `[consort]` of these options.
fn options_text(options: &ConsortOptions) -> Option<String> {
    #[derive(Serialize)]
    struct OptionsTable<'a> {
        consort: &'a ConsortOptions,
    }
    let text = toml::to_string(&OptionsTable { consort: options }).ok()?;
    let mut table: DocumentMut = text.parse().ok()?;
    // Literal secrets are serialized without their text.
    for (name, token) in options.tokens.iter().filter(|(_, token)| token.is_literal()) {
        table[KEY]["tokens"][name] = token.to_plain_string().into();
    }
    for (name, provider) in &options.providers {
        if let Some(key) = provider.key.as_ref().filter(|key| key.is_literal()) {
            table[KEY]["providers"][name]["key"] = key.to_plain_string().into();
        }
    }
    Some(table.to_string())
}

/// Servers as entries of a file that Consort reads itself: they include Consort's own keys, which every format accepts,
/// and Consort resolves every kind of reference in them.
pub(crate) struct ServerEntries {
    /// Names and their entries.
    pub(crate) servers: Vec<(String, OutputValue)>,
    /// Their inputs, if the format supports them.
    pub(crate) inputs: Vec<OutputValue>,
    /// Settings that the format cannot express.
    pub(crate) problems: Vec<Problem>,
}

impl ServerEntries {
    pub(crate) fn new(servers: &[ServerConfig], target: TargetFormat) -> Self {
        let mut writer = ConfigWriter { target, reader: OutputReader::Us, problems: Vec::new() };
        let write = match target {
            TargetFormat::McpServers => mcp_servers::entry,
            TargetFormat::VsCode => vscode::entry,
            TargetFormat::Zed => zed::entry,
            TargetFormat::Codex => codex::entry,
            TargetFormat::Consort => consort::entry,
        };
        let written = servers.iter();
        let written =
            written.map(|server| (server.name.to_string(), write(server, &mut writer))).collect();
        let asks = !matches!(target, TargetFormat::Zed | TargetFormat::Codex);
        let inputs = match writer.inputs(&servers.iter().collect::<Vec<_>>()) {
            OutputValue::List(inputs) if asks => inputs,
            _ => Vec::new(),
        };
        Self { servers: written, inputs, problems: writer.problems }
    }
}

/// Reader of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutputReader {
    /// The client of the format.
    Others,
    /// Consort, and perhaps others.
    Us,
}

/// State of a conversion, with the losses so far.
struct ConfigWriter {
    target: TargetFormat,
    reader: OutputReader,
    problems: Vec<Problem>,
}

impl ConfigWriter {
    /// Adds a warning about a change.
    fn warn(&mut self, server: &ServerConfig, message: String, hint: Option<&str>) {
        let problem = Problem::warning(message).of(&server.name);
        self.problems.push(hint.into_iter().fold(problem, Problem::hint));
    }

    /// Returns the keys of a server that a format lacks, in Consort's own terms; `known` are those it has. Unless
    /// Consort reads the output, the result is empty and the omitted keys are reported.
    fn foreign(&mut self, server: &ServerConfig, known: &[&str]) -> OutputValue {
        let mut lost = keys(server);
        lost.retain(|key| !known.contains(key));
        let mut more = OutputValue::Table(Vec::new());
        if self.reader == OutputReader::Us {
            more = consort_keys::keys(self, server, &lost);
            lost.retain(|key| !consort_keys::can_say(self.target, key));
        }
        if !lost.is_empty() {
            let lost: Vec<String> = lost.iter().map(|key| format!("`{key}`")).collect();
            let message =
                format!("{} has no equivalent of {}: omitted", self.target, lost.join(", "));
            self.warn(server, message, None);
        }
        more
    }

    /// Warns if a format does not support the transport of a server.
    fn check_transport(&mut self, server: &ServerConfig) {
        let (usual, target) = (RemoteTransport::default(), self.target);
        let is_known = |transport: RemoteTransport| {
            transport == usual || target.names_transports() && transport.is_common()
        };
        let used = server.transport.remote().map(|address| address.transport);
        if let Some(other) = used.filter(|used| !is_known(*used))
            && self.reader == OutputReader::Others
            && target != TargetFormat::Consort
        {
            let (usual, other) = (usual.title(), other.title());
            let message = format!("{target} supports {usual}, not {other}");
            let hint = format!("check whether the server has a {usual} URL");
            self.warn(server, message, Some(&hint));
        }
    }

    /// A map of strings.
    fn map<'a>(
        &mut self,
        server: &ServerConfig,
        key: &str,
        texts: impl IntoIterator<Item = (&'a str, TemplateString)>,
    ) -> OutputValue {
        let texts = texts.into_iter();
        OutputValue::Table(
            texts
                .map(|(name, text)| {
                    let text = self.write_text(server, &format!("{key}.{name}"), &text);
                    (name.to_owned(), OutputValue::Text(text))
                })
                .collect(),
        )
    }
}

/// The keys of a server that not every format knows.
fn keys(server: &ServerConfig) -> Vec<&'static str> {
    let (timeout, mut keys) = (&server.timeout, Vec::new());
    let mut used = |key, used: bool| keys.extend(used.then_some(key));
    for (key, _) in server.written_options() {
        used(key, true);
    }
    used("timeout.idle", timeout.idle.is_some());
    used("timeout.total", timeout.total.is_some());
    used("timeout.connect", timeout.connect.is_some());
    used("timeout.install", timeout.install.is_some());
    used("tools", !server.tools.is_empty());
    // Not `insecure`: no other format has it.
    match &server.transport {
        TransportConfig::Stdio(program) => {
            used("env_file", program.env_file.is_some());
            used("inherit_env", !program.inherit.is_empty());
            used("cwd", program.cwd.is_some());
        }
        TransportConfig::Remote(address) => {
            used("headers_helper", address.headers_helper.is_some());
            used("oauth", address.oauth.is_some());
            for (key, _) in address.network.texts() {
                used(key, true);
            }
        }
    }
    keys
}

/// The headers of a server, including the one for authentication.
pub(crate) fn headers(address: &HttpConfig) -> Vec<(&str, TemplateString)> {
    let headers = address.headers.iter().map(|(name, text)| (name.as_str(), text.clone()));
    headers.chain(address.auth.as_ref().map(AuthConfig::header)).collect()
}
