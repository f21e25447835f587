//! One reached server: what all calls to it share, and where its messages are sorted.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use bytes::Bytes;
use tokio::sync::broadcast;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::ask::{Asked, Refusal, Reply};
use crate::client::Settings;
use crate::client::about::About;
use crate::client::dialect::Dialect;
use crate::client::error::{CallError, Closed};
use crate::client::facts::Facts;
use crate::client::faults::Counts;
use crate::client::gate::Gate;
use crate::client::host::Question;
use crate::client::mailbox::{Arrival, Calls};
use crate::client::notices::Notice;
use crate::client::pulse::Pulse;
use crate::json::{Json, Problem};
use crate::message::{Id, Message, MessageError, Notification};
use crate::revision::Revision;
use crate::splice::{self, Writer};
use crate::transport::{Ticket, Transport};
use crate::unreadable::answered_ids;

/// The member of `_meta` that names the subscription a notification belongs to.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// What all calls to one server share.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) settings: Settings,
    pub(crate) transport: Transport,
    pub(crate) calls: Calls,
    pub(crate) gate: Gate,
    pub(crate) counts: Counts,
    pub(crate) notices: broadcast::Sender<Notice>,
    pub(crate) stop: CancellationToken,
    pub(crate) crew: TaskTracker,
    ids: AtomicU64,
    dialect: RwLock<Arc<Dialect>>,
    about: RwLock<Arc<About>>,
    facts: RwLock<Arc<Facts>>,
    /// What the server waits for, with the task that answers it, if one does.
    questions: Mutex<HashMap<Id, Option<AbortHandle>>>,
    /// Whether the operator was told that log messages are sent to no caller.
    pub(crate) unassigned_logs: AtomicBool,
}

/// Where a message came from, and so which call it can belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The one channel of stdio and HTTP+SSE, or the common stream of Streamable HTTP.
    Pipe,
    /// The response stream of this call.
    Call(u64),
}

impl Link {
    pub(crate) fn new(settings: Settings, transport: Transport) -> Arc<Self> {
        let limits = &settings.limits;
        let places = match transport {
            Transport::Http(_) => limits.http_calls,
            Transport::Stdio(_) | Transport::Sse(_) => limits.pipe_calls,
        };
        let gate = Gate::new(places, limits.queued_calls, settings.times.queue);
        let dialect =
            Dialect::new(Revision::NEWEST_MODERN, &settings.client, &settings.host.offers());
        Arc::new(Self {
            gate,
            notices: broadcast::Sender::new(limits.notices),
            settings,
            transport,
            calls: Calls::default(),
            counts: Counts::default(),
            stop: CancellationToken::new(),
            crew: TaskTracker::new(),
            ids: AtomicU64::new(1),
            dialect: RwLock::new(Arc::new(dialect)),
            about: RwLock::default(),
            facts: RwLock::default(),
            questions: Mutex::default(),
            unassigned_logs: AtomicBool::new(false),
        })
    }

    /// A number no request on this connection had or will have.
    pub(crate) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn dialect(&self) -> Arc<Dialect> {
        Arc::clone(&self.dialect.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// From now on, speak this revision.
    pub(crate) fn speak(&self, revision: Revision) {
        let dialect = Dialect::new(revision, &self.settings.client, &self.settings.host.offers());
        *self.dialect.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(dialect);
    }

    pub(crate) fn about(&self) -> Arc<About> {
        Arc::clone(&self.about.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn introduce(&self, about: About) {
        *self.about.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(about);
    }

    pub(crate) fn facts(&self) -> Arc<Facts> {
        Arc::clone(&self.facts.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn learn(&self, facts: Facts) {
        *self.facts.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(facts);
    }

    /// The connection is over.
    pub(crate) fn close(&self, closed: &Closed) {
        if self.calls.close(closed) {
            tracing::debug!(reason = %closed, "connection closed");
        }
        for question in self.lock_questions().drain().filter_map(|(_, question)| question) {
            question.abort();
        }
        self.stop.cancel();
    }

    /// Ends the connection and waits until nothing of it is left.
    pub(crate) async fn end(&self) {
        self.stop.cancel();
        self.crew.close();
        self.crew.wait().await;
    }

    /// Sends a notification or an answer.
    pub(crate) async fn send(self: &Arc<Self>, bytes: Bytes) -> Result<(), CallError> {
        match &self.transport {
            Transport::Stdio(stdio) => Ok(stdio.send(bytes, None).await?),
            Transport::Http(http) => http.send(&self.dialect(), bytes, &Ticket::default()).await,
            Transport::Sse(sse) => sse.send(&self.dialect(), bytes, &Ticket::default()).await,
        }
    }

    /// Sends a notification nobody waits for.
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

    /// Tells the server to stop working on a request.
    pub(crate) fn cancel(self: &Arc<Self>, id: u64, reason: &str) {
        let mut params = Writer::new();
        params.number("requestId", id);
        params.text("reason", reason);
        self.send_later(splice::notification("notifications/cancelled", Some(&params.finish())));
    }

    /// Runs a task until it ends or the connection does. Outside a runtime nothing can run any more.
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

    /// Sorts what arrived. An error ends the connection.
    pub(crate) fn receive(self: &Arc<Self>, bytes: &Bytes, origin: Origin) -> Result<(), Closed> {
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        if self.dialect().revision == Revision::V2025_03_26 {
            return match Message::batch_items(bytes.clone()) {
                Ok(items) => items.into_iter().try_for_each(|item| self.receive_one(&item, origin)),
                Err(error) => self.malformed(&error, bytes, origin),
            };
        }
        self.receive_one(bytes, origin)
    }

    fn receive_one(self: &Arc<Self>, bytes: &Bytes, origin: Origin) -> Result<(), Closed> {
        match Message::parse(bytes.clone()) {
            Ok(message) => {
                self.sort(message, origin);
                Ok(())
            }
            Err(error) => self.malformed(&error, bytes, origin),
        }
    }

    /// A message that cannot be read: it is ignored. If it is only nested too deep, the calls that it answers end, for
    /// nothing else will answer them. An error ends the connection.
    fn malformed(&self, error: &MessageError, bytes: &[u8], origin: Origin) -> Result<(), Closed> {
        tracing::debug!(%error, "a malformed message was ignored");
        if matches!(error, MessageError::Json(json) if json.problem() == Problem::Depth) {
            let ids = answered_ids(bytes).into_iter();
            for id in ids.filter(|id| origin == Origin::Pipe || origin == Origin::Call(*id)) {
                self.calls.deliver(id, Arrival::TooDeep);
            }
        }
        if self.counts.malformed(self.settings.limits.malformed_messages) {
            return Err(Closed::Malformed);
        }
        Ok(())
    }

    /// An oversized message was cut off. An error ends the connection.
    pub(crate) fn oversized(&self, id: Option<u64>) -> Result<(), Closed> {
        self.counts.oversized();
        match id {
            Some(id) if self.calls.deliver(id, Arrival::TooLarge) => Ok(()),
            _ => Err(Closed::Oversized),
        }
    }

    /// A large message found no memory in time and is skipped. Only the call that it answers ends.
    pub(crate) fn no_room(&self, id: Option<u64>) {
        self.counts.oversized();
        let delivered = id.is_some_and(|id| self.calls.deliver(id, Arrival::NoRoom));
        tracing::debug!(delivered, "a large message was skipped for lack of memory");
    }

    fn sort(self: &Arc<Self>, message: Message, origin: Origin) {
        let delivered = match message {
            Message::Response { ref id, .. } | Message::Error { id: Some(ref id), .. } => {
                // On a call's own stream, nobody else is answered.
                let id =
                    id.number().filter(|id| origin == Origin::Pipe || origin == Origin::Call(*id));
                id.is_some_and(|id| self.calls.deliver(id, Arrival::Message(message)))
            }
            Message::Error { id: None, error } => {
                tracing::debug!(%error, "an error that answers nothing");
                false
            }
            Message::Notification(notification) => self.sort_notification(notification, origin),
            Message::Request { id, body } => {
                self.ask(id, body, origin);
                true
            }
        };
        if !delivered {
            self.counts.stray();
        }
    }

    fn sort_notification(self: &Arc<Self>, notification: Notification, origin: Origin) -> bool {
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
                Origin::Call(id) => Some(id),
                Origin::Pipe => return self.sort_log(notification),
            },
            // A modern stream carries nothing that is not about its request; a legacy one may.
            _ => match (number(notification.meta(SUBSCRIPTION)), origin) {
                (None, Origin::Call(id)) if self.dialect().is_modern() => Some(id),
                (subscription, _) => subscription,
            },
        };
        match call {
            Some(call) => {
                self.calls.deliver(call, Arrival::Message(Message::Notification(notification)))
            }
            None => {
                // No reader is no loss: nobody asked.
                let _ = self.notices.send(Notice::Notification(notification));
                true
            }
        }
    }

    /// The server takes back a question, or ends a subscription.
    fn cancelled(&self, notification: &Notification) -> bool {
        let Some(request) = notification.params.get("requestId") else {
            return false;
        };
        let id = Id::from_json(request.clone());
        if let Some(question) = id.and_then(|id| self.lock_questions().remove(&id)) {
            if let Some(task) = question {
                task.abort();
            }
            return true;
        }
        let id = request.integer().and_then(|id| u64::try_from(id).ok());
        id.is_some_and(|id| self.calls.deliver(id, Arrival::Ended))
    }

    /// Answers a request of the server, through the host where that is allowed.
    fn ask(self: &Arc<Self>, id: Id, body: Notification, origin: Origin) {
        let offers = self.settings.host.offers();
        let open = self.lock_questions().len();
        let bytes = if body.method == "ping" {
            splice::response(&id, &Json::from(serde_json::json!({})))
        } else if !offers.allow(&body.method, &body.params) {
            self.counts.refused();
            let refusal = Refusal::not_offered(&body.method);
            splice::error(Some(&id), refusal.code, &refusal.message, None)
        } else if open >= self.settings.limits.questions {
            self.counts.refused();
            splice::error(Some(&id), -32603, "too many questions are open", None)
        } else {
            let call = match origin {
                Origin::Call(id) => Some(id),
                Origin::Pipe => self.calls.asked(),
            };
            if let Some(call) = call.filter(|call| self.calls.answers(*call)) {
                self.hand_over(id, call, body);
                return;
            }
            if let Some(call) = call {
                let announced = Message::Notification(body.clone());
                self.calls.deliver(call, Arrival::Message(announced));
            }
            self.put_to_host(
                id,
                Question { call: call.map(Into::into), method: body.method, params: body.params },
            );
            return;
        };
        self.send_later(bytes);
    }

    /// Hands a question to the call it belongs to, with the way back.
    fn hand_over(self: &Arc<Self>, id: Id, call: u64, body: Notification) {
        let link = Arc::clone(self);
        let waiting = self.calls.pulse(call).as_ref().map(Pulse::wait_for_us);
        let answered = id.clone();
        self.lock_questions().insert(id, None);
        let reply = Reply::new(move |answer| {
            drop(waiting);
            // The server may have taken it back.
            if link.lock_questions().remove(&answered).is_some() {
                link.send_later(match answer {
                    Ok(result) => splice::response(&answered, &result),
                    Err(refusal) => {
                        splice::error(Some(&answered), refusal.code, &refusal.message, None)
                    }
                });
            }
        });
        let Notification { method, params } = body;
        self.calls.deliver(call, Arrival::Asked(Asked { method, params, reply: Some(reply) }));
    }

    fn lock_questions(&self) -> MutexGuard<'_, HashMap<Id, Option<AbortHandle>>> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put_to_host(self: &Arc<Self>, id: Id, question: Question) {
        let link = Arc::clone(self);
        let answered = id.clone();
        let pulse = question.call.and_then(|call| self.calls.pulse(call.number()));
        // Held until the handle is in its place, so that the task cannot remove it before.
        let mut questions = self.lock_questions();
        let task = self.spawn(async move {
            let _waiting = pulse.as_ref().map(Pulse::wait_for_us);
            let bytes = match link.settings.host.answer(question).await {
                Ok(result) => splice::response(&answered, &result),
                Err(refusal) => {
                    splice::error(Some(&answered), refusal.code, &refusal.message, None)
                }
            };
            link.lock_questions().remove(&answered);
            if let Err(error) = link.send(bytes).await {
                tracing::debug!(%error, "an answer was not delivered");
            }
        });
        if let Some(task) = task {
            questions.insert(id, Some(task));
        }
    }
}
