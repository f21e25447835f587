//! A server kept alive: reached, listed, watched, started again, ended.

pub(crate) mod backoff;
pub(crate) mod keep;
mod reading;
mod readings;
pub(crate) mod refresh;
mod serve;
mod wishes;

pub(crate) use backoff::chance;
pub(crate) use serve::probe;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use consort_core::{CallError, Caller, Offers, OperatorText, ServerId, ShelfKind};
use consort_wire::{Client, ClientInfo, Era, Found, Host, MemoryBudget, Server};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::connection::readings::ListReadings;
pub(crate) use crate::connection::wishes::{Wish, Wishes};
use crate::kept::Memory;
use crate::lines::{Line, Lines};
use crate::settings::{Connect, ServerSettings};
use crate::state::{State, Status};

/// A call waits this long for a server that is about to be tried again.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// How often a server that is no longer wanted is looked at.
const RETIRING: Duration = Duration::from_millis(50);

/// Our side of a server.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) id: ServerId,
    pub(crate) settings: ServerSettings,
    budget: MemoryBudget,
    status: watch::Sender<Status>,
    line: Mutex<Option<Line>>,
    /// The end of what processes of the server that are gone wrote to their standard error, and how they ended.
    past_stderr: Mutex<String>,
    /// What the first caller could answer: the connection declares that from then on.
    adopted: Mutex<Option<Arc<Offers>>>,
    /// Connections for those who answer otherwise, or are somebody else.
    pub(crate) lines: Lines,
    /// When the next attempt is due, while the server is down.
    next_attempt: Mutex<Option<Instant>>,
    /// Somebody waits for the first attempt.
    hurry: Notify,
    /// The next attempt is due now.
    retry: Notify,
    wishes: mpsc::Sender<(Wish, Option<oneshot::Sender<()>>)>,
    /// The readings of its lists.
    pub(crate) readings: ListReadings,
    /// When it was first wanted.
    wanted: OnceLock<Instant>,
    /// It was connected and is not wanted for now.
    rests: AtomicBool,
    stop: OnceLock<CancellationToken>,
    /// No longer wanted: what it offers is no longer put on offer.
    retired: AtomicBool,
    calls: AtomicUsize,
    last_used: Mutex<Instant>,
}

impl Connection {
    /// A connection that is not kept yet, and the receiver of its wishes.
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
            wanted: OnceLock::new(),
            rests: AtomicBool::new(false),
            stop: OnceLock::new(),
            retired: AtomicBool::new(false),
            calls: AtomicUsize::new(0),
            last_used: Mutex::new(Instant::now()),
        };
        (Arc::new(connection), received)
    }

    /// Notes what is known from the last time.
    pub(crate) fn remember(&self, memory: &Memory) {
        let count = |kind| memory.offer.shelves.get(&kind).map_or(0, Vec::len);
        self.status.send_modify(|status| {
            status.state = State::Known;
            status.found = Some(memory.found);
            status.offers = ShelfKind::ALL.map(count);
        });
    }

    pub(crate) fn status(&self) -> Status {
        self.status.borrow().clone()
    }

    /// Has the server tried again now, if it is down.
    pub(crate) fn retry_now(&self) {
        self.retry.notify_waiters();
    }

    /// Returns the end of what the server wrote to its standard error, in this process and in those before.
    pub(crate) fn stderr(&self) -> OperatorText {
        let mut text = self.past_stderr.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(line) = self.current() {
            text.push_str(line.client.stderr().for_operator());
        }
        text.into()
    }

    /// Keeps what a process wrote that is gone, as much as is kept of one that runs.
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

    /// Notes behind what a process wrote how it ended, with the id its callers were given.
    pub(crate) fn remember_end(&self, reason: &str) {
        if matches!(self.settings.server, Server::Command(_)) {
            self.remember_stderr(&format!("[{reason}]").into());
        }
    }

    /// The server, reached: now, or as soon as that can be.
    pub(crate) async fn client(&self) -> Result<Client, CallError> {
        self.main().await.map(|line| line.client)
    }

    /// The main connection to the server: now, or as soon as that can be.
    pub(crate) async fn main(&self) -> Result<Line, CallError> {
        if let Some(line) = self.current() {
            return Ok(line);
        }
        Box::pin(self.line(|_| true)).await
    }

    /// The server, reached in the name of a caller who can answer `offers`. A modern server is told
    /// with each request; a legacy one once, so those who differ get connections of their own.
    pub(crate) async fn line_for(
        self: &Arc<Self>,
        caller: &Caller,
        offers: &Arc<Offers>,
    ) -> Result<Line, CallError> {
        let main = self.main().await?;
        if main.client.about().found.revision.era() == Era::Modern {
            return Ok(main);
        }
        if caller.name == Caller::OWNER {
            if main.offers == *offers {
                self.adopted().get_or_insert_with(|| Arc::clone(offers));
                return Ok(main);
            }
            if self.adopts(offers) {
                return Box::pin(async {
                    self.wish(Wish::Adopt).await;
                    self.line(|line| line.offers == *offers).await
                })
                .await;
            }
        }
        Box::pin(self.lines.get(self, &main.client, caller, offers)).await
    }

    /// Whether the main connection may be made anew for a caller: nobody has used it yet.
    fn adopts(&self, offers: &Arc<Offers>) -> bool {
        let mut adopted = self.adopted();
        match &*adopted {
            Some(adopted) => adopted == offers,
            None if self.calls.load(Ordering::Relaxed) > 0 => false,
            None => {
                *adopted = Some(Arc::clone(offers));
                true
            }
        }
    }

    fn adopted(&self) -> MutexGuard<'_, Option<Arc<Offers>>> {
        self.adopted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn line(&self, fits: impl Fn(&Line) -> bool) -> Result<Line, CallError> {
        let mut status = self.status.subscribe();
        let limit = Instant::now() + self.settings.times.handshake + PATIENCE;
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

    /// How the wire shall treat the server.
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

    /// Marks the server as used for as long as this is held.
    pub(crate) fn in_use(self: &Arc<Self>) -> InUse {
        self.calls.fetch_add(1, Ordering::Relaxed);
        InUse(Arc::clone(self))
    }

    /// What ends whoever keeps it.
    pub(crate) fn stops_by(&self, stop: CancellationToken) {
        let _ = self.stop.set(stop);
    }

    /// From now on it is not wanted.
    pub(crate) fn unwanted(&self) {
        self.retired.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_unwanted(&self) -> bool {
        self.retired.load(Ordering::Relaxed)
    }

    /// Ends once the calls in progress have, or after `drain`.
    pub(crate) async fn retire(&self, drain: Duration) {
        let limit = Instant::now() + drain;
        while self.calls.load(Ordering::Relaxed) > 0 && Instant::now() < limit {
            tokio::time::sleep(RETIRING).await;
        }
        if let Some(stop) = self.stop.get() {
            stop.cancel();
        }
    }

    /// Waits until the server is up or down for now.
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
        next.is_some_and(|next| next <= Instant::now() + PATIENCE)
    }

    /// That the server cannot be reached; `name` is what nobody else has, if it was not named.
    pub(crate) fn unreachable(&self, name: Option<&str>) -> CallError {
        self.down(&self.status(), name)
    }

    /// That the server said that its definitions changed, and they could not be read again in time.
    pub(crate) fn unread(&self) -> CallError {
        let reason = "its definitions changed and could not be read again yet".to_owned();
        let status = Status { error: Some(reason), ..self.status() };
        self.down(&status, None)
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

    /// How long it has not been used; nothing while it is.
    fn unused(&self) -> Duration {
        if self.calls.load(Ordering::Relaxed) > 0 {
            return Duration::ZERO;
        }
        self.last_used.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }
}

/// A call that uses the server.
#[derive(Debug)]
pub(crate) struct InUse(Arc<Connection>);

impl Drop for InUse {
    fn drop(&mut self) {
        *self.0.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.0.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Why a server is down.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Down(String);

/// An error with its causes, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
