//! Time limits of the process that starts stdio servers.

use std::time::Duration;

/// Time limits of the keeper, for all servers that this process starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeeperTimes {
    /// The keeper's reply to a request to start a server.
    pub reply: Duration,
    /// A server's exit after this program was killed, before SIGTERM.
    pub close: Duration,
    /// A server's exit after that SIGTERM, before SIGKILL.
    pub terminate: Duration,
    /// The end of processes after SIGKILL, before they are left to the kernel.
    pub kill: Duration,
}

impl KeeperTimes {
    pub(crate) const DEFAULT: Self = Self {
        reply: Duration::from_secs(5),
        close: Duration::from_millis(400),
        terminate: Duration::from_millis(800),
        kill: Duration::from_secs(5),
    };
}

impl Default for KeeperTimes {
    fn default() -> Self {
        Self::DEFAULT
    }
}
