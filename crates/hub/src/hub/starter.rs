//! Connections, made ready to be kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use consort_core::{Offer, ServerId};
use consort_wire::{ClientInfo, Host, MemoryBudget};

use crate::connection::{Connection, Wishes};
use crate::kept::Kept;
use crate::settings::ServerSettings;

/// What every server is started with.
pub(super) struct Starter {
    pub(super) kept: Option<Kept>,
    pub(super) host: Arc<dyn Host>,
    pub(super) client: ClientInfo,
    pub(super) budget: MemoryBudget,
}

/// A connection that is not kept yet, and the receiver of its wishes.
pub(super) type Prepared = (Arc<Connection>, Wishes);

impl Starter {
    /// Prepares a connection, and puts on offer what is kept from the last time.
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
