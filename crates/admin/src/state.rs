//! State of the admin API.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use consort_audit::CallSinks;
use consort_config::Config;
use consort_core::Problem;
use consort_gateway::ClientNameHandle;
use consort_hub::Hub;
use consort_identity::IdentityService;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{broadcast, watch};

use crate::active_config::ActiveConfig;
use crate::call_statistics::StatisticsCache;
use crate::catalog_generation::GenerationCounter;
use crate::pending_requests::PendingRequests;
use crate::profile_costs::ProfileCosts;
use crate::reload_handle::ReloadHandle;
use crate::runs::RunRegistry;
use crate::token_costs::TokenCosts;
use crate::tool_index::ToolIndexCache;

/// The console. Clones share state.
#[derive(Clone)]
pub struct AdminState(pub(crate) Arc<StateInner>);

pub(crate) struct StateInner {
    pub(crate) hub: Hub,
    pub(crate) records: CallSinks,
    pub(crate) pending: Arc<PendingRequests>,
    pub(crate) settings: AdminSettings,
    /// The config in force, and the time it took effect.
    active: RwLock<(Arc<ActiveConfig>, SystemTime)>,
    /// Serializes changes of the config.
    pub(crate) changing: tokio::sync::Mutex<()>,
    pub(crate) costs: TokenCosts,
    pub(crate) profiles: ProfileCosts,
    /// Counter of changes of the state in force.
    pub(crate) changed: watch::Sender<u64>,
    pub(crate) generations: GenerationCounter,
    /// Cached call counts from the ledger.
    pub(crate) statistics: StatisticsCache,
    /// Names that clients see.
    pub(crate) labels: OnceLock<ClientNameHandle>,
    /// Every tool, as listed last.
    pub(crate) tool_index: ToolIndexCache,
    /// Serializes approvals of definitions.
    pub(crate) approval_lock: Mutex<()>,
    pub(crate) runs: RunRegistry,
    /// Ids of conversations with their state, sent on each change.
    pub(crate) conversation_news: broadcast::Sender<(String, String)>,
}

/// Settings fixed at the start of the gateway.
#[derive(Debug)]
pub struct AdminSettings {
    /// Path of the token file, if a token is needed.
    pub token_file: Option<PathBuf>,
    /// True if the config may contain only servers approved in the lock.
    pub locked: bool,
    /// Requests a reload of the config.
    pub reload: ReloadHandle,
    /// Folder of stored conversations, if there is one.
    pub conversations: Option<PathBuf>,
    /// Command line of the demo server, which is in no config.
    pub demo_command: Option<Vec<String>>,
    /// The users, if the gateway has any.
    pub identity: Option<IdentityService>,
    /// Returns the problems that a config would have if it were in force.
    pub check: fn(&Config) -> Vec<Problem>,
}

impl AdminState {
    /// The state of the admin API of a gateway.
    pub fn new(
        hub: &Hub,
        records: &CallSinks,
        pending: Arc<PendingRequests>,
        start: AdminSettings,
        active: ActiveConfig,
    ) -> Self {
        let runs = RunRegistry::new(active.limits.console.runs, start.conversations.clone());
        Self(Arc::new(StateInner {
            hub: hub.clone(),
            records: records.clone(),
            pending,
            settings: start,
            active: RwLock::new((Arc::new(active), SystemTime::now())),
            changing: tokio::sync::Mutex::default(),
            costs: TokenCosts::default(),
            profiles: ProfileCosts::default(),
            changed: watch::Sender::new(0),
            generations: GenerationCounter::default(),
            statistics: StatisticsCache::default(),
            labels: OnceLock::new(),
            tool_index: ToolIndexCache::default(),
            approval_lock: Mutex::default(),
            runs,
            conversation_news: broadcast::channel(64).0,
        }))
    }

    /// Sets the names that clients see.
    pub fn set_labels(&self, labels: ClientNameHandle) {
        // There is one gateway.
        let _ = self.0.labels.set(labels);
    }

    /// Replaces the config in force.
    pub fn set_config(&self, active: ActiveConfig) {
        let mut in_force = self.0.active.write();
        *in_force = (Arc::new(active), SystemTime::now());
        drop(in_force);
        self.0.changed.send_modify(|count| *count += 1);
    }

    /// Makes pages re-read the state in force.
    pub fn notify_pages(&self) {
        self.0.changed.send_modify(|count| *count += 1);
    }

    /// Returns the pending requests for a person.
    pub fn pending(&self) -> &Arc<PendingRequests> {
        &self.0.pending
    }

    /// Returns the config in force.
    pub(crate) fn active(&self) -> Arc<ActiveConfig> {
        Arc::clone(&self.0.active.read().0)
    }

    /// Returns the time it took effect.
    pub(crate) fn since(&self) -> SystemTime {
        self.0.active.read().1
    }
}

impl std::fmt::Debug for AdminState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AdminState").finish_non_exhaustive()
    }
}
