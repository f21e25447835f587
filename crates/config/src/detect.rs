//! Detection of the language and the format of a config, from its content.

use std::fmt;
use std::path::Path;

use serde::Serialize;

use crate::error::Mistake;
use crate::names::{closest, shortened};
use crate::read::options;
use crate::read::{aether, aidk, codex, consort, mcp_servers, vscode, zed};
use crate::tree::{Node, Table, Value};

/// Format of a config.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Format {
    /// A map `mcpServers`: Claude, Cursor, Windsurf and many others.
    #[serde(rename = "mcpServers")]
    McpServers,
    /// VS Code's `servers` and `inputs`.
    VsCode,
    /// Zed's `context_servers`.
    Zed,
    /// Codex's `mcp_servers`.
    Codex,
    /// Consort's own `mcp`.
    Consort,
    /// A list of endpoints under `tool_service`.
    Aether,
    /// Servers with `serverName` and `connection`.
    Aidk,
    /// A list `servers` with URLs and scripts.
    Elysia,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::McpServers => "mcpServers",
            Self::VsCode => "VS Code",
            Self::Zed => "Zed",
            Self::Codex => "Codex",
            Self::Consort => "Consort",
            Self::Aether => "Aether",
            Self::Aidk => "AIDK",
            Self::Elysia => "Elysia",
        })
    }
}

/// A format and the root key by which it was detected.
pub(crate) type Sign = (Format, &'static str);

impl Format {
    /// All possible formats of the root, the likeliest first.
    pub(crate) fn of(file: &Path, root: &Node) -> Result<Vec<Sign>, Mistake> {
        let mut signs = match &root.value {
            Value::Table(table) => by_key(table),
            Value::List(list) if list.iter().any(|node| has(node, aidk::NAME)) => {
                vec![(Self::Aidk, aidk::NAME)]
            }
            _ => Vec::new(),
        };
        if signs.is_empty() {
            let Value::Table(table) = &root.value else {
                return Err(Mistake::NoServers { near: None });
            };
            signs.push(without_key(table).ok_or_else(|| no_servers(table))?);
        }
        let editor = file.parent().is_some_and(|folder| folder.ends_with(".vscode"));
        signs.sort_by_key(|(format, _)| editor && *format != Self::VsCode);
        Ok(signs)
    }
}

/// The formats that have a root key of their own.
pub(crate) fn by_key(root: &Table) -> Vec<Sign> {
    let mut signs = Vec::new();
    let is_list = |key: &str| root.get(key).is_some_and(|node| node.list().is_some());
    let mut known = |key: &'static str, format: Format| {
        if root.get(key).is_some() {
            signs.push((format, key));
        }
    };
    known(mcp_servers::KEY, Format::McpServers);
    known(aether::OUTER, Format::Aether);
    known(codex::KEY, if is_list(aether::KEY) { Format::Aether } else { Format::Codex });
    known(vscode::KEY, if is_list(vscode::KEY) { Format::Elysia } else { Format::VsCode });
    known(zed::KEY, Format::Zed);
    known(
        consort::KEY,
        if vscode_settings(root).is_some() { Format::VsCode } else { Format::Consort },
    );
    if signs.is_empty() && root.get(options::KEY).is_some() {
        signs.push((Format::Consort, options::KEY));
    }
    signs
}

/// `mcp` as in VS Code's settings, with `servers` inside.
pub(crate) fn vscode_settings(root: &Table) -> Option<&Table> {
    let settings = root.get(consort::KEY)?.table()?;
    let servers = settings.get(vscode::KEY)?.table()?;
    // A server of ours may be called `servers`.
    servers.0.iter().all(|entry| entry.node.table().is_some()).then_some(settings)
}

/// The formats that only their entries reveal.
fn without_key(root: &Table) -> Option<Sign> {
    let inside = |keys: &[&str]| {
        let known = |node: &Node| keys.iter().any(|key| has(node, key));
        !root.0.is_empty() && root.0.iter().all(|entry| known(&entry.node))
    };
    let projects = root.get(mcp_servers::PROJECTS).and_then(Node::table);
    if projects.is_some_and(|all| all.0.iter().any(|entry| has(&entry.node, mcp_servers::KEY))) {
        return Some((Format::McpServers, mcp_servers::PROJECTS));
    }
    if root.get(aidk::NAME).is_some() || inside(&[aidk::CONNECTION, "command", "url"]) {
        return Some((Format::Aidk, aidk::NAME));
    }
    // Nothing is described, and nothing is wrong.
    root.0.is_empty().then_some((Format::Consort, consort::KEY))
}

fn has(node: &Node, key: &str) -> bool {
    node.table().is_some_and(|table| table.get(key).is_some())
}

fn no_servers(root: &Table) -> Mistake {
    let known = [mcp_servers::KEY, vscode::KEY, zed::KEY, codex::KEY, consort::KEY, aether::OUTER];
    let near = root.keys().find_map(|key| Some((shortened(key), closest(key, known)?)));
    Mistake::NoServers { near }
}
