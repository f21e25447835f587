//! Commands for the operator.

use clap::Args;

use super::ledger;

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
