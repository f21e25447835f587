//! Runs in progress, independent of subscribers, and pending requests of suspended conversations.

mod events;
mod live;
mod messages;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use consort_agent::ConversationStore;
use consort_agent::store::ConversationId;
use http::StatusCode;
use parking_lot::{Mutex, MutexGuard};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::admin_error::AdminError;
use crate::pending_requests::PendingEntry;
pub(crate) use events::RunStreamEvent;
pub(crate) use live::LiveRun;
pub(crate) use messages::{MessageRow, RunReportRow, message_rows};

/// All runs in progress.
pub(crate) struct RunRegistry {
    /// The runtime for runs, apart from the threads that serve requests.
    pub(crate) handle: Handle,
    pub(crate) store: Option<ConversationStore>,
    pub(crate) live: Mutex<HashMap<ConversationId, Arc<LiveRun>>>,
    /// Pending requests of conversations without a run, by their ids there.
    pub(crate) suspended: Mutex<BTreeMap<ConversationId, Vec<(String, PendingEntry)>>>,
    pub(crate) permits: Arc<Semaphore>,
    /// Limit of concurrent runs.
    pub(crate) max_runs: usize,
    /// Number of runs in progress.
    pub(crate) count: watch::Sender<usize>,
}

impl RunRegistry {
    /// No runs, with a limit of concurrent ones.
    pub(crate) fn new(max_runs: usize, folder: Option<PathBuf>) -> Self {
        Self {
            handle: Handle::current(),
            store: folder.map(ConversationStore::new),
            live: Mutex::default(),
            suspended: Mutex::default(),
            permits: Arc::new(Semaphore::new(max_runs)),
            max_runs,
            count: watch::Sender::new(0),
        }
    }

    /// Returns the store of conversations.
    pub(crate) fn store(&self) -> Result<ConversationStore, AdminError> {
        let nowhere = || {
            let error = "no home folder to store conversations in";
            AdminError::new(StatusCode::SERVICE_UNAVAILABLE, error).hint("set `HOME` and restart")
        };
        self.store.clone().ok_or_else(nowhere)
    }

    /// Acquires a permit for a run, if one is left.
    pub(crate) fn acquire(&self) -> Result<OwnedSemaphorePermit, AdminError> {
        let full = |error: tokio::sync::TryAcquireError| {
            let (error, hint) = match error {
                tokio::sync::TryAcquireError::Closed => {
                    ("the gateway is shutting down".to_owned(), "retry after the restart")
                }
                tokio::sync::TryAcquireError::NoPermits => (
                    format!("{} runs are already in progress", self.max_runs),
                    "wait until one ends, or stop one",
                ),
            };
            AdminError::new(StatusCode::SERVICE_UNAVAILABLE, error).hint(hint)
        };
        Arc::clone(&self.permits).try_acquire_owned().map_err(full)
    }

    /// The run in progress in a conversation.
    pub(crate) fn live(&self, id: &ConversationId) -> Option<Arc<LiveRun>> {
        self.lock().get(id).cloned()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, HashMap<ConversationId, Arc<LiveRun>>> {
        self.live.lock()
    }

    pub(crate) fn suspended(
        &self,
    ) -> MutexGuard<'_, BTreeMap<ConversationId, Vec<(String, PendingEntry)>>> {
        self.suspended.lock()
    }

    /// Withdraws the pending requests of a conversation.
    pub(crate) fn withdraw_pending(&self, id: &ConversationId) {
        let entries = self.suspended().remove(id);
        drop(entries);
    }
}
