//! The queue of calls that wait for a connection. Identities take turns.

use std::sync::Arc;

use consort_core::IdentityId;
use consort_protocol::TurnQueue;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

/// The calls that wait for a connection to one server.
#[derive(Debug, Default)]
pub(crate) struct ConnectionTurns(Mutex<TurnQueue<IdentityId, Arc<Notify>>>);

impl ConnectionTurns {
    /// Returns true if no call waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Adds a call to the queue. Returns the length of the queue if that is `most` already.
    pub(crate) fn join(
        &self,
        identity: &IdentityId,
        most: usize,
    ) -> Result<WaitingCall<'_>, usize> {
        let mut queue = self.lock();
        if queue.len() >= most {
            return Err(queue.len());
        }
        let wake = Arc::new(Notify::new());
        let ticket = queue.join(identity.clone(), Arc::clone(&wake));
        Ok(WaitingCall { turns: self, identity: identity.clone(), ticket, wake })
    }

    /// Wakes the call whose turn it is, since a connection may be free.
    pub(crate) fn wake(&self) {
        if let Some((_, wake)) = self.lock().peek_ranked(|_, _| 0) {
            wake.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, TurnQueue<IdentityId, Arc<Notify>>> {
        self.0.lock()
    }
}

/// A call in the queue. Dropping it removes it and wakes the next.
#[derive(Debug)]
pub(crate) struct WaitingCall<'a> {
    turns: &'a ConnectionTurns,
    identity: IdentityId,
    ticket: u64,
    wake: Arc<Notify>,
}

impl WaitingCall<'_> {
    /// Returns true if it is its turn.
    pub(crate) fn is_next(&self) -> bool {
        let queue = self.turns.lock();
        queue.peek_ranked(|_, _| 0).is_some_and(|(_, wake)| Arc::ptr_eq(wake, &self.wake))
    }

    /// Waits until it may be its turn.
    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Ends its turn; the next one is another identity's.
    pub(crate) fn served(self) {
        if self.is_next() {
            self.turns.lock().next();
        }
    }
}

impl Drop for WaitingCall<'_> {
    fn drop(&mut self) {
        self.turns.lock().leave(&self.identity, self.ticket);
        self.turns.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> IdentityId {
        IdentityId::new(name)
    }

    #[tokio::test]
    async fn identities_take_turns_and_whoever_leaves_wakes_the_next() {
        let turns = ConnectionTurns::default();
        let [hog, more, ada] = ["hog", "hog", "ada"].map(|name| turns.join(&id(name), 3).unwrap());
        assert_eq!(turns.join(&id("bob"), 3).unwrap_err(), 3);
        assert!(hog.is_next() && !more.is_next() && !ada.is_next());
        turns.wake();
        hog.woken().await;
        hog.served();
        assert!(ada.is_next());
        ada.woken().await;
        drop(ada);
        more.woken().await;
        more.served();
        assert!(turns.is_empty());
    }
}
