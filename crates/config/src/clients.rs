//! MCP clients: the files in which they store servers, and the entry with which they use the gateway.

pub(crate) mod export;
pub(crate) mod import;

use std::fmt;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

use crate::clients::export::{ExportMode, InstallLink, entries};
use crate::clients::import::FolderLayout;
use crate::convert::output_value::OutputValue;
use crate::folders::UserFolders;
use crate::read::format::ConfigFormat;
use crate::read::{amp, codex, continue_list, crush, goose, mcp_servers, vscode, zed};
use crate::syntax::ConfigLanguage;

/// An MCP client whose servers can be imported, and whose config the gateway can be added to.
pub struct KnownClient {
    /// Name in commands.
    pub id: &'static str,
    /// Name of the product.
    pub name: &'static str,
    /// Format of its config.
    pub format: ConfigFormat,
    pub(crate) language: ConfigLanguage,
    /// Its files on Linux: in the home folder (`~/`), the user's settings (`~/.config/`) or the working folder.
    pub(crate) linux: &'static [&'static str],
    /// Its files on macOS, if they differ.
    pub(crate) macos: Option<&'static [&'static str]>,
    /// The keys that lead to its servers.
    pub(crate) servers: &'static [&'static str],
    /// Writes the entry of the gateway.
    pub(crate) entry: fn(&ExportMode) -> OutputValue,
    /// Kind of its links that install a server.
    pub(crate) link: Option<InstallLink>,
}

/// The usual row: JSON with `mcpServers`, and an entry as Cursor's.
const COMMON: KnownClient = KnownClient {
    id: "",
    name: "",
    format: ConfigFormat::McpServers,
    language: ConfigLanguage::Json,
    linux: &[],
    macos: None,
    servers: &[mcp_servers::KEY],
    entry: entries::untyped,
    link: None,
};

/// All clients, one row each.
pub static KNOWN_CLIENTS: &[KnownClient] = &[
    KnownClient {
        id: "claude-desktop",
        name: "Claude Desktop",
        linux: &["~/.config/Claude/claude_desktop_config.json"],
        macos: Some(&["~/Library/Application Support/Claude/claude_desktop_config.json"]),
        entry: entries::bridged,
        ..COMMON
    },
    KnownClient {
        id: "claude-code",
        name: "Claude Code",
        linux: &["~/.claude.json"],
        entry: entries::typed,
        ..COMMON
    },
    KnownClient {
        id: "cursor",
        name: "Cursor",
        linux: &["~/.cursor/mcp.json"],
        link: Some(InstallLink::Cursor),
        ..COMMON
    },
    KnownClient {
        id: "windsurf",
        name: "Windsurf",
        linux: &["~/.codeium/windsurf/mcp_config.json"],
        entry: entries::windsurf,
        ..COMMON
    },
    KnownClient {
        id: "vscode",
        name: "VS Code",
        format: ConfigFormat::VsCode,
        linux: &["~/.config/Code/User/mcp.json", "~/.config/Code - Insiders/User/mcp.json"],
        macos: Some(&[
            "~/Library/Application Support/Code/User/mcp.json",
            "~/Library/Application Support/Code - Insiders/User/mcp.json",
        ]),
        servers: &[vscode::KEY],
        entry: entries::typed,
        link: Some(InstallLink::VsCode),
        ..COMMON
    },
    KnownClient {
        id: "zed",
        name: "Zed",
        format: ConfigFormat::Zed,
        linux: &["~/.config/zed/settings.json"],
        servers: &[zed::KEY],
        entry: entries::zed,
        ..COMMON
    },
    KnownClient {
        id: "codex",
        name: "Codex",
        format: ConfigFormat::Codex,
        language: ConfigLanguage::Toml,
        linux: &["~/.codex/config.toml"],
        servers: &[codex::KEY],
        entry: entries::codex,
        ..COMMON
    },
    KnownClient {
        id: "gemini-cli",
        name: "Gemini CLI",
        linux: &["~/.gemini/settings.json"],
        entry: entries::gemini,
        ..COMMON
    },
    KnownClient {
        id: "copilot-cli",
        name: "GitHub Copilot CLI",
        linux: &["~/.copilot/mcp-config.json"],
        entry: entries::copilot,
        ..COMMON
    },
    KnownClient {
        id: "goose",
        name: "Goose",
        format: ConfigFormat::Goose,
        language: ConfigLanguage::Yaml,
        linux: &["~/.config/goose/config.yaml"],
        servers: &[goose::KEY],
        entry: entries::goose,
        ..COMMON
    },
    KnownClient {
        id: "continue",
        name: "Continue",
        format: ConfigFormat::Continue,
        language: ConfigLanguage::Yaml,
        linux: &["~/.continue/config.yaml"],
        servers: &[continue_list::KEY],
        entry: entries::continue_item,
        ..COMMON
    },
    KnownClient {
        id: "opencode",
        name: "OpenCode",
        format: ConfigFormat::OpenCode,
        linux: &["~/.config/opencode/opencode.json", "~/.config/opencode/opencode.jsonc"],
        servers: &["mcp"],
        entry: entries::opencode,
        ..COMMON
    },
    KnownClient {
        id: "amp",
        name: "Amp",
        format: ConfigFormat::Amp,
        linux: &["~/.config/amp/settings.json"],
        servers: &[amp::KEY],
        ..COMMON
    },
    KnownClient {
        id: "crush",
        name: "Crush",
        format: ConfigFormat::Crush,
        linux: &["~/.config/crush/crush.json"],
        servers: &[crush::KEY],
        entry: entries::typed,
        ..COMMON
    },
    KnownClient { id: "kiro", name: "Kiro", linux: &["~/.kiro/settings/mcp.json"], ..COMMON },
    KnownClient { id: "lm-studio", name: "LM Studio", linux: &["~/.lmstudio/mcp.json"], ..COMMON },
    KnownClient {
        id: "junie",
        name: "JetBrains Junie",
        linux: &["~/.junie/mcp/mcp.json"],
        entry: entries::bridged,
        ..COMMON
    },
    KnownClient {
        id: "librechat",
        name: "LibreChat",
        language: ConfigLanguage::Yaml,
        linux: &["librechat.yaml"],
        entry: entries::librechat,
        ..COMMON
    },
];

impl KnownClient {
    /// Returns the client of this name in commands.
    pub fn find(id: &str) -> Option<&'static Self> {
        KNOWN_CLIENTS.iter().find(|client| client.id == id)
    }

    /// Returns true if its file is in the working folder: it may have come with a repository.
    pub fn is_in_working_folder(&self) -> bool {
        self.linux.iter().any(|file| !file.starts_with("~/"))
    }

    /// The files in which it may store the user's servers, the usual one first.
    pub fn files(&self, folders: &UserFolders, layout: FolderLayout) -> Vec<PathBuf> {
        let (Some(home), Some(settings)) = (&folders.home, &folders.settings) else {
            return Vec::new();
        };
        let place = |file: &&str| match (file.strip_prefix("~/.config/"), file.strip_prefix("~/")) {
            (Some(file), _) => settings.join(file),
            (None, Some(file)) => home.join(file),
            (None, None) => folders.current.join(file),
        };
        self.written_files(layout).iter().map(place).collect()
    }

    /// The file that the gateway is added to: of several, the first that exists, else the first whose folder does.
    pub fn file(&self, folders: &UserFolders, layout: FolderLayout) -> Option<PathBuf> {
        let files = self.files(folders, layout);
        let there = files.iter().find(|file| file.is_file());
        let folder = |file: &&PathBuf| file.parent().is_some_and(std::path::Path::is_dir);
        there.or_else(|| files.iter().find(folder)).or(files.first()).cloned()
    }

    pub(crate) fn written_files(&self, layout: FolderLayout) -> &'static [&'static str] {
        match layout {
            FolderLayout::Linux => self.linux,
            FolderLayout::MacOs => self.macos.unwrap_or(self.linux),
        }
    }
}

impl PartialEq for KnownClient {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for KnownClient {}

impl fmt::Debug for KnownClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KnownClient").field(&self.id).finish()
    }
}

impl fmt::Display for KnownClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

impl Serialize for KnownClient {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fmt::Write as _;

    use super::*;

    /// The files as the documentation writes them.
    fn listed(files: &[&str]) -> String {
        files.iter().map(|file| format!("`{file}`")).collect::<Vec<_>>().join(", ")
    }

    /// The content by which the format of a client is detected.
    fn sign(client: &KnownClient) -> String {
        let key = client.servers.join(".");
        match client.format {
            ConfigFormat::VsCode => format!("`{key}` (an object), `inputs`"),
            ConfigFormat::Codex => format!("`[{key}.NAME]`"),
            ConfigFormat::Goose => format!("`{key}` with `type`, `cmd` or `uri`"),
            ConfigFormat::Continue => format!("`{key}` (an array)"),
            ConfigFormat::OpenCode => {
                format!(
                    "`{key}` or `{key}.servers`, with `local` or `remote` servers, or `$schema`"
                )
            }
            ConfigFormat::Crush => {
                format!("`{key}` beside `lsp`, `options` or `permissions`, or `$schema`")
            }
            _ => format!("`{key}`"),
        }
    }

    #[test]
    fn the_table_of_clients_is_what_the_code_says() {
        let mut table = String::from(
            "| client | name in commands | file on Linux | file on macOS | detected by |\n|---|---|---|---|---|\n",
        );
        for client in KNOWN_CLIENTS {
            let language = match client.language {
                ConfigLanguage::Json => "JSON",
                ConfigLanguage::Toml => "TOML",
                ConfigLanguage::Yaml => "YAML",
            };
            let macos = client.macos.map_or("the same".to_owned(), listed);
            let (linux, sign) = (listed(client.linux), sign(client));
            writeln!(
                table,
                "| {client} | `{}` | {linux} | {macos} | {sign}, {language} |",
                client.id
            )
            .expect("text takes text");
        }
        testkit::docs::hold("docs/config.md", "clients", &table);
    }

    #[test]
    fn a_name_is_one_client() {
        let ids: BTreeSet<&str> = KNOWN_CLIENTS.iter().map(|client| client.id).collect();
        assert_eq!(ids.len(), KNOWN_CLIENTS.len());
        for client in KNOWN_CLIENTS {
            assert_eq!(KnownClient::find(client.id), Some(client));
            assert!(!client.linux.is_empty() && !client.servers.is_empty());
        }
    }
}
