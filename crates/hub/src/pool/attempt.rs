//! Attempts to make a connection beyond the main one.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use consort_client::{Client, ClientInfo, ConnectError, EraPreference, ListChanges};
use consort_core::{CallError, SharedError};
use consort_protocol::Era;

use super::slots::PoolSlot;
use crate::connection_key::{CallerHost, ConnectionKey};
use crate::managed::{ListFollower, ManagedServer, chain};
use crate::shared_catalogs::SharedCatalogs;
use crate::tasks::ServerTasks;
use crate::upstream::UpstreamConnection;

/// An attempt to make a connection beyond the main one.
pub(super) struct ConnectAttempt {
    pub(super) managed: Arc<ManagedServer>,
    pub(super) main: Client,
    pub(super) key: ConnectionKey,
    pub(super) slot: PoolSlot,
    pub(super) info: ClientInfo,
    pub(super) tasks: ServerTasks,
}

impl ConnectAttempt {
    pub(super) async fn connect(&self) -> Result<UpstreamConnection, CallError> {
        let Self { managed, key, .. } = self;
        let host =
            Arc::new(CallerHost::new(&key.capabilities, Arc::clone(&managed.sends_requests)));
        let found = self.main.about().protocol;
        let found = Some(found).filter(|found| found.revision.era() == key.era);
        let mut settings = managed.wire_settings(found, host, &self.info);
        if key.era == Era::Legacy {
            settings.speak = EraPreference::Legacy;
        }
        let client = Client::connect(&managed.settings.server, settings).await;
        let client = client.map_err(|error| {
            if found.is_none() && refuses_era(&error) {
                managed.modern_only.store(true, Ordering::Relaxed);
            }
            let reason = chain(&error);
            managed.log_event(&format!("another connection failed: {reason}"));
            CallError::Connection {
                server: managed.id.clone(),
                source: SharedError::new(ConnectProblem(reason)),
                detail: error.detail(),
            }
        })?;
        client.learn_from(&self.main);
        let (offers, tasks) = (Arc::clone(&key.capabilities), Some(self.tasks.clone()));
        let ownership = self.slot.ownership.clone();
        Ok(UpstreamConnection::new(client, offers, key.credentials, ownership, tasks))
    }

    /// Starts the task that follows the server's lists on this connection. Lists of a server of both eras are read in
    /// the modern one instead.
    pub(super) fn follow_lists(&self, shared: Arc<SharedCatalogs>, changes: ListChanges) {
        if self.main.about().protocol.revision.era() == Era::Modern {
            return;
        }
        let managed = Arc::clone(&self.managed);
        let open = self.slot.downgrade();
        let follower = ListFollower::new(managed, shared, self.key.clone(), open);
        self.tasks.spawn(follower.follow(changes));
    }
}

/// Returns true if the error shows that a reachable server does not support the era of the attempt.
fn refuses_era(error: &ConnectError) -> bool {
    !matches!(
        error,
        ConnectError::Unreachable { .. }
            | ConnectError::Unauthorized { .. }
            | ConnectError::Start { .. }
            | ConnectError::Value(_)
    )
}

/// Reason why a connection was not made.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct ConnectProblem(String);
