//! Inputs of a server's lifecycle: commands, results of actions, and events of its connection.

use std::sync::Arc;
use std::time::Duration;

use consort_client::{NegotiatedProtocol, ServerList};
use consort_core::{ClientCapabilities, OperatorText, PrimitiveKind};
use tokio::time::Instant;

use super::backoff::FailureKind;

/// An input of a [`ServerLifecycle`](super::ServerLifecycle). One that does not fit its phase changes nothing.
#[derive(Clone, Debug)]
pub(crate) enum LifecycleInput {
    /// The task of the server begins.
    Start,
    /// The hub ends, or the server was removed from the config.
    Stop,
    /// Time passed, perhaps up to the deadline.
    DeadlineReached,
    /// A command, which is acknowledged once.
    Command(CommandId, ConnectionCommand),
    /// A caller waits for the first attempt.
    ConnectNow,
    /// The computer resumed: a pause between two attempts is over.
    RetryNow,
    /// The credentials were replaced or renewed.
    CredentialsChanged,
    /// The connection attempt succeeded.
    Connected(ConnectedServer),
    /// The connection attempt failed.
    ConnectFailed(ConnectFailure),
    /// The connection ended.
    Lost(ConnectionLoss),
    /// The connection is closed, as requested.
    Closed,
    /// The server accepted the subscription to list changes.
    Subscribed,
    /// The server refused the subscription to list changes, or did not answer.
    SubscribeFailed,
    /// The subscription to list changes ended.
    SubscriptionEnded,
    /// Lists changed, or may have.
    ListsChanged(ListChange),
    /// Callers wait for these lists to be read again.
    ListsRequested(Vec<PrimitiveKind>),
    /// Lists were read.
    ListsRead(Vec<ListReading>),
    /// The server answered a health probe, or did not.
    Probed(ProbeResult),
}

/// Conditions at the time of an input.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LifecycleMoment {
    /// Current time.
    pub(crate) now: Instant,
    /// Random number between 0 and 1, for jitter.
    pub(crate) chance: f64,
    /// True while calls use the server.
    pub(crate) is_in_use: bool,
    /// Time since the last call ended; zero while the server is in use.
    pub(crate) unused: Duration,
    /// Generation of the server's credentials.
    pub(crate) credentials: u64,
}

/// Number of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CommandId(pub(crate) u64);

/// A command to a managed server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionCommand {
    /// Connect, on request of the operator: also a disabled server.
    Connect,
    /// Connect for a call: not a disabled server.
    Wake,
    /// Close the connection, until the next call.
    Disconnect,
    /// Close the connection and connect again.
    Restart,
    /// Declare the capabilities of the first caller on the main connection.
    Adopt(Arc<ClientCapabilities>),
    /// Close the connection, until the operator connects the server.
    Disable,
}

/// Acknowledgement of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandOutcome {
    /// It was carried out, or its attempt began.
    Done,
    /// The main connection is in use with other capabilities.
    Refused,
}

/// A server that was connected.
#[derive(Clone, Debug)]
pub(crate) struct ConnectedServer {
    pub(crate) protocol: NegotiatedProtocol,
    /// Its own name and version.
    pub(crate) name: Option<String>,
    /// The capabilities declared to it.
    pub(crate) capabilities: Arc<ClientCapabilities>,
    /// Delivery of its list changes.
    pub(crate) list_changes: ChangeDelivery,
}

/// Delivery of list changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeDelivery {
    /// The server sends them unasked.
    Unasked,
    /// The server sends them to subscribers.
    Subscription,
}

/// A failed connection attempt.
#[derive(Clone, Debug)]
pub(crate) struct ConnectFailure {
    pub(crate) kind: FailureKind,
    pub(crate) is_unauthorized: bool,
    pub(crate) reason: String,
    pub(crate) detail: OperatorText,
    pub(crate) hint: Option<String>,
}

/// A lost connection.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionLoss {
    pub(crate) kind: FailureKind,
    pub(crate) reason: String,
    pub(crate) detail: OperatorText,
}

/// A change of lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListChange {
    pub(crate) kinds: Vec<PrimitiveKind>,
    /// True if the server itself reported the change; otherwise a notification may have been missed.
    pub(crate) is_reported: bool,
}

impl ListChange {
    /// Returns the change after which every list may be another.
    pub(crate) fn missed() -> Self {
        Self { kinds: PrimitiveKind::ALL.to_vec(), is_reported: false }
    }
}

/// Result of reading a list.
#[derive(Clone, Debug)]
pub(crate) struct ListReading {
    pub(crate) kind: PrimitiveKind,
    /// Time at which the reading began.
    pub(crate) begun: Instant,
    /// The list, or the reason why it could not be read.
    pub(crate) listing: Result<ServerList, String>,
    /// True if the server declares that it reports changes of the list.
    pub(crate) reports_changes: bool,
}

/// Result of a health probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeResult {
    Alive,
    Silent,
}
