//! Preparation of server connections.

use std::collections::BTreeMap;
use std::sync::Arc;

use consort_core::{Offer, ServerId};
use consort_wire::{ClientInfo, Host, MemoryBudget};

use crate::connection::{Connection, Wishes};
use crate::kept::Kept;
use crate::settings::ServerSettings;

/// Context with which every server is started.
pub(super) struct Starter {
    pub(super) kept: Option<Kept>,
    pub(super) host: Arc<dyn Host>,
    pub(super) client: ClientInfo,
    pub(super) budget: MemoryBudget,
}

/// A connection whose task is not started yet, and the receiver of its commands.
pub(super) type Prepared = (Arc<Connection>, Wishes);

impl Starter {
    /// Prepares a connection, and offers the stored lists of its last run.
    pub(super) fn prepare(
        &self,
        server: ServerSettings,
        offers: &mut BTreeMap<ServerId, Offer>,
    ) -> Prepared {
        let kept = self.kept.as_ref().filter(|_| !server.disabled);
        let memory = kept.and_then(|kept| kept.load(&server));
        let (connection, wishes) = Connection::new(server, self.budget.clone());
        if let Some(memory) = memory {
            connection.remember(&memory);
            offers.insert(connection.id.clone(), memory.offer);
        }
        (connection, wishes)
    }
}
