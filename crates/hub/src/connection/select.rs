//! Selection of the connection for a request.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};

use consort_core::{CallError, Offers};
use consort_wire::{Era, Speak};

use super::{Connection, Wish};
use crate::key::{self, ConnectionKey, ConnectionParty, STATELESS, SessionScope};
use crate::line::Line;

impl Connection {
    /// Returns the connection for a request. A modern server receives the client capabilities with each request. A
    /// legacy one receives them once per session, so callers with other capabilities get connections of their own.
    pub(crate) async fn line_for(
        self: &Arc<Self>,
        party: &ConnectionParty<'_>,
    ) -> Result<Line, CallError> {
        let main = self.main().await?;
        let is_modern = main.client.about().found.revision.era() == Era::Modern;
        if is_modern && !(key::prefers_legacy(party) && self.may_speak_legacy()) {
            return Ok(main);
        }
        let asks = self.asks.load(Ordering::Relaxed);
        let scope = key::scope(party, &main.client, asks);
        let offers = party.offers;
        if !is_modern && party.caller.is_owner() {
            if main.offers == *offers
                && let Some(line) = self.served_by(&main, scope)
            {
                self.adopted().get_or_insert_with(|| Arc::clone(offers));
                return Ok(line);
            }
            if main.offers != *offers && self.adopts(offers) {
                return Box::pin(async {
                    self.wish(Wish::Adopt).await;
                    let main = self.line(|line| line.offers == *offers).await?;
                    if let Some(line) = self.served_by(&main, scope) {
                        return Ok(line);
                    }
                    let key = ConnectionKey::new(party, Era::Legacy, scope);
                    self.lines.get(self, &main.client, key, party).await
                })
                .await;
            }
        }
        let key = ConnectionKey::new(party, Era::Legacy, scope);
        match Box::pin(self.lines.get(self, &main.client, key, party)).await {
            Err(_) if is_modern && !self.may_speak_legacy() => Ok(main),
            line => line,
        }
    }

    /// Returns true if a legacy connection to a modern server may be attempted. Only the attempt shows whether it
    /// works, since servers of both eras name modern revisions only.
    fn may_speak_legacy(&self) -> bool {
        self.settings.speak == Speak::Auto && !self.modern_only.load(Ordering::Relaxed)
    }

    /// Returns the main connection if it may be used in this scope. Once the server is known to send requests, it
    /// belongs to one session: the first that received one there, or that uses it while the server has no other calls.
    fn served_by(&self, main: &Line, scope: SessionScope) -> Option<Line> {
        let session = match scope {
            SessionScope::Shared => return Some(main.clone()),
            SessionScope::Session(session) => session,
            SessionScope::Exclusive(_) => STATELESS,
        };
        if self.calls.load(Ordering::Relaxed) == 0 {
            main.owner.get_or_init(|| session);
        }
        if main.owner.get() != Some(&session) {
            return None;
        }
        match scope {
            SessionScope::Exclusive(_) => main.leased(&self.lines.freed),
            _ => Some(main.clone()),
        }
    }

    /// Returns true if the main connection may be restarted with these capabilities: it is unused, or was adopted with
    /// the same ones.
    fn adopts(&self, offers: &Arc<Offers>) -> bool {
        let mut adopted = self.adopted();
        match &*adopted {
            Some(adopted) => adopted == offers,
            None if self.calls.load(Ordering::Relaxed) > 0 => false,
            None => {
                *adopted = Some(Arc::clone(offers));
                true
            }
        }
    }

    pub(super) fn adopted(&self) -> MutexGuard<'_, Option<Arc<Offers>>> {
        self.adopted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
