//! Session of a legacy client: its capabilities, running requests, pending server requests and queued notifications.

mod cancellation;
mod ended;
pub(crate) mod negotiation;
pub(crate) mod store;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use consort_core::{Caller, ClientSession};
use consort_protocol::{
    ClientCapabilities, Json, JsonRpcMessage, LogLevel, RequestId, RequestRefusal,
    RequestResponder, Revision,
};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::endpoint_key::EndpointKey;
pub use cancellation::RequestCancellation;

/// The session of a legacy client, opened by `initialize`.
#[derive(Debug)]
pub struct ClientSessionState {
    /// The session id.
    pub id: String,
    /// The endpoint it belongs to.
    pub endpoint: EndpointKey,
    /// The caller, with the capabilities of its client.
    pub caller: Caller,
    /// The negotiated revision.
    pub revision: Revision,
    /// Capabilities that the client declared.
    pub offers: Arc<ClientCapabilities>,
    /// The same as sent to modern servers, once it was.
    declared: OnceLock<Json>,
    /// Cancelled at the end of the session; ends everything that belongs to it.
    pub over: CancellationToken,
    state: Mutex<SessionFields>,
    numbers: AtomicU64,
    told: Notify,
    /// True if every capability was advertised to it because the lists of some server were not known yet.
    promised_all: AtomicBool,
    /// Limit of queued notifications while it has no stream open, and of followed tasks.
    most_notices: usize,
    /// True if its id contains its state, so that the session can be restored from it.
    is_sealed: AtomicBool,
    /// Identity of the client towards servers that send requests.
    pub client: ClientSession,
}

#[derive(Debug)]
struct SessionFields {
    level: Option<LogLevel>,
    questions: HashMap<u64, RequestResponder>,
    running: HashMap<RequestId, Arc<RequestCancellation>>,
    notices: VecDeque<Bytes>,
    /// True if the client reads its notifications.
    listening: bool,
    /// Tasks that forward updates of resources, by URI.
    watching: HashMap<String, JoinSet<()>>,
    /// Tokio tasks that forward the status of MCP tasks, by task name.
    following: HashMap<String, JoinSet<()>>,
    used: Instant,
}

impl ClientSessionState {
    pub(crate) fn new(
        id: String,
        endpoint: EndpointKey,
        caller: Caller,
        revision: Revision,
        offers: ClientCapabilities,
        most_notices: usize,
    ) -> Arc<Self> {
        let offers = Arc::new(offers);
        Arc::new(Self {
            id,
            endpoint,
            caller: caller.with_capabilities(Arc::clone(&offers)),
            revision,
            offers,
            declared: OnceLock::new(),
            over: CancellationToken::new(),
            state: Mutex::new(SessionFields {
                level: None,
                questions: HashMap::new(),
                running: HashMap::new(),
                notices: VecDeque::new(),
                listening: false,
                watching: HashMap::new(),
                following: HashMap::new(),
                used: Instant::now(),
            }),
            numbers: AtomicU64::new(1),
            told: Notify::new(),
            promised_all: AtomicBool::new(false),
            most_notices,
            is_sealed: AtomicBool::new(false),
            client: ClientSession::legacy(),
        })
    }

    /// Notes that every capability was advertised to the client.
    pub fn promise_all(&self) {
        self.promised_all.store(true, Ordering::Relaxed);
    }

    /// Returns true if every capability was advertised to the client.
    pub fn is_promised_all(&self) -> bool {
        self.promised_all.load(Ordering::Relaxed)
    }

    /// Returns the capabilities of the client as a modern server gets them.
    pub fn capabilities(&self) -> Json {
        self.declared.get_or_init(|| self.offers.capabilities(Revision::NEWEST_MODERN)).clone()
    }

    /// Returns the level from which the client requested log messages.
    pub fn level(&self) -> Option<LogLevel> {
        self.lock().level
    }

    /// Sets the level from which the client gets log messages.
    pub fn set_level(&self, level: LogLevel) {
        self.lock().level = Some(level);
    }

    /// Registers a request to the client and returns its id, which the response will carry.
    pub fn ask(&self, reply: RequestResponder) -> u64 {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        self.lock().questions.insert(number, reply);
        number
    }

    /// Handles the client's response to a request. Returns false if no such request is pending.
    pub(crate) fn answer(&self, id: &RequestId, answer: Result<Json, RequestRefusal>) -> bool {
        let reply = id.number().and_then(|number| self.lock().questions.remove(&number));
        let asked = reply.is_some();
        if let Some(reply) = reply {
            reply.send(answer);
        }
        asked
    }

    /// Handles a response, error or notification of a legacy client.
    pub(crate) fn receive(&self, message: JsonRpcMessage) {
        match message {
            JsonRpcMessage::Response { id, result } => {
                self.answer(&id, Ok(result.json().clone()));
            }
            JsonRpcMessage::Error { id: Some(id), error } => {
                self.answer(&id, Err(RequestRefusal { code: error.code, message: error.message }));
            }
            JsonRpcMessage::Notification(body) if body.method == "notifications/cancelled" => {
                if let Some(id) = body.params.get("requestId").and_then(RequestId::from_json) {
                    self.cancel(&id);
                }
            }
            _ => {}
        }
    }

    /// Removes withdrawn requests to the client and returns the ids of those that were still unanswered.
    pub fn forget(&self, numbers: &[u64]) -> Vec<u64> {
        let mut state = self.lock();
        let open = |number: &u64| Some((*number, state.questions.remove(number)?));
        let gone: Vec<(u64, RequestResponder)> = numbers.iter().filter_map(open).collect();
        drop(state);
        gone.into_iter().map(|(number, _)| number).collect()
    }

    /// Registers a request. Returns `None` if a request with this id is running.
    pub fn begin(self: &Arc<Self>, id: &RequestId) -> Option<RunningRequest> {
        let cancellation = match self.lock().running.entry(id.clone()) {
            Entry::Vacant(place) => Arc::clone(place.insert(Arc::default())),
            Entry::Occupied(_) => return None,
        };
        // The session may have ended before the request was among those that it cancels.
        if self.over.is_cancelled() {
            cancellation.cancel();
        }
        Some(RunningRequest { session: Arc::clone(self), id: id.clone(), cancellation })
    }

    /// Cancels a running request.
    pub(crate) fn cancel(&self, id: &RequestId) {
        if let Some(running) = self.lock().running.get(id) {
            running.cancel();
        }
    }

    /// Queues a notification that belongs to no request. A notification that is still queued is not queued twice, and
    /// at the limit the oldest is dropped.
    pub fn notify(&self, notice: Bytes) {
        let mut state = self.lock();
        if !state.notices.contains(&notice) {
            if state.notices.len() >= self.most_notices {
                state.notices.pop_front();
            }
            state.notices.push_back(notice);
        }
        drop(state);
        self.told.notify_one();
    }

    /// Begins to read the notifications. Returns `None` if they already have a reader.
    pub(crate) fn listen(self: &Arc<Self>) -> Option<NotificationReader> {
        let mut state = self.lock();
        if std::mem::replace(&mut state.listening, true) {
            return None;
        }
        Some(NotificationReader(Arc::clone(self)))
    }

    /// Stores the tasks that forward updates of a resource, instead of earlier ones.
    pub fn watch(&self, uri: String, task: JoinSet<()>) {
        let before = self.lock().watching.insert(uri, task);
        drop(before);
    }

    /// Stops forwarding updates of a resource. Returns false if they were not forwarded.
    pub fn unwatch(&self, uri: &str) -> bool {
        let before = self.lock().watching.remove(uri);
        before.is_some()
    }

    /// Stores the tokio task that forwards the status of an MCP task. Beyond the limit of queued notifications it is
    /// dropped: the client can still poll.
    pub fn follow(&self, task: String, telling: JoinSet<()>) {
        let mut state = self.lock();
        if self.over.is_cancelled() || state.following.len() >= self.most_notices {
            return;
        }
        let before = state.following.insert(task, telling);
        drop(state);
        drop(before);
    }

    /// Stops forwarding the status of a task.
    pub fn unfollow(&self, task: &str) {
        let before = self.lock().following.remove(task);
        drop(before);
    }

    pub(crate) fn touch(&self) {
        self.lock().used = Instant::now();
    }

    /// Notes that its id contains its state.
    pub(crate) fn seal(&self) {
        self.is_sealed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_sealed(&self) -> bool {
        self.is_sealed.load(Ordering::Relaxed)
    }

    /// Returns true if a session restored from its id would be the same: it is not in use and has no other state.
    pub(crate) fn is_plain(&self) -> bool {
        let state = self.lock();
        state.running.is_empty()
            && !state.listening
            && state.level.is_none()
            && state.notices.iter().all(is_list_change)
            && state.watching.is_empty()
            && state.following.is_empty()
    }

    /// Returns true if a client reads its notifications and no request is in progress.
    pub(crate) fn only_listens(&self) -> bool {
        let state = self.lock();
        state.listening && state.running.is_empty()
    }

    /// Returns the time since its last use; `None` if it is in use.
    pub(crate) fn unused(&self) -> Option<Duration> {
        let state = self.lock();
        let idle = state.running.is_empty() && !state.listening;
        idle.then(|| state.used.elapsed())
    }

    /// Ends the session.
    pub(crate) fn end(&self) {
        self.over.cancel();
        let (questions, watching, following) = {
            let mut state = self.lock();
            let SessionFields { questions, watching, following, running, .. } = &mut *state;
            for running in running.values() {
                running.cancel();
            }
            (std::mem::take(questions), std::mem::take(watching), std::mem::take(following))
        };
        drop(questions);
        drop(watching);
        drop(following);
    }

    fn lock(&self) -> MutexGuard<'_, SessionFields> {
        self.state.lock()
    }
}

/// Returns true if a notification is a list change, which every restored session receives anyway.
fn is_list_change(notice: &Bytes) -> bool {
    memchr::memmem::find(notice, b"/list_changed\"").is_some()
}

/// A running request of a session.
#[derive(Debug)]
pub struct RunningRequest {
    session: Arc<ClientSessionState>,
    id: RequestId,
    /// Its cancellation by the client, or by the end of its session.
    pub cancellation: Arc<RequestCancellation>,
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        let mut state = self.session.lock();
        state.running.remove(&self.id);
        state.used = Instant::now();
    }
}

/// The reader of a session's notifications.
#[derive(Debug)]
pub(crate) struct NotificationReader(Arc<ClientSessionState>);

impl NotificationReader {
    /// Returns the next notification; `None` when the session is over.
    pub(crate) async fn next(&self) -> Option<Bytes> {
        loop {
            let told = self.0.told.notified();
            if let Some(notice) = self.0.lock().notices.pop_front() {
                return Some(notice);
            }
            tokio::select! {
                () = told => {}
                () = self.0.over.cancelled() => return None,
            }
        }
    }
}

impl Drop for NotificationReader {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.listening = false;
        state.used = Instant::now();
    }
}
