//! Commands for the operator.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{examples, ledger};

/// Options of `consort logs`.
#[derive(Args, Debug)]
pub(crate) struct LogsArguments {
    /// Server name in the config [default: list the logs of all servers]
    pub(crate) server: Option<String>,
    /// Keep running, and print each line when it is written
    #[arg(long, short, requires = "server")]
    pub(crate) follow: bool,
    /// Number of lines to show [default: 100, or all since --since]
    #[arg(long, short = 'n', value_name = "N", requires = "server")]
    pub(crate) lines: Option<usize>,
    /// Only lines from this time on: an age such as `7d`, `24h` or `30m`, or a UTC time such as
    /// `2026-11-16[T12:00:00Z]`
    #[arg(long, value_name = "TIME", value_parser = ledger::time, requires = "server")]
    pub(crate) since: Option<i64>,
}

/// Options of `consort bug-report`.
#[derive(Args, Debug)]
pub(crate) struct BugReportArguments {
    /// File to write [default: consort-bug-report.md in the current folder]; `-` for standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Log lines of each server to include
    #[arg(long, value_name = "N", default_value_t = 30)]
    pub(crate) log_lines: usize,
    /// Do not connect to the servers
    #[arg(long)]
    pub(crate) offline: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServiceCommand {
    /// Install and start a systemd user service that runs `consort serve` with the current config
    #[command(after_help = examples::SERVICE_INSTALL)]
    Install {
        /// Print the unit and the commands, without changing anything
        #[arg(long)]
        dry_run: bool,
    },
    /// Stop and remove the service
    #[command(after_help = examples::SERVICE_REMOVE)]
    Remove {
        /// Print the commands, without changing anything
        #[arg(long)]
        dry_run: bool,
    },
    /// Show the unit and the state of the service
    #[command(after_help = examples::SERVICE_STATUS)]
    Status,
}
