//! A managed server: what callers know of it, its connections and commands. Its task is in `managed/driver.rs`, and
//! decides by the rules in `lifecycle.rs`.

mod commands;
pub(crate) mod driver;
mod follower;
mod in_use;
mod log;
mod reading;
mod readings;
mod select;
mod stderr;
mod variant;

pub(crate) use commands::CommandReceiver;
pub(crate) use follower::{ChangedConnections, ListFollower};
pub(crate) use in_use::InUse;
pub(crate) use reading::probe;
pub(crate) use variant::AwaitedVariant;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, SystemTime};

use consort_client::{Client, ClientHandler, ClientInfo, NegotiatedProtocol, ServerLogSink};
use consort_core::{CallError, PrimitiveKind, ServerId};
use consort_protocol::MemoryBudget;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::catalog_store::StoredServer;
use crate::lease::ConnectionUse;
use crate::lifecycle::{ConnectionCommand, ServerSnapshot};
use crate::pool::ConnectionPool;
use crate::probation::SilentTools;
use crate::server_log::ServerLog;
use crate::settings::{ConnectTrigger, ServerSettings};
use crate::status::{ManagedState, ManagedStatus};
use crate::upstream::UpstreamConnection;
use commands::CommandRequest;
use readings::ListReadings;
use variant::VariantReadings;

/// Interval of the checks for calls in progress at a retired server or connection.
const RETIRING: Duration = Duration::from_millis(50);

/// A server and its connections.
#[derive(Debug)]
pub(crate) struct ManagedServer {
    pub(crate) id: ServerId,
    pub(crate) settings: ServerSettings,
    budget: MemoryBudget,
    snapshot: watch::Sender<ServerSnapshot>,
    /// The main connection, once its lists were read.
    main: Mutex<Option<UpstreamConnection>>,
    /// Its log.
    log: OnceLock<Arc<ServerLog>>,
    /// The end of the standard error of earlier processes of the server, and the reasons for which they ended.
    past_stderr: Mutex<String>,
    /// Connections for callers with other capabilities or another identity.
    pub(crate) pool: ConnectionPool,
    /// Notified when a caller waits for the first attempt.
    connect_now: Notify,
    /// Notified to begin the next attempt at once.
    retry_now: Notify,
    commands: mpsc::Sender<CommandRequest>,
    /// State of the readings of its lists.
    pub(crate) readings: ListReadings,
    /// Readings of its lists for callers with other capabilities, in progress or failed.
    variant_readings: Mutex<VariantReadings>,
    /// Its connections whose lists are to be read again.
    pub(crate) changed_connections: ChangedConnections,
    /// Time of the first request to connect.
    first_request: OnceLock<Instant>,
    stop: OnceLock<CancellationToken>,
    /// True once it is retired: its lists are no longer published.
    retired: AtomicBool,
    calls: AtomicUsize,
    last_used: Mutex<Instant>,
    /// True once the server sent a request on a channel that its calls share.
    pub(crate) sends_requests: Arc<AtomicBool>,
    /// Its tools during whose calls it sent no request.
    pub(crate) silent: SilentTools,
    /// True if it is modern and refused a legacy session.
    pub(crate) modern_only: AtomicBool,
}

impl ManagedServer {
    /// Makes a server whose task is not started yet, and the receiver of its commands.
    pub(crate) fn new(
        settings: ServerSettings,
        budget: MemoryBudget,
    ) -> (Arc<Self>, CommandReceiver) {
        let state =
            if settings.disabled { ManagedState::Disabled } else { ManagedState::Configured };
        let (commands, receiver) = commands::channel();
        let status = ManagedStatus::new(settings.id.clone(), state);
        let server = Self {
            id: settings.id.clone(),
            snapshot: watch::Sender::new(ServerSnapshot::new(status)),
            settings,
            budget,
            main: Mutex::default(),
            log: OnceLock::new(),
            past_stderr: Mutex::default(),
            pool: ConnectionPool::default(),
            connect_now: Notify::new(),
            retry_now: Notify::new(),
            commands,
            readings: ListReadings::default(),
            variant_readings: Mutex::default(),
            changed_connections: ChangedConnections::default(),
            first_request: OnceLock::new(),
            stop: OnceLock::new(),
            retired: AtomicBool::new(false),
            calls: AtomicUsize::new(0),
            last_used: Mutex::new(Instant::now()),
            sends_requests: Arc::default(),
            silent: SilentTools::default(),
            modern_only: AtomicBool::new(false),
        };
        (Arc::new(server), receiver)
    }

    /// Restores the stored knowledge of the last run.
    pub(crate) fn remember(&self, memory: &StoredServer) {
        let count = |kind| memory.offer.lists.get(&kind).map_or(0, Vec::len);
        self.sends_requests.store(memory.sends_requests, Ordering::Relaxed);
        self.snapshot.send_modify(|ServerSnapshot { status, .. }| {
            status.state = ManagedState::Known;
            status.protocol = Some(memory.protocol);
            status.offers = PrimitiveKind::ALL.map(count);
        });
    }

    pub(crate) fn status(&self) -> ManagedStatus {
        self.snapshot.borrow().status.clone()
    }

    fn state(&self) -> ManagedState {
        self.snapshot.borrow().status.state
    }

    /// Returns the generation of its credentials.
    pub(crate) fn credentials(&self) -> u64 {
        self.settings.server.credentials().map_or(0, |credentials| credentials.generation())
    }

    /// Reconnects the server at once, if it is down.
    pub(crate) fn retry_now(&self) {
        self.retry_now.notify_one();
    }

    /// Returns the client of the main connection, connecting first if need be.
    pub(crate) async fn client(&self) -> Result<Client, CallError> {
        self.main().await.map(|main| main.client.clone())
    }

    /// Returns the main connection to the server, connecting first if need be.
    pub(crate) async fn main(&self) -> Result<UpstreamConnection, CallError> {
        match self.current() {
            Some(main) if main.credentials == self.credentials() => Ok(main),
            _ => Box::pin(self.await_main(|_| true)).await,
        }
    }

    /// Waits for the main connection to be one that fits.
    async fn await_main(
        &self,
        fits: impl Fn(&UpstreamConnection) -> bool,
    ) -> Result<UpstreamConnection, CallError> {
        let mut snapshot = self.snapshot.subscribe();
        let limit =
            Instant::now() + self.settings.times.handshake + self.settings.upkeep.retry_wait;
        let mut is_woken = false;
        loop {
            let now = snapshot.borrow_and_update().clone();
            let mut is_asleep = false;
            match now.status.state {
                ManagedState::Ready | ManagedState::Degraded => match self.current() {
                    // Its task learns of replaced credentials with the command.
                    Some(main) if main.credentials != self.credentials() => is_asleep = true,
                    Some(main) if fits(&main) => return Ok(main),
                    _ => {}
                },
                ManagedState::NeedsAuth | ManagedState::Disabled => {
                    return Err(self.down(&now.status, None));
                }
                ManagedState::Failed if !self.is_retried_soon(&now) => {
                    return Err(self.down(&now.status, None));
                }
                ManagedState::Configured | ManagedState::Known => is_asleep = true,
                ManagedState::Failed | ManagedState::Connecting => {}
            }
            if is_asleep && !std::mem::replace(&mut is_woken, true) {
                self.send(ConnectionCommand::Wake).await;
            }
            if tokio::time::timeout_at(limit, snapshot.changed()).await.is_err() {
                return Err(self.unreachable(None));
            }
        }
    }

    /// Returns the transport settings of the server.
    pub(crate) fn wire_settings(
        &self,
        found: Option<NegotiatedProtocol>,
        host: Arc<dyn ClientHandler>,
        client: &ClientInfo,
    ) -> consort_client::ClientSettings {
        let settings = &self.settings;
        consort_client::ClientSettings {
            label: self.id.to_string(),
            speak: settings.speak,
            protocol: found,
            limits: settings.limits.clone(),
            times: settings.times.clone(),
            tools: settings.tools.clone(),
            host,
            client: client.clone(),
            budget: self.budget.clone(),
            log: self.log.get().cloned().map(|log| log as Arc<dyn ServerLogSink>),
            values: settings.values.clone(),
        }
    }

    /// Returns a guard that marks the server as in use.
    pub(crate) fn in_use(self: &Arc<Self>) -> InUse {
        self.calls.fetch_add(1, Ordering::Relaxed);
        InUse(Arc::clone(self))
    }

    /// Sets the token that ends its task.
    pub(crate) fn stops_by(&self, stop: CancellationToken) {
        let _ = self.stop.set(stop);
    }

    /// Marks it as retired.
    pub(crate) fn unwanted(&self) {
        self.retired.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_unwanted(&self) -> bool {
        self.retired.load(Ordering::Relaxed)
    }

    /// Ends the server once the calls in progress have ended, or after `drain`.
    pub(crate) async fn retire(&self, drain: Duration) {
        let limit = Instant::now() + drain;
        while self.is_in_use() && Instant::now() < limit {
            tokio::time::sleep(RETIRING).await;
        }
        if let Some(stop) = self.stop.get() {
            stop.cancel();
        }
    }

    /// Closes a connection once its calls have ended, at most after the longest time that one may take.
    pub(crate) fn close_unused(&self, client: Client, used: Weak<ConnectionUse>) {
        let Some(tasks) = self.pool.tasks() else { return };
        let totals = self.settings.tools.values().filter_map(|times| times.total);
        let limit = totals.fold(self.settings.times.total, Duration::max);
        let limit = Instant::now() + limit;
        tasks.spawn_until_stop(|stop| async move {
            while used.strong_count() > 0 && Instant::now() < limit && !stop.is_cancelled() {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = tokio::time::sleep(RETIRING) => {}
                }
            }
            client.close().await;
        });
    }

    /// Waits until the server is connected, or the attempt has failed.
    pub(crate) async fn settled(&self) {
        self.connect_now.notify_one();
        let is_busy = |snapshot: &ServerSnapshot| match snapshot.status.state {
            ManagedState::Connecting => true,
            // It will be tried without being asked.
            ManagedState::Configured | ManagedState::Known => {
                self.settings.connect == ConnectTrigger::Start && !snapshot.is_resting
            }
            _ => false,
        };
        let _ = self.snapshot.subscribe().wait_for(|snapshot| !is_busy(snapshot)).await;
    }

    fn current(&self) -> Option<UpstreamConnection> {
        self.main.lock().clone()
    }

    /// Replaces the main connection and returns the previous one.
    fn replace_main(&self, main: Option<UpstreamConnection>) -> Option<UpstreamConnection> {
        std::mem::replace(&mut *self.main.lock(), main)
    }

    fn is_retried_soon(&self, snapshot: &ServerSnapshot) -> bool {
        let soon = Instant::now() + self.settings.upkeep.retry_wait;
        snapshot.next_attempt.is_some_and(|next| next <= soon)
    }

    /// Returns the error that the server cannot be reached. `name` is the searched name, which no other server has, if
    /// the call named no server.
    pub(crate) fn unreachable(&self, name: Option<&str>) -> CallError {
        self.down(&self.status(), name)
    }

    /// Returns the error that the definitions of the server changed and could not be read again in time.
    pub(crate) fn unread(&self) -> CallError {
        let reason = "its definitions changed and could not be read again yet".to_owned();
        let status = ManagedStatus { error: Some(reason), ..self.status() };
        self.down(&status, None)
    }

    /// Returns the error that a list of the server is not complete yet and may have this name.
    pub(crate) fn incomplete(&self, kind: PrimitiveKind, name: &str) -> CallError {
        let reason = format!("its list of {}s is not complete yet", kind.singular());
        let status = ManagedStatus { error: Some(reason), ..self.status() };
        self.down(&status, Some(name))
    }

    fn down(&self, status: &ManagedStatus, name: Option<&str>) -> CallError {
        let mut reason = status.error.clone().unwrap_or_else(|| format!("it is {}", status.state));
        if let Some(name) = name {
            let name = name.escape_debug();
            reason = format!(
                "no other server has `{name}`, and the tools of this one are not known yet: {reason}"
            );
        }
        CallError::Connection {
            server: self.id.clone(),
            source: consort_core::SharedError::new(DownReason(reason)),
            detail: status.detail.clone(),
        }
    }

    /// Publishes the state of its lifecycle.
    fn publish(&self, now: &ServerSnapshot) {
        self.log_state(&now.status);
        self.snapshot.send_modify(|known| {
            let (state, since) = (known.status.state, known.status.since);
            known.clone_from(now);
            known.status.since =
                if known.status.state == state { since } else { SystemTime::now() };
        });
    }

    /// Returns true while calls use it.
    fn is_in_use(&self) -> bool {
        self.calls.load(Ordering::Relaxed) > 0
    }

    /// Returns the time since its last use; zero while it is in use.
    fn unused(&self) -> Duration {
        if self.is_in_use() {
            return Duration::ZERO;
        }
        self.last_used.lock().elapsed()
    }
}

/// Reason why a server is down.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct DownReason(String);

/// Formats an error with its causes in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
