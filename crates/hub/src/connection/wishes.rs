//! Commands to a connection, and waits for their effect.

use std::sync::atomic::Ordering;
use std::time::Duration;

use consort_core::CallError;
use consort_wire::Client;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::Connection;
use crate::settings::Connect;
use crate::state::State;

/// A command to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Connect,
    Disconnect,
    Restart,
    /// Reconnect with the capabilities of the first caller.
    Adopt,
    Disable,
}

/// Receiver of the commands.
#[derive(Debug)]
pub(crate) struct Wishes {
    received: mpsc::Receiver<(Wish, Option<oneshot::Sender<()>>)>,
    /// Callers that wait for the completion of their command.
    waiting: Vec<oneshot::Sender<()>>,
}

impl Wishes {
    pub(super) fn new(received: mpsc::Receiver<(Wish, Option<oneshot::Sender<()>>)>) -> Self {
        Self { received, waiting: Vec::new() }
    }

    /// Returns the next command; `None` once all senders are gone.
    pub(super) async fn next(&mut self) -> Option<Wish> {
        let (wish, waiting) = self.received.recv().await?;
        self.waiting.extend(waiting);
        Some(wish)
    }

    /// Reports that every command so far is completed.
    pub(super) fn fulfilled(&mut self) {
        for waiting in self.waiting.drain(..) {
            let _ = waiting.send(());
        }
    }
}

impl Connection {
    /// Returns the client of the server, connected if need be, or the error of the first attempt.
    pub(crate) async fn reach_once(&self) -> Result<Client, CallError> {
        let mut status = self.status.subscribe();
        let limit =
            Instant::now() + self.settings.times.handshake + self.settings.upkeep.retry_wait;
        let mut wished = false;
        loop {
            if let Some(line) = self.current() {
                return Ok(line.client);
            }
            let now = status.borrow_and_update().clone();
            match now.state {
                State::NeedsAuth | State::Disabled | State::Failed => {
                    return Err(self.down(&now, None));
                }
                State::Configured | State::Known if !wished => {
                    wished = true;
                    self.wish(Wish::Connect).await;
                }
                _ => {}
            }
            if tokio::time::timeout_at(limit, status.changed()).await.is_err() {
                return Err(self.down(&self.status(), None));
            }
        }
    }

    pub(super) async fn wish(&self, wish: Wish) {
        let _ = self.wishes.send((wish, None)).await;
    }

    /// Runs a command and waits for it. `Connect` and `Restart` wait until the attempt has ended, at most `limit`.
    pub(crate) async fn fulfil(&self, wish: Wish, limit: Duration) {
        let (sender, fulfilled) = oneshot::channel();
        if self.wishes.send((wish, Some(sender))).await.is_err() || fulfilled.await.is_err() {
            return;
        }
        if matches!(wish, Wish::Connect | Wish::Restart) {
            let mut status = self.status.subscribe();
            let tried = status.wait_for(|status| status.state != State::Connecting);
            let _ = tokio::time::timeout(limit, tried).await;
        }
    }

    /// Requests a server whose lists are not known: one that connects at the first call is connected. Returns the time
    /// of the first such request.
    pub(crate) fn want(&self) -> Instant {
        if self.status.borrow().state == State::Configured
            && self.settings.connect == Connect::Call
            && !self.rests.load(Ordering::Relaxed)
        {
            let _ = self.wishes.try_send((Wish::Connect, None));
        }
        *self.wanted.get_or_init(Instant::now)
    }

    /// Returns true if no connection attempt is pending: the server is connected, has failed, or rests.
    pub(crate) fn is_settled(&self) -> bool {
        let resting = self.rests.load(Ordering::Relaxed);
        resting || !matches!(self.status.borrow().state, State::Configured | State::Connecting)
    }

    /// Waits until a server whose lists were not known is connected, or the attempt has failed.
    pub(crate) async fn learned(&self) {
        let mut status = self.status.subscribe();
        let _ = status.wait_for(|_| self.is_settled()).await;
    }

    /// Returns true if requests can be sent to the server now.
    pub(crate) fn is_connected(&self) -> bool {
        self.current().is_some_and(|line| !line.client.is_closed())
    }

    pub(crate) fn is_disabled(&self) -> bool {
        self.status.borrow().state == State::Disabled
    }
}
