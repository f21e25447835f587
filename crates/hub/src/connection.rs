//! Managed connection to a server: connecting, listing, health checks, restarts, shutdown.

pub(crate) mod backoff;
pub(crate) mod keep;
mod reading;
mod readings;
pub(crate) mod refresh;
mod select;
mod serve;
mod variant;
mod wishes;

pub(crate) use backoff::chance;
pub(crate) use serve::probe;
pub(crate) use variant::{AwaitedVariant, LineLists};

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use consort_core::{CallError, Offers, OperatorText, ServerId, ShelfKind};
use consort_wire::{Client, ClientInfo, Found, Host, MemoryBudget, Server};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::connection::readings::ListReadings;
use crate::connection::variant::{ChangedLines, PendingVariant};
pub(crate) use crate::connection::wishes::{Wish, Wishes};
use crate::kept::Memory;
use crate::line::Line;
use crate::lines::Lines;
use crate::probation::SilentTools;
use crate::settings::{Connect, ServerSettings};
use crate::state::{State, Status};

/// Interval of the checks for calls in progress at a retired server.
const RETIRING: Duration = Duration::from_millis(50);

/// The managed connection to a server.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) id: ServerId,
    pub(crate) settings: ServerSettings,
    budget: MemoryBudget,
    status: watch::Sender<Status>,
    line: Mutex<Option<Line>>,
    /// The end of the standard error of earlier processes of the server, and the reasons for which they ended.
    past_stderr: Mutex<String>,
    /// Client capabilities of the first caller, which the main connection declares from then on.
    adopted: Mutex<Option<Arc<Offers>>>,
    /// Connections for callers with other capabilities or another identity.
    pub(crate) lines: Lines,
    /// Time of the next attempt, while the server is down.
    next_attempt: Mutex<Option<Instant>>,
    /// Notified when a caller waits for the first attempt.
    hurry: Notify,
    /// Notified to begin the next attempt at once.
    retry: Notify,
    wishes: mpsc::Sender<(Wish, Option<oneshot::Sender<()>>)>,
    /// State of the readings of its lists.
    pub(crate) readings: ListReadings,
    /// Readings of its lists for callers with other capabilities, in progress or failed.
    variant_readings: Mutex<Vec<PendingVariant>>,
    /// Its connections whose lists are to be read again.
    pub(crate) changed_lines: ChangedLines,
    /// Time of the first request to connect.
    wanted: OnceLock<Instant>,
    /// True if it was disconnected, disabled or stopped as idle, until the next command.
    rests: AtomicBool,
    stop: OnceLock<CancellationToken>,
    /// True once it is retired: its lists are no longer published.
    retired: AtomicBool,
    calls: AtomicUsize,
    last_used: Mutex<Instant>,
    /// True once the server sent a request on a channel that its calls share.
    pub(crate) asks: Arc<AtomicBool>,
    /// Its tools during whose calls it sent no request.
    pub(crate) silent: SilentTools,
    /// True if it is modern and refused a legacy session.
    pub(crate) modern_only: AtomicBool,
}

impl Connection {
    /// Makes a connection whose task is not started yet, and the receiver of its commands.
    pub(crate) fn new(settings: ServerSettings, budget: MemoryBudget) -> (Arc<Self>, Wishes) {
        let state = if settings.disabled { State::Disabled } else { State::Configured };
        let (wishes, received) = mpsc::channel(16);
        let received = Wishes::new(received);
        let connection = Self {
            id: settings.id.clone(),
            status: watch::Sender::new(Status::new(settings.id.clone(), state)),
            settings,
            budget,
            line: Mutex::default(),
            past_stderr: Mutex::default(),
            adopted: Mutex::default(),
            lines: Lines::default(),
            next_attempt: Mutex::default(),
            hurry: Notify::new(),
            retry: Notify::new(),
            wishes,
            readings: ListReadings::default(),
            variant_readings: Mutex::default(),
            changed_lines: ChangedLines::default(),
            wanted: OnceLock::new(),
            rests: AtomicBool::new(false),
            stop: OnceLock::new(),
            retired: AtomicBool::new(false),
            calls: AtomicUsize::new(0),
            last_used: Mutex::new(Instant::now()),
            asks: Arc::default(),
            silent: SilentTools::default(),
            modern_only: AtomicBool::new(false),
        };
        (Arc::new(connection), received)
    }

    /// Restores the stored knowledge of the last run.
    pub(crate) fn remember(&self, memory: &Memory) {
        let count = |kind| memory.offer.shelves.get(&kind).map_or(0, Vec::len);
        self.asks.store(memory.asks, Ordering::Relaxed);
        self.status.send_modify(|status| {
            status.state = State::Known;
            status.found = Some(memory.found);
            status.offers = ShelfKind::ALL.map(count);
        });
    }

    pub(crate) fn status(&self) -> Status {
        self.status.borrow().clone()
    }

    /// Reconnects the server at once, if it is down.
    pub(crate) fn retry_now(&self) {
        self.retry.notify_waiters();
    }

    /// Returns the end of the server's standard error, of the current process and of earlier ones.
    pub(crate) fn stderr(&self) -> OperatorText {
        let mut text = self.past_stderr.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(line) = self.current() {
            text.push_str(line.client.stderr().for_operator());
        }
        text.into()
    }

    /// Stores the standard error of a process that ended, up to the limit for a running one.
    pub(crate) fn remember_stderr(&self, text: &OperatorText) {
        if text.is_empty() {
            return;
        }
        let mut past = self.past_stderr.lock().unwrap_or_else(PoisonError::into_inner);
        past.push_str(text.for_operator());
        if !past.ends_with('\n') {
            past.push('\n');
        }
        let excess = past.len().saturating_sub(self.settings.limits.stderr_bytes);
        let from = past.ceil_char_boundary(excess);
        past.drain(..from);
    }

    /// Appends the reason for which a process ended to its standard error, with the id that its callers received.
    pub(crate) fn remember_end(&self, reason: &str) {
        if matches!(self.settings.server, Server::Command(_)) {
            self.remember_stderr(&format!("[{reason}]").into());
        }
    }

    /// Returns the client of the main connection, connecting first if need be.
    pub(crate) async fn client(&self) -> Result<Client, CallError> {
        self.main().await.map(|line| line.client)
    }

    /// Returns the main connection to the server, connecting first if need be.
    pub(crate) async fn main(&self) -> Result<Line, CallError> {
        if let Some(line) = self.current() {
            return Ok(line);
        }
        Box::pin(self.line(|_| true)).await
    }

    async fn line(&self, fits: impl Fn(&Line) -> bool) -> Result<Line, CallError> {
        let mut status = self.status.subscribe();
        let limit =
            Instant::now() + self.settings.times.handshake + self.settings.upkeep.retry_wait;
        let mut wished = false;
        loop {
            let now = status.borrow_and_update().clone();
            match now.state {
                State::Ready | State::Degraded => {
                    if let Some(line) = self.current().filter(&fits) {
                        return Ok(line);
                    }
                }
                State::NeedsAuth | State::Disabled => return Err(self.down(&now, None)),
                State::Failed if !self.tried_soon() => return Err(self.down(&now, None)),
                State::Configured | State::Known if !wished => {
                    wished = true;
                    self.wish(Wish::Connect).await;
                }
                _ => {}
            }
            if tokio::time::timeout_at(limit, status.changed()).await.is_err() {
                return Err(self.unreachable(None));
            }
        }
    }

    /// Returns the transport settings of the server.
    pub(crate) fn wire_settings(
        &self,
        found: Option<Found>,
        host: Arc<dyn Host>,
        client: &ClientInfo,
    ) -> consort_wire::Settings {
        let settings = &self.settings;
        consort_wire::Settings {
            label: self.id.to_string(),
            speak: settings.speak,
            found,
            limits: settings.limits.clone(),
            times: settings.times.clone(),
            tools: settings.tools.clone(),
            host,
            client: client.clone(),
            budget: self.budget.clone(),
        }
    }

    /// Returns a guard that marks the server as in use.
    pub(crate) fn in_use(self: &Arc<Self>) -> InUse {
        self.calls.fetch_add(1, Ordering::Relaxed);
        InUse(Arc::clone(self))
    }

    /// Sets the token that ends the task of this connection.
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

    /// Ends the connection once the calls in progress have ended, or after `drain`.
    pub(crate) async fn retire(&self, drain: Duration) {
        let limit = Instant::now() + drain;
        while self.calls.load(Ordering::Relaxed) > 0 && Instant::now() < limit {
            tokio::time::sleep(RETIRING).await;
        }
        if let Some(stop) = self.stop.get() {
            stop.cancel();
        }
    }

    /// Waits until the server is connected, or the attempt has failed.
    pub(crate) async fn settled(&self) {
        self.hurry.notify_one();
        let mut status = self.status.subscribe();
        let busy = |status: &Status| match status.state {
            State::Connecting => true,
            // It will be tried without being asked.
            State::Configured | State::Known => {
                self.settings.connect == Connect::Start && !self.rests.load(Ordering::Relaxed)
            }
            _ => false,
        };
        let _ = status.wait_for(|status| !busy(status)).await;
    }

    fn current(&self) -> Option<Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn tried_soon(&self) -> bool {
        let next = *self.next_attempt.lock().unwrap_or_else(PoisonError::into_inner);
        next.is_some_and(|next| next <= Instant::now() + self.settings.upkeep.retry_wait)
    }

    /// Returns the error that the server cannot be reached. `name` is the searched name, which no other server has, if
    /// the call named no server.
    pub(crate) fn unreachable(&self, name: Option<&str>) -> CallError {
        self.down(&self.status(), name)
    }

    /// Returns the error that the definitions of the server changed and could not be read again in time.
    pub(crate) fn unread(&self) -> CallError {
        let reason = "its definitions changed and could not be read again yet".to_owned();
        let status = Status { error: Some(reason), ..self.status() };
        self.down(&status, None)
    }

    /// Returns the error that a list of the server is not complete yet and may have this name.
    pub(crate) fn incomplete(&self, kind: ShelfKind, name: &str) -> CallError {
        let reason = format!("its list of {}s is not complete yet", kind.singular());
        let status = Status { error: Some(reason), ..self.status() };
        self.down(&status, Some(name))
    }

    fn down(&self, status: &Status, name: Option<&str>) -> CallError {
        let mut reason = status.error.clone().unwrap_or_else(|| format!("it is {}", status.state));
        if let Some(name) = name {
            let name = name.escape_debug();
            reason = format!(
                "no other server has `{name}`, and whether this one has it is not known: {reason}"
            );
        }
        CallError::Connection {
            server: self.id.clone(),
            source: consort_core::Source::new(Down(reason)),
            detail: status.detail.clone(),
        }
    }

    fn update(&self, change: impl FnOnce(&mut Status)) {
        self.status.send_modify(|status| {
            let before = status.state;
            change(status);
            if status.state != before {
                status.since = SystemTime::now();
            }
        });
    }

    /// Returns the time since its last use; zero while it is in use.
    fn unused(&self) -> Duration {
        if self.calls.load(Ordering::Relaxed) > 0 {
            return Duration::ZERO;
        }
        self.last_used.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }
}

/// Guard of a call that uses the server.
#[derive(Debug)]
pub(crate) struct InUse(Arc<Connection>);

impl Drop for InUse {
    fn drop(&mut self) {
        *self.0.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.0.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Reason why a server is down.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Down(String);

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
