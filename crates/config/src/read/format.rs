//! Detection of the language and the format of a config, from its content.

use std::fmt;
use std::path::Path;

use serde::Serialize;

use crate::error::ConfigErrorKind;
use crate::read::options;
use crate::read::{
    aether, aidk, amp, codex, consort, continue_list, crush, goose, mcp_servers, opencode, vscode,
    zed,
};
use crate::syntax::names::{closest_name, shorten_name};
use crate::syntax::tree::{SyntaxNode, SyntaxTable, SyntaxValue};
use crate::template::ReferenceSyntax;

/// Format of a config.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ConfigFormat {
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
    /// Goose's `extensions`.
    Goose,
    /// Continue's list `mcpServers`.
    Continue,
    /// OpenCode's `mcp`, with `local` and `remote` servers.
    OpenCode,
    /// Amp's `amp.mcpServers`.
    Amp,
    /// Crush's `mcp`.
    Crush,
    /// A list of endpoints under `tool_service`.
    Aether,
    /// Servers with `serverName` and `connection`.
    Aidk,
    /// A list `servers` with URLs and scripts.
    Elysia,
}

impl fmt::Display for ConfigFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::McpServers => "mcpServers",
            Self::VsCode => "VS Code",
            Self::Zed => "Zed",
            Self::Codex => "Codex",
            Self::Consort => "Consort",
            Self::Goose => "Goose",
            Self::Continue => "Continue",
            Self::OpenCode => "OpenCode",
            Self::Amp => "Amp",
            Self::Crush => "Crush",
            Self::Aether => "Aether",
            Self::Aidk => "AIDK",
            Self::Elysia => "Elysia",
        })
    }
}

/// A format and the root key by which it was detected.
pub(crate) type DetectedFormat = (ConfigFormat, &'static str);

impl ConfigFormat {
    /// The syntax of references in a file of this format: that of its only client, or of the one its path tells.
    pub(crate) fn reference_syntax(self, file: &Path) -> ReferenceSyntax {
        match self {
            Self::OpenCode => ReferenceSyntax::OpenCode,
            Self::Crush => ReferenceSyntax::Crush,
            Self::Continue => ReferenceSyntax::Continue,
            _ => ReferenceSyntax::of_file(file),
        }
    }

    /// All possible formats of the root, the likeliest first.
    pub(crate) fn detect_all(
        file: &Path,
        root: &SyntaxNode,
    ) -> Result<Vec<DetectedFormat>, ConfigErrorKind> {
        let mut signs = match &root.value {
            SyntaxValue::Table(table) => by_key(file, table),
            SyntaxValue::List(list) if list.iter().any(|node| has(node, aidk::NAME)) => {
                vec![(Self::Aidk, aidk::NAME)]
            }
            _ => Vec::new(),
        };
        if signs.is_empty() {
            let SyntaxValue::Table(table) = &root.value else {
                return Err(ConfigErrorKind::NoServers { near: None });
            };
            signs.push(without_key(table).ok_or_else(|| no_servers(table))?);
        }
        let editor = file.parent().is_some_and(|folder| folder.ends_with(".vscode"));
        signs.sort_by_key(|(format, _)| editor && *format != Self::VsCode);
        Ok(signs)
    }
}

/// The formats that have a root key of their own.
pub(crate) fn by_key(file: &Path, root: &SyntaxTable) -> Vec<DetectedFormat> {
    let mut signs = Vec::new();
    let is_list = |key: &str| root.get(key).is_some_and(|node| node.list().is_some());
    let mut known = |key: &'static str, format: ConfigFormat| {
        if root.get(key).is_some() {
            signs.push((format, key));
        }
    };
    known(
        mcp_servers::KEY,
        if continue_list::is_root(file, root) {
            ConfigFormat::Continue
        } else {
            ConfigFormat::McpServers
        },
    );
    known(amp::KEY, ConfigFormat::Amp);
    known(aether::OUTER, ConfigFormat::Aether);
    known(
        codex::KEY,
        if is_list(aether::KEY) { ConfigFormat::Aether } else { ConfigFormat::Codex },
    );
    known(
        vscode::KEY,
        if is_list(vscode::KEY) { ConfigFormat::Elysia } else { ConfigFormat::VsCode },
    );
    known(zed::KEY, ConfigFormat::Zed);
    if let Some(format) = format_of_mcp(file, root) {
        known(consort::KEY, format);
    }
    if goose::is_root(root) {
        known(goose::KEY, ConfigFormat::Goose);
    }
    if signs.is_empty() && root.get(options::KEY).is_some() {
        signs.push((ConfigFormat::Consort, options::KEY));
    }
    signs
}

/// The format of the root key `mcp`, which four clients use in their own ways.
fn format_of_mcp(file: &Path, root: &SyntaxTable) -> Option<ConfigFormat> {
    if mcp_servers::server_selection(root).is_some() {
        return None;
    }
    // Only Consort's own format is TOML, or has settings of Consort beside this key.
    let is_ours = file.extension().is_some_and(|extension| extension == "toml")
        || root.get(options::KEY).is_some();
    Some(if !is_ours && opencode::is_root(root) {
        ConfigFormat::OpenCode
    } else if vscode_settings(root).is_some() {
        ConfigFormat::VsCode
    } else if !is_ours && crush::is_root(file, root) {
        ConfigFormat::Crush
    } else {
        ConfigFormat::Consort
    })
}

/// `mcp` as in VS Code's settings, with `servers` inside.
pub(crate) fn vscode_settings(root: &SyntaxTable) -> Option<&SyntaxTable> {
    let settings = root.get(consort::KEY)?.table()?;
    let servers = settings.get(vscode::KEY)?.table()?;
    // A server of ours may be called `servers`.
    servers.0.iter().all(|entry| entry.node.table().is_some()).then_some(settings)
}

/// The formats that only their entries reveal.
fn without_key(root: &SyntaxTable) -> Option<DetectedFormat> {
    let inside = |keys: &[&str]| {
        let known = |node: &SyntaxNode| keys.iter().any(|key| has(node, key));
        !root.0.is_empty() && root.0.iter().all(|entry| known(&entry.node))
    };
    let projects = root.get(mcp_servers::PROJECTS).and_then(SyntaxNode::table);
    if projects.is_some_and(|all| all.0.iter().any(|entry| has(&entry.node, mcp_servers::KEY))) {
        return Some((ConfigFormat::McpServers, mcp_servers::PROJECTS));
    }
    if root.get(aidk::NAME).is_some() || inside(&[aidk::CONNECTION, "command", "url"]) {
        return Some((ConfigFormat::Aidk, aidk::NAME));
    }
    // Nothing is described, and nothing is wrong.
    root.0.is_empty().then_some((ConfigFormat::Consort, consort::KEY))
}

fn has(node: &SyntaxNode, key: &str) -> bool {
    node.table().is_some_and(|table| table.get(key).is_some())
}

fn no_servers(root: &SyntaxTable) -> ConfigErrorKind {
    let known = [
        mcp_servers::KEY,
        vscode::KEY,
        zed::KEY,
        codex::KEY,
        consort::KEY,
        aether::OUTER,
        goose::KEY,
        amp::KEY,
    ];
    let mut keys = root.keys().filter(|key| !known.contains(key));
    let near = keys.find_map(|key| Some((shorten_name(key), closest_name(key, known)?)));
    ConfigErrorKind::NoServers { near }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_syntax_is_that_of_the_format_wherever_the_file_is() {
        let of = |format: ConfigFormat| format.reference_syntax(Path::new("/p/.gemini/x.json"));
        assert_eq!(of(ConfigFormat::OpenCode), ReferenceSyntax::OpenCode);
        assert_eq!(of(ConfigFormat::Crush), ReferenceSyntax::Crush);
        assert_eq!(of(ConfigFormat::Continue), ReferenceSyntax::Continue);
        assert_eq!(of(ConfigFormat::McpServers), ReferenceSyntax::Gemini);
    }
}
