//! The task that maintains a connection: connecting, backoff, restart, shutdown.

use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use consort_core::{Offers, OperatorText};
use consort_wire::{Client, ClientInfo, ConnectError, Host, SERVER_OUTPUT};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::backoff::{self, Backoff, FailureKind};
use super::{Connection, Wish, Wishes, chain, chance};
use crate::attribution::AttributedHost;
use crate::kept::{Kept, Memory};
use crate::key::CallerHost;
use crate::line::Line;
use crate::settings::Connect;
use crate::shared::Shared;
use crate::state::{State, Status};
use crate::tasks::ServerTasks;
use crate::writer::LatestWriter;

/// Maximum delay of the start of a server whose lists are known.
const LINGER: Duration = Duration::from_millis(50);

/// State of the task that maintains a connection.
pub(crate) struct Keeper {
    pub(crate) connection: Arc<Connection>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) client: ClientInfo,
    /// Stores the lists of the server.
    pub(crate) kept: Option<LatestWriter<Memory>>,
    pub(crate) stop: CancellationToken,
    /// Capabilities that the current connection declares.
    pub(super) offers: Arc<Offers>,
    pub(super) backoff: Backoff,
}

/// Reason for the end of a connection.
pub(super) enum Over {
    /// The server failed in this way and for this reason, with its own output about it.
    Lost(FailureKind, String, OperatorText),
    /// It was stopped on request or because it was idle; this is its next state.
    Unwanted(State),
    /// A restart was requested.
    Restart,
    /// It is restarted with the capabilities of its first caller.
    Adopted,
    /// The hub ends.
    Ended,
}

impl Keeper {
    pub(crate) fn new(
        connection: Arc<Connection>,
        shared: Arc<Shared>,
        host: Arc<dyn Host>,
        client: ClientInfo,
        kept: Option<Kept>,
        stop: CancellationToken,
        tasks: ServerTasks,
    ) -> Self {
        connection.lines.introduce(client.clone(), Arc::clone(&shared), tasks.clone());
        let kept = kept.map(|kept| {
            let connection = Arc::clone(&connection);
            LatestWriter::new(tasks, move |memory| {
                if let Err(error) = kept.save(&connection.settings, &memory) {
                    tracing::warn!(server = %connection.id, %error, "what it offers could not be kept");
                }
            })
        });
        let backoff = Backoff::new(connection.settings.upkeep);
        Self { connection, shared, host, client, kept, stop, offers: Arc::default(), backoff }
    }

    /// Maintains the connection until the hub ends.
    pub(crate) async fn keep(mut self, mut wishes: Wishes) {
        self.keep_on(&mut wishes).await;
        self.connection.lines.close().await;
    }

    async fn keep_on(&mut self, wishes: &mut Wishes) {
        let settings = &self.connection.settings;
        let mut wanted = settings.connect == Connect::Start && !settings.disabled;
        if wanted && self.connection.status().state == State::Known {
            match self.linger(wishes).await {
                Over::Ended => return,
                Over::Unwanted(state) => {
                    wanted = false;
                    self.rest(state);
                }
                _ => {}
            }
        }
        loop {
            if !wanted {
                wishes.fulfilled();
                match self.next_wish(wishes).await {
                    Some(Wish::Connect | Wish::Restart | Wish::Adopt) => wanted = true,
                    Some(Wish::Disable) => self.rest(State::Disabled),
                    Some(Wish::Disconnect) => {}
                    None => return,
                }
                continue;
            }
            let over = match self.reach(wishes).await {
                Ok(client) => self.serve(client, wishes).await,
                Err(over) => over,
            };
            self.put_client(None);
            match over {
                Over::Ended => return,
                Over::Restart => self.restarted(),
                Over::Adopted => {}
                Over::Unwanted(state) => {
                    wanted = false;
                    self.rest(state);
                }
                Over::Lost(kind, reason, detail) => {
                    match self.recover(kind, reason, detail, wishes).await {
                        Over::Ended => return,
                        Over::Unwanted(state) => {
                            wanted = false;
                            self.rest(state);
                        }
                        Over::Restart | Over::Adopted | Over::Lost(..) => self.restarted(),
                    }
                }
            }
        }
    }

    /// Delays the start of a server whose lists are known, unless a caller needs it now. Starting many servers takes a
    /// while, during which list requests would wait.
    async fn linger(&self, wishes: &mut Wishes) -> Over {
        tokio::select! {
            () = tokio::time::sleep(LINGER) => Over::Restart,
            () = self.connection.hurry.notified() => Over::Restart,
            () = self.stop.cancelled() => Over::Ended,
            wish = wishes.next() => match wish {
                Some(Wish::Connect | Wish::Restart | Wish::Adopt) => Over::Restart,
                Some(Wish::Disable) => Over::Unwanted(State::Disabled),
                Some(Wish::Disconnect) => Over::Unwanted(State::Known),
                None => Over::Ended,
            },
        }
    }

    async fn next_wish(&self, wishes: &mut Wishes) -> Option<Wish> {
        tokio::select! {
            wish = wishes.next() => wish,
            () = self.stop.cancelled() => None,
        }
    }

    /// Connects, unless that fails or another command arrives meanwhile.
    async fn reach(&mut self, wishes: &mut Wishes) -> Result<Client, Over> {
        self.connection.rests.store(false, Ordering::Relaxed);
        self.connection.wanted.get_or_init(Instant::now);
        self.update(|status| status.state = State::Connecting);
        wishes.fulfilled();
        let host: Arc<dyn Host> = match &*self.connection.adopted() {
            Some(offers) => Arc::new(CallerHost::new(offers, Arc::clone(&self.connection.asks))),
            None => Arc::new(AttributedHost {
                server: self.connection.id.clone(),
                inner: Arc::clone(&self.host),
            }),
        };
        self.offers = Arc::new(host.offers());
        let found = self.connection.status().found;
        let wire = self.connection.wire_settings(found, host, &self.client);
        let mut connecting = pin!(Client::connect(&self.connection.settings.server, wire));
        let mut adopted = false;
        let mut notice = pin!(tokio::time::sleep(self.connection.settings.upkeep.install_notice));
        let mut noticed = self.connection.settings.installer.is_none();
        let reached = loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return Err(Over::Ended),
                wish = wishes.next() => match wish {
                    Some(Wish::Connect) => wishes.fulfilled(),
                    // A server that starts is not disturbed for that.
                    Some(Wish::Adopt) => adopted = true,
                    Some(Wish::Restart) => return Err(Over::Restart),
                    Some(Wish::Disable) => return Err(Over::Unwanted(State::Disabled)),
                    Some(Wish::Disconnect) => return Err(Over::Unwanted(State::Known)),
                    None => return Err(Over::Ended),
                },
                reached = &mut connecting => break reached,
                () = &mut notice, if !noticed => {
                    noticed = true;
                    self.tell_of_install();
                }
            }
        };
        let client = reached.map_err(|error| self.failed(&error))?;
        if adopted {
            client.close().await;
            return Err(Over::Adopted);
        }
        Ok(client)
    }

    /// Reports in the status that a start takes long because a package may be fetched.
    fn tell_of_install(&self) {
        let settings = &self.connection.settings;
        let Some(installer) = &settings.installer else { return };
        let limit = settings.times.handshake;
        let hint = format!(
            "`{installer}` may be fetching the package; waiting up to {limit:?} (`timeout.install`)"
        );
        tracing::info!(server = %self.connection.id, hint, "server takes long to start");
        self.update(|status| status.hint = Some(hint));
    }

    /// Records a failed connection attempt in the status.
    fn failed(&self, error: &ConnectError) -> Over {
        let (reason, detail) = (chain(error), error.detail());
        if matches!(error, ConnectError::Closed(_) | ConnectError::TimedOut { .. }) {
            self.connection.remember_stderr(&detail);
        }
        // What a process wrote that ended is in the log already.
        if !matches!(error, ConnectError::Closed(_)) {
            for line in detail.lines_for_operator() {
                tracing::debug!(target: SERVER_OUTPUT, server = %self.connection.id, line, "failed handshake");
            }
        }
        let state = match error {
            ConnectError::Unauthorized { .. } => State::NeedsAuth,
            _ => State::Failed,
        };
        self.update(|status| {
            status.state = state;
            status.error = Some(reason.clone());
            status.detail = detail.clone();
            status.hint = error.hint().map(str::to_owned);
        });
        Over::Lost(failure_kind(error), reason, detail)
    }

    /// Waits until the server may be reconnected, or another command arrives.
    async fn recover(
        &mut self,
        kind: FailureKind,
        reason: String,
        detail: OperatorText,
        wishes: &mut Wishes,
    ) -> Over {
        self.connection.remember_end(&reason);
        let pause = self.backoff.failed(kind, Instant::now(), chance());
        let next = Instant::now() + pause.time();
        *self.connection.next_attempt.lock().unwrap_or_else(PoisonError::into_inner) = Some(next);
        tracing::info!(server = %self.connection.id, reason, pause = ?pause.time(), "server is down");
        self.update(|status| {
            if !matches!(status.state, State::NeedsAuth | State::Failed) {
                status.state = State::Failed;
                status.error = Some(reason);
                status.detail = detail;
                status.hint = None;
            }
            if let backoff::Pause::Breaker(time) = pause {
                status.hint =
                    Some(format!("it fell over too often and is left alone for {time:?}"));
            }
        });
        let credentials = self.connection.settings.server.credentials().cloned();
        let known = async {
            match &credentials {
                Some(credentials) => credentials.changed().await,
                None => std::future::pending().await,
            }
        };
        let mut known = std::pin::pin!(known);
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(next) => return Over::Restart,
                () = self.connection.retry.notified() => return Over::Restart,
                // Somebody has logged in.
                () = &mut known => return Over::Restart,
                () = self.stop.cancelled() => return Over::Ended,
                wish = wishes.next() => match wish {
                    Some(Wish::Restart) => return Over::Restart,
                    Some(Wish::Disable) => return Over::Unwanted(State::Disabled),
                    Some(Wish::Disconnect) => return Over::Unwanted(State::Known),
                    // It is tried when its time comes.
                    Some(Wish::Connect | Wish::Adopt) => wishes.fulfilled(),
                    None => return Over::Ended,
                },
            }
        }
    }

    fn restarted(&self) {
        self.update(|status| status.restarts += 1);
    }

    fn rest(&self, state: State) {
        self.connection.rests.store(true, Ordering::Relaxed);
        self.update(|status| {
            status.state = state;
            status.error = None;
            status.detail = OperatorText::default();
            status.hint = None;
        });
    }

    pub(super) fn update(&self, change: impl FnOnce(&mut Status)) {
        self.connection.update(change);
        self.shared.stir();
    }

    pub(super) fn put_client(&self, client: Option<Line>) {
        let mut line = self.connection.line.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = std::mem::replace(&mut *line, client);
        drop(line);
        if let Some(gone) = gone {
            self.connection.remember_stderr(&gone.client.stderr());
        }
    }
}

/// Returns the kind of a failed connection attempt. A proxy answers 502 to 504 for an absent server.
fn failure_kind(error: &ConnectError) -> FailureKind {
    match error {
        ConnectError::Unreachable { .. } | ConnectError::Status { status: 502..=504, .. } => {
            FailureKind::Connection
        }
        _ => FailureKind::Crash,
    }
}
