//! The keeper of systems that have none: nothing is registered, and servers are ended with their process groups.

use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};

use crate::keeper_times::KeeperTimes;

/// Returns `None`: this process is no keeper.
pub fn init(_argument: &str) -> Option<ExitCode> {
    None
}

/// Does nothing: no keeper has times.
pub fn set_times(_times: KeeperTimes) {}

/// Returns false.
pub(crate) fn is_available() -> bool {
    false
}

/// Refuses: without a keeper nothing is started below one.
pub(crate) async fn start_server(
    _program: &OsStr,
    _arguments: &[OsString],
    _variables: Vec<(OsString, OsString)>,
    _directory: PathBuf,
    _pipes: [OwnedFd; 3],
) -> io::Result<ServerChannel> {
    Err(io::ErrorKind::Unsupported.into())
}

/// A server below a keeper, which does not exist here.
#[derive(Debug)]
pub(crate) struct ServerChannel(Infallible);

impl ServerChannel {
    pub(crate) async fn exited(&mut self) -> io::Result<ExitStatus> {
        match self.0 {}
    }

    pub(crate) async fn lost(&mut self) {
        match self.0 {}
    }

    pub(crate) async fn terminate(&mut self) {
        match self.0 {}
    }

    pub(crate) async fn kill(&mut self) {
        match self.0 {}
    }
}
