//! A client on one bidirectional channel: stdio, or HTTP+SSE.

pub(crate) mod sse_clients;

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use consort_core::{Caller, ClientSession};
use consort_protocol::trace::TraceContext;
use consort_protocol::{Era, JsonRpcMessage, MessageError, Notification, RequestId};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::lifecycle::ServerLifecycle;
use crate::limits::TransportLimits;
use crate::message::answer::{RequestAnswer, RequestFailure};
use crate::message::body_chunks::BodyChunks;
use crate::message::received_request::{
    ClientDialect, ClientMessage, ClientTransport, ModernDeclarations, ReceivedRequest,
    RequestOrigin, named_revision,
};
use crate::server_handler::{ServedEndpoint, SessionStart};
use crate::session::ClientSessionState;
use crate::session::negotiation::open;
use crate::usage::{UsagePermit, UsageRegistry};

/// A client on one channel. Its requests end with it.
#[derive(Debug)]
pub(crate) struct ClientChannel {
    endpoint: Arc<dyn ServedEndpoint>,
    lifecycle: Arc<ServerLifecycle>,
    usages: Arc<UsageRegistry>,
    /// Bytes of a message.
    body_bytes: usize,
    /// Notifications queued for its session.
    session_notifications: usize,
    pub(crate) caller: Caller,
    /// The same party, as it was authenticated last: the groups of a user change.
    current: Mutex<Caller>,
    via: ClientTransport,
    out: mpsc::Sender<BodyChunks>,
    state: Mutex<ClientChannelState>,
    /// The session of a modern client.
    client: ClientSession,
    /// Cancelled to end this client in favour of another identity.
    pub(crate) given_up: CancellationToken,
}

#[derive(Debug, Default)]
struct ClientChannelState {
    session: Option<Arc<ClientSessionState>>,
    /// Running requests of a modern client, with their cancellation tokens.
    running: HashMap<RequestId, CancellationToken>,
    /// Tasks that run until the client leaves; `tasks` holds those that end by themselves.
    endless: JoinSet<()>,
    tasks: JoinSet<()>,
}

/// Lifetime of a spawned task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TaskLifetime {
    /// It ends by itself.
    Once,
    /// Until the client leaves.
    Always,
}

impl ClientChannel {
    /// Makes a client, and the receiver of the messages to send to it.
    pub(crate) fn new(
        limits: &TransportLimits,
        lifecycle: &Arc<ServerLifecycle>,
        usages: &Arc<UsageRegistry>,
        endpoint: Arc<dyn ServedEndpoint>,
        caller: Caller,
        via: ClientTransport,
    ) -> (Arc<Self>, mpsc::Receiver<BodyChunks>) {
        let (out, sent) = mpsc::channel(limits.queued_messages);
        let channel = Arc::new(Self {
            endpoint,
            lifecycle: Arc::clone(lifecycle),
            usages: Arc::clone(usages),
            body_bytes: limits.body_bytes,
            session_notifications: limits.session_notifications,
            current: Mutex::new(caller.clone()),
            caller,
            via,
            out,
            state: Mutex::default(),
            client: ClientSession::new(),
            given_up: CancellationToken::new(),
        });
        (channel, sent)
    }

    /// Handles a message, with the trace context of the request that carried it.
    pub(crate) fn receive(self: &Arc<Self>, bytes: &Bytes, trace: Option<&TraceContext>) {
        let batched = self.session().is_none_or(|session| session.revision.has_batches());
        match JsonRpcMessage::parse(bytes.clone()) {
            Ok(message) => self.take(message, trace),
            Err(MessageError::Batch) if batched => match JsonRpcMessage::parse_batch(bytes.clone())
            {
                Ok(messages) => messages.into_iter().for_each(|message| match message {
                    Ok(message) => self.take(message, trace),
                    // Each is JSON, since all of it is.
                    Err(error) => self.malformed(error, bytes),
                }),
                Err(error) => self.malformed(error, bytes),
            },
            Err(error) => self.malformed(error, bytes),
        }
    }

    /// Answers a message that exceeds the size limit with an error.
    pub(crate) fn oversized(self: &Arc<Self>, id: Option<u64>) {
        let limit = self.body_bytes;
        let failure =
            RequestFailure::new(-32600, format!("a message is larger than {limit} bytes"));
        self.send(
            RequestAnswer::error(Era::Legacy, id.map(RequestId::from).as_ref(), &failure).message,
        );
    }

    fn malformed(self: &Arc<Self>, error: MessageError, bytes: &Bytes) {
        let failure = RequestFailure::new(error.code(bytes), error.to_string());
        self.send(RequestAnswer::error(Era::Legacy, None, &failure).message);
    }

    fn take(self: &Arc<Self>, message: JsonRpcMessage, trace: Option<&TraceContext>) {
        match message {
            JsonRpcMessage::Request { id, body } => self.request(id, body, trace),
            other => {
                if let JsonRpcMessage::Notification(body) = &other
                    && body.method == "notifications/cancelled"
                {
                    let id = body.params.get("requestId").and_then(RequestId::from_json);
                    let running = id.and_then(|id| self.lock().running.get(&id).cloned());
                    if let Some(running) = running {
                        running.cancel();
                    }
                }
                if let Some(session) = self.session() {
                    session.receive(other);
                }
            }
        }
    }

    fn request(self: &Arc<Self>, id: RequestId, body: Notification, trace: Option<&TraceContext>) {
        let origin = RequestOrigin { via: self.via, trace: trace.cloned() };
        let usage = match self.usages.admit(&self.current_caller(), &body) {
            Ok(usage) => usage,
            // The client reads the answer on its stream; the transport has no status for it.
            Err(refusal) => {
                let answer =
                    RequestAnswer::error(Era::Legacy, Some(&id), &RequestFailure::from(&refusal));
                return self.send(answer.message);
            }
        };
        if named_revision(&body.params).is_some() {
            return match ModernDeclarations::read(&body.params, |_| Ok(())) {
                Ok(mut modern) => {
                    modern.session = Some(self.client.clone());
                    self.answer(id, body, ClientDialect::Modern(modern), origin, usage);
                }
                Err(failure) => {
                    self.send(RequestAnswer::error(Era::Modern, Some(&id), &failure).message);
                }
            };
        }
        match self.session() {
            _ if body.method == "initialize" => self.initialize(id, &body),
            Some(session) => self.answer(id, body, ClientDialect::Legacy(session), origin, usage),
            None => {
                let message = "not initialized: send `initialize` first, or send the protocol version in \
                    `_meta` (2026-07-28)";
                let failure = RequestFailure::new(-32600, message);
                self.send(RequestAnswer::error(Era::Legacy, Some(&id), &failure).message);
            }
        }
    }

    /// Notes the caller of a message that has just been authenticated.
    pub(crate) fn authenticated(&self, caller: &Caller) {
        self.current.lock().clone_from(caller);
    }

    fn current_caller(&self) -> Caller {
        self.current.lock().clone()
    }

    /// Handles `initialize` of a legacy client.
    fn initialize(self: &Arc<Self>, id: RequestId, body: &Notification) {
        let session = open(
            self.endpoint.key(),
            self.current_caller(),
            &body.params,
            self.session_notifications,
        );
        let before = self.lock().session.replace(Arc::clone(&session));
        if let Some(before) = before {
            before.end();
        }
        let pipe = Arc::clone(self);
        self.spawn(TaskLifetime::Once, async move {
            let answer = RequestAnswer::result(&id, &pipe.endpoint.initialize(&session));
            let _ = pipe.out.send(answer.message.unwrap_or_default()).await;
            let out = pipe.out.clone();
            let follow =
                Arc::clone(&pipe.endpoint).follow(Arc::clone(&session), SessionStart::Initialized);
            pipe.spawn(TaskLifetime::Always, async move {
                let Some(listening) = session.listen() else { return };
                let told = async {
                    while let Some(notice) = listening.next().await {
                        if out.send(notice.into()).await.is_err() {
                            return;
                        }
                    }
                };
                tokio::join!(told, follow);
            });
        });
    }

    /// Answers a request, concurrently with others.
    fn answer(
        self: &Arc<Self>,
        id: RequestId,
        body: Notification,
        dialect: ClientDialect,
        origin: RequestOrigin,
        usage: Option<UsagePermit>,
    ) {
        let cancelled = CancellationToken::new();
        let modern = matches!(dialect, ClientDialect::Modern(_));
        if modern && !self.begin(&id, &cancelled) {
            let failure = RequestFailure::new(
                -32600,
                format!("request id {} is already in use by a request in progress", id.json()),
            );
            return self.send(RequestAnswer::error(Era::Modern, Some(&id), &failure).message);
        }
        let endless = modern && body.method == "subscriptions/listen";
        let lasts = if endless { TaskLifetime::Always } else { TaskLifetime::Once };
        let request = ReceivedRequest {
            caller: dialect.identify(&self.current_caller()),
            id: id.clone(),
            method: body.method,
            params: body.params,
            dialect,
            accepts_events: true,
            origin,
            usage,
        };
        let pipe = Arc::clone(self);
        self.spawn(lasts, async move {
            let mut answering = Arc::clone(&pipe.endpoint).serve(request);
            let answered = async {
                while let Some(out) = answering.next().await {
                    let message = match out {
                        ClientMessage::Message(message) => Some(message),
                        ClientMessage::End(answer) => answer.message,
                    };
                    if let Some(message) = message
                        && pipe.out.send(message).await.is_err()
                    {
                        return;
                    }
                }
            };
            tokio::select! {
                () = answered => {}
                () = cancelled.cancelled() => {}
            }
            if modern {
                pipe.lock().running.remove(&id);
            }
        });
    }

    /// Registers a request of a modern client. Returns false if a request with this id is running.
    fn begin(&self, id: &RequestId, cancelled: &CancellationToken) -> bool {
        let mut state = self.lock();
        let known = state.running.contains_key(id);
        if !known {
            state.running.insert(id.clone(), cancelled.clone());
        }
        !known
    }

    fn send(self: &Arc<Self>, message: Option<BodyChunks>) {
        let Some(message) = message else { return };
        let pipe = Arc::clone(self);
        self.spawn(TaskLifetime::Once, async move {
            let _ = pipe.out.send(message).await;
        });
    }

    fn spawn(&self, lasts: TaskLifetime, task: impl Future<Output = ()> + Send + 'static) {
        let mut state = self.lock();
        let tasks = match lasts {
            TaskLifetime::Once => &mut state.tasks,
            TaskLifetime::Always => &mut state.endless,
        };
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    fn session(&self) -> Option<Arc<ClientSessionState>> {
        self.lock().session.clone()
    }

    /// Ends the session and cancels everything that the client began, when it is gone.
    pub(crate) fn end(&self) {
        let (session, tasks) = {
            let mut state = self.lock();
            let tasks = (std::mem::take(&mut state.tasks), std::mem::take(&mut state.endless));
            (state.session.take(), tasks)
        };
        if let Some(session) = session {
            session.end();
        }
        drop(tasks);
    }

    /// Waits until all tasks have ended, except those that run until the client leaves.
    pub(crate) async fn quiet(&self) {
        while !self.is_quiet() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }

    /// Returns true if no task runs, except those that run until the client leaves.
    pub(crate) fn is_quiet(&self) -> bool {
        let mut state = self.lock();
        while state.tasks.try_join_next().is_some() {}
        state.tasks.is_empty()
    }

    /// Waits until the server drains, and then until all requests have ended.
    pub(crate) async fn drained(&self) {
        self.lifecycle.draining.cancelled().await;
        self.quiet().await;
    }

    fn lock(&self) -> MutexGuard<'_, ClientChannelState> {
        self.state.lock()
    }
}
