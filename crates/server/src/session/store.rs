//! The sessions of legacy clients over HTTP. An id contains the whole session, sealed: a session takes memory only
//! while it is used, and survives a restart.

use std::collections::HashMap;
use std::hash::{BuildHasher, DefaultHasher, Hasher, RandomState};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use consort_core::{Caller, IdentityId};
use consort_protocol::{ClientCapabilities, Holdings, Json, Object, Revision};
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};

use crate::endpoint_key::EndpointKey;
use crate::limits::TransportLimits;
use crate::sealing::clock::sealed_now;
use crate::sealing::{SealingKey, TokenSealer, secret};
use crate::session::ClientSessionState;
use crate::session::ended::{EndedSession, EndedSessions};
use crate::socket::connection_shares::reserve;

/// Divisor of the idle timeout: a session that was idle for that long may be evicted for a new one.
const LEFT: u32 = 30;

/// Maximum bytes of client capabilities in a session id.
const CAPABILITIES: usize = 2 << 10;

/// The purpose that session ids are sealed for.
const PURPOSE: &str = "session";

/// A session as its id encodes it.
#[derive(Debug, Serialize, Deserialize)]
struct SealedSession {
    #[serde(rename = "i")]
    caller: IdentityId,
    #[serde(rename = "r")]
    revision: Revision,
    /// The endpoint.
    #[serde(rename = "p")]
    place: String,
    /// Empty if the client declared none.
    #[serde(rename = "c", default, skip_serializing_if = "String::is_empty")]
    capabilities: String,
    /// In milliseconds since 1970.
    #[serde(rename = "b")]
    issued: u64,
    #[serde(rename = "e")]
    expires: u64,
}

/// The reason why a request has no session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoSession {
    /// It ended or expired, belongs to another caller, or never existed.
    Over,
    /// Too many are open.
    Full,
    /// Its caller has as many as it may have.
    Ceiling(usize),
}

/// The ceiling of sessions that an identity has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnSessions {
    pub(crate) most: usize,
    /// Those that it has over another transport.
    pub(crate) elsewhere: usize,
}

/// Open sessions by id.
type OpenSessions = HashMap<String, Arc<ClientSessionState>, IdHashing>;

/// Hashing of session ids by their first characters. An id begins with random bytes of the server, and clients cannot
/// make one, so the rest of it tells no two apart.
#[derive(Clone, Debug, Default)]
struct IdHashing(RandomState);

struct IdHasher(DefaultHasher);

impl IdHashing {
    /// 96 random bits in base64.
    const LENGTH: usize = 16;
}

impl BuildHasher for IdHashing {
    type Hasher = IdHasher;

    fn build_hasher(&self) -> IdHasher {
        IdHasher(self.0.build_hasher())
    }
}

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.write(&bytes[..bytes.len().min(IdHashing::LENGTH)]);
    }

    fn finish(&self) -> u64 {
        self.0.finish()
    }
}

/// The sessions open over HTTP, by id.
#[derive(Debug)]
pub(crate) struct SessionStore {
    open: Mutex<OpenSessions>,
    ended: EndedSessions,
    seal: TokenSealer,
    most: usize,
    /// Those of them that are reserved for the owner.
    reserved: usize,
    unused: Duration,
    lifetime: Duration,
    /// Maximum number of queued notifications per client.
    notices: usize,
}

impl SessionStore {
    pub(crate) fn new(limits: &TransportLimits, key: &SealingKey, ended: Option<PathBuf>) -> Self {
        Self {
            open: Mutex::default(),
            ended: EndedSessions::new(ended, limits.ended_sessions),
            seal: TokenSealer::new(key),
            most: limits.sessions,
            reserved: reserve(limits.sessions, limits.owner_reserve),
            unused: limits.session,
            lifetime: limits.session_lifetime,
            notices: limits.session_notifications,
        }
    }

    /// Opens a session for a client after its handshake, unless all of them are in use.
    pub(crate) fn open(
        &self,
        endpoint: &EndpointKey,
        caller: Caller,
        revision: Revision,
        offers: ClientCapabilities,
        own: Option<OwnSessions>,
    ) -> Result<Arc<ClientSessionState>, NoSession> {
        let sealed = self.id(&caller, endpoint, revision, &offers);
        let is_sealed = sealed.is_some();
        let id = sealed.unwrap_or_else(secret);
        let session =
            ClientSessionState::new(id, endpoint.clone(), caller, revision, offers, self.notices);
        if is_sealed {
            session.seal();
        }
        let mut open = self.lock();
        let left = self.make_room(&mut open, &session.caller, own)?;
        open.insert(session.id.clone(), Arc::clone(&session));
        drop(open);
        self.give_up(left);
        Ok(session)
    }

    /// Returns the sealed id of a new session; `None` if the client declares more than an id can carry. Such a session
    /// lasts as long as it is in memory.
    fn id(
        &self,
        caller: &Caller,
        endpoint: &EndpointKey,
        revision: Revision,
        offers: &ClientCapabilities,
    ) -> Option<String> {
        let capabilities = offers.capabilities(Revision::NEWEST_MODERN).to_string();
        if capabilities.len() > CAPABILITIES {
            return None;
        }
        let issued = sealed_now();
        let lifetime = u64::try_from(self.lifetime.as_millis()).unwrap_or(u64::MAX);
        let sealed = SealedSession {
            caller: caller.id().clone(),
            revision,
            place: endpoint.to_string(),
            capabilities: if capabilities == "{}" { String::new() } else { capabilities },
            issued,
            expires: issued.saturating_add(lifetime),
        };
        Some(self.seal.seal(PURPOSE, &sealed))
    }

    /// Returns the session of this id, if it is this caller's, at this endpoint; true if it was restored from its id.
    pub(crate) fn get(
        &self,
        id: &str,
        caller: &Caller,
        endpoint: &EndpointKey,
        own: impl FnOnce() -> Option<OwnSessions>,
    ) -> Result<(Arc<ClientSessionState>, bool), NoSession> {
        let mut open = self.lock();
        if let Some(session) = open.get(id) {
            let same = session.caller.is_same_party(caller) && session.endpoint == *endpoint;
            return same.then(|| (Arc::clone(session), false)).ok_or(NoSession::Over);
        }
        let sealed = self.opened(id).ok_or(NoSession::Over)?;
        let same = *caller.id() == sealed.caller && sealed.place == endpoint.as_str();
        if !same || sealed.expires <= sealed_now() || self.ended.contains(&ended(id, &sealed)) {
            return Err(NoSession::Over);
        }
        let left = self.make_room(&mut open, caller, own())?;
        let capabilities = Json::parse(sealed.capabilities).ok().and_then(|json| json.to_object());
        let offers = ClientCapabilities::declared(&capabilities.unwrap_or_else(Object::empty));
        let id = id.to_owned();
        let session = ClientSessionState::new(
            id.clone(),
            endpoint.clone(),
            caller.clone(),
            sealed.revision,
            offers,
            self.notices,
        );
        session.seal();
        // Nobody knows what it was told.
        session.promise_all();
        open.insert(id, Arc::clone(&session));
        drop(open);
        self.give_up(left);
        Ok((session, true))
    }

    fn opened(&self, id: &str) -> Option<SealedSession> {
        self.seal.open(PURPOSE, id)
    }

    /// Returns true if a session that is unused for this time may be evicted.
    fn may_be_evicted(&self, unused: Duration, session: &ClientSessionState) -> bool {
        unused >= self.unused / LEFT || (session.is_sealed() && session.is_plain())
    }

    /// Returns the number of sessions of an identity.
    pub(crate) fn held_by(&self, identity: &IdentityId) -> usize {
        self.lock().values().filter(|session| session.caller.id() == identity).count()
    }

    /// Makes room for one more session of this caller, if needed. At its ceiling, it is the caller's own that is evicted. A session that was idle for long is evicted, since
    /// few clients end theirs, from the identity with the most sessions first. One that can be restored may be evicted
    /// at any time. An identity above its share also gives up one that only listens, in favour of an identity within
    /// its share. Fails if no session can be evicted.
    fn make_room(
        &self,
        open: &mut OpenSessions,
        caller: &Caller,
        own: Option<OwnSessions>,
    ) -> Result<Option<Arc<ClientSessionState>>, NoSession> {
        if let Some(OwnSessions { most, elsewhere }) = own {
            let held = || open.values().filter(|known| known.caller.id() == caller.id());
            if held().count() + elsewhere >= most {
                let idle = held().filter_map(|known| Some((known.unused()?, known)));
                let idle = idle.filter(|(unused, known)| self.may_be_evicted(*unused, known));
                let oldest = idle.max_by_key(|(unused, _)| *unused);
                let id = oldest.map(|(_, known)| known.id.clone());
                let id = id.ok_or(NoSession::Ceiling(most))?;
                return Ok(open.remove(&id));
            }
        }
        let most = if caller.is_owner() { self.most } else { self.most - self.reserved };
        if open.len() < most {
            return Ok(None);
        }
        let holdings: Holdings<_> = open.values().map(|it| it.caller.id().clone()).collect();
        let held = |known: &ClientSessionState| holdings.of(known.caller.id());
        let unused = open.values().filter_map(|known| Some((known.unused()?, known)));
        let left = unused.filter(|(unused, known)| self.may_be_evicted(*unused, known));
        let left =
            left.max_by_key(|(unused, known)| (held(known), *unused)).map(|(_, known)| known);
        let yields = |known: &&Arc<ClientSessionState>| {
            known.only_listens() && holdings.yields(self.most, known.caller.id(), caller.id())
        };
        let left = left.or_else(|| open.values().filter(yields).max_by_key(|known| held(known)));
        let id = left.map(|known| known.id.clone()).ok_or(NoSession::Full)?;
        Ok(open.remove(&id))
    }

    /// Ends a session that is no longer in memory. If it had state beyond its id, the id becomes invalid: its client
    /// must repeat the handshake, so that it misses no notification it subscribed to.
    fn give_up(&self, session: Option<Arc<ClientSessionState>>) {
        let Some(session) = session else { return };
        if !session.is_plain()
            && let Some(sealed) = self.opened(&session.id)
        {
            self.ended.note(ended(&session.id, &sealed));
        }
        session.end();
    }

    /// Ends a session permanently, also after a restart. The returned future writes that to disk.
    pub(crate) fn remove(&self, session: &ClientSessionState) -> impl Future<Output = ()> + use<> {
        let sealed = self.opened(&session.id);
        let written = sealed.map(|sealed| self.ended.end(ended(&session.id, &sealed)));
        self.lock().remove(&session.id);
        session.end();
        async {
            if let Some(written) = written {
                written.await;
            }
        }
    }

    /// Evicts idle sessions.
    pub(crate) fn sweep(&self) {
        let late: Vec<Arc<ClientSessionState>> = {
            let mut open = self.lock();
            let late = open.extract_if(|_, session| session.unused() >= Some(self.unused));
            late.map(|(_, session)| session).collect()
        };
        for session in late {
            self.give_up(Some(session));
        }
    }

    /// Ends the sessions of callers whose access was revoked, and returns them.
    pub(crate) fn end_revoked(&self) -> Vec<Arc<ClientSessionState>> {
        let revoked: Vec<Arc<ClientSessionState>> = {
            let mut open = self.lock();
            let revoked = open.extract_if(|_, session| session.caller.is_revoked());
            revoked.map(|(_, session)| session).collect()
        };
        for session in &revoked {
            session.end();
        }
        revoked
    }

    pub(crate) fn end(&self) {
        let open = std::mem::take(&mut *self.lock());
        for session in open.into_values() {
            session.end();
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, OpenSessions> {
        self.open.lock()
    }
}

fn ended(id: &str, sealed: &SealedSession) -> EndedSession {
    EndedSession::new(id, sealed.caller.as_str(), sealed.issued, sealed.expires)
}
