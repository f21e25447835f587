//! `consort serve`.

use std::path::PathBuf;

use clap::{Args, Parser as _};
use consort::config::ListenAddress;
use consort_gateway::HostPattern;

use super::{Cli, Command, duration};
use crate::log::{GatewayLog, LogFormat, LogLevels, ServerOutput};

/// How to serve.
#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Serve {
    /// Where to listen: port 0 takes any that is free, `unix:/PATH` a Unix socket [default: the sockets of
    /// `LISTEN_FDS`, else 127.0.0.1:8808]
    #[arg(long, short, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<ListenAddress>,
    /// Where to serve health and metrics alone, too (`metrics_listen` in the config)
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) metrics_listen: Option<ListenAddress>,
    /// After SIGTERM, say 503 at `/readyz` for so long while requests are still served (default: 5s, or none if only
    /// this machine reaches it; `lame_duck` in the config)
    #[arg(long, value_name = "TIME", value_parser = duration::read)]
    pub(crate) lame_duck: Option<std::time::Duration>,
    /// Serve one client on standard input and output instead, as desktop clients want it
    #[arg(long, conflicts_with_all = ["listen", "metrics_listen", "allow_unauthenticated", "token_file"])]
    pub(crate) stdio: bool,
    /// Keep the token in this file (default: `consort/token` in the user's state folder)
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Serve whoever reaches the address, without a token
    #[arg(long)]
    pub(crate) allow_unauthenticated: bool,
    /// A name under which clients reach it, beside localhost; `*.svc` stands for every name that ends so. Needed
    /// for an address that others reach
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_host: Vec<HostPattern>,
    /// A web page that may use it, as in `https://tools.example` (`allowed_origins` in the config)
    #[arg(long, value_name = "ORIGIN", value_parser = origin)]
    pub(crate) allow_origin: Vec<String>,
    /// Write down every call in this file (default: `consort/ledger.db` in the user's state folder)
    #[arg(long, value_name = "FILE", conflicts_with = "no_ledger")]
    pub(crate) ledger: Option<PathBuf>,
    /// Write down no calls
    #[arg(long)]
    pub(crate) no_ledger: bool,
    /// Serve no console, and no admin API
    #[arg(long)]
    pub(crate) no_console: bool,
    /// How to say what happens, on the standard error (default: text on a terminal, else JSON)
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) log: Option<LogFormat>,
    /// Level of the log, for all and by part, as in `info,hub=debug`: off, error, warn, info, debug, trace
    #[arg(long, value_name = "LEVELS")]
    pub(crate) log_level: Option<LogLevels>,
    /// Write the standard error of servers to the log, when they end or live, and log messages of servers that may be
    /// of several callers; both may hold what callers sent them
    #[arg(long, value_enum, value_name = "WHEN", num_args = 0..=1, require_equals = true, default_missing_value = "end")]
    pub(crate) log_server_output: Option<ServerOutput>,
    /// Serve on so many threads (default: as many as there are processors, at most 4)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) threads: Option<u8>,
    /// How tools are named: `auto` (as they are if that is unique, else `server_tool`), `never`, or a
    /// template such as `{server}__{name}`
    #[arg(long, value_name = "NAMING")]
    pub(crate) naming: Option<String>,
}

fn origin(text: &str) -> Result<String, String> {
    if consort::config::is_origin(text) {
        Ok(text.to_owned())
    } else {
        Err("write scheme, host and port, as in http://localhost:6274".to_owned())
    }
}

impl Serve {
    /// The flags of the log.
    pub(super) fn log(&self) -> GatewayLog {
        GatewayLog {
            format: self.log,
            levels: self.log_level.clone(),
            server_output: self.log_server_output,
        }
    }

    /// The flags of somebody who types none.
    pub(crate) fn usual() -> Self {
        let command = Cli::parse_from(["consort", "serve"]).command;
        let Command::Serve(serve) = command else { unreachable!("`serve` is the command") };
        serve
    }
}
