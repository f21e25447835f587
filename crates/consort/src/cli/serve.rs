//! `consort serve`.

use std::path::PathBuf;

use clap::{Args, Parser as _};
use consort_config::ListenAddress;
use consort_server::HostPattern;

use super::{Cli, CliCommand, duration};
use crate::log::{GatewayLog, LogFormat, LogLevels, ServerOutput};

/// Options of `consort serve`.
#[derive(Args, Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct ServeArguments {
    /// Listen address; port 0 picks a free port, `unix:/PATH` is a Unix socket [default: the sockets of `LISTEN_FDS`,
    /// else 127.0.0.1:8808]
    #[arg(long, short, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<ListenAddress>,
    /// Additional listen address for /healthz, /readyz and /metrics only (`metrics_listen` in the config)
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) metrics_listen: Option<ListenAddress>,
    /// Lame-duck time: after SIGTERM, `/readyz` returns 503 for this time and requests are still served [default: 5s,
    /// or none if only this machine can connect] (`lame_duck` in the config)
    #[arg(long, value_name = "TIME", value_parser = duration::read)]
    pub(crate) lame_duck: Option<std::time::Duration>,
    /// Serve one client on standard input and output (stdio transport) instead of HTTP
    #[arg(long, conflicts_with_all = ["listen", "metrics_listen", "allow_unauthenticated", "token_file"])]
    pub(crate) stdio: bool,
    /// File with the owner's token; created if missing [default: consort/token in the user's state folder]
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Serve clients without authentication; allowed only on this machine
    #[arg(long)]
    pub(crate) allow_unauthenticated: bool,
    /// Allowed `Host` name besides localhost; `*.svc` matches every name with that suffix; repeatable. Required if other
    /// machines can connect
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_host: Vec<HostPattern>,
    /// Allowed CORS origin, such as `https://tools.example`; repeatable (`allowed_origins` in the config)
    #[arg(long, value_name = "ORIGIN", value_parser = origin)]
    pub(crate) allow_origin: Vec<String>,
    /// Record every call in this ledger [default: consort/ledger.db in the user's state folder]
    #[arg(long, value_name = "FILE", conflicts_with = "no_ledger")]
    pub(crate) ledger: Option<PathBuf>,
    /// Do not record calls
    #[arg(long)]
    pub(crate) no_ledger: bool,
    /// Disable the web console and the admin API
    #[arg(long)]
    pub(crate) no_console: bool,
    /// Log format on standard error [default: text on a terminal, else json]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) log: Option<LogFormat>,
    /// Log level, global and by component, such as `info,hub=debug`: off, error, warn, info, debug, trace
    #[arg(long, value_name = "LEVELS")]
    pub(crate) log_level: Option<LogLevels>,
    /// Log the standard error of servers, when they exit or live, and server log messages that may concern several
    /// callers; both may contain data of callers
    #[arg(long, value_enum, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_missing_value = "end")]
    pub(crate) log_server_output: Option<ServerOutput>,
    /// Number of worker threads, 1 to 64 [default: the number of processors, at most 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) threads: Option<u8>,
    /// Naming of tools: `auto` (unchanged if unique, else `server_tool`), `never` (unchanged), or a template such as
    /// `{server}__{name}` [default: auto, or as configured]
    #[arg(long, value_name = "NAMING")]
    pub(crate) naming: Option<String>,
}

fn origin(text: &str) -> Result<String, String> {
    if consort_config::is_origin(text) {
        Ok(text.to_owned())
    } else {
        Err("expected scheme, host and port, such as http://localhost:6274".to_owned())
    }
}

impl ServeArguments {
    /// The flags of the log.
    pub(super) fn log(&self) -> GatewayLog {
        GatewayLog {
            format: self.log,
            levels: self.log_level.clone(),
            server_output: self.log_server_output,
        }
    }

    /// The options of `consort serve` without flags.
    pub(crate) fn defaults() -> Self {
        let command = Cli::parse_from(["consort", "serve"]).command;
        let Some(CliCommand::Serve(serve)) = command else {
            unreachable!("`serve` is the command")
        };
        serve
    }
}
