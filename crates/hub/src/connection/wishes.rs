//! Wishes of others for a connection, and what it is on its way to.

use std::sync::atomic::Ordering;
use std::time::Duration;

use consort_core::CallError;
use consort_wire::Client;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::{Connection, PATIENCE};
use crate::settings::Connect;
use crate::state::State;

/// What somebody wants of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Connect,
    Disconnect,
    Restart,
    /// Connect anew in the name of the first caller.
    Adopt,
    Disable,
}

/// The wishes of others, as they come.
#[derive(Debug)]
pub(crate) struct Wishes {
    received: mpsc::Receiver<(Wish, Option<oneshot::Sender<()>>)>,
    /// Those who wait until their wish is fulfilled.
    waiting: Vec<oneshot::Sender<()>>,
}

impl Wishes {
    pub(super) fn new(received: mpsc::Receiver<(Wish, Option<oneshot::Sender<()>>)>) -> Self {
        Self { received, waiting: Vec::new() }
    }

    /// The next wish; nothing once nobody can wish any more.
    pub(super) async fn next(&mut self) -> Option<Wish> {
        let (wish, waiting) = self.received.recv().await?;
        self.waiting.extend(waiting);
        Some(wish)
    }

    /// Says that every wish so far is fulfilled.
    pub(super) fn fulfilled(&mut self) {
        for waiting in self.waiting.drain(..) {
            let _ = waiting.send(());
        }
    }
}

impl Connection {
    /// Returns the server, reached, or why the first attempt failed.
    pub(crate) async fn reach_once(&self) -> Result<Client, CallError> {
        let mut status = self.status.subscribe();
        let limit = Instant::now() + self.settings.times.handshake + PATIENCE;
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

    /// Has a wish fulfilled: a connection that is wanted is up then, or down for now, or `limit` is over.
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

    /// Wants a server of which nothing is known: one that waits for a first call is connected. Returns the time
    /// at which it was first wanted.
    pub(crate) fn want(&self) -> Instant {
        if self.status.borrow().state == State::Configured
            && self.settings.connect == Connect::Call
            && !self.rests.load(Ordering::Relaxed)
        {
            let _ = self.wishes.try_send((Wish::Connect, None));
        }
        *self.wanted.get_or_init(Instant::now)
    }

    /// True if nothing happens to the server without being asked for: it is up, down for now, or not wanted.
    pub(crate) fn is_settled(&self) -> bool {
        let resting = self.rests.load(Ordering::Relaxed);
        resting || !matches!(self.status.borrow().state, State::Configured | State::Connecting)
    }

    /// Waits until a server of which nothing was known is up, or down for now.
    pub(crate) async fn learned(&self) {
        let mut status = self.status.subscribe();
        let _ = status.wait_for(|_| self.is_settled()).await;
    }

    /// True if requests can be sent to the server now.
    pub(crate) fn is_connected(&self) -> bool {
        self.current().is_some_and(|line| !line.client.is_closed())
    }

    pub(crate) fn is_disabled(&self) -> bool {
        self.status.borrow().state == State::Disabled
    }
}
