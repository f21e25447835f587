//! `consort config`.

use std::path::PathBuf;
use std::sync::LazyLock;

use clap::builder::PossibleValue;
use clap::{Args, Subcommand, ValueEnum};
use consort_config::{KNOWN_CLIENTS, KnownClient};

use super::examples;
use super::servers::{AddServerArguments, CONFIG_ADD_USAGE, RemoveServerArguments};

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show the effective config with its sources; secrets are hidden
    #[command(after_help = examples::CONFIG_SHOW)]
    Show,
    /// Print the config in another format
    #[command(after_help = examples::CONFIG_CONVERT)]
    Convert {
        /// Format to write
        #[arg(long, value_enum)]
        to: ConvertTarget,
        /// Write to this file instead of standard output
        #[arg(long, short)]
        output: Option<PathBuf>,
    },
    /// Import the servers of other MCP clients on this machine
    #[command(after_help = examples::CONFIG_IMPORT)]
    Import {
        /// Clients to import from [default: all with a config in the home folder]
        #[arg(value_enum)]
        from: Vec<ClientArgument>,
        /// Config file to add them to [default: consort.toml in the user's config folder]
        #[arg(long, short)]
        output: Option<PathBuf>,
        /// Show what would be added, without writing
        #[arg(long)]
        dry_run: bool,
    },
    /// Register Consort in another MCP client on this machine
    #[command(after_help = examples::CONFIG_EXPORT)]
    Export(ExportArguments),
    /// Add a server to the config without connecting: `consort add --no-connect`
    #[command(after_help = examples::CONFIG_ADD, override_usage = CONFIG_ADD_USAGE)]
    Add(AddServerArguments),
    /// Remove a server from the config: `consort remove`
    #[command(after_help = examples::CONFIG_REMOVE)]
    Remove(RemoveServerArguments),
    /// Show the search path of the config and the file in use
    #[command(after_help = examples::CONFIG_PATH)]
    Path,
    /// Print the JSON Schema of the config, for editors and validators, or of the events of `--json`
    #[command(after_help = examples::CONFIG_SCHEMA)]
    Schema {
        /// Subject of the schema
        #[arg(value_enum, default_value_t = SchemaSubject::Config)]
        of: SchemaSubject,
    },
    /// Show every limit: its key in `[consort.limits]`, effective value, default and allowed range
    #[command(after_help = examples::CONFIG_LIMITS)]
    Limits {
        /// Only limits with this text in their key or description
        word: Option<String>,
    },
}

/// An entry in the config of a client.
#[derive(Args, Debug)]
pub(crate) struct ExportArguments {
    /// Client to configure
    #[arg(value_enum)]
    pub(crate) client: ClientArgument,
    /// URL of a running gateway [default: the client starts `consort serve --stdio`]
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// File with the token of that gateway
    #[arg(long, value_name = "FILE", requires = "url")]
    pub(crate) token_file: Option<PathBuf>,
    /// Config file of the client [default: its usual location]
    #[arg(long, short)]
    pub(crate) output: Option<PathBuf>,
    /// Print the entry, without writing
    #[arg(long)]
    pub(crate) print: bool,
    /// Print a link that installs the entry, without writing; it never contains a token
    #[arg(long, conflicts_with_all = ["print", "output"])]
    pub(crate) link: bool,
}

/// Subject of a JSON Schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaSubject {
    /// The config
    Config,
    /// A line of `call --json`, `run --json`, `ask --json` and `chat --json`
    Events,
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

/// A client to import from or to export to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientArgument(pub(crate) &'static KnownClient);

impl ValueEnum for ClientArgument {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<ClientArgument>> =
            LazyLock::new(|| KNOWN_CLIENTS.iter().map(ClientArgument).collect());
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.id))
    }
}
