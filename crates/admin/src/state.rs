//! State of the admin API.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::SystemTime;

use consort_config::Config;
use consort_core::Problem;
use consort_gateway::{Labels, Records};
use consort_hub::Hub;
use tokio::sync::{broadcast, watch};

use crate::active_config::Scene;
use crate::call_statistics::Past;
use crate::catalog_generation::Generations;
use crate::pending_requests::Desk;
use crate::profile_costs::Profiles;
use crate::reload_handle::ReloadHandle;
use crate::runs::Runs;
use crate::token_costs::Costs;
use crate::tool_index::Kept;

/// The console. Clones share state.
#[derive(Clone)]
pub struct Console(pub(crate) Arc<StateInner>);

pub(crate) struct StateInner {
    pub(crate) hub: Hub,
    pub(crate) records: Records,
    pub(crate) desk: Arc<Desk>,
    pub(crate) start: Start,
    /// The config in force, and the time it took effect.
    scene: RwLock<(Arc<Scene>, SystemTime)>,
    /// Serializes changes of the config.
    pub(crate) changing: tokio::sync::Mutex<()>,
    pub(crate) costs: Costs,
    pub(crate) profiles: Profiles,
    /// Counter of changes of the state in force.
    pub(crate) changed: watch::Sender<u64>,
    pub(crate) generations: Generations,
    /// Cached call counts from the ledger.
    pub(crate) past: Past,
    /// Names that clients see.
    pub(crate) labels: OnceLock<Labels>,
    /// Every tool, as listed last.
    pub(crate) known: Kept,
    /// Serializes approvals of definitions.
    pub(crate) agreeing: Mutex<()>,
    pub(crate) runs: Runs,
    /// Ids of conversations with their state, sent on each change.
    pub(crate) news: broadcast::Sender<(String, String)>,
}

/// Settings fixed at the start of the gateway.
#[derive(Debug)]
pub struct Start {
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
    /// Returns the problems that a config would have if it were in force.
    pub check: fn(&Config) -> Vec<Problem>,
}

impl Console {
    /// The state of the admin API of a gateway.
    pub fn new(hub: &Hub, records: &Records, desk: Arc<Desk>, start: Start, scene: Scene) -> Self {
        let runs = Runs::new(scene.limits.console.runs, start.conversations.clone());
        Self(Arc::new(StateInner {
            hub: hub.clone(),
            records: records.clone(),
            desk,
            start,
            scene: RwLock::new((Arc::new(scene), SystemTime::now())),
            changing: tokio::sync::Mutex::default(),
            costs: Costs::default(),
            profiles: Profiles::default(),
            changed: watch::Sender::new(0),
            generations: Generations::default(),
            past: Past::default(),
            labels: OnceLock::new(),
            known: Kept::default(),
            agreeing: Mutex::default(),
            runs,
            news: broadcast::channel(64).0,
        }))
    }

    /// Sets the names that clients see.
    pub fn learn(&self, labels: Labels) {
        // There is one gateway.
        let _ = self.0.labels.set(labels);
    }

    /// Replaces the config in force.
    pub fn set(&self, scene: Scene) {
        let mut in_force = self.0.scene.write().unwrap_or_else(PoisonError::into_inner);
        *in_force = (Arc::new(scene), SystemTime::now());
        drop(in_force);
        self.0.changed.send_modify(|count| *count += 1);
    }

    /// Makes pages re-read the state in force.
    pub fn told(&self) {
        self.0.changed.send_modify(|count| *count += 1);
    }

    /// Returns the pending requests for a person.
    pub fn desk(&self) -> &Arc<Desk> {
        &self.0.desk
    }

    /// Returns the config in force.
    pub(crate) fn scene(&self) -> Arc<Scene> {
        Arc::clone(&self.0.scene.read().unwrap_or_else(PoisonError::into_inner).0)
    }

    /// Returns the time it took effect.
    pub(crate) fn since(&self) -> SystemTime {
        self.0.scene.read().unwrap_or_else(PoisonError::into_inner).1
    }
}

impl std::fmt::Debug for Console {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Console").finish_non_exhaustive()
    }
}
