//! Owners of requests, by which messages are dispatched.

use std::sync::Arc;

use consort_protocol::{LogLevel, MemoryHolder};

/// The party on whose behalf a request is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestOwner {
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
    pub(crate) owner: RequestOwner,
    /// The caller's identity. Calls without one count as calls of one identity.
    pub(crate) identity: Option<Arc<str>>,
    /// True if it is made for the owner.
    pub(crate) is_owner: bool,
    /// The client's session. A call without one counts as a client of its own.
    pub(crate) session: Option<u64>,
    /// The log level requested from a modern server.
    pub(crate) log: Option<LogLevel>,
    /// The task of 2025-11-25 that it is about.
    pub(crate) task: CallTask,
}

/// The task of 2025-11-25 that a request is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum CallTask {
    /// None.
    #[default]
    None,
    /// One that the server may make of it, whose id is not known yet.
    Unnamed,
    /// The one with this id.
    Named(Arc<str>),
}

impl CallTask {
    /// Returns true if it is the task with this id.
    pub(crate) fn is(&self, id: &str) -> bool {
        matches!(self, Self::Named(known) if **known == *id)
    }
}

/// The client that makes a call, as far as clients can be distinguished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CallClient {
    /// The client with this session.
    Session(u64),
    /// The client of this call alone, which has no session.
    Call(u64),
    /// All callers for whom the connection's handler answers.
    Handler,
    /// Any client.
    Unknown,
}

impl CallOwner {
    /// Returns the party that the memory of its answer is charged to.
    pub(crate) fn holder(&self) -> MemoryHolder {
        MemoryHolder { identity: self.identity.clone(), is_owner: self.is_owner }
    }

    /// Returns the client that makes the call with this id.
    pub(crate) fn client(&self, id: u64) -> CallClient {
        match (self.owner, self.session) {
            (RequestOwner::Caller, _) => CallClient::Handler,
            (_, Some(session)) => CallClient::Session(session),
            (_, None) => CallClient::Call(id),
        }
    }
}

impl From<RequestOwner> for CallOwner {
    fn from(whose: RequestOwner) -> Self {
        Self {
            owner: whose,
            identity: None,
            is_owner: false,
            session: None,
            log: None,
            task: CallTask::None,
        }
    }
}
