//! Probation: first calls of tools during which a server may send requests, of one client at a time.
//!
//! Many clients share the connection to a server that never sends requests. Only calls show whether it does. The first
//! call of each tool is therefore made while no other client makes such a first call on the same connection. A server
//! request that arrives then has one owner, and from then on the server is known to send requests.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Time that a first call waits for those of other clients. Beyond it, it gets a connection of its own.
const PROBATION_WAIT: Duration = Duration::from_secs(2);

/// First calls in flight on one connection, all of one client.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerProbation(Arc<ProbationInner>);

#[derive(Debug, Default)]
struct ProbationInner {
    state: Mutex<ProbationState>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct ProbationState {
    /// The session whose first calls are in flight; `None` if the client has no session.
    session: Option<u64>,
    calls: usize,
}

impl ServerProbation {
    /// Waits until a client may make first calls, at most for a short time.
    pub(crate) async fn enter(
        &self,
        session: Option<u64>,
        is_over: impl Fn() -> bool,
    ) -> ProbationEntry {
        let limit = Instant::now() + PROBATION_WAIT;
        loop {
            let mut changed = std::pin::pin!(self.0.changed.notified());
            changed.as_mut().enable();
            if is_over() {
                return ProbationEntry::Over;
            }
            {
                let mut state = self.0.lock();
                if state.calls == 0 || session.is_some() && state.session == session {
                    state.session = session;
                    state.calls += 1;
                    return ProbationEntry::Admitted(ProbationCall(Arc::clone(&self.0)));
                }
            }
            if tokio::time::timeout_at(limit, changed).await.is_err() {
                return ProbationEntry::Busy;
            }
        }
    }

    /// Wakes all waiting calls, which check `is_over` again.
    pub(crate) fn wake(&self) {
        self.0.changed.notify_waiters();
    }
}

impl ProbationInner {
    fn lock(&self) -> MutexGuard<'_, ProbationState> {
        self.state.lock()
    }
}

/// The end of the wait to make a first call.
#[derive(Debug)]
pub(crate) enum ProbationEntry {
    /// It may be made on the shared connection.
    Admitted(ProbationCall),
    /// The server is known to send requests.
    Over,
    /// Another client's first calls take too long.
    Busy,
}

/// Guard of a first call in flight.
#[derive(Debug)]
pub(crate) struct ProbationCall(Arc<ProbationInner>);

impl Drop for ProbationCall {
    fn drop(&mut self) {
        self.0.lock().calls -= 1;
        self.0.changed.notify_waiters();
    }
}

/// Tools of a server during whose calls it sent no request.
#[derive(Debug, Default)]
pub(crate) struct SilentTools(Mutex<HashSet<Box<str>>>);

impl SilentTools {
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.0.lock().contains(name)
    }

    /// Adds a tool, at most `most`: as many as a server may list.
    pub(crate) fn add(&self, name: &str, most: usize) {
        let mut names = self.0.lock();
        if names.len() < most && !names.contains(name) {
            names.insert(name.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn admitted(probation: &ServerProbation, session: Option<u64>) -> ProbationCall {
        match probation.enter(session, || false).await {
            ProbationEntry::Admitted(call) => call,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn first_calls_of_another_client_wait_and_those_of_the_same_session_do_not() {
        let probation = ServerProbation::default();
        let first = admitted(&probation, Some(1)).await;
        let same = admitted(&probation, Some(1)).await;
        let begun = Instant::now();
        let ending = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            drop((first, same));
        };
        let (other, ()) = tokio::join!(admitted(&probation, Some(2)), ending);
        assert_eq!(begun.elapsed(), Duration::from_millis(500));
        drop(other);
        // Calls whose clients cannot be told apart are clients of their own, and none shares with another for the wait.
        let _one = admitted(&probation, None).await;
        let begun = Instant::now();
        let two = probation.enter(None, || false).await;
        assert_eq!(begun.elapsed(), PROBATION_WAIT);
        assert!(matches!(two, ProbationEntry::Busy));
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_wait_are_told_that_the_server_asks() {
        let probation = ServerProbation::default();
        let _first = admitted(&probation, Some(1)).await;
        let asks = std::sync::atomic::AtomicBool::new(false);
        let is_over = || asks.load(std::sync::atomic::Ordering::Relaxed);
        let asking = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            asks.store(true, std::sync::atomic::Ordering::Relaxed);
            probation.wake();
        };
        let (other, ()) = tokio::join!(probation.enter(Some(2), is_over), asking);
        assert!(matches!(other, ProbationEntry::Over));
    }
}
