//! Conversion of servers to the formats of other clients.

mod codex;
mod consort;
mod mcp_servers;
pub(crate) mod out;
mod own;
mod pieces;
mod spell;
mod vscode;
mod zed;

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use consort_core::{Problem, ServerId};
use serde::Serialize;

use crate::config::Config;
use crate::names::{listed, shortened};
use crate::options::Options;
use crate::server::{Address, Auth, Connect, Era, ServerConfig, Transport};
use crate::text::Text;
use out::Out;

/// An output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
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

impl Target {
    /// All formats, with their names.
    pub const ALL: [(&str, Self); 5] = [
        ("mcpServers", Self::McpServers),
        ("vscode", Self::VsCode),
        ("zed", Self::Zed),
        ("codex", Self::Codex),
        ("consort", Self::Consort),
    ];
}

impl FromStr for Target {
    type Err = UnknownTarget;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
        known.map(|(_, target)| target).ok_or_else(|| UnknownTarget { word: shortened(word) })
    }
}

impl fmt::Display for Target {
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
#[error("unknown format `{word}`: use {}", listed(&Target::ALL.map(|(name, _)| name)))]
pub struct UnknownTarget {
    word: String,
}

/// Servers in an output format.
#[derive(Clone, PartialEq, Eq)]
pub struct Converted {
    /// The text. Secrets that were written literally are in it.
    pub text: String,
    /// Settings that the format cannot express.
    pub problems: Vec<Problem>,
}

impl fmt::Debug for Converted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The text may hold secrets.
        f.debug_struct("Converted").field("problems", &self.problems).finish_non_exhaustive()
    }
}

/// Writes servers in the format of `target`. References stay references, in the syntax of the target; settings that it
/// cannot express are reported as problems.
///
/// ```
/// use std::path::Path;
///
/// use consort_config::{Config, Target, convert};
///
/// let text = r#"{"servers": {"x": {"url": "https://x.example/mcp", "headers": {"K": "${env:KEY}"}}}}"#;
/// let config = Config::parse(Path::new("mcp.json"), text)?;
/// let converted = convert(&config.servers, Target::Consort);
/// assert!(converted.text.contains(r#"K = "env:KEY""#));
/// # Ok::<(), consort_config::UnusableFile>(())
/// ```
pub fn convert(servers: &[ServerConfig], target: Target) -> Converted {
    let mut problems = Vec::new();
    let mut names: BTreeSet<&ServerId> = BTreeSet::new();
    let servers: Vec<&ServerConfig> = servers
        .iter()
        .filter(|server| {
            let new = names.insert(&server.name);
            if !new {
                let message = format!("left out: another server is called `{}`", server.name);
                problems.push(Problem::error(message).of(&server.name));
            }
            new
        })
        .collect();
    let mut writer = Writer { target, reader: Reader::Others, problems };
    let text = match target {
        Target::McpServers => mcp_servers::write(&servers, &mut writer),
        Target::VsCode => vscode::write(&servers, &mut writer),
        Target::Zed => zed::write(&servers, &mut writer),
        Target::Codex => codex::write(&servers, &mut writer),
        Target::Consort => consort::write(&servers, &mut writer),
    };
    Converted { text, problems: writer.problems }
}

impl Config {
    /// Converts the whole config to `target`. Options for all servers fit only in Consort's own format.
    pub fn convert(&self, target: Target) -> Converted {
        #[derive(Serialize)]
        struct Whole<'a> {
            consort: &'a Options,
        }
        let mut converted = convert(&self.servers, target);
        if self.options == Options::default() {
            return converted;
        }
        let whole = Whole { consort: &self.options };
        match toml::to_string(&whole) {
            Ok(text) if target == Target::Consort => {
                converted.text = format!("{text}\n{}", converted.text);
            }
            _ => {
                let message = format!("what `consort` says is left out: {target} cannot say it");
                converted.problems.push(Problem::warning(message));
            }
        }
        converted
    }
}

/// Servers as entries of a file that Consort reads itself: they include Consort's own keys, which every format accepts,
/// and Consort resolves every kind of reference in them.
pub(crate) struct Entries {
    /// Names and their entries.
    pub(crate) servers: Vec<(String, Out)>,
    /// Their inputs, if the format supports them.
    pub(crate) inputs: Vec<Out>,
    /// Settings that the format cannot express.
    pub(crate) problems: Vec<Problem>,
}

impl Entries {
    pub(crate) fn new(servers: &[ServerConfig], target: Target) -> Self {
        let mut writer = Writer { target, reader: Reader::Us, problems: Vec::new() };
        let write = match target {
            Target::McpServers => mcp_servers::entry,
            Target::VsCode => vscode::entry,
            Target::Zed => zed::entry,
            Target::Codex => codex::entry,
            Target::Consort => consort::entry,
        };
        let written = servers.iter();
        let written =
            written.map(|server| (server.name.to_string(), write(server, &mut writer))).collect();
        let asks = !matches!(target, Target::Zed | Target::Codex);
        let inputs = match writer.inputs(&servers.iter().collect::<Vec<_>>()) {
            Out::List(inputs) if asks => inputs,
            _ => Vec::new(),
        };
        Self { servers: written, inputs, problems: writer.problems }
    }
}

/// Reader of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    /// The client of the format.
    Others,
    /// Consort, and perhaps others.
    Us,
}

/// State of a conversion, with the losses so far.
struct Writer {
    target: Target,
    reader: Reader,
    problems: Vec<Problem>,
}

impl Writer {
    /// Adds a warning about a change.
    fn warn(&mut self, server: &ServerConfig, message: String, hint: Option<&str>) {
        let problem = Problem::warning(message).of(&server.name);
        self.problems.push(hint.into_iter().fold(problem, Problem::hint));
    }

    /// Returns the keys of a server that a format lacks, in Consort's own terms; `known` are those it has. Unless
    /// Consort reads the output, the result is empty and the omitted keys are reported.
    fn foreign(&mut self, server: &ServerConfig, known: &[&str]) -> Out {
        let mut lost = keys(server);
        lost.retain(|key| !known.contains(key));
        let mut more = Out::Table(Vec::new());
        if self.reader == Reader::Us {
            more = own::keys(self, server, &lost);
            lost.retain(|key| !own::can_say(self.target, key));
        }
        if !lost.is_empty() {
            let lost: Vec<String> = lost.iter().map(|key| format!("`{key}`")).collect();
            let message = format!("{} has no {}: left out", self.target, lost.join(", "));
            self.warn(server, message, None);
        }
        more
    }

    /// Warns that a format does not support HTTP+SSE.
    fn without_sse(&mut self, server: &ServerConfig) {
        if self.reader == Reader::Others && matches!(server.transport, Transport::Sse(_)) {
            let message = format!("{} speaks Streamable HTTP, not HTTP+SSE", self.target);
            self.warn(server, message, Some("see whether the server has another address"));
        }
    }

    /// A map of strings.
    fn map<'a>(
        &mut self,
        server: &ServerConfig,
        key: &str,
        texts: impl IntoIterator<Item = (&'a str, Text)>,
    ) -> Out {
        let texts = texts.into_iter();
        Out::Table(
            texts
                .map(|(name, text)| {
                    let text = self.spell(server, &format!("{key}.{name}"), &text);
                    (name.to_owned(), Out::Text(text))
                })
                .collect(),
        )
    }
}

/// The keys of a server that not every format knows.
fn keys(server: &ServerConfig) -> Vec<&'static str> {
    let (timeout, mut keys) = (&server.timeout, Vec::new());
    let mut used = |key, used: bool| keys.extend(used.then_some(key));
    used("description", server.description.is_some());
    used("era", server.era != Era::Auto);
    used("connect", server.connect != Connect::Start);
    used("idle_stop", server.idle_stop.is_some());
    used("validate", server.validate.is_some());
    for (key, value) in server.limits.written() {
        used(key, value.is_some());
    }
    used("timeout.idle", timeout.idle.is_some());
    used("timeout.total", timeout.total.is_some());
    used("timeout.connect", timeout.connect.is_some());
    used("timeout.install", timeout.install.is_some());
    used("keep", !server.keep.is_empty());
    used("drop", !server.drop.is_empty());
    used("tools", !server.tools.is_empty());
    // Not `insecure`: nobody else asks for it.
    match &server.transport {
        Transport::Stdio(program) => {
            used("inherit_env", !program.inherit.is_empty());
            used("cwd", program.directory.is_some());
        }
        Transport::Http(address) | Transport::Sse(address) => {
            used("oauth", address.oauth.is_some());
            for (key, _) in address.network.texts() {
                used(key, true);
            }
        }
    }
    keys
}

/// The headers of a server, including the one for authentication.
pub(crate) fn headers(address: &Address) -> Vec<(&str, Text)> {
    let headers = address.headers.iter().map(|(name, text)| (name.as_str(), text.clone()));
    headers.chain(address.auth.as_ref().map(Auth::header)).collect()
}
