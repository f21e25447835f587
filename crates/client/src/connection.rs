//! A connection to one server: the state that its calls share.

pub(crate) mod faults;
pub(crate) mod gate;
pub(crate) mod open_questions;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use consort_protocol::splice::{self, ObjectWriter};
use consort_protocol::{Object, Revision};
use parking_lot::RwLock;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::call::in_flight::InFlightCalls;
use crate::connection::faults::FaultCounters;
use crate::connection::gate::CallGate;
use crate::connection::open_questions::OpenQuestions;
use crate::description::{NegotiatedProtocol, ServerDescription};
use crate::error::{ClientCallError, CloseReason};
use crate::notices::NoticeSender;
use crate::request::dialect::RequestDialect;
use crate::settings::ClientSettings;
use crate::tool_requirements::ToolRequirements;
use crate::transport::Transport;

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
    pub(crate) tasks: TaskTracker,
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
        let gate = CallGate::new(transport.max_calls(limits), limits.queued_calls, &settings.times);
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
            tasks: TaskTracker::new(),
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
        Arc::clone(&self.dialect.read())
    }

    /// Switches to this revision.
    pub(crate) fn speak(&self, revision: Revision) {
        let dialect =
            RequestDialect::new(revision, &self.settings.client, &self.settings.host.offers());
        *self.dialect.write() = Arc::new(dialect);
    }

    pub(crate) fn about(&self) -> Arc<ServerDescription> {
        Arc::clone(&self.about.read())
    }

    /// Switches to the negotiated protocol, and stores the server's description of itself.
    pub(crate) fn introduce(&self, revision: Revision, raw: Object) {
        self.speak(revision);
        let transport = self.transport.kind();
        let about = ServerDescription::new(NegotiatedProtocol { revision, transport }, raw);
        *self.about.write() = Arc::new(about);
    }

    pub(crate) fn facts(&self) -> Arc<ToolRequirements> {
        Arc::clone(&self.facts.read())
    }

    pub(crate) fn learn(&self, mut facts: ToolRequirements) {
        facts.add(&self.variant_facts.read());
        *self.facts.write() = Arc::new(facts);
    }

    /// Learns from a list that a client with other capabilities gets. As many tools are kept as a list may have.
    pub(crate) fn learn_variant(&self, mut facts: ToolRequirements) {
        let mut known = self.variant_facts.write();
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
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Sends a notification or a response.
    pub(crate) async fn send(self: &Arc<Self>, bytes: Bytes) -> Result<(), ClientCallError> {
        self.transport.send(&self.dialect(), bytes, None).await
    }

    /// Sends a notification without waiting for it.
    pub(crate) fn send_later(self: &Arc<Self>, bytes: Bytes) {
        if let Err(bytes) = self.transport.try_send(bytes) {
            let link = Arc::clone(self);
            self.spawn(async move {
                if let Err(error) = link.send(bytes).await {
                    tracing::debug!(%error, "cannot deliver a notification");
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
        Some(self.tasks.spawn_on(task, &runtime).abort_handle())
    }
}
