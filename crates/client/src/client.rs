//! A connection to one server, for listing, calls and notifications.

pub(crate) mod listen;

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use consort_protocol::{
    ClientCapabilities, Era, Json, LogLevel, OperatorText, PrimitiveKind, splice,
};
use tokio_util::sync::DropGuard;

use crate::call::{CallEventSink, PendingCall, PendingCallEvent, ServerAnswer};
use crate::connection::SharedConnection;
use crate::connection::faults::FaultCounts;
use crate::description::ServerDescription;
use crate::error::{ClientCallError, CloseReason, ConnectError};
use crate::list::{ListError, ServerList};
use crate::notices::NoticeReceiver;
use crate::notices::changes::ListChanges;
use crate::request::OutgoingRequest;
use crate::settings::ClientSettings;
use crate::tool_requirements::ToolRequirements;
use crate::transport::location::ServerLocation;
use crate::{connect, execution, list};

/// A connection to a server. Clones share it; dropping the last one closes it.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) link: Arc<SharedConnection>,
    _guard: Arc<DropGuard>,
}

impl Client {
    /// Connects to a server and negotiates the protocol.
    pub async fn connect(
        server: &ServerLocation,
        settings: ClientSettings,
    ) -> Result<Self, ConnectError> {
        connect::connect(server, settings).await.map(Self::of)
    }

    /// Creates a client for a connection.
    pub(crate) fn of(link: Arc<SharedConnection>) -> Self {
        let guard = Arc::new(link.stop.clone().drop_guard());
        Self { link, _guard: guard }
    }

    /// Returns the server's description of itself.
    pub fn about(&self) -> Arc<ServerDescription> {
        self.link.about()
    }

    /// Sends `server/discover` to a modern server again. A legacy one describes itself in its handshake only.
    pub async fn rediscover(&self) -> Result<(), ConnectError> {
        match self.about().protocol.revision.era() {
            Era::Modern => connect::modern(&self.link).await,
            Era::Legacy => Ok(()),
        }
    }

    /// The number of the current session: it changes when the server lost the session; 0 if there is none.
    pub fn session(&self) -> u64 {
        self.link.transport.session_number()
    }

    /// Lists one of the server's shelves, all pages of it, or nothing.
    pub async fn list(&self, shelf: PrimitiveKind) -> Result<ServerList, ListError> {
        list::list(&self.link, shelf, None).await
    }

    /// Reads a whole list as a modern server gives it to a client with these capabilities. A legacy server was told
    /// its client's capabilities when it was connected, and gives the same list as to [`Self::list`].
    pub async fn list_as(
        &self,
        shelf: PrimitiveKind,
        client: &ClientCapabilities,
    ) -> Result<ServerList, ListError> {
        let revision = self.about().protocol.revision;
        let capabilities = client.capabilities(revision);
        list::list(&self.link, shelf, Some(&capabilities)).await
    }

    /// Starts a call. It runs while it is polled.
    pub fn call(&self, request: impl Into<Arc<OutgoingRequest>>) -> PendingCall {
        let id = self.link.next_id();
        let (client, request) = (self.clone(), request.into());
        PendingCall::new(id, move |events| async move {
            PendingCallEvent::End(execution::run(&client.link, id, &request, &events).await)
        })
    }

    /// Makes a call in the caller's own future. Its events go to `events`.
    pub async fn execute(
        &self,
        request: &OutgoingRequest,
        events: &dyn CallEventSink,
    ) -> Result<ServerAnswer, ClientCallError> {
        pin!(execution::run(&self.link, self.link.next_id(), request, events)).await
    }

    /// Makes a call and discards its events.
    pub async fn request(&self, request: OutgoingRequest) -> Result<ServerAnswer, ClientCallError> {
        self.call(request).end().await
    }

    /// The same without a time limit, and without a place among the calls in flight.
    pub(crate) fn subscribe(&self, request: OutgoingRequest) -> PendingCall {
        let id = self.link.next_id();
        let client = self.clone();
        PendingCall::new(id, move |events| async move {
            PendingCallEvent::End(execution::endless(&client.link, id, &request, &events).await)
        })
    }

    /// Sends a notification.
    pub async fn notify(&self, method: &str, params: Option<&Json>) -> Result<(), ClientCallError> {
        self.link.send(splice::notification(method, params)).await
    }

    /// Subscribes to notifications that belong to no call. A modern server sends none here unless requested: see
    /// [`listen`](Client::listen).
    pub fn notices(&self) -> NoticeReceiver {
        NoticeReceiver { received: self.link.notices.subscribe(), stop: self.link.stop.clone() }
    }

    /// Follows the changes of the server's lists that are notified outside of calls and subscriptions: those of a
    /// legacy server, and those that may have been missed.
    pub fn list_changes(&self) -> ListChanges {
        self.link.notices.list_changes(self.link.stop.clone())
    }

    /// Sets the log level of a legacy server, for the whole connection.
    pub async fn log_level(&self, level: LogLevel) -> Result<(), ClientCallError> {
        let request =
            OutgoingRequest::new("logging/setLevel").with("level", Json::string(level.as_str()));
        self.request(request).await.map(|_| ())
    }

    /// Counters of errors that ended nothing.
    pub fn faults(&self) -> FaultCounts {
        self.link.counts.faults()
    }

    /// Returns the last output of a stdio server to its standard error.
    pub fn stderr(&self) -> OperatorText {
        self.link.transport.stderr()
    }

    /// Returns true if the server may send messages on a channel that its calls share: stdio, HTTP+SSE, or the common
    /// stream of Streamable HTTP, if it has one.
    pub fn has_shared_channel(&self) -> bool {
        self.link.transport.http().is_none() || self.link.has_common_stream.load(Ordering::Relaxed)
    }

    /// Returns true if a request that the server sends now may belong to a call in flight, or to one that was abandoned
    /// before its answer.
    pub fn may_receive_request(&self) -> bool {
        let calls = self.link.calls.asking();
        !calls.in_flight.is_empty() || !calls.abandoned.is_empty()
    }

    /// Returns the time for which every call in flight has waited for its client's answer to a request of the server.
    /// `None` if there is no call, or one that the server works on.
    pub fn waiting_for_answers(&self) -> Option<Duration> {
        self.link.calls.waiting_for_answers()
    }

    /// Copies what another client of the same server learnt of its tools.
    pub fn learn_from(&self, other: &Self) {
        self.link.learn(ToolRequirements::clone(&other.link.facts()));
    }

    /// Returns true if the connection is closed.
    pub fn is_closed(&self) -> bool {
        self.link.stop.is_cancelled()
    }

    /// Waits until the connection is closed and returns the reason.
    pub async fn closed(&self) -> CloseReason {
        self.link.stop.cancelled().await;
        self.link.calls.closed().unwrap_or(CloseReason::Ours)
    }

    /// Closes the connection and waits until its tasks, session and process have ended.
    pub async fn close(self) {
        if let Some(http) = self.link.transport.http() {
            let dialect = self.link.dialect();
            let goodbye = http.leave(&dialect);
            let _ = tokio::time::timeout(self.link.settings.times.close, goodbye).await;
            self.link.close(&CloseReason::Ours);
        }
        self.link.end().await;
    }
}
