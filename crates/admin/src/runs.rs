//! Runs in progress, independent of subscribers, and pending requests of suspended conversations.

mod events;
mod live;
mod messages;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use consort_agent::Store;
use consort_agent::store::Id;
use http::StatusCode;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::admin_error::Refusal;
use crate::pending_requests::Slip;
pub(crate) use events::Told;
pub(crate) use live::Live;
pub(crate) use messages::{Entry, Report, entries};

/// All runs in progress.
pub(crate) struct Runs {
    /// The runtime for runs, apart from the threads that serve requests.
    pub(crate) handle: Handle,
    pub(crate) store: Option<Store>,
    pub(crate) live: Mutex<HashMap<Id, Arc<Live>>>,
    /// Pending requests of conversations without a run, by their ids there.
    pub(crate) kept: Mutex<BTreeMap<Id, Vec<(String, Slip)>>>,
    pub(crate) places: Arc<Semaphore>,
    /// Limit of concurrent runs.
    pub(crate) most: usize,
    /// Number of runs in progress.
    pub(crate) count: watch::Sender<usize>,
}

impl Runs {
    /// No runs, with a limit of concurrent ones.
    pub(crate) fn new(most: usize, folder: Option<PathBuf>) -> Self {
        Self {
            handle: Handle::current(),
            store: folder.map(Store::new),
            live: Mutex::default(),
            kept: Mutex::default(),
            places: Arc::new(Semaphore::new(most)),
            most,
            count: watch::Sender::new(0),
        }
    }

    /// Returns the store of conversations.
    pub(crate) fn store(&self) -> Result<Store, Refusal> {
        let nowhere = || {
            let error = "there is no home folder to keep conversations in";
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, error).hint("set `HOME` and start again")
        };
        self.store.clone().ok_or_else(nowhere)
    }

    /// Acquires a permit for a run, if one is left.
    pub(crate) fn place(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        let full = |error: tokio::sync::TryAcquireError| {
            let (error, hint) = match error {
                tokio::sync::TryAcquireError::Closed => {
                    ("the gateway is ending".to_owned(), "ask again when it is back")
                }
                tokio::sync::TryAcquireError::NoPermits => (
                    format!("{} runs are on already", self.most),
                    "wait for one to end, or stop one",
                ),
            };
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, error).hint(hint)
        };
        Arc::clone(&self.places).try_acquire_owned().map_err(full)
    }

    /// The run in progress in a conversation.
    pub(crate) fn live(&self, id: &Id) -> Option<Arc<Live>> {
        self.lock().get(id).cloned()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, HashMap<Id, Arc<Live>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn kept(&self) -> MutexGuard<'_, BTreeMap<Id, Vec<(String, Slip)>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Withdraws the pending requests of a conversation.
    pub(crate) fn forget(&self, id: &Id) {
        let slips = self.kept().remove(id);
        drop(slips);
    }
}
