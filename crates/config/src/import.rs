//! Files in which other clients store their servers.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use crate::folders::UserFolders;

/// A client whose servers can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ImportClient {
    /// Claude Desktop.
    ClaudeDesktop,
    /// Claude Code.
    ClaudeCode,
    /// Cursor.
    Cursor,
    /// Windsurf.
    Windsurf,
    /// VS Code.
    VsCode,
    /// Zed.
    Zed,
    /// Codex.
    Codex,
}

/// A file in which a client stores the user's servers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImportSource {
    /// The client.
    pub client: ImportClient,
    /// The file.
    pub file: PathBuf,
    /// True if it exists.
    pub exists: bool,
}

/// Layout of the user's folders on a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FolderLayout {
    /// `~/.config`.
    Linux,
    /// `~/Library/Application Support`.
    MacOs,
}

impl FolderLayout {
    /// The layout of this system.
    pub fn of_system() -> Self {
        if consort_client::platform::is_macos() { Self::MacOs } else { Self::Linux }
    }
}

impl fmt::Display for ImportClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::ClaudeDesktop => "Claude Desktop",
            Self::ClaudeCode => "Claude Code",
            Self::Cursor => "Cursor",
            Self::Windsurf => "Windsurf",
            Self::VsCode => "VS Code",
            Self::Zed => "Zed",
            Self::Codex => "Codex",
        })
    }
}

/// All files in which a known client may store the user's servers.
pub fn import_sources(folders: &UserFolders, layout: FolderLayout) -> Vec<ImportSource> {
    let (Some(home), Some(settings)) = (&folders.home, &folders.settings) else {
        return Vec::new();
    };
    let applications = match layout {
        FolderLayout::Linux => settings.clone(),
        FolderLayout::MacOs => home.join("Library/Application Support"),
    };
    let files = [
        (ImportClient::ClaudeDesktop, applications.join("Claude/claude_desktop_config.json")),
        (ImportClient::ClaudeCode, home.join(".claude.json")),
        (ImportClient::Cursor, home.join(".cursor/mcp.json")),
        (ImportClient::Windsurf, home.join(".codeium/windsurf/mcp_config.json")),
        (ImportClient::VsCode, applications.join("Code/User/mcp.json")),
        (ImportClient::VsCode, applications.join("Code - Insiders/User/mcp.json")),
        // Zed keeps to the folders of Linux on a Mac too.
        (ImportClient::Zed, settings.join("zed/settings.json")),
        (ImportClient::Codex, home.join(".codex/config.toml")),
    ];
    files
        .into_iter()
        .map(|(client, file)| ImportSource { client, exists: file.is_file(), file })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(layout: FolderLayout) -> String {
        let folders = UserFolders {
            current: PathBuf::new(),
            home: Some("/home/me".into()),
            settings: Some("/home/me/.config".into()),
        };
        let sources = import_sources(&folders, layout);
        let line = |source: &ImportSource| format!("{}: {}", source.client, source.file.display());
        sources.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn every_client_keeps_its_servers_somewhere_else() {
        insta::assert_snapshot!(listed(FolderLayout::Linux), @"
        Claude Desktop: /home/me/.config/Claude/claude_desktop_config.json
        Claude Code: /home/me/.claude.json
        Cursor: /home/me/.cursor/mcp.json
        Windsurf: /home/me/.codeium/windsurf/mcp_config.json
        VS Code: /home/me/.config/Code/User/mcp.json
        VS Code: /home/me/.config/Code - Insiders/User/mcp.json
        Zed: /home/me/.config/zed/settings.json
        Codex: /home/me/.codex/config.toml
        ");
        insta::assert_snapshot!(listed(FolderLayout::MacOs), @"
        Claude Desktop: /home/me/Library/Application Support/Claude/claude_desktop_config.json
        Claude Code: /home/me/.claude.json
        Cursor: /home/me/.cursor/mcp.json
        Windsurf: /home/me/.codeium/windsurf/mcp_config.json
        VS Code: /home/me/Library/Application Support/Code/User/mcp.json
        VS Code: /home/me/Library/Application Support/Code - Insiders/User/mcp.json
        Zed: /home/me/.config/zed/settings.json
        Codex: /home/me/.codex/config.toml
        ");
    }

    #[test]
    fn without_a_home_there_is_nothing_to_import() {
        let folders = UserFolders { current: PathBuf::new(), home: None, settings: None };
        assert_eq!(import_sources(&folders, FolderLayout::Linux), []);
    }
}
