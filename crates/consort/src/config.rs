//! What the user wrote about servers, in any of the formats people have, and what it means.
//!
//! A [`Config`] is read from a file: one [`ServerConfig`] for each server that can be used, a
//! [`ConfigError`] for each thing that is wrong, a [`Problem`] for each that is odd. One broken
//! server never takes the rest down. References to variables, files and answers are followed later,
//! by [`ServerConfig::to_settings`], so a config can be shown and converted where they lead nowhere.
//!
//! ```
//! use std::path::Path;
//!
//! use consort::config::{Config, Format};
//!
//! let text = r#"{"mcpServers": {"memory": {"command": "npx", "args": ["-y", "server-memory"]}}}"#;
//! let config = Config::parse(Path::new(".mcp.json"), text)?;
//! assert_eq!(config.format, Format::McpServers);
//! assert_eq!(config.servers[0].name.as_str(), "memory");
//! # Ok::<(), consort::config::UnusableFile>(())
//! ```

mod agents;
mod convert;
mod dangling;
mod detect;
mod digest;
mod edit;
mod endpoint;
mod error;
mod export;
mod fields;
mod find;
mod findings;
mod import;
mod input;
mod installer;
mod listen;
mod names;
mod network;
mod options;
mod pasted;
mod period;
mod place;
mod read;
#[cfg(test)]
mod reference;
mod resolve;
mod server;
mod settings;
mod sketch;
mod text;
mod tree;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use consort_core::Problem;
use serde::Serialize;

pub use agents::{AgentConfig, Effort, ModelConfig, PriceConfig, ProviderConfig, Thinking};
pub use convert::{Converted, Target, UnknownTarget, convert};
pub use detect::Format;
pub use digest::ConfigDigest;
pub use edit::{EditError, Edited, add_servers, remove_server};
pub use error::{ConfigError, UnusableFile};
pub use export::{ExportError, Reach, Recipient, export, snippet};
pub use find::{Folders, Found, Lookup, Reason, STDIN, Searched, VARIABLE, find, located};
pub use import::{Client, ImportSource, Layout, import_sources};
pub use input::{Input, InputKind};
pub use listen::{InvalidListenAddress, ListenAddress, is_origin};
pub use network::NetworkConfig;
pub(crate) use options::merged;
pub use options::{FindingLimits, LimitsConfig, Options, ProfileConfig, ReloadLimits, ServeConfig};
pub use period::{InvalidPeriod, Period};
pub use place::{Place, Spot};
pub use resolve::{Resolve, System, expand_variables};
pub use server::{
    Address, Auth, Connect, Era, Grant, OAuth, Origin, Program, ServerConfig, Timeouts, ToolConfig,
    Transport,
};
pub use text::Text;

use detect::Language;
use error::Mistake;
use findings::Findings;
use read::{aether, aidk, codex, consort, elysia, mcp_servers, vscode, zed};
use tree::Node;

/// The largest file that is read. Some clients keep their servers beside their whole history.
const LARGEST_MIB: u64 = 32;

/// How many syntax errors are worth reading.
const MOST_ERRORS: usize = 5;

/// A file with servers.
#[derive(Debug, Serialize)]
pub struct Config {
    /// Where it is.
    pub file: PathBuf,
    /// The digest of the bytes it was read from.
    #[serde(skip)]
    pub digest: ConfigDigest,
    /// How it is written.
    pub format: Format,
    /// What can be used.
    pub servers: Vec<ServerConfig>,
    /// What can be used in single projects only, as Claude Code keeps it in one file for all.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub projects: BTreeMap<PathBuf, Vec<ServerConfig>>,
    /// What concerns all servers.
    pub options: Options,
    /// What cannot be used, and why.
    #[serde(skip)]
    pub errors: Vec<ConfigError>,
    /// What is odd.
    #[serde(skip)]
    pub problems: Vec<Problem>,
}

impl Config {
    /// Reads a file.
    pub fn read(file: &Path) -> Result<Self, UnusableFile> {
        Self::parse(file, &Self::text(file)?)
    }

    /// Reads the text of a file; `-` is the standard input.
    pub fn text(file: &Path) -> Result<String, UnusableFile> {
        let unusable = |mistake| {
            let place = Place { file: file.to_owned(), spot: None };
            UnusableFile::new(ConfigError::new(place, None, mistake), [])
        };
        let mut bytes = Vec::new();
        let largest = LARGEST_MIB << 20;
        let source = if file == Path::new(STDIN) { Path::new("/dev/stdin") } else { file };
        File::open(source)
            .and_then(|file| file.take(largest + 1).read_to_end(&mut bytes))
            .map_err(|error| unusable(Mistake::Unreadable(error)))?;
        if bytes.len() as u64 > largest {
            return Err(unusable(Mistake::TooLarge(LARGEST_MIB)));
        }
        String::from_utf8(bytes).map_err(|_| unusable(Mistake::NotText))
    }

    /// Reads a text as if it were the content of a file, whose name is used for messages, for paths
    /// relative to it, and where the text alone does not tell the format.
    pub fn parse(file: &Path, text: &str) -> Result<Self, UnusableFile> {
        let digest = ConfigDigest::of(text.as_bytes());
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let findings = Findings::new(file, text);
        let root = tree(file, text, &findings)?;
        let signs = Format::of(file, &root)
            .map_err(|mistake| UnusableFile::new(findings.unusable(root.at, mistake), []))?;
        let (format, key) = signs[0];
        for (_, other) in &signs[1..] {
            let message = format!("`{other}` is not read, because `{key}` is there too");
            findings.warn(root.at, None, &message, None);
        }
        let nothing = tree::Table::default();
        let table = root.table().unwrap_or(&nothing);
        let servers = match format {
            Format::McpServers => mcp_servers::read(&findings, table),
            Format::VsCode => {
                let settings = detect::vscode_settings(table).filter(|_| key == consort::KEY);
                vscode::read(&findings, settings.unwrap_or(table))
            }
            Format::Zed => zed::read(&findings, table),
            Format::Codex => codex::read(&findings, table),
            Format::Consort => consort::read(&findings, table),
            Format::Aether => aether::read(&findings, table),
            Format::Aidk => aidk::read(&findings, &root),
            Format::Elysia => elysia::read(&findings, table),
        };
        let projects = match format {
            Format::McpServers => mcp_servers::projects(&findings, table),
            _ => BTreeMap::new(),
        };
        let options = read::options::read(&findings, table);
        let (errors, problems) = findings.into_parts();
        let file = file.to_owned();
        Ok(Self { file, digest, format, servers, projects, options, errors, problems })
    }
}

fn tree(file: &Path, text: &str, findings: &Findings<'_>) -> Result<Node, UnusableFile> {
    let language = Language::of(file, text)
        .map_err(|mistake| UnusableFile::new(findings.unusable(0, mistake), []))?;
    let (name, parsed) = match language {
        Language::Json => ("JSON", tree::json::parse(text).map_err(|error| vec![error])),
        Language::Toml => ("TOML", tree::toml::parse(text)),
    };
    parsed.map_err(|mut errors| {
        errors.sort_by_key(|error| error.at);
        // One slip makes a parser stumble several times; the first time on a line says most.
        errors.dedup_by_key(|error| findings.spot(error.at).line);
        let mut errors = errors.into_iter().take(MOST_ERRORS).map(|error| {
            let mistake = Mistake::Syntax { language: name, message: error.message };
            findings.unusable(error.at, mistake)
        });
        let first = errors.next().expect("a text that cannot be parsed has an error");
        UnusableFile::new(first, errors)
    })
}
