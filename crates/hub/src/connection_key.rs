//! Keys of upstream connections, which determine the callers that may share one.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use consort_client::{BoxFuture, Client, ClientHandler, DeclaringHandler, ServerRequest};
use consort_core::{
    Caller, ClientCapabilities, ClientContext, ClientSession, IdentityId, Json, Subscription,
};
use consort_protocol::{Era, RequestRefusal, TaskHandling};

/// Key of a connection to a server. Requests with equal keys share a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionKey {
    /// The caller's identity.
    pub(crate) identity: IdentityId,
    /// Generation of the server's credentials. A connection made with earlier ones serves no new calls.
    pub(crate) credentials: u64,
    /// The capabilities that are declared to the server.
    pub(crate) capabilities: Arc<ClientCapabilities>,
    /// The protocol era.
    pub(crate) era: Era,
    /// The client sessions that share it.
    pub(crate) scope: SessionScope,
}

/// The caller and client that need a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionParty<'a> {
    pub(crate) caller: &'a Caller,
    /// Client capabilities: the requests that it can answer.
    pub(crate) offers: &'a Arc<ClientCapabilities>,
    /// Its session, if clients can be distinguished.
    pub(crate) session: Option<&'a ClientSession>,
    pub(crate) tasks: TaskHandling,
    pub(crate) is_subscription: bool,
    /// True if it must not share a connection, although the server is not known to send requests.
    pub(crate) is_alone: bool,
}

impl<'a> ConnectionParty<'a> {
    /// Returns the party of a call.
    pub(crate) fn of_client(caller: &'a Caller, client: &'a ClientContext) -> Self {
        let ClientContext { offers, session, tasks, .. } = client;
        let (session, is_subscription) = (session.as_ref(), false);
        Self { caller, offers, session, tasks: *tasks, is_subscription, is_alone: false }
    }

    /// Returns the party of a subscription.
    pub(crate) fn of_subscriber(subscription: &'a Subscription) -> Self {
        Self {
            caller: &subscription.caller,
            offers: &subscription.offers,
            session: subscription.session.as_ref(),
            tasks: TaskHandling::Follow,
            is_subscription: true,
            is_alone: false,
        }
    }
}

/// Session number that stands for all clients without a session.
pub(crate) const STATELESS: u64 = 0;

/// The client sessions that share a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SessionScope {
    /// All of them: the server sends no requests, or relates each to its call.
    Shared,
    /// One session.
    Session(u64),
    /// One call at a time, because its client cannot be distinguished from others.
    /// The number identifies one of the connections that such calls take turns on.
    Exclusive(usize),
}

impl Hash for ConnectionKey {
    // Few connections differ in their capabilities alone, and those are large.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity.hash(state);
        self.scope.hash(state);
    }
}

impl ConnectionKey {
    /// Makes the key of the connection that a party needs to a server in this era.
    pub(crate) fn new(
        party: &ConnectionParty<'_>,
        credentials: u64,
        era: Era,
        scope: SessionScope,
    ) -> Self {
        Self {
            identity: party.caller.id().clone(),
            credentials,
            capabilities: Arc::clone(party.offers),
            era,
            scope,
        }
    }
}

/// Returns true if a party needs a legacy connection rather than a modern one. Its client answers requests in the
/// legacy form, and a server of both eras may send them in that form only.
pub(crate) fn prefers_legacy(party: &ConnectionParty<'_>) -> bool {
    party.session.is_some_and(ClientSession::is_legacy) && party.offers.any()
}

/// Returns the sessions that may share a party's connection to a server in the legacy era, connected like `main`.
/// `asks` if the server is known to send requests without relating them to a call.
pub(crate) fn scope(party: &ConnectionParty<'_>, main: &Client, asks: bool) -> SessionScope {
    if !party.offers.any() {
        return SessionScope::Shared;
    }
    let asks = asks || party.is_alone;
    // A task lives on in the connection that made it, and may ask later.
    let tasks = main.has_shared_channel() && main.about().offers("tasks");
    match party.session {
        Some(session) if asks || tasks => SessionScope::Session(session.id()),
        None if asks && !may_outlive(party, tasks) => SessionScope::Exclusive(0),
        _ => SessionScope::Shared,
    }
}

/// Returns true if a party uses something that outlives its request, so that later requests must reach it too.
fn may_outlive(party: &ConnectionParty<'_>, tasks: bool) -> bool {
    party.is_subscription || tasks && party.tasks == TaskHandling::Return
}

/// Client handler of a connection whose callers answer requests themselves. It notes that the server sends requests
/// outside of calls.
pub(crate) struct CallerHost {
    declared: DeclaringHandler,
    asks: Arc<AtomicBool>,
}

impl CallerHost {
    pub(crate) fn new(capabilities: &ClientCapabilities, asks: Arc<AtomicBool>) -> Self {
        Self { declared: DeclaringHandler(capabilities.clone()), asks }
    }
}

impl ClientHandler for CallerHost {
    fn offers(&self) -> ClientCapabilities {
        self.declared.offers()
    }

    fn request_outside_calls(&self) {
        self.asks.store(true, Ordering::Relaxed);
    }

    fn answer(&self, question: ServerRequest) -> BoxFuture<'_, Result<Json, RequestRefusal>> {
        self.declared.answer(question)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_capabilities_make_equal_keys_and_sessions_and_credentials_differ() {
        let offers =
            || Arc::new(ClientCapabilities { form: true, ..ClientCapabilities::default() });
        let key_with = |credentials, scope| {
            let (caller, client) = (Caller::client("ada"), ClientContext::new(offers()));
            let party = ConnectionParty::of_client(&caller, &client);
            ConnectionKey::new(&party, credentials, Era::Legacy, scope)
        };
        let key = |scope| key_with(1, scope);
        let digest = |key: &ConnectionKey| {
            let mut hasher = std::hash::DefaultHasher::new();
            key.hash(&mut hasher);
            hasher.finish()
        };
        let (one, same) = (key(SessionScope::Session(1)), key(SessionScope::Session(1)));
        assert_eq!(one, same);
        assert_eq!(digest(&one), digest(&same));
        assert_ne!(one, key(SessionScope::Session(2)));
        assert_ne!(one, key(SessionScope::Shared));
        assert_ne!(one, key_with(2, SessionScope::Session(1)));
    }
}
