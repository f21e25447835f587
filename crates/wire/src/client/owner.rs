//! The parties that requests are made for, as far as messages are sorted by them.

use std::sync::Arc;

use crate::ask::LogLevel;

/// On whose behalf a request was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// A caller's.
    Caller,
    /// A caller's who answers the server's questions itself.
    Answering,
    /// Our own: a handshake, a list, a look at a task.
    Ours,
}

/// The party that a request is made for, as far as messages are sorted by it.
#[derive(Clone, Debug)]
pub(crate) struct CallOwner {
    pub(crate) whose: Whose,
    /// The caller's identity. Calls without one count as calls of one identity.
    pub(crate) identity: Option<Arc<str>>,
    /// The level of log messages that a modern server was asked for.
    pub(crate) log: Option<LogLevel>,
    /// The task of 2025-11-25 whose result it waits for.
    pub(crate) task: Option<Arc<str>>,
}

impl From<Whose> for CallOwner {
    fn from(whose: Whose) -> Self {
        Self { whose, identity: None, log: None, task: None }
    }
}
