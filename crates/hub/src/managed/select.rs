//! Selection of the connection for a request.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use consort_client::EraPreference;
use consort_core::CallError;
use consort_protocol::Era;

use super::ManagedServer;
use crate::connection_key::{self, ConnectionKey, ConnectionParty, STATELESS, SessionScope};
use crate::upstream::UpstreamConnection;

impl ManagedServer {
    /// Returns the connection for a request. A modern server receives the client capabilities with each request. A
    /// legacy one receives them once per session, so callers with other capabilities get connections of their own.
    pub(crate) async fn upstream_for(
        self: &Arc<Self>,
        party: &ConnectionParty<'_>,
    ) -> Result<UpstreamConnection, CallError> {
        let main = self.main().await?;
        let is_modern = main.client.about().protocol.revision.era() == Era::Modern;
        if is_modern && !(connection_key::prefers_legacy(party) && self.may_speak_legacy()) {
            return Ok(main);
        }
        let asks = self.sends_requests.load(Ordering::Relaxed);
        let scope = connection_key::scope(party, &main.client, asks);
        let offers = party.offers;
        if !is_modern && party.caller.is_owner() {
            if main.offers == *offers
                && let Some(upstream) = self.served_by(&main, scope)
            {
                Box::pin(self.note_first_caller(offers)).await;
                return Ok(upstream);
            }
            if main.offers != *offers && Box::pin(self.adopt(offers)).await {
                return Box::pin(async {
                    let main = self.await_main(|main| main.offers == *offers).await?;
                    if let Some(upstream) = self.served_by(&main, scope) {
                        return Ok(upstream);
                    }
                    let key = ConnectionKey::new(party, self.credentials(), Era::Legacy, scope);
                    self.pool.get(self, &main.client, key, party).await
                })
                .await;
            }
        }
        let key = ConnectionKey::new(party, self.credentials(), Era::Legacy, scope);
        match Box::pin(self.pool.get(self, &main.client, key, party)).await {
            Err(_) if is_modern && !self.may_speak_legacy() => Ok(main),
            upstream => upstream,
        }
    }

    /// Returns true if a legacy connection to a modern server may be attempted. Only the attempt shows whether it
    /// works, since servers of both eras name modern revisions only.
    fn may_speak_legacy(&self) -> bool {
        self.settings.speak == EraPreference::Auto && !self.modern_only.load(Ordering::Relaxed)
    }

    /// Returns the main connection if it may be used in this scope. Once the server is known to send requests, it
    /// belongs to one session: the first that received one there, or that uses it while the server has no other calls.
    fn served_by(
        &self,
        main: &UpstreamConnection,
        scope: SessionScope,
    ) -> Option<UpstreamConnection> {
        let session = match scope {
            SessionScope::Shared => return Some(main.clone()),
            SessionScope::Session(session) => session,
            SessionScope::Exclusive(_) => STATELESS,
        };
        if !self.is_in_use() {
            main.ownership.session.get_or_init(|| session);
        }
        if main.ownership.session.get() != Some(&session) {
            return None;
        }
        match scope {
            SessionScope::Exclusive(_) => main.leased(&self.pool.freed),
            _ => Some(main.clone()),
        }
    }
}
