//! Publication of the lists that a server's task read.

use std::sync::atomic::Ordering;

use consort_core::ServerAbout;

use super::ServerDriver;
use crate::catalog_store::StoredServer;
use crate::lifecycle::ListPublication;

impl ServerDriver {
    /// Publishes lists, and stores them if they are complete.
    pub(super) fn publish_lists(&self, publication: ListPublication) {
        let Self { managed, shared, .. } = self;
        let ListPublication { lists, list_changes, left_out, is_complete } = publication;
        let Some(client) = self.link.client() else { return };
        let about = client.about();
        let mut offer = shared.offer(&managed.id).unwrap_or_default();
        offer.about = Some(ServerAbout {
            revision: about.protocol.revision,
            capabilities: about.capabilities.clone(),
            instructions: about.instructions.clone(),
            list_changes,
        });
        let mut ends = Vec::new();
        for list in lists {
            ends.push((list.kind, list.begun, list.items.is_some(), list.fresh));
            if let Some(items) = list.items {
                managed.readings.set_partial(list.kind, list.is_partial);
                let items = items.into_iter().map(|item| (item.name, item.definition));
                offer.lists.insert(list.kind, items.collect());
            }
        }
        let asks = managed.sends_requests.load(Ordering::Relaxed);
        let memory = StoredServer { protocol: about.protocol, offer, sends_requests: asks };
        if is_complete && let Some(stored) = &self.stored {
            stored.put(memory.clone());
        }
        if !managed.is_unwanted() {
            shared.put(&managed.id, self.link.offers(), memory.offer, &left_out);
            managed.read_unheard(shared);
        }
        // Whoever waits for a reading finds it in the catalog.
        for (kind, begun, is_read, fresh) in ends {
            managed.readings.over(kind, begun, is_read, fresh);
        }
    }
}
