//! Actions that a server's lifecycle asks its task to perform.

use std::sync::Arc;
use std::time::Duration;

use consort_client::{LeftOut, NegotiatedProtocol, ServerListItem};
use consort_core::{ClientCapabilities, PrimitiveKind};
use tokio::time::Instant;

use super::input::{CommandId, CommandOutcome};

/// An action of the task of a server. Actions are performed in their order.
#[derive(Clone, Debug)]
pub(crate) enum LifecycleAction {
    /// Connect to the server.
    Connect(ConnectRequest),
    /// Give up the connection attempt.
    AbortConnect,
    /// Subscribe to list changes.
    Subscribe,
    /// Read lists.
    ReadLists(ListRequest),
    /// Send a health probe.
    Probe,
    /// Offer the connection to callers.
    OfferConnection,
    /// Withdraw the connection from callers. What it was doing for the server's lists ends.
    WithdrawConnection,
    /// Close the connection that was withdrawn or never offered.
    CloseConnection,
    /// Withdraw every connection made with earlier credentials. Each is closed once its calls have ended.
    RetireConnections,
    /// Note the time of a list change, for callers that wait for current lists.
    NoteListChange(Vec<PrimitiveKind>),
    /// Publish lists that were read.
    PublishLists(ListPublication),
    /// Record that the server is down.
    RecordFailure(DownRecord),
    /// Record that the start of the server takes long.
    RecordSlowStart(String),
    /// Publish the status.
    PublishStatus,
    /// Acknowledge a command.
    Acknowledge(CommandId, CommandOutcome),
}

/// Parameters of a connection attempt.
#[derive(Clone, Debug)]
pub(crate) struct ConnectRequest {
    /// The capabilities of the first caller; those of the hub's own handler if absent.
    pub(crate) adopted: Option<Arc<ClientCapabilities>>,
    /// The protocol negotiated the last time.
    pub(crate) protocol: Option<NegotiatedProtocol>,
}

/// Lists to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListRequest {
    pub(crate) kinds: Vec<PrimitiveKind>,
    /// True if the server may describe itself differently since it was connected.
    pub(crate) rediscovers: bool,
}

/// Lists to publish.
#[derive(Clone, Debug)]
pub(crate) struct ListPublication {
    pub(crate) lists: Vec<PublishedList>,
    /// The number of changes that the server reported, by kind.
    pub(crate) list_changes: [u64; 4],
    /// Items that were left out of its lists.
    pub(crate) left_out: Vec<LeftOut>,
    /// True if every list was read: the lists are worth storing.
    pub(crate) is_complete: bool,
}

/// The end of a list's reading.
#[derive(Clone, Debug)]
pub(crate) struct PublishedList {
    pub(crate) kind: PrimitiveKind,
    /// Time at which the reading began.
    pub(crate) begun: Instant,
    /// Its items; `None` if it could not be read and stays as it was.
    pub(crate) items: Option<Vec<ServerListItem>>,
    /// True if the server says that more items will follow.
    pub(crate) is_partial: bool,
    /// Time for which it counts as current, if the server does not report changes.
    pub(crate) fresh: Option<Duration>,
}

/// Reason why a server is down, and the pause before the next attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DownRecord {
    pub(crate) reason: String,
    pub(crate) pause: Duration,
}
