//! A connection to one server: the state that its calls share, and the dispatch of its messages.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use consort_protocol::json::JsonErrorKind;
use consort_protocol::splice::{self, ObjectWriter};
use consort_protocol::{
    Json, JsonRpcMessage, MemoryReservation, MessageError, Notification, RequestId, Revision,
};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::calls::InFlightCalls;
use crate::client::ClientSettings;
use crate::description::ServerDescription;
use crate::dialect::RequestDialect;
use crate::error::{ClientCallError, CloseReason};
use crate::faults::FaultCounters;
use crate::gate::CallGate;
use crate::mailbox::MailboxItem;
use crate::notices::{ConnectionNotice, NoticeSender};
use crate::partial_envelope::answered_ids;
use crate::questions::OpenQuestions;
use crate::tool_requirements::ToolRequirements;
use crate::transport::{SendPermit, Transport};

/// The member of `_meta` that identifies the subscription of a notification.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// State that all calls to one server share.
#[derive(Debug)]
pub(crate) struct SharedConnection {
    pub(crate) settings: ClientSettings,
    pub(crate) transport: Transport,
    pub(crate) calls: InFlightCalls,
    pub(crate) gate: CallGate,
    pub(crate) counts: FaultCounters,
    pub(crate) notices: NoticeSender,
    pub(crate) stop: CancellationToken,
    pub(crate) crew: TaskTracker,
    ids: AtomicU64,
    dialect: RwLock<Arc<RequestDialect>>,
    about: RwLock<Arc<ServerDescription>>,
    facts: RwLock<Arc<ToolRequirements>>,
    /// Facts of tools that only clients with other capabilities are listed.
    variant_facts: RwLock<ToolRequirements>,
    /// Requests of the server that wait for an answer.
    pub(crate) questions: OpenQuestions,
    /// True if the operator was informed that log messages are sent to no caller.
    pub(crate) unassigned_logs: AtomicBool,
    /// The common stream of a legacy Streamable HTTP server was opened.
    pub(crate) has_common_stream: AtomicBool,
}

/// Origin of a message, which limits the calls that it can belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageOrigin {
    /// The one channel of stdio and HTTP+SSE, or the common stream of Streamable HTTP.
    Pipe,
    /// The response stream of this call.
    Call(u64),
}

impl SharedConnection {
    pub(crate) fn new(settings: ClientSettings, transport: Transport) -> Arc<Self> {
        let limits = &settings.limits;
        let places = match transport {
            Transport::Http(_) => limits.http_calls,
            Transport::Stdio(_) | Transport::Sse(_) => limits.pipe_calls,
        };
        let gate = CallGate::new(places, limits.queued_calls, &settings.times);
        let dialect =
            RequestDialect::new(Revision::NEWEST_MODERN, &settings.client, &settings.host.offers());
        Arc::new(Self {
            gate,
            notices: NoticeSender::new(limits.notices),
            settings,
            transport,
            calls: InFlightCalls::default(),
            counts: FaultCounters::default(),
            stop: CancellationToken::new(),
            crew: TaskTracker::new(),
            ids: AtomicU64::new(1),
            dialect: RwLock::new(Arc::new(dialect)),
            about: RwLock::default(),
            facts: RwLock::default(),
            variant_facts: RwLock::default(),
            questions: OpenQuestions::default(),
            unassigned_logs: AtomicBool::new(false),
            has_common_stream: AtomicBool::new(false),
        })
    }

    /// Returns an id that no other request on this connection has.
    pub(crate) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn dialect(&self) -> Arc<RequestDialect> {
        Arc::clone(&self.dialect.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Switches to this revision.
    pub(crate) fn speak(&self, revision: Revision) {
        let dialect =
            RequestDialect::new(revision, &self.settings.client, &self.settings.host.offers());
        *self.dialect.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(dialect);
    }

    pub(crate) fn about(&self) -> Arc<ServerDescription> {
        Arc::clone(&self.about.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn introduce(&self, about: ServerDescription) {
        *self.about.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(about);
    }

    pub(crate) fn facts(&self) -> Arc<ToolRequirements> {
        Arc::clone(&self.facts.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn learn(&self, mut facts: ToolRequirements) {
        facts.add(&self.variant_facts.read().unwrap_or_else(PoisonError::into_inner));
        *self.facts.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(facts);
    }

    /// Learns from a list that a client with other capabilities gets. As many tools are kept as a list may have.
    pub(crate) fn learn_variant(&self, mut facts: ToolRequirements) {
        let mut known = self.variant_facts.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() + facts.len() <= self.settings.limits.items {
            facts.add(&known);
        }
        *known = facts;
        drop(known);
        self.learn(ToolRequirements::clone(&self.facts()));
    }

    /// Closes the connection and ends its calls.
    pub(crate) fn close(&self, closed: &CloseReason) {
        if self.calls.close(closed) {
            tracing::debug!(reason = %closed, "connection closed");
        }
        self.questions.end();
        self.stop.cancel();
    }

    /// Ends the connection and waits until its tasks have ended.
    pub(crate) async fn end(&self) {
        self.stop.cancel();
        self.crew.close();
        self.crew.wait().await;
    }

    /// Sends a notification or a response.
    pub(crate) async fn send(self: &Arc<Self>, bytes: Bytes) -> Result<(), ClientCallError> {
        match &self.transport {
            Transport::Stdio(stdio) => Ok(stdio.send(bytes, None).await?),
            Transport::Http(http) => {
                http.send(&self.dialect(), bytes, &SendPermit::default()).await
            }
            Transport::Sse(sse) => sse.send(&self.dialect(), bytes, &SendPermit::default()).await,
        }
    }

    /// Sends a notification without waiting for it.
    pub(crate) fn send_later(self: &Arc<Self>, bytes: Bytes) {
        if let Transport::Stdio(stdio) = &self.transport {
            stdio.try_send(bytes);
        } else {
            let link = Arc::clone(self);
            self.spawn(async move {
                if let Err(error) = link.send(bytes).await {
                    tracing::debug!(%error, "a notification was not delivered");
                }
            });
        }
    }

    /// Cancels a request at the server.
    pub(crate) fn cancel(self: &Arc<Self>, id: u64, reason: &str) {
        let mut params = ObjectWriter::new();
        params.number("requestId", id);
        params.text("reason", reason);
        self.send_later(splice::notification("notifications/cancelled", Some(&params.finish())));
    }

    /// Runs a task until it ends or the connection does. Without a runtime it does not run.
    pub(crate) fn spawn(
        self: &Arc<Self>,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> Option<AbortHandle> {
        let runtime = tokio::runtime::Handle::try_current().ok()?;
        let stop = self.stop.clone();
        let task = async move {
            tokio::select! {
                () = task => {}
                () = stop.cancelled() => {}
            }
        };
        Some(self.crew.spawn_on(task, &runtime).abort_handle())
    }

    /// Dispatches a message from a channel that calls share, which is charged to the caller that it answers.
    pub(crate) fn receive_shared(
        self: &Arc<Self>,
        bytes: Bytes,
        room: &mut MemoryReservation,
    ) -> Result<(), CloseReason> {
        if MemoryReservation::is_charged(bytes.len()) {
            room.assign(&self.calls.holder(|| answered_ids(&bytes).first().copied()));
        }
        self.receive(&room.attach(bytes), MessageOrigin::Pipe)
    }

    /// Dispatches a message. An error ends the connection.
    pub(crate) fn receive(
        self: &Arc<Self>,
        bytes: &Bytes,
        origin: MessageOrigin,
    ) -> Result<(), CloseReason> {
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        if self.dialect().revision.has_batches() {
            return match JsonRpcMessage::batch_items(bytes.clone()) {
                Ok(items) => items.into_iter().try_for_each(|item| self.receive_one(&item, origin)),
                Err(error) => self.malformed(&error, bytes, origin),
            };
        }
        self.receive_one(bytes, origin)
    }

    fn receive_one(
        self: &Arc<Self>,
        bytes: &Bytes,
        origin: MessageOrigin,
    ) -> Result<(), CloseReason> {
        match JsonRpcMessage::parse(bytes.clone()) {
            Ok(message) => {
                self.sort(message, origin);
                Ok(())
            }
            Err(error) => self.malformed(&error, bytes, origin),
        }
    }

    /// Ignores an unreadable message. If it is only nested too deep, the calls that it answers end, as nothing else
    /// will answer them. An error ends the connection.
    fn malformed(
        &self,
        error: &MessageError,
        bytes: &[u8],
        origin: MessageOrigin,
    ) -> Result<(), CloseReason> {
        tracing::debug!(%error, "a malformed message was ignored");
        if matches!(error, MessageError::Json(json) if json.problem() == JsonErrorKind::Depth) {
            let ids = answered_ids(bytes).into_iter();
            for id in
                ids.filter(|id| origin == MessageOrigin::Pipe || origin == MessageOrigin::Call(*id))
            {
                self.calls.deliver(id, MailboxItem::TooDeep);
            }
        }
        if self.counts.malformed(self.settings.limits.malformed_messages) {
            return Err(CloseReason::Malformed);
        }
        Ok(())
    }

    /// Handles an oversized message, which was skipped. An error ends the connection.
    pub(crate) fn oversized(&self, id: Option<u64>) -> Result<(), CloseReason> {
        self.counts.oversized();
        match id {
            Some(id) if self.calls.deliver(id, MailboxItem::TooLarge) => Ok(()),
            _ => Err(CloseReason::Oversized),
        }
    }

    /// Handles a large message that got no memory in time and was skipped. Only the call that it answers ends.
    pub(crate) fn no_room(&self, id: Option<u64>) {
        self.counts.oversized();
        let delivered = id.is_some_and(|id| self.calls.deliver(id, MailboxItem::NoRoom));
        tracing::debug!(delivered, "a large message was skipped for lack of memory");
    }

    fn sort(self: &Arc<Self>, message: JsonRpcMessage, origin: MessageOrigin) {
        let delivered = match message {
            JsonRpcMessage::Response { ref id, .. }
            | JsonRpcMessage::Error { id: Some(ref id), .. } => {
                // On a call's own stream, nobody else is answered.
                let id = id.number().filter(|id| {
                    origin == MessageOrigin::Pipe || origin == MessageOrigin::Call(*id)
                });
                id.is_some_and(|id| {
                    let delivered = self.calls.deliver(id, MailboxItem::Message(message));
                    self.call_ended(id);
                    delivered
                })
            }
            JsonRpcMessage::Error { id: None, error } => {
                tracing::debug!(%error, "an error that answers nothing");
                false
            }
            JsonRpcMessage::Notification(notification) => {
                self.sort_notification(notification, origin)
            }
            JsonRpcMessage::Request { id, body } => {
                self.ask(&id, body, origin);
                true
            }
        };
        if !delivered {
            self.counts.stray();
        }
    }

    fn sort_notification(
        self: &Arc<Self>,
        notification: Notification,
        origin: MessageOrigin,
    ) -> bool {
        let number = |json: Option<Json>| {
            json.and_then(|json| json.integer()).and_then(|id| u64::try_from(id).ok())
        };
        let call = match notification.method.as_str() {
            "notifications/cancelled" => return self.cancelled(&notification),
            "notifications/progress" => match number(notification.params.get("progressToken")) {
                Some(call) => Some(call),
                None => return false,
            },
            "notifications/message" => match origin {
                MessageOrigin::Call(id) => Some(id),
                MessageOrigin::Pipe => return self.sort_log(notification),
            },
            // A modern stream carries nothing that is not about its request; a legacy one may.
            _ => match (number(notification.meta(SUBSCRIPTION)), origin) {
                (None, MessageOrigin::Call(id)) if self.dialect().is_modern() => Some(id),
                (subscription, _) => subscription,
            },
        };
        match call {
            Some(call) => self
                .calls
                .deliver(call, MailboxItem::Message(JsonRpcMessage::Notification(notification))),
            None => {
                // No reader is no loss: nobody asked.
                self.notices.send(ConnectionNotice::Notification(notification));
                true
            }
        }
    }

    /// Handles the cancellation of a server's request, or the end of a subscription.
    fn cancelled(&self, notification: &Notification) -> bool {
        let Some(request) = notification.params.get("requestId") else {
            return false;
        };
        let id = RequestId::from_json(request.clone());
        if id.is_some_and(|id| self.questions.withdraw(&id)) {
            return true;
        }
        let id = request.integer().and_then(|id| u64::try_from(id).ok());
        id.is_some_and(|id| self.calls.deliver(id, MailboxItem::Ended))
    }
}
