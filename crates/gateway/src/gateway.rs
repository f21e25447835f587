//! What all fronts share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};

use consort_core::{Caller, Json, Route, ShelfKind};
use consort_wire::MemoryBudget;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::browser::{BrowserSessions, Door};
use crate::front::Fronts;
use crate::guard::Keys;
use crate::ledger::Ledger;
use crate::menu::Menu;
use crate::metrics::Extra;
use crate::park::Park;
use crate::recorded::Records;
use crate::seal::Seal;
use crate::session::Sessions;
use crate::settings::{Access, Limits, Permissions, ServerStatus, Settings, Toolboxes};
use crate::sse::Pipes;
use crate::tasks::TaskInputs;

/// How often what timed out is looked for.
const SWEEP: std::time::Duration = std::time::Duration::from_secs(1);

/// Toolboxes served to MCP clients of every era. Clones are the same gateway.
#[derive(Clone, Debug)]
pub struct Gateway(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) settings: Settings,
    keys: RwLock<Arc<Keys>>,
    permissions: RwLock<Arc<Permissions>>,
    browser_sessions: Arc<BrowserSessions>,
    pub(crate) records: Records,
    pub(crate) fronts: Fronts,
    pub(crate) sessions: Sessions,
    pub(crate) pipes: Pipes,
    pub(crate) park: Park,
    pub(crate) task_inputs: TaskInputs,
    pub(crate) seal: Seal,
    /// Held by every request in progress.
    pub(crate) requests: Arc<()>,
    /// Memory for large bodies and answers.
    pub(crate) budget: MemoryBudget,
    /// Whether the first menus are made.
    settled: watch::Sender<bool>,
    /// Whoever balances load shall send requests elsewhere.
    leaving: AtomicBool,
    /// No new requests.
    pub(crate) draining: CancellationToken,
    /// No requests at all.
    pub(crate) stop: CancellationToken,
    pub(crate) crew: TaskTracker,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Gateway {
    /// Starts a gateway. What it offers is named once `known` is over or [`Limits::list_wait`] has passed:
    /// whoever asks for a list or makes a call before then waits. Nobody else does.
    ///
    /// [`Limits::list_wait`]: crate::Limits::list_wait
    pub fn start(
        toolboxes: Toolboxes,
        settings: Settings,
        records: Records,
        known: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        let limits = &settings.limits;
        let inner = Arc::new(Inner {
            keys: RwLock::new(Arc::new(Keys::new(&settings.access))),
            permissions: RwLock::new(Arc::new(settings.permissions.clone())),
            browser_sessions: Arc::new(BrowserSessions::new(limits)),
            fronts: Fronts::new(&settings, toolboxes),
            sessions: Sessions::new(limits.sessions, limits.session),
            pipes: Pipes::default(),
            park: Park::new(limits.parked, limits.park),
            task_inputs: TaskInputs::new(limits.parked, limits.park),
            seal: Seal::new(),
            requests: Arc::default(),
            budget: settings.budget.clone().unwrap_or_else(|| MemoryBudget::new(limits.held_bytes)),
            settled: watch::Sender::new(false),
            leaving: AtomicBool::new(false),
            draining: CancellationToken::new(),
            stop: CancellationToken::new(),
            crew: TaskTracker::new(),
            records,
            settings,
        });
        inner.records.metrics.set_limits(limits_in_force(&inner.settings.limits));
        inner.crew.spawn(follow(Arc::clone(&inner), known));
        inner.crew.spawn(sweep(Arc::clone(&inner)));
        Self(inner)
    }

    /// Whether requests are answered: what is offered is known, and nobody wants the gateway to end.
    pub fn is_ready(&self) -> bool {
        self.0.is_ready()
    }

    /// Goes over to other toolboxes; they offer the same servers.
    pub fn set(&self, toolboxes: Toolboxes) {
        self.0.fronts.set(&self.0.settings, toolboxes);
        if *self.0.settled.borrow() {
            self.0.refresh();
        }
    }

    /// Goes over to other tokens: those that are gone no longer open anything.
    pub fn set_access(&self, access: &Access) {
        let keys = Arc::new(Keys::new(access));
        *self.0.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&keys);
        self.0.browser_sessions.sweep(&keys);
    }

    /// Replaces what others than the owner and our own pages may do.
    pub fn set_permissions(&self, permissions: Permissions) {
        let permissions = Arc::new(permissions);
        *self.0.permissions.write().unwrap_or_else(PoisonError::into_inner) = permissions;
    }

    /// What is going on.
    pub fn counts(&self) -> Counts {
        let inner = &self.0;
        Counts {
            sessions: inner.sessions.len(),
            pipes: inner.pipes.len(),
            requests: Arc::strong_count(&inner.requests) - 1,
            parked: inner.park.len() + inner.task_inputs.len(),
        }
    }

    /// What could not be offered, and why.
    pub fn problems(&self) -> Vec<consort_core::Problem> {
        self.0.fronts.whole().menu(&Caller::client(Caller::OWNER)).problems.clone()
    }

    /// What tells the names that things have in front of clients, as long as the gateway is there.
    pub fn labels(&self) -> Labels {
        Labels(Arc::downgrade(&self.0))
    }

    /// Says 503 at `/readyz` for as long as [`Limits::lame_duck`], in which requests are served as before: load
    /// balancers notice, and send them elsewhere.
    ///
    /// [`Limits::lame_duck`]: crate::Limits::lame_duck
    pub async fn leave(&self) {
        self.0.leaving.store(true, Ordering::Relaxed);
        tokio::time::sleep(self.0.settings.limits.lame_duck).await;
    }

    /// Takes no new requests, lets those in progress end for as long as [`Limits::drain`], and then
    /// ends everything.
    ///
    /// [`Limits::drain`]: crate::Limits::drain
    pub async fn drain(&self) {
        let inner = &self.0;
        inner.draining.cancel();
        inner.crew.close();
        let ended = tokio::time::timeout(inner.settings.limits.drain, inner.crew.wait());
        if ended.await.is_err() {
            tracing::warn!("requests in progress were ended");
        }
        self.end().await;
    }

    /// Ends everything at once.
    pub async fn end(&self) {
        self.0.draining.cancel();
        self.0.stop.cancel();
        self.0.sessions.end();
        self.0.park.end();
        self.0.task_inputs.end();
        self.0.crew.close();
        self.0.crew.wait().await;
    }
}

/// What tells the names that things have in front of clients. It does not keep the gateway.
#[derive(Clone, Debug)]
pub struct Labels(Weak<Inner>);

impl Labels {
    /// The names at the address of everything, for a caller; nothing once the gateway is gone.
    pub fn now(&self, caller: &Caller) -> Option<Labelled> {
        Some(Labelled(self.0.upgrade()?.fronts.whole().menu(caller)))
    }
}

/// The names that things had in front of clients at one time.
#[derive(Clone, Debug)]
pub struct Labelled(Arc<Menu>);

impl Labelled {
    /// The server of each thing, what it is called before it meets those of others, and its name.
    pub fn names(&self, kind: ShelfKind) -> impl Iterator<Item = (&Route, &str)> {
        self.0.board(kind).routes()
    }

    /// Whether these are of the same time.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// How much of what is going on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sessions of legacy clients over Streamable HTTP.
    pub sessions: usize,
    /// Clients over HTTP+SSE.
    pub pipes: usize,
    /// Requests in progress.
    pub requests: usize,
    /// Calls that wait for their client's answer.
    pub parked: usize,
}

impl Inner {
    pub(crate) fn keys(&self) -> Arc<Keys> {
        Arc::clone(&self.keys.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn permissions(&self) -> Arc<Permissions> {
        Arc::clone(&self.permissions.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The place where tokens are checked and browser sessions begin and end.
    pub(crate) fn door(&self) -> Door {
        Door { keys: self.keys(), sessions: Arc::clone(&self.browser_sessions) }
    }

    /// What is counted, with how things are now.
    pub(crate) fn metrics(&self, servers: Vec<ServerStatus>) -> String {
        let Records { metrics, ledger, tracer, .. } = &self.records;
        metrics.sessions.set(self.sessions.len() + self.pipes.len());
        metrics.parked.set(self.park.len() + self.task_inputs.len());
        metrics.render(&Extra {
            servers,
            ledger: ledger.as_ref().map(Ledger::stats),
            spans_dropped: tracer.is_on().then(|| tracer.dropped()),
        })
    }

    pub(crate) fn is_ready(&self) -> bool {
        *self.settled.borrow()
            && !self.leaving.load(Ordering::Relaxed)
            && !self.draining.is_cancelled()
    }

    /// Makes every menu anew.
    pub(crate) fn refresh(&self) {
        self.fronts.refresh();
        let catalog = self.fronts.plain().catalog(&Caller::client(Caller::OWNER));
        // Also those that are hidden from whoever runs us.
        let reached = (self.settings.states)().into_iter().map(|status| status.server);
        self.records.metrics.know(catalog.abouts().keys().cloned().chain(reached));
    }

    /// Waits until the first menus are made.
    pub(crate) async fn settled(&self) {
        if *self.settled.borrow() {
            return;
        }
        let mut settled = self.settled.subscribe();
        let _ = settled.wait_for(|settled| *settled).await;
    }
}

/// Keeps the menus up to date.
async fn follow(gateway: Arc<Inner>, known: impl Future<Output = ()>) {
    let mut changes = gateway.fronts.plain().changes();
    let limits = &gateway.settings.limits;
    let settle = tokio::time::timeout(limits.list_wait, known);
    tokio::select! {
        _ = settle => {}
        // Whoever waits is still answered, with what is known.
        () = gateway.draining.cancelled() => {}
    }
    gateway.refresh();
    gateway.settled.send_replace(true);
    loop {
        tokio::select! {
            change = changes.next() => {
                if change.is_none() {
                    return;
                }
                gateway.refresh();
            }
            () = gateway.draining.cancelled() => return,
        }
    }
}

/// Ends what timed out.
async fn sweep(gateway: Arc<Inner>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(SWEEP) => {}
            () = gateway.draining.cancelled() => return,
        }
        gateway.records.lines.flush(&gateway.records.metrics);
        gateway.park.sweep();
        gateway.task_inputs.sweep();
        gateway.sessions.sweep();
        gateway.browser_sessions.sweep(&gateway.keys());
    }
}

/// Returns the limits that metrics compare with what is going on, by their names.
fn limits_in_force(limits: &Limits) -> [(&'static str, i64); 5] {
    let whole = |size: usize| i64::try_from(size).unwrap_or(i64::MAX);
    [
        ("connections", whole(limits.connections)),
        ("sessions", whole(limits.sessions)),
        ("suspended_calls", whole(limits.parked)),
        ("request_body_bytes", whole(limits.body_bytes)),
        ("held_bytes", whole(limits.held_bytes)),
    ]
}

/// An object without members.
pub(crate) fn empty() -> Json {
    consort_core::Object::empty().json().clone()
}
