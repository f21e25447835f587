//! What can be typed.

mod config;
mod conversations;
pub(crate) mod duration;
mod ledger;
mod log_level;
mod serve;
mod talk;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use consort_shape::Exposure;

use crate::log::LogSettings;

pub(crate) use config::{Add, ConfigCommand, Export, Receiver, Source, Target};
pub(crate) use conversations::{Conversations, ConversationsCommand};
pub(crate) use ledger::{ExportFormat, Ledger, LedgerCommand};
pub(crate) use serve::Serve;
pub(crate) use talk::{Ask, Chat, Run, Talk};

/// Many MCP servers play as one.
#[derive(Debug, Parser)]
#[command(name = "consort", version, long_version = long_version(), max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 ok, 1 the tool or server reported an error, 2 wrong usage or config, \
    3 server unreachable, 4 timeout, 5 denied, 6 outcome unknown, 7 not what the lock says, 8 limit reached, \
    9 a person is waited for, 130 interrupted."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Args, Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Common {
    /// Config file, in any known format (or set `CONSORT_CONFIG`)
    #[arg(long, short, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON for programs instead of text for people
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say what happens behind the scenes, on the standard error
    #[arg(long, short, global = true)]
    pub(crate) verbose: bool,
    /// Use only what this profile of the config offers
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Deny every tool that does more than read
    #[arg(long, global = true)]
    pub(crate) read_only: bool,
    /// Refuse to start without a `consort.lock`, or with servers that are not in it
    #[arg(long, global = true)]
    pub(crate) locked: bool,
    /// Takes no config, whatever there is: for `demo`.
    #[arg(skip)]
    pub(crate) bundled: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show every server and how it is doing
    Servers,
    /// Show the tools on offer
    Tools {
        /// Only this server's
        server: Option<String>,
        #[command(flatten)]
        fresh: Fresh,
        /// Show each tool's parameters too
        #[arg(long, short)]
        long: bool,
        /// Show what became of one tool on its way here, and by which rule
        #[arg(long, value_name = "TOOL", conflicts_with_all = ["server", "long", "exposed"])]
        explain: Option<String>,
        /// Show what a model sees, by the exposure of the config
        #[arg(long)]
        exposed: bool,
        /// Show what a model sees by this exposure
        #[arg(long, value_name = "EXPOSURE", conflicts_with = "explain")]
        exposure: Option<Exposure>,
    },
    /// Find tools by what they do
    Search {
        /// What is to be done, in a few words
        #[arg(required = true)]
        query: Vec<String>,
        /// How many to show
        #[arg(short = 'k', long = "limit", value_name = "N", default_value_t = 10)]
        limit: usize,
        #[command(flatten)]
        fresh: Fresh,
    },
    /// Show what tool definitions cost a model, by server, profile and exposure
    Tokens {
        /// The vocabulary to count in: `o200k` or `cl100k`
        #[arg(long, value_name = "NAME", default_value = "o200k")]
        vocabulary: consort_shape::tokens::Vocabulary,
        /// Show every tool
        #[arg(long, short)]
        long: bool,
        #[command(flatten)]
        fresh: Fresh,
    },
    /// Show a tool as a model provider takes it, and what is lost on the way
    Dialect(DialectArguments),
    /// Call a tool and show what happens
    Call(Call),
    /// Ask a model once, with the tools on offer
    Ask(Ask),
    /// Talk to a model, with the tools on offer
    Chat(Chat),
    /// Have a model do a task that is described in a file
    Run(Run),
    /// Show the prompts on offer
    Prompts {
        /// Only this server's
        server: Option<String>,
        #[command(flatten)]
        fresh: Fresh,
    },
    /// Render a prompt
    Prompt {
        /// The prompt, as `prompt` or `server.prompt`
        name: String,
        /// Its arguments, as `name=value`
        arguments: Vec<String>,
    },
    /// Show the resources and templates on offer
    Resources {
        /// Only this server's
        server: Option<String>,
        #[command(flatten)]
        fresh: Fresh,
    },
    /// Read a resource
    Read {
        /// Its URI
        uri: String,
        /// The server to read it from, if several could have it
        #[arg(long)]
        server: Option<String>,
        /// Write what it holds to this file instead of the terminal
        #[arg(long, short)]
        output: Option<PathBuf>,
    },
    /// Serve every server as one MCP endpoint, to clients of any revision
    Serve(Serve),
    /// Have running gateways re-read their config, lock and secrets, and show what came of it
    Reload(Reload),
    /// Watch every server's state, live
    Watch,
    /// Log in at a server that asks who you are, in a browser; it is kept and renewed
    Login(Login),
    /// Forget the login at a server
    Logout {
        /// Its name in the config
        server: String,
    },
    /// Look for problems in the config without starting anything
    Check(Check),
    /// Reach every server and look for problems: reachability, names, schemas, size
    Doctor,
    /// Agree to what servers say, and notice when they say something else
    Lock(Lock),
    /// Show what things are called in front of clients of a gateway, and why; or forget it
    Names(NamesArguments),
    /// Trust the config of a working folder: its programs may be started until it changes
    Trust(Trust),
    /// Show, convert or import config
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Read the ledger of calls, or check that nobody changed it
    Ledger(Ledger),
    /// List, show, copy or remove conversations with models
    Conversations(Conversations),
    /// See Consort at work on the bundled demo, with nothing configured
    Demo,
    /// Write the manual: a page for every command
    Man {
        /// The folder to write `consort.1`, `consort-serve.1`, … to
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
    /// Print shell completions
    Completions {
        /// For this shell
        shell: clap_complete::Shell,
    },
    /// The bundled demo server, on standard input and output
    #[command(hide = true)]
    DemoServer,
}

/// Whether to ask the servers or to show what is kept.
#[derive(Args, Debug)]
pub(crate) struct Login {
    /// Its name in the config
    pub(crate) server: String,
    /// Only name the page, and open no browser
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// The port on this machine that the browser comes back to [default: any]
    #[arg(long)]
    pub(crate) port: Option<u16>,
}

#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Fresh {
    /// Ask the servers even if what they offered the last time is kept
    #[arg(long)]
    pub(crate) fresh: bool,
}

/// A tool in the words of a provider.
#[derive(Args, Debug)]
pub(crate) struct DialectArguments {
    /// The provider's form: `openai`, `openai-responses`, `anthropic` or `gemini`
    pub(crate) dialect: consort_shape::dialect::Dialect,
    /// Only this tool
    pub(crate) tool: Option<String>,
}

/// A tool call.
#[derive(Args, Debug)]
pub(crate) struct Call {
    /// The tool: `tool`, `server.tool` or `server:tool`
    pub(crate) tool: String,
    /// Its arguments: `name=value`, read as the tool's schema says, or `name:=JSON`
    #[arg(value_name = "NAME=VALUE", conflicts_with = "args")]
    pub(crate) arguments: Vec<String>,
    /// All arguments as one JSON object; `-` reads it from the standard input
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,
    /// Give up after so long without a word from the server (default: 60s, or as configured)
    #[arg(long, value_name = "TIME", value_parser = duration::read)]
    pub(crate) idle: Option<std::time::Duration>,
    /// Give up after so long altogether (default: 5m, or as configured)
    #[arg(long, value_name = "TIME", value_parser = duration::read)]
    pub(crate) total: Option<std::time::Duration>,
    /// Least severe level of the server's log messages to show: debug, info, notice, warning, error, critical,
    /// alert, emergency, or none (default: what a legacy server sends unasked, info for a modern one)
    #[arg(long, value_name = "LEVEL", value_parser = log_level::read)]
    pub(crate) log_level: Option<consort_core::Logs>,
    /// Save images and audio in this folder
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub(crate) save: PathBuf,
    /// Call what this exposure shows a model: `mcp_SERVER`, or `find_tools` and `call_tool` [default: as configured]
    #[arg(long, value_name = "EXPOSURE")]
    pub(crate) exposure: Option<Exposure>,
}

/// A check of the config.
#[derive(Args, Debug)]
pub(crate) struct Check {
    /// Fail on warnings too (exit code 2)
    #[arg(long)]
    pub(crate) strict: bool,
}

/// A reload.
#[derive(Args, Debug)]
pub(crate) struct Reload {
    /// Accept a change that is kept out: a config without its policy or with a broken server, or a lock
    /// that is gone
    #[arg(long)]
    pub(crate) accept: bool,
    /// Only show what a reload would change or keep out
    #[arg(long, conflicts_with = "accept")]
    pub(crate) dry_run: bool,
    /// Time to wait for each gateway's reply
    #[arg(long, value_name = "TIME", default_value = "40s", value_parser = duration::read)]
    pub(crate) timeout: std::time::Duration,
}

/// The lock.
#[derive(Args, Debug)]
pub(crate) struct Lock {
    /// With --update: only these servers
    #[arg(value_name = "SERVER", requires = "update")]
    pub(crate) servers: Vec<String>,
    /// Show what changed since, and agree to it
    #[arg(long, conflicts_with = "check")]
    pub(crate) update: bool,
    /// Show what changed since, and change nothing (exit code 7 if something did)
    #[arg(long)]
    pub(crate) check: bool,
    /// Agree without being asked
    #[arg(long, short, conflicts_with = "check")]
    pub(crate) yes: bool,
    /// The lock's file (default: consort.lock beside the config)
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

/// The names that a gateway gave.
#[derive(Args, Debug)]
pub(crate) struct NamesArguments {
    /// Forget the names of this server, and those that others got because of them; may be given again
    #[arg(long, value_name = "SERVER")]
    pub(crate) forget: Vec<String>,
}

/// Trust in configs of working folders.
#[derive(Args, Debug)]
pub(crate) struct Trust {
    /// The config, or the folder it is in [default: the current folder]
    #[arg(value_name = "PATH")]
    pub(crate) path: Option<PathBuf>,
    /// Show what is trusted
    #[arg(long, conflicts_with_all = ["path", "remove"])]
    pub(crate) list: bool,
    /// Trust it no longer
    #[arg(long)]
    pub(crate) remove: bool,
}

impl Cli {
    /// The settings of the log.
    pub(crate) fn log(&self) -> LogSettings {
        let gateway = match &self.command {
            Command::Serve(serve) => Some(serve.log()),
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
        for revision in consort_wire::Revision::ALL {
            assert!(long_version().contains(revision.as_str()));
        }
    }
}
