//! Adding servers to a config and removing them; the rest of the text stays unchanged.

mod json;
mod pasted;
pub(crate) mod rewrite;
mod toml;

use std::collections::BTreeSet;
use std::path::Path;

use consort_core::{Problem, ServerId, nearest};

use crate::config::Config;
use crate::convert::output_value::OutputValue;
use crate::convert::{ServerEntries, TargetFormat, headers};
use crate::error::{ConfigError, UnusableFile};
use crate::read::format::{ConfigFormat, vscode_settings};
use crate::read::{codex, consort, mcp_servers, vscode, zed};
use crate::server::{ServerConfig, TransportConfig};
use crate::syntax::problem_collector::ProblemCollector;
use crate::syntax::tree::{SyntaxNode, SyntaxTable, SyntaxValue};
use crate::syntax::{self, ConfigLanguage};
use crate::template::TemplatePart;

/// The key of the inputs.
const INPUTS: &str = "inputs";

/// A changed config.
#[derive(Clone, PartialEq, Eq)]
pub struct EditedConfig {
    /// The text. Secrets that were written literally are in it.
    pub text: String,
    /// Settings of the added servers that the format of the file cannot express.
    pub problems: Vec<Problem>,
}

impl std::fmt::Debug for EditedConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The text may hold secrets.
        f.debug_struct("EditedConfig").field("problems", &self.problems).finish_non_exhaustive()
    }
}

/// The reason why a config cannot be changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// The config cannot be read.
    #[error(transparent)]
    Unusable(#[from] UnusableFile),
    /// The name is in use.
    #[error("a server named `{0}` already exists")]
    Taken(ServerId),
    /// The server does not exist.
    #[error("unknown server `{name}`")]
    Unknown {
        /// The requested name.
        name: ServerId,
        /// The nearest known name.
        near: Option<String>,
    },
    /// Consort reads the format and cannot write it.
    #[error("cannot edit a config in the format of {0}: the format is read-only")]
    Format(ConfigFormat),
    /// Consort reads YAML and cannot write it.
    #[error("cannot edit a config in YAML: YAML is read-only")]
    Yaml,
    /// A value is not a table and must be one.
    #[error("`{0}` is not a table")]
    Shape(String),
    /// The result would not parse to the intended config.
    #[error("the edited config would not have the intended content")]
    Unfaithful,
}

impl EditError {
    /// Returns a suggestion for the user.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unusable(unusable) => unusable.errors().first().and_then(ConfigError::hint),
            Self::Taken(_) => Some("remove that server first, or choose another name".to_owned()),
            Self::Unknown { near, .. } => {
                near.as_ref().map(|near| format!("did you mean `{near}`?"))
            }
            Self::Format(_) | Self::Yaml => Some(
                "convert it with `consort config convert --to consort --output FILE`".to_owned(),
            ),
            Self::Shape(_) | Self::Unfaithful => Some("edit the file manually".to_owned()),
        }
    }
}

/// Adds servers to a config, in its format. The rest stays unchanged, comments included. An empty text becomes a
/// config.
///
/// ```
/// use std::path::Path;
///
/// use consort_config::{Config, add_servers};
///
/// let new = Config::parse_pasted(Path::new("pasted"), r#"{"memory": {"command": "server-memory"}}"#)?;
/// let text = "# mine\n[mcp.files]\ncommand = \"files\"\n";
/// let edited = add_servers(Path::new("consort.toml"), text, &new.servers)?;
/// assert!(edited.text.starts_with(text));
/// assert!(edited.text.contains("[mcp.memory]"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn add_servers(
    file: &Path,
    text: &str,
    servers: &[ServerConfig],
) -> Result<EditedConfig, EditError> {
    let (mark, body) = split_byte_order_mark(text);
    let before = Config::parse(file, body)?;
    let plan = EditPlan::parse(file, body)?;
    let mut taken: BTreeSet<ServerId> = plan.names.iter().map(|name| id(name)).collect();
    for server in servers {
        if !taken.insert(server.name.clone()) {
            return Err(EditError::Taken(server.name.clone()));
        }
    }
    let ServerEntries { servers: entries, mut inputs, problems } =
        ServerEntries::new(servers, plan.target);
    inputs.retain(|input| !plan.asked.iter().any(|known| input.get("id") == Some(known)));
    let edited = match plan.language {
        ConfigLanguage::Json => json::add(body, plan.path, &entries, &inputs)?,
        ConfigLanguage::Toml => toml::add(body, plan.path, &entries, &inputs)?,
        ConfigLanguage::Yaml => return Err(EditError::Yaml),
    };
    let text = format!("{mark}{edited}");
    let after = Config::parse(file, &text).map_err(|_| EditError::Unfaithful)?;
    let kept = before.servers.iter().all(|server| has_server(&after, server, TransportConfig::eq));
    let faithful = |one: &TransportConfig, other: &TransportConfig| {
        transport_facts(one, plan.target) == transport_facts(other, plan.target)
    };
    let added = servers.iter().all(|server| has_server(&after, server, faithful));
    if !kept || !added || !is_else_same(&before, &after) {
        return Err(EditError::Unfaithful);
    }
    Ok(EditedConfig { text, problems })
}

/// Removes a server from a config. The rest stays unchanged, comments included.
pub fn remove_server(file: &Path, text: &str, name: &ServerId) -> Result<String, EditError> {
    let (mark, body) = split_byte_order_mark(text);
    let before = Config::parse(file, body)?;
    let plan = EditPlan::parse(file, body)?;
    let known: Vec<ServerId> = plan.names.iter().map(|name| id(name)).collect();
    let Some(at) = known.iter().position(|known| known == name) else {
        let near = nearest(name.as_str(), known.iter().map(ServerId::as_str));
        let near = near.first().map(|near| (*near).to_owned());
        return Err(EditError::Unknown { name: name.clone(), near });
    };
    let key = &plan.names[at];
    let edited = match plan.language {
        ConfigLanguage::Json => json::remove(body, plan.path, key)?,
        ConfigLanguage::Toml => toml::remove(body, plan.path, key)?,
        ConfigLanguage::Yaml => return Err(EditError::Yaml),
    };
    let text = format!("{mark}{edited}");
    let after = Config::parse(file, &text).map_err(|_| EditError::Unfaithful)?;
    let mut others = before.servers.iter().filter(|server| server.name != *name);
    let kept = others.all(|server| has_server(&after, server, TransportConfig::eq));
    // One of two of the same name may be left.
    let gone = after.servers.len() <= before.servers.len();
    if !kept || !gone || !is_else_same(&before, &after) {
        return Err(EditError::Unfaithful);
    }
    Ok(text)
}

/// Location of the servers in a config, and its format.
struct EditPlan {
    language: ConfigLanguage,
    target: TargetFormat,
    /// The keys that lead to them.
    path: &'static [&'static str],
    /// Their names, as written.
    names: Vec<String>,
    /// The ids of the inputs.
    asked: Vec<String>,
}

impl EditPlan {
    fn parse(file: &Path, text: &str) -> Result<Self, EditError> {
        let findings = ProblemCollector::new(file, text);
        let root = syntax::parse(file, text, &findings)?;
        let language = ConfigLanguage::detect(file, text);
        let signs = ConfigFormat::detect_all(file, &root)
            .map_err(|mistake| UnusableFile::new(findings.unusable(root.at, mistake), []))?;
        let (format, key) = signs[0];
        let nothing = SyntaxTable::default();
        let table = root.table().unwrap_or(&nothing);
        let editor = file.parent().is_some_and(|folder| folder.ends_with(".vscode"));
        let blank = table.0.is_empty() && language == ConfigLanguage::Json;
        let (target, path): (_, &[&str]) = match format {
            ConfigFormat::Consort if blank && editor => (TargetFormat::VsCode, &[vscode::KEY]),
            ConfigFormat::Consort if blank => (TargetFormat::McpServers, &[mcp_servers::KEY]),
            ConfigFormat::Consort => (TargetFormat::Consort, &[consort::KEY]),
            ConfigFormat::McpServers => (TargetFormat::McpServers, &[mcp_servers::KEY]),
            ConfigFormat::VsCode if key == consort::KEY && vscode_settings(table).is_some() => {
                (TargetFormat::VsCode, &[consort::KEY, vscode::KEY])
            }
            ConfigFormat::VsCode => (TargetFormat::VsCode, &[vscode::KEY]),
            ConfigFormat::Zed => (TargetFormat::Zed, &[zed::KEY]),
            ConfigFormat::Codex => (TargetFormat::Codex, &[codex::KEY]),
            ConfigFormat::Goose
            | ConfigFormat::Continue
            | ConfigFormat::OpenCode
            | ConfigFormat::Amp
            | ConfigFormat::Crush
            | ConfigFormat::Aether
            | ConfigFormat::Aidk
            | ConfigFormat::Elysia => {
                return Err(EditError::Format(format));
            }
        };
        if language == ConfigLanguage::Yaml {
            return Err(EditError::Yaml);
        }
        let (last, outer) = path.split_last().expect("no path is empty");
        let outer = outer.iter().try_fold(table, |table, key| table.get(key)?.table());
        let servers = outer.and_then(|table| table.get(last));
        if servers.is_some_and(|servers| servers.table().is_none()) {
            return Err(EditError::Shape((*last).to_owned()));
        }
        let names = servers
            .and_then(SyntaxNode::table)
            .map_or(Vec::new(), |servers| servers.keys().map(str::to_owned).collect());
        let asked =
            outer.and_then(|table| table.get(INPUTS)).and_then(SyntaxNode::list).unwrap_or(&[]);
        let asked = asked.iter().filter_map(|input| match &input.table()?.get("id")?.value {
            SyntaxValue::Text(id) => Some(id.clone()),
            _ => None,
        });
        let asked = asked.collect();
        Ok(Self { language, target, path, names, asked })
    }
}

/// Splits off a byte order mark, which some editors write.
fn split_byte_order_mark(text: &str) -> (&'static str, &str) {
    match text.strip_prefix('\u{feff}') {
        Some(body) => ("\u{feff}", body),
        None => ("", text),
    }
}

/// Converts the name of a server in a file to its id.
fn id(name: &str) -> ServerId {
    name.parse().unwrap_or_else(|_| ServerId::derive(name))
}

/// Returns true if the config has the server with the same settings, by this comparison of transports.
fn has_server(
    config: &Config,
    server: &ServerConfig,
    same: impl Fn(&TransportConfig, &TransportConfig) -> bool,
) -> bool {
    let mut named = config.servers.iter().filter(|known| known.name == server.name);
    named.any(|known| {
        same(&known.transport, &server.transport)
            && known.disabled == server.disabled
            && known.options == server.options
            && known.limits == server.limits
    })
}

/// Returns true if the options for all servers are unchanged, and there are no additional errors.
fn is_else_same(before: &Config, after: &Config) -> bool {
    before.options == after.options && after.errors.len() <= before.errors.len()
}

/// The transport of a server as a list of facts, independent of the format.
fn transport_facts(
    transport: &TransportConfig,
    target: TargetFormat,
) -> Vec<(String, Vec<TemplatePart>)> {
    let mut told = vec![(transport.name().to_owned(), Vec::new())];
    match transport {
        TransportConfig::Stdio(program) => {
            told.extend(
                program.words().map(|text| ("command".to_owned(), join_literals(text.parts()))),
            );
            let folder = program.cwd.iter();
            told.extend(folder.map(|text| ("cwd".to_owned(), join_literals(text.parts()))));
            // Codex names those that are passed on instead of setting them.
            if target != TargetFormat::Codex {
                let variables = program.env.iter();
                told.extend(
                    variables.map(|(name, text)| (name.clone(), join_literals(text.parts()))),
                );
                told.extend(program.inherit.iter().map(|name| (name.clone(), Vec::new())));
            }
        }
        TransportConfig::Remote(address) => {
            told.push(("url".to_owned(), join_literals(address.url.parts())));
            let mut headers: Vec<_> = headers(address)
                .into_iter()
                .map(|(name, text)| (name.to_ascii_lowercase(), join_literals(text.parts())))
                .collect();
            headers.sort_by(|one, other| one.0.cmp(&other.0));
            told.extend(headers);
            told.extend(address.session_header.iter().map(|name| (name.clone(), Vec::new())));
            let network = address.network.texts();
            told.extend(network.map(|(key, text)| (key.to_owned(), join_literals(text.parts()))));
        }
    }
    told
}

/// Merges adjacent literals of a text.
fn join_literals(parts: &[TemplatePart]) -> Vec<TemplatePart> {
    let mut joined: Vec<TemplatePart> = Vec::new();
    for part in parts {
        match (joined.last_mut(), part) {
            (_, TemplatePart::Literal(text)) if text.is_empty() => {}
            (Some(TemplatePart::Literal(start)), TemplatePart::Literal(text)) => {
                start.push_str(text);
            }
            _ => joined.push(part.clone()),
        }
    }
    joined
}

#[cfg(test)]
mod tests;
