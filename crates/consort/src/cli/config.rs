//! `consort config`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show the config as read, with sources, secrets hidden
    Show,
    /// Print the config in another format
    Convert {
        /// Format to write
        #[arg(long, value_enum)]
        to: ConvertTarget,
        /// Write to this file instead of the terminal
        #[arg(long, short)]
        output: Option<PathBuf>,
    },
    /// Import the servers of other MCP clients on this machine
    Import {
        /// Only from these clients
        #[arg(value_enum)]
        from: Vec<SourceClient>,
        /// Add them to this file (default: consort.toml in the user's config folder)
        #[arg(long, short)]
        output: Option<PathBuf>,
        /// Only show what would be added
        #[arg(long)]
        dry_run: bool,
    },
    /// Register Consort in another MCP client on this machine
    Export(ExportArguments),
    /// Add a server to the config file in use; the rest of the file is unchanged
    Add(AddServerArguments),
    /// Remove a server from the config file in use; the rest of the file is unchanged
    Remove {
        /// Name of the server
        name: String,
    },
    /// Show the search path of the config and the file in use
    Path,
    /// Print the JSON Schema of the config, for editors and checks
    Schema,
    /// Show every limit: its key in `[consort.limits]`, value in force, default and allowed values
    Limits {
        /// Only limits with this text in their key or description
        word: Option<String>,
    },
}

/// A server to be added.
#[derive(Args, Debug)]
pub(crate) struct AddServerArguments {
    /// Name of the server
    #[arg(required_unless_present = "paste", conflicts_with = "paste")]
    pub(crate) name: Option<String>,
    /// Command to start, with its arguments
    #[arg(last = true, required_unless_present_any = ["url", "paste"], conflicts_with_all = ["url", "paste"])]
    pub(crate) command: Vec<String>,
    /// URL of a remote server
    #[arg(long, conflicts_with = "paste")]
    pub(crate) url: Option<String>,
    /// Environment variable of the command, as `NAME=VALUE`; `NAME=env:NAME` keeps a secret out of the file
    #[arg(long, short, value_name = "NAME=VALUE", requires = "command")]
    pub(crate) env: Vec<String>,
    /// HTTP header of every request, as `NAME=VALUE`
    #[arg(long, short = 'H', value_name = "NAME=VALUE", requires = "url")]
    pub(crate) header: Vec<String>,
    /// Read servers from standard input: an `mcp.json` in any known format, or entries of one
    #[arg(long)]
    pub(crate) paste: bool,
}

/// An entry in the config of a client.
#[derive(Args, Debug)]
pub(crate) struct ExportArguments {
    /// Client to configure
    #[arg(value_enum)]
    pub(crate) client: TargetClient,
    /// URL of a running gateway to use (default: the client starts `consort serve --stdio`)
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// File with the token for that gateway
    #[arg(long, value_name = "FILE", requires = "url")]
    pub(crate) token_file: Option<PathBuf>,
    /// File to add it to (default: the client's own)
    #[arg(long, short)]
    pub(crate) output: Option<PathBuf>,
    /// Only print what would be added
    #[arg(long)]
    pub(crate) print: bool,
}

/// A format to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConvertTarget {
    /// `mcpServers`: Claude Desktop, Claude Code, Cursor, Windsurf
    McpServers,
    /// VS Code's `servers` and `inputs`
    Vscode,
    /// Zed's `context_servers`
    Zed,
    /// Codex's `[mcp_servers.…]`
    Codex,
    /// Consort's own `[mcp.…]`
    Consort,
}

/// A client to import from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SourceClient {
    ClaudeDesktop,
    ClaudeCode,
    Cursor,
    Windsurf,
    Vscode,
    Zed,
    Codex,
}

/// A client to export to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TargetClient {
    ClaudeDesktop,
    Cursor,
    Vscode,
}
