//! `consort config`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show what was read, from where, with secrets hidden
    Show,
    /// Print the config in another format
    Convert {
        /// The format to write
        #[arg(long, value_enum)]
        to: Target,
        /// Write to this file instead of the terminal
        #[arg(long, short)]
        output: Option<PathBuf>,
    },
    /// Take over the servers of other MCP clients on this machine
    Import {
        /// Only from these
        #[arg(value_enum)]
        from: Vec<Source>,
        /// Add them to this file (default: consort.toml in the user's config folder)
        #[arg(long, short)]
        output: Option<PathBuf>,
        /// Only show what would be added
        #[arg(long)]
        dry_run: bool,
    },
    /// Tell another MCP client on this machine of Consort
    Export(Export),
    /// Add a server to the config file in use; all else in it stays as it is written
    Add(Add),
    /// Take a server out of the config file in use; all else in it stays as it is written
    Remove {
        /// The server
        name: String,
    },
    /// Show where config is looked for, and which file is used
    Path,
}

/// A server to be added.
#[derive(Args, Debug)]
pub(crate) struct Add {
    /// What to call it
    #[arg(required_unless_present = "paste", conflicts_with = "paste")]
    pub(crate) name: Option<String>,
    /// The program to start, with its arguments
    #[arg(last = true, required_unless_present_any = ["url", "paste"], conflicts_with_all = ["url", "paste"])]
    pub(crate) command: Vec<String>,
    /// The address of a server that runs elsewhere
    #[arg(long, conflicts_with = "paste")]
    pub(crate) url: Option<String>,
    /// A variable for the program, as `NAME=VALUE`; `NAME=env:NAME` keeps a secret out of the file
    #[arg(long, short, value_name = "NAME=VALUE", requires = "command")]
    pub(crate) env: Vec<String>,
    /// A header for the address, as `NAME=VALUE`
    #[arg(long, short = 'H', value_name = "NAME=VALUE", requires = "url")]
    pub(crate) header: Vec<String>,
    /// Read what to add from the standard input: an `mcp.json` in any known format, or entries of one
    #[arg(long)]
    pub(crate) paste: bool,
}

/// An entry in the config of a client.
#[derive(Args, Debug)]
pub(crate) struct Export {
    /// The client
    #[arg(value_enum)]
    pub(crate) client: Receiver,
    /// Let it use the gateway that runs at this URL (default: it starts `consort serve --stdio`)
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// The file with the token for that gateway
    #[arg(long, value_name = "FILE", requires = "url")]
    pub(crate) token_file: Option<PathBuf>,
    /// Add it to this file (default: the client's own)
    #[arg(long, short)]
    pub(crate) output: Option<PathBuf>,
    /// Only print what would be added
    #[arg(long)]
    pub(crate) print: bool,
}

/// A format to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Target {
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
pub(crate) enum Source {
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
pub(crate) enum Receiver {
    ClaudeDesktop,
    Cursor,
    Vscode,
}
