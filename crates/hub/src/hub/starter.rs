//! Preparation of servers.

use std::collections::BTreeMap;
use std::sync::Arc;

use consort_client::{ClientHandler, ClientInfo};
use consort_core::{ServerCatalog, ServerId};
use consort_protocol::MemoryBudget;

use crate::catalog_store::CatalogStore;
use crate::managed::{CommandReceiver, ManagedServer};
use crate::server_log::ServerLogSettings;
use crate::settings::ServerSettings;

/// Context with which every server is started.
pub(super) struct HubStarter {
    pub(super) store: Option<CatalogStore>,
    pub(super) host: Arc<dyn ClientHandler>,
    pub(super) client: ClientInfo,
    pub(super) budget: MemoryBudget,
    pub(super) logs: Option<ServerLogSettings>,
}

/// A server whose task is not started yet, and the receiver of its commands.
pub(super) type PreparedServer = (Arc<ManagedServer>, CommandReceiver);

impl HubStarter {
    /// Prepares a server, and offers the stored lists of its last run.
    pub(super) fn prepare(
        &self,
        server: ServerSettings,
        offers: &mut BTreeMap<ServerId, ServerCatalog>,
    ) -> PreparedServer {
        let kept = self.store.as_ref().filter(|_| !server.disabled);
        let memory = kept.and_then(|kept| kept.load(&server));
        let (managed, commands) = ManagedServer::new(server, self.budget.clone());
        if let Some(memory) = memory {
            managed.remember(&memory);
            offers.insert(managed.id.clone(), memory.offer);
        }
        (managed, commands)
    }
}
