//! The command line.

mod agent;
mod config;
mod conversations;
pub(crate) mod duration;
mod ledger;
mod log_level;
mod serve;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use consort_shape::Exposure;

use crate::log::LogSettings;

pub(crate) use agent::{AgentArguments, AskArguments, ChatArguments, RunArguments};
pub(crate) use config::{
    AddServerArguments, ConfigCommand, ConvertTarget, ExportArguments, SourceClient, TargetClient,
};
pub(crate) use conversations::{ConversationsArguments, ConversationsCommand};
pub(crate) use ledger::{ExportFormat, LedgerArguments, LedgerCommand, LedgerSelection};
pub(crate) use serve::ServeArguments;

/// Connect to many MCP servers and expose them as one.
#[derive(Debug, Parser)]
#[command(name = "consort", version, long_version = long_version(), max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 ok, 1 the tool or server reported an error, 2 wrong usage or config, \
    3 server unreachable, 4 timeout, 5 denied, 6 outcome unknown, 7 not what the lock says, 8 limit reached, \
    9 a person is waited for, 130 interrupted."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: GlobalArguments,
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

/// Options of every command.
#[derive(Args, Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct GlobalArguments {
    /// Config file, in any known format (or set `CONSORT_CONFIG`)
    #[arg(long, short, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON for programs instead of text for people
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Log diagnostics to standard error
    #[arg(long, short, global = true)]
    pub(crate) verbose: bool,
    /// Use only the servers and tools of this profile
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Deny every tool that is not read-only
    #[arg(long, global = true)]
    pub(crate) read_only: bool,
    /// Refuse to start without a `consort.lock`, or with servers that are not in it
    #[arg(long, global = true)]
    pub(crate) locked: bool,
    /// True to ignore every config: for `demo`.
    #[arg(skip)]
    pub(crate) bundled: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Show every server and its state
    Servers,
    /// List the available tools
    Tools {
        /// Only tools of this server
        server: Option<String>,
        #[command(flatten)]
        fresh: FreshArguments,
        /// Show the parameters of each tool
        #[arg(long, short)]
        long: bool,
        /// Show how each rule changed one tool
        #[arg(long, value_name = "TOOL", conflicts_with_all = ["server", "long", "exposed"])]
        explain: Option<String>,
        /// Show the tools that a model sees with the configured exposure
        #[arg(long)]
        exposed: bool,
        /// Show the tools that a model sees with this exposure
        #[arg(long, value_name = "EXPOSURE", conflicts_with = "explain")]
        exposure: Option<Exposure>,
    },
    /// Search tools by description
    Search {
        /// Search words, such as a task in a few words
        #[arg(required = true)]
        query: Vec<String>,
        /// Maximum number of results
        #[arg(short = 'k', long = "limit", value_name = "N", default_value_t = 10)]
        limit: usize,
        #[command(flatten)]
        fresh: FreshArguments,
    },
    /// Show the token cost of tool definitions, by server, profile and exposure
    Tokens {
        /// Tokenizer vocabulary: `o200k` or `cl100k`
        #[arg(long, value_name = "NAME", default_value = "o200k")]
        vocabulary: consort_models::tokens::TokenVocabulary,
        /// Show every tool
        #[arg(long, short)]
        long: bool,
        #[command(flatten)]
        fresh: FreshArguments,
    },
    /// Show a tool in the format of a model provider, and what the conversion loses
    Dialect(DialectArguments),
    /// Call a tool and show its progress and result
    Call(CallArguments),
    /// Send one prompt to a model that can use the tools
    Ask(AskArguments),
    /// Chat with a model that can use the tools
    Chat(ChatArguments),
    /// Run a task from a file with a model
    Run(RunArguments),
    /// List the available prompts
    Prompts {
        /// Only prompts of this server
        server: Option<String>,
        #[command(flatten)]
        fresh: FreshArguments,
    },
    /// Render a prompt
    Prompt {
        /// The prompt, as `prompt` or `server.prompt`
        name: String,
        /// Its arguments, as `name=value`
        arguments: Vec<String>,
        #[command(flatten)]
        ledger: LedgerSelection,
    },
    /// List the available resources and resource templates
    Resources {
        /// Only resources of this server
        server: Option<String>,
        #[command(flatten)]
        fresh: FreshArguments,
    },
    /// Read a resource
    Read {
        /// Its URI
        uri: String,
        /// Server to read it from, if several may have it
        #[arg(long)]
        server: Option<String>,
        /// Write the contents to this file instead of the terminal
        #[arg(long, short)]
        output: Option<PathBuf>,
        #[command(flatten)]
        ledger: LedgerSelection,
    },
    /// Serve all servers as one MCP endpoint, to clients of any protocol revision
    Serve(ServeArguments),
    /// Make running gateways reload config, lock and secrets, and show the result
    Reload(ReloadArguments),
    /// Watch the state of every server, live
    Watch,
    /// Log in to a server with OAuth, in a browser; tokens are stored and refreshed
    Login(LoginArguments),
    /// Delete the stored login of a server
    Logout {
        /// Its name in the config
        server: String,
    },
    /// Check the config without starting anything
    Check(CheckArguments),
    /// Connect to every server and check connections, names, schemas and sizes
    Doctor,
    /// Approve the current tool definitions and detect changes
    Lock(LockArguments),
    /// Show the names that clients of a gateway see, and why; or forget them
    Names(NamesArguments),
    /// Trust the config of a working folder: its programs may be started until it changes
    Trust(TrustArguments),
    /// Show, convert or import config
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Read the ledger of calls, or verify its integrity
    Ledger(LedgerArguments),
    /// List, show, copy or remove conversations with models
    Conversations(ConversationsArguments),
    /// Run the bundled demo, without a config
    Demo,
    /// Write the man pages, one for each command
    Man {
        /// Folder to write `consort.1`, `consort-serve.1`, … to
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
    /// Print shell completions
    Completions {
        /// Shell to generate for
        shell: clap_complete::Shell,
    },
    /// Run the bundled demo server on standard input and output
    #[command(hide = true)]
    DemoServer,
}

/// Options of `consort login`.
#[derive(Args, Debug)]
pub(crate) struct LoginArguments {
    /// Its name in the config
    pub(crate) server: String,
    /// Print the URL instead of opening a browser
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Local port of the OAuth redirect [default: any]
    #[arg(long)]
    pub(crate) port: Option<u16>,
}

#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct FreshArguments {
    /// Query the servers instead of using cached listings
    #[arg(long)]
    pub(crate) fresh: bool,
}

/// A tool in the format of a provider.
#[derive(Args, Debug)]
pub(crate) struct DialectArguments {
    /// Provider format: `openai`, `openai-responses`, `anthropic` or `gemini`
    pub(crate) dialect: consort_models::dialect::ToolDialect,
    /// Only this tool
    pub(crate) tool: Option<String>,
}

/// A tool call.
#[derive(Args, Debug)]
pub(crate) struct CallArguments {
    /// Tool name: `tool`, `server.tool` or `server:tool`
    pub(crate) tool: String,
    /// Tool arguments: `name=value`, converted by the tool's schema, or `name:=JSON`
    #[arg(value_name = "NAME=VALUE", conflicts_with = "args")]
    pub(crate) arguments: Vec<String>,
    /// All arguments as one JSON object; `-` reads it from standard input
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,
    /// Idle timeout: maximum time without a message from the server (default: 60s, or as configured)
    #[arg(long, value_name = "TIME", value_parser = duration::read)]
    pub(crate) idle: Option<std::time::Duration>,
    /// Total timeout of the call (default: 5m, or as configured)
    #[arg(long, value_name = "TIME", value_parser = duration::read)]
    pub(crate) total: Option<std::time::Duration>,
    /// Minimum severity of the server's log messages to show: debug, info, notice, warning, error, critical, alert,
    /// emergency, or none (default: what a legacy server sends unasked, info for a modern one)
    #[arg(long, value_name = "LEVEL", value_parser = log_level::read)]
    pub(crate) log_level: Option<consort_core::LogDelivery>,
    /// Folder to save images and audio in
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub(crate) save: PathBuf,
    /// Call a tool of this exposure: `mcp_SERVER`, or `find_tools` and `call_tool` [default: as configured]
    #[arg(long, value_name = "EXPOSURE")]
    pub(crate) exposure: Option<Exposure>,
    #[command(flatten)]
    pub(crate) ledger: LedgerSelection,
}

/// A check of the config.
#[derive(Args, Debug)]
pub(crate) struct CheckArguments {
    /// Fail on warnings too (exit code 2)
    #[arg(long)]
    pub(crate) strict: bool,
}

/// A reload.
#[derive(Args, Debug)]
pub(crate) struct ReloadArguments {
    /// Accept a change that was rejected: a config without its policy or with a broken server, or a missing lock
    #[arg(long)]
    pub(crate) accept: bool,
    /// Only show what a reload would change or reject
    #[arg(long, conflicts_with = "accept")]
    pub(crate) dry_run: bool,
    /// Time to wait for each gateway's reply
    #[arg(long, value_name = "TIME", default_value = "40s", value_parser = duration::read)]
    pub(crate) timeout: std::time::Duration,
}

/// Options of `consort lock`.
#[derive(Args, Debug)]
pub(crate) struct LockArguments {
    /// With --update: only these servers
    #[arg(value_name = "SERVER", requires = "update")]
    pub(crate) servers: Vec<String>,
    /// Show changes since the last lock, and approve them
    #[arg(long, conflicts_with = "check")]
    pub(crate) update: bool,
    /// Show changes since the last lock, without approving (exit code 7 if there are any)
    #[arg(long)]
    pub(crate) check: bool,
    /// Approve without confirmation
    #[arg(long, short, conflicts_with = "check")]
    pub(crate) yes: bool,
    /// Lock file (default: consort.lock beside the config)
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

/// Names that a gateway assigned.
#[derive(Args, Debug)]
pub(crate) struct NamesArguments {
    /// Forget the names of this server, and those that others got because of them; repeatable
    #[arg(long, value_name = "SERVER")]
    pub(crate) forget: Vec<String>,
}

/// Options of `consort trust`.
#[derive(Args, Debug)]
pub(crate) struct TrustArguments {
    /// Config file or its folder [default: the current folder]
    #[arg(value_name = "PATH")]
    pub(crate) path: Option<PathBuf>,
    /// List the trusted configs
    #[arg(long, conflicts_with_all = ["path", "remove"])]
    pub(crate) list: bool,
    /// Revoke the trust
    #[arg(long)]
    pub(crate) remove: bool,
}

impl Cli {
    /// The settings of the log.
    pub(crate) fn log(&self) -> LogSettings {
        let gateway = match &self.command {
            CliCommand::Serve(serve) => Some(serve.log()),
            _ => None,
        };
        LogSettings { verbose: self.common.verbose, gateway }
    }
}

fn long_version() -> &'static str {
    concat!(
        env!("CARGO_PKG_VERSION"),
        "\nMCP revisions: 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn the_long_version_names_every_revision() {
        for revision in consort_protocol::Revision::ALL {
            assert!(long_version().contains(revision.as_str()));
        }
    }
}
