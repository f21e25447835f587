//! One connection to a server, with its resource subscriptions and log level.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, OnceLock, Weak};

use consort_client::{Client, OutgoingRequest};
use consort_core::{ClientCapabilities, LogLevel};
use consort_protocol::Json;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::connection_turns::ConnectionTurns;
use crate::lease::{ConnectionLease, ConnectionUse};
use crate::probation::ServerProbation;
use crate::tasks::ServerTasks;

/// An upstream connection in the hands of one user.
#[derive(Clone, Debug)]
pub(crate) struct UpstreamConnection {
    shared: Arc<SharedUpstream>,
    /// Held by a call whose client cannot be distinguished from others.
    _leased: Option<Arc<ConnectionUse>>,
    /// Guard of its use.
    used: Option<Arc<ConnectionUse>>,
}

/// An upstream connection, and the capabilities declared on it.
#[derive(Debug)]
pub(crate) struct SharedUpstream {
    pub(crate) client: Client,
    pub(crate) offers: Arc<ClientCapabilities>,
    /// Generation of the credentials that it was made with.
    pub(crate) credentials: u64,
    /// Resource subscriptions and the requested log level.
    state: RequestedState,
    pub(crate) ownership: ConnectionOwnership,
    /// Probation of first calls of clients that share it.
    pub(crate) probation: ServerProbation,
    /// Tasks of its server.
    tasks: Option<ServerTasks>,
}

/// The clients that a connection belongs to.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionOwnership {
    /// The first session that received a server request on it, or [`STATELESS`](crate::key::STATELESS). Once the server
    /// is known to send requests, the connection belongs to that session.
    pub(crate) session: Arc<OnceLock<u64>>,
    pub(crate) lease: ConnectionLease,
}

impl Deref for UpstreamConnection {
    type Target = SharedUpstream;

    fn deref(&self) -> &SharedUpstream {
        &self.shared
    }
}

/// State that requests set at the server. The lock is never held across a request.
#[derive(Debug, Default)]
struct RequestedState {
    requested: Mutex<RequestedSettings>,
    /// Notified at the end of each request.
    changed: Notify,
    /// Cancelled once the connection serves no new calls.
    retired: CancellationToken,
}

#[derive(Debug, Default)]
struct RequestedSettings {
    /// The log level, and the session in which it was set.
    level: Option<(LogLevel, u64)>,
    /// True while a request for another level is in flight.
    is_setting_level: bool,
    resources: HashMap<String, WatchedResource>,
}

/// State of a resource that has or had subscribers.
#[derive(Debug, Default)]
struct WatchedResource {
    watchers: usize,
    /// The session in which the server accepted the subscription.
    session: Option<u64>,
    /// True while a request about it is in flight.
    is_busy: bool,
}

impl RequestedState {
    fn lock(&self) -> MutexGuard<'_, RequestedSettings> {
        self.requested.lock()
    }
}

impl UpstreamConnection {
    pub(crate) fn new(
        client: Client,
        offers: Arc<ClientCapabilities>,
        credentials: u64,
        ownership: ConnectionOwnership,
        tasks: Option<ServerTasks>,
    ) -> Self {
        let (state, probation) = (RequestedState::default(), ServerProbation::default());
        let shared =
            SharedUpstream { client, offers, credentials, state, ownership, probation, tasks };
        Self { shared: Arc::new(shared), _leased: None, used: None }
    }

    /// Returns the same connection, marked as in use.
    pub(crate) fn in_use(
        self,
        used: Arc<ConnectionUse>,
        leased: Option<Arc<ConnectionUse>>,
    ) -> Self {
        Self { _leased: leased, used: Some(used), ..self }
    }

    /// Ends its subscriptions, which move to a connection with current credentials.
    pub(crate) fn end_subscriptions(&self) {
        self.state.retired.cancel();
    }

    /// Ends its subscriptions. Returns its client, and the use that other holders make of it.
    pub(crate) fn retire(self) -> (Client, Weak<ConnectionUse>) {
        self.end_subscriptions();
        (self.client.clone(), self.used.as_ref().map_or_else(Weak::new, Arc::downgrade))
    }

    /// Waits until it serves no new calls.
    pub(crate) async fn retired(&self) {
        self.state.retired.cancelled().await;
    }

    /// Leases the connection to a call whose client cannot be distinguished from others, until the call ends. `None` if
    /// a server request may be another call's.
    pub(crate) fn leased(&self, freed: &Arc<ConnectionTurns>) -> Option<Self> {
        let leased = self.ownership.lease.take(freed)?;
        let is_free = !self.client.may_receive_request();
        is_free.then(|| Self { _leased: Some(leased), ..self.clone() })
    }

    /// Sets the log level of a legacy server, unless it sends these messages already. Calls that wait for the same
    /// request share its end: if it fails, all of them continue.
    pub(crate) async fn log(&self, level: LogLevel) {
        // A session that replaced another knows nothing of it.
        let session = self.client.session();
        let is_set = |state: &RequestedSettings| {
            state.level.is_some_and(|(current, of)| current <= level && of == session)
        };
        if is_set(&self.state.lock()) || !self.client.about().offers("logging") {
            return;
        }
        loop {
            let changed = self.state.changed.notified();
            let before = {
                let mut state = self.state.lock();
                if is_set(&state) {
                    return;
                }
                if !std::mem::replace(&mut state.is_setting_level, true) {
                    break;
                }
                state.level
            };
            changed.await;
            let state = self.state.lock();
            if !state.is_setting_level && state.level == before {
                return;
            }
        }
        let _over = RequestGuard { state: &self.state, subject: RequestSubject::Level };
        if self.client.log_level(level).await.is_ok() {
            self.state.lock().level = Some((level, session));
        }
    }

    /// Subscribes to a resource of a legacy server until the returned guard is dropped.
    pub(crate) async fn watch(
        &self,
        uri: &str,
    ) -> Result<ResourceSubscription, consort_client::ClientCallError> {
        self.state.lock().resources.entry(uri.to_owned()).or_default().watchers += 1;
        let watching = ResourceSubscription { upstream: self.clone(), uri: uri.to_owned() };
        self.watch_again(uri).await?;
        Ok(watching)
    }

    /// Subscribes again to a resource, unless the current session already has the subscription.
    pub(crate) async fn watch_again(
        &self,
        uri: &str,
    ) -> Result<(), consort_client::ClientCallError> {
        let session = self.client.session();
        let is_done = |resource: &WatchedResource| resource.session == Some(session);
        let Some(_over) = self.begin(uri, is_done).await else { return Ok(()) };
        let request = OutgoingRequest::new("resources/subscribe").with("uri", Json::string(uri));
        self.client.request(request).await?;
        if let Some(resource) = self.state.lock().resources.get_mut(uri) {
            resource.session = Some(session);
        }
        Ok(())
    }

    /// Unsubscribes from a resource without subscribers.
    async fn unwatch(&self, uri: &str) {
        let is_done =
            |resource: &WatchedResource| resource.watchers > 0 || resource.session.is_none();
        if let Some(_over) = self.begin(uri, is_done).await {
            let request =
                OutgoingRequest::new("resources/unsubscribe").with("uri", Json::string(uri));
            let _ = self.client.request(request).await;
            if let Some(resource) = self.state.lock().resources.get_mut(uri) {
                resource.session = None;
            }
        }
        let is_unused = |resource: &WatchedResource| resource.watchers == 0 && !resource.is_busy;
        let mut state = self.state.lock();
        if state.resources.get(uri).is_some_and(is_unused) {
            state.resources.remove(uri);
        }
    }

    /// Waits until no other request about a resource is in flight. Returns `None` if there is nothing to do.
    async fn begin<'a>(
        &'a self,
        uri: &'a str,
        is_done: impl Fn(&WatchedResource) -> bool,
    ) -> Option<RequestGuard<'a>> {
        loop {
            let changed = self.state.changed.notified();
            {
                let mut state = self.state.lock();
                let resource = state.resources.get_mut(uri)?;
                if !resource.is_busy {
                    if is_done(resource) {
                        return None;
                    }
                    resource.is_busy = true;
                    return Some(RequestGuard {
                        state: &self.state,
                        subject: RequestSubject::Resource(uri),
                    });
                }
            }
            changed.await;
        }
    }
}

/// Guard of a request in flight. When dropped, the next one about the same subject may be sent.
struct RequestGuard<'a> {
    state: &'a RequestedState,
    subject: RequestSubject<'a>,
}

enum RequestSubject<'a> {
    Level,
    Resource(&'a str),
}

impl Drop for RequestGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        match self.subject {
            RequestSubject::Level => state.is_setting_level = false,
            RequestSubject::Resource(uri) => {
                if let Some(resource) = state.resources.get_mut(uri) {
                    resource.is_busy = false;
                }
            }
        }
        drop(state);
        self.state.changed.notify_waiters();
    }
}

/// Subscription to a resource. When the last one is dropped, the server receives `resources/unsubscribe`.
#[derive(Debug)]
pub(crate) struct ResourceSubscription {
    upstream: UpstreamConnection,
    uri: String,
}

impl Drop for ResourceSubscription {
    fn drop(&mut self) {
        let (upstream, uri) = (self.upstream.clone(), std::mem::take(&mut self.uri));
        let is_last = upstream.state.lock().resources.get_mut(&uri).is_some_and(|resource| {
            resource.watchers -= 1;
            resource.watchers == 0
        });
        if let Some(tasks) = upstream.tasks.clone().filter(|_| is_last) {
            tasks.spawn(async move { upstream.unwatch(&uri).await });
        }
    }
}
