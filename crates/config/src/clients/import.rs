//! Files in which other clients store their servers.

use std::path::PathBuf;

use serde::Serialize;

use crate::clients::{KNOWN_CLIENTS, KnownClient};
use crate::folders::UserFolders;

/// A file in which a client stores the user's servers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImportSource {
    /// The client.
    pub client: &'static KnownClient,
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

/// All files in which a known client may store the user's servers.
pub fn import_sources(folders: &UserFolders, layout: FolderLayout) -> Vec<ImportSource> {
    let of = |client: &'static KnownClient| {
        let files = client.files(folders, layout).into_iter();
        files.map(move |file| ImportSource { client, exists: file.is_file(), file })
    };
    KNOWN_CLIENTS.iter().flat_map(of).collect()
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
        Gemini CLI: /home/me/.gemini/settings.json
        GitHub Copilot CLI: /home/me/.copilot/mcp-config.json
        Goose: /home/me/.config/goose/config.yaml
        Continue: /home/me/.continue/config.yaml
        OpenCode: /home/me/.config/opencode/opencode.json
        OpenCode: /home/me/.config/opencode/opencode.jsonc
        Amp: /home/me/.config/amp/settings.json
        Crush: /home/me/.config/crush/crush.json
        Kiro: /home/me/.kiro/settings/mcp.json
        LM Studio: /home/me/.lmstudio/mcp.json
        JetBrains Junie: /home/me/.junie/mcp/mcp.json
        LibreChat: librechat.yaml
        ");
        let (linux, macos) = (listed(FolderLayout::Linux), listed(FolderLayout::MacOs));
        let other: Vec<&str> = macos.lines().filter(|line| !linux.contains(line)).collect();
        insta::assert_snapshot!(other.join("\n"), @"
        Claude Desktop: /home/me/Library/Application Support/Claude/claude_desktop_config.json
        VS Code: /home/me/Library/Application Support/Code/User/mcp.json
        VS Code: /home/me/Library/Application Support/Code - Insiders/User/mcp.json
        ");
    }

    #[test]
    fn without_a_home_there_is_nothing_to_import() {
        let folders = UserFolders { current: PathBuf::new(), home: None, settings: None };
        assert_eq!(import_sources(&folders, FolderLayout::Linux), []);
    }
}
