//! `consort check`, `lock`, `names` and `trust`.

use std::path::PathBuf;

use clap::Args;

/// A check of the config.
#[derive(Args, Debug)]
pub(crate) struct CheckArguments {
    /// Fail on warnings too (exit code 2)
    #[arg(long)]
    pub(crate) strict: bool,
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
    /// Lock file [default: consort.lock next to the config]
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

/// Names that a gateway assigned.
#[derive(Args, Debug)]
pub(crate) struct NamesArguments {
    /// Forget the names of this server, and those assigned to others because of them; repeatable
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
