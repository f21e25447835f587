//! The command line.

mod agent;
mod config;
mod conversations;
pub(crate) mod duration;
mod examples;
mod identity;
mod identity_examples;
mod ledger;
mod log_level;
mod operate;
mod review;
mod root_help;
mod secret;
mod serve;
mod servers;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::LazyLock;

use clap::{Args, Parser, Subcommand};
use consort_protocol::Revision;
use consort_shape::Exposure;

use crate::log::LogSettings;

pub(crate) use agent::{AgentArguments, AskArguments, ChatArguments, RunArguments};
pub(crate) use config::{
    ClientArgument, ConfigCommand, ConvertTarget, ExportArguments, SchemaSubject,
};
pub(crate) use conversations::{ConversationsArguments, ConversationsCommand};
pub(crate) use identity::{
    ClientCommand, KeyCommand, KeyLifetime, NewKeyArguments, SignOutUsers, UserCommand,
    WhoamiArguments,
};
pub(crate) use ledger::{ExportFormat, LedgerArguments, LedgerCommand, LedgerSelection};
pub(crate) use operate::{BugReportArguments, LogsArguments, ServiceCommand};
pub(crate) use review::{CheckArguments, LockArguments, NamesArguments, TrustArguments};
pub(crate) use secret::{SecretCommand, SecretSelection};
pub(crate) use serve::ServeArguments;
pub(crate) use servers::{
    AddJsonArguments, AddServerArguments, AddTransport, ConfigScope, InitArguments, ListArguments,
    PlacementArguments, RemoveServerArguments, StatusArguments, is_url,
};

/// Connect to many MCP servers and expose them as one.
#[derive(Debug, Parser)]
#[command(name = "consort", version, long_version = long_version(), max_term_width = 100)]
#[command(after_help = examples::ROOT)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: GlobalArguments,
    /// The command; without one, an overview is shown.
    #[command(subcommand)]
    pub(crate) command: Option<CliCommand>,
}

/// Options of every command.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Global options")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct GlobalArguments {
    /// Config file, in any supported format (or set `CONSORT_CONFIG`)
    #[arg(long, short, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Log details to standard error
    #[arg(long, short, global = true)]
    pub(crate) verbose: bool,
    /// Use only the servers and tools of this profile
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Deny every tool that is not read-only
    #[arg(long, global = true)]
    pub(crate) read_only: bool,
    /// Refuse to start without a `consort.lock`, or with servers it does not contain
    #[arg(long, global = true)]
    pub(crate) locked: bool,
    /// Print long output without a pager (or set `CONSORT_PAGER` to nothing)
    #[arg(long, global = true)]
    pub(crate) no_pager: bool,
    /// True to ignore every config: for `demo`.
    #[arg(skip)]
    pub(crate) bundled: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Set up the config: import the servers of other MCP clients on this machine
    #[command(after_help = examples::INIT)]
    Init(InitArguments),
    /// Add a server to the config, and connect to it
    #[command(after_help = examples::ADD, override_usage = servers::ADD_USAGE)]
    Add(AddServerArguments),
    /// Add a server from its JSON entry, and connect to it
    #[command(after_help = examples::ADD_JSON)]
    AddJson(AddJsonArguments),
    /// Remove a server from the config
    #[command(after_help = examples::REMOVE, visible_alias = "rm")]
    Remove(RemoveServerArguments),
    /// List the configured servers and their state
    #[command(after_help = examples::LIST, visible_aliases = ["ls", "servers"])]
    List(ListArguments),
    /// Show the running gateways of this config, with their servers
    #[command(after_help = examples::STATUS)]
    Status(StatusArguments),
    /// List the available tools
    #[command(after_help = examples::TOOLS)]
    Tools {
        /// Only tools of this server
        server: Option<String>,
        #[command(flatten)]
        fresh: FreshArguments,
        /// Show the parameters of each tool
        #[arg(long, short)]
        long: bool,
        /// Show the transforms and the policy decision of one tool
        #[arg(long, value_name = "TOOL", conflicts_with_all = ["server", "long", "exposed"])]
        explain: Option<String>,
        /// Show the tools exposed to models with the configured exposure
        #[arg(long)]
        exposed: bool,
        /// Show the tools exposed to models with this exposure: individual, per-server, search or auto
        #[arg(long, value_name = "EXPOSURE", conflicts_with = "explain")]
        exposure: Option<Exposure>,
    },
    /// Search tools by description
    #[command(after_help = examples::SEARCH)]
    Search {
        /// Search terms, such as a short description of the task
        #[arg(required = true)]
        query: Vec<String>,
        /// Maximum number of results
        #[arg(short = 'k', long = "limit", value_name = "N", default_value_t = 10)]
        limit: usize,
        #[command(flatten)]
        fresh: FreshArguments,
    },
    /// Show the token cost of tool definitions, by server, profile and exposure
    #[command(after_help = examples::TOKENS)]
    Tokens {
        /// Tokenizer vocabulary: `o200k` or `cl100k`
        #[arg(long, value_name = "NAME", default_value = "o200k")]
        vocabulary: consort_models::tokens::TokenVocabulary,
        /// Show the cost of every tool
        #[arg(long, short)]
        long: bool,
        #[command(flatten)]
        fresh: FreshArguments,
    },
    /// Convert tools to the format of a model provider, and show what the conversion loses
    #[command(after_help = examples::DIALECT)]
    Dialect(DialectArguments),
    /// Call a tool and show its progress and result
    #[command(after_help = examples::CALL)]
    Call(CallArguments),
    /// Send one prompt to a model that can use the tools
    #[command(after_help = examples::ASK)]
    Ask(AskArguments),
    /// Chat with a model that can use the tools
    #[command(after_help = examples::CHAT)]
    Chat(ChatArguments),
    /// Run a task from a file with a model
    #[command(after_help = examples::RUN)]
    Run(RunArguments),
    /// List the available prompts
    #[command(after_help = examples::PROMPTS)]
    Prompts {
        /// Only prompts of this server
        server: Option<String>,
        #[command(flatten)]
        fresh: FreshArguments,
    },
    /// Render a prompt
    #[command(after_help = examples::PROMPT)]
    Prompt {
        /// Prompt name: `prompt` or `server.prompt`
        name: String,
        /// Prompt arguments, as `name=value`
        arguments: Vec<String>,
        #[command(flatten)]
        ledger: LedgerSelection,
    },
    /// List the available resources and resource templates
    #[command(after_help = examples::RESOURCES)]
    Resources {
        /// Only resources of this server
        server: Option<String>,
        #[command(flatten)]
        fresh: FreshArguments,
    },
    /// Read a resource
    #[command(after_help = examples::READ)]
    Read {
        /// URI of the resource
        uri: String,
        /// Server to read it from, if several provide it
        #[arg(long)]
        server: Option<String>,
        /// Write the contents to this file instead of the terminal
        #[arg(long, short)]
        output: Option<PathBuf>,
        #[command(flatten)]
        ledger: LedgerSelection,
    },
    /// Run the gateway: serve all servers as one MCP endpoint, to clients of any protocol revision
    #[command(after_help = examples::SERVE)]
    Serve(ServeArguments),
    /// Reload the config, lock and secrets of running gateways, and show the result
    #[command(after_help = examples::RELOAD)]
    Reload(ReloadArguments),
    /// Watch the state of every server live
    #[command(after_help = examples::WATCH)]
    Watch,
    /// Show the log of a server: its standard error, starts, ends and failed connections
    #[command(after_help = examples::LOGS)]
    Logs(LogsArguments),
    /// Log in to a server with OAuth in a browser; tokens are stored and refreshed
    #[command(after_help = examples::LOGIN)]
    Login(LoginArguments),
    /// Delete the stored login of a server
    #[command(after_help = examples::LOGOUT)]
    Logout {
        /// Server name in the config; or the URL of a server that is no longer in it
        server: String,
    },
    /// Validate the config without starting servers
    #[command(after_help = examples::CHECK)]
    Check(CheckArguments),
    /// Diagnose problems: connect to every server, check names, schemas and token cost
    #[command(after_help = examples::DOCTOR)]
    Doctor,
    /// Approve the current tool definitions; changed tools are blocked until approved
    #[command(after_help = examples::LOCK)]
    Lock(LockArguments),
    /// Show the names that the gateway assigned, and the reasons; or forget them
    #[command(after_help = examples::NAMES)]
    Names(NamesArguments),
    /// Trust the config of a folder, so that its programs may be started until it changes
    #[command(after_help = examples::TRUST)]
    Trust(TrustArguments),
    /// Store or remove secrets in the system's keyring, and list stored answers to inputs
    #[command(subcommand)]
    Secret(SecretCommand),
    /// Show, edit, convert, import or export the config
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Show, export or verify the ledger, the log of all calls
    Ledger(LedgerArguments),
    /// List, show, copy or delete conversations with models
    Conversations(ConversationsArguments),
    /// Create, list or revoke API keys
    #[command(subcommand)]
    Key(KeyCommand),
    /// Add, list, link, sign out or remove users
    #[command(subcommand)]
    User(UserCommand),
    /// List or block the OAuth clients of users
    #[command(subcommand)]
    Client(ClientCommand),
    /// Show the caller that you are, or explain a token
    #[command(after_help = identity_examples::WHOAMI)]
    Whoami(WhoamiArguments),
    /// Run the gateway as a systemd user service
    #[command(subcommand)]
    Service(ServiceCommand),
    /// Write a file for a bug report: version, config without secrets, state of servers, logs
    #[command(after_help = examples::BUG_REPORT)]
    BugReport(BugReportArguments),
    /// Run the bundled demo, without a config
    #[command(after_help = examples::DEMO)]
    Demo,
    /// Write man pages, one for each command
    #[command(after_help = examples::MAN)]
    Man {
        /// Folder to write `consort.1`, `consort-serve.1`, … to
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
    /// Print shell completions
    #[command(after_help = examples::COMPLETIONS)]
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
    /// Server name in the config
    pub(crate) server: String,
    /// Print the URL instead of opening a browser
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Local port of the OAuth redirect URI [default: any free port]
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
    /// Idle timeout: maximum time without a message from the server, such as 30s [default: 60s, or as configured]
    #[arg(long, value_name = "TIME", value_parser = duration::read)]
    pub(crate) idle: Option<std::time::Duration>,
    /// Total timeout of the call, such as 2m [default: 5m, or as configured]
    #[arg(long, value_name = "TIME", value_parser = duration::read)]
    pub(crate) total: Option<std::time::Duration>,
    /// Minimum severity of the server's log messages to show: debug, info, notice, warning, error, critical, alert,
    /// emergency, or none [default: info; for a legacy server, whatever it sends]
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

/// A reload.
#[derive(Args, Debug)]
pub(crate) struct ReloadArguments {
    /// Accept a rejected change: a removed policy, an invalid server, or a missing lock
    #[arg(long)]
    pub(crate) accept: bool,
    /// Only show what a reload would change or reject
    #[arg(long, conflicts_with = "accept")]
    pub(crate) dry_run: bool,
    /// Timeout for each gateway, such as 40s
    #[arg(long, value_name = "TIME", default_value = "40s", value_parser = duration::read)]
    pub(crate) timeout: std::time::Duration,
}

impl Cli {
    /// Parses the arguments of this process.
    pub(crate) fn parse_process() -> Result<Self, clap::Error> {
        let arguments: Vec<OsString> = std::env::args_os().collect();
        servers::parse(&arguments)
    }

    /// The settings of the log.
    pub(crate) fn log(&self) -> LogSettings {
        let gateway = match &self.command {
            Some(CliCommand::Serve(serve)) => Some(serve.log()),
            _ => None,
        };
        LogSettings { verbose: self.common.verbose, gateway }
    }
}

fn long_version() -> &'static str {
    static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
        let revisions = Revision::ALL.map(Revision::as_str).join(", ");
        format!("{}\nMCP revisions: {revisions}", env!("CARGO_PKG_VERSION"))
    });
    &LONG_VERSION
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
        for revision in Revision::ALL {
            assert!(long_version().contains(revision.as_str()));
        }
    }
}
