//! Owners of requests, by which messages are dispatched.

use std::sync::Arc;

use crate::ask::LogLevel;

/// The party on whose behalf a request is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// A caller.
    Caller,
    /// A caller that answers the server's requests itself.
    Answering,
    /// This client: a handshake, a list, a task query.
    Ours,
}

/// The owner of a request, by which messages are dispatched.
#[derive(Clone, Debug)]
pub(crate) struct CallOwner {
    pub(crate) whose: Whose,
    /// The caller's identity. Calls without one count as calls of one identity.
    pub(crate) identity: Option<Arc<str>>,
    /// The client's session. A call without one counts as a client of its own.
    pub(crate) session: Option<u64>,
    /// The log level requested from a modern server.
    pub(crate) log: Option<LogLevel>,
    /// The task of 2025-11-25 whose result it waits for.
    pub(crate) task: Option<Arc<str>>,
}

impl From<Whose> for CallOwner {
    fn from(whose: Whose) -> Self {
        Self { whose, identity: None, session: None, log: None, task: None }
    }
}
