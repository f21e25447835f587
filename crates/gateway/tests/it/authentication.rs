//! Callers by an authenticator of the embedding program, and fair shares of common limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use consort_core::{BoxFuture, Caller, CallerKind, Identity, IdentityId, Rights};
use consort_server::{
    AuthError, Authenticator, BearerToken, ClientAccess, CredentialDigest, InvalidCredential,
    PresentedCredential, RequestedEndpoint, TransportLimits,
};
use http::HeaderValue;
use serde_json::json;
use testkit::raw::{Exchange, Peer};

use crate::{Served, limited, open_to, quick, with_tokens};

/// Accepts the credential `for PATH` at its path, after a delay as of a remote check, and caches it.
#[derive(Debug, Default)]
struct IdentityProvider {
    asked: AtomicUsize,
    known: parking_lot::Mutex<Vec<CredentialDigest>>,
}

fn ada() -> Caller {
    let identity = Identity {
        id: IdentityId::new("user:7f"),
        name: "acme/ada".to_owned(),
        rights: Rights::Member,
        user: None,
        lease: None,
    };
    Caller::new(CallerKind::Client, identity)
}

impl Authenticator for IdentityProvider {
    fn cached(&self, shown: &PresentedCredential<'_>, _: &RequestedEndpoint<'_>) -> Option<Caller> {
        self.known.lock().contains(shown.digest()).then(ada)
    }

    fn authenticate<'a>(
        &'a self,
        shown: PresentedCredential<'a>,
        endpoint: &'a RequestedEndpoint<'a>,
    ) -> BoxFuture<'a, Result<Caller, AuthError>> {
        Box::pin(async move {
            self.asked.fetch_add(1, Ordering::Relaxed);
            // Long enough for concurrent requests to wait for the same check.
            tokio::time::sleep(Duration::from_millis(20)).await;
            let digest = *shown.digest();
            match shown.into_secret() {
                "down" => Err(AuthError::Unavailable("the issuer does not answer".to_owned())),
                secret if secret == format!("for {}", endpoint.path) => {
                    self.known.lock().push(digest);
                    Ok(ada())
                }
                _ => Err(AuthError::Invalid(InvalidCredential::Unknown)),
            }
        })
    }

    fn is_valid(&self, credential: &CredentialDigest, _: &Caller) -> bool {
        self.known.lock().contains(credential)
    }

    fn challenge(
        &self,
        endpoint: &RequestedEndpoint<'_>,
        refusal: Option<InvalidCredential>,
    ) -> HeaderValue {
        assert_eq!(refusal, Some(InvalidCredential::Unknown));
        HeaderValue::from_str(&format!("Bearer realm=\"{}\"", endpoint.path)).unwrap()
    }
}

/// The status and the challenge of a request with this credential at a path.
async fn refused(served: &Served, path: &str, credential: &str) -> (u16, Option<String>) {
    let peer = Peer::modern(&served.at(path), Some(credential), json!({}));
    let exchange = peer.begin("tools/list", json!({})).await;
    let challenge = exchange.head.get("www-authenticate").map(str::to_owned);
    (exchange.head.status, challenge)
}

#[tokio::test]
async fn an_authenticator_is_asked_once_for_each_credential_and_challenges_by_endpoint() {
    let provider = Arc::new(IdentityProvider::default());
    let access = ClientAccess::Authenticator(Arc::clone(&provider) as Arc<dyn Authenticator>);
    let served = Served::new(Vec::new(), open_to(quick(), access)).await;
    let challenged = |path: &str| (401, Some(format!("Bearer realm=\"{path}\"")));
    assert_eq!(refused(&served, "/mcp", "nonsense").await, challenged("/mcp"));
    assert_eq!(refused(&served, "/servers/x/mcp", "for /mcp").await, challenged("/servers/x/mcp"));
    assert_eq!(refused(&served, "/mcp", "down").await, (503, None));
    assert_eq!(provider.asked.load(Ordering::Relaxed), 3);
    for _ in 0..5 {
        assert_eq!(refused(&served, "/mcp", "for /mcp").await, (200, None));
    }
    assert_eq!(provider.asked.load(Ordering::Relaxed), 4);
    served.end().await;
}

/// Opens a client's notification stream, and returns its head and the stream.
async fn listening(peer: &Peer) -> Exchange {
    peer.bare("GET").await
}

#[tokio::test]
async fn one_identity_with_every_session_gives_way_to_others_and_the_owner() {
    let most = 40;
    let settings = with_tokens(["hog", "ada", "owner"].map(str::to_owned));
    let limits = TransportLimits { sessions: most, ..settings.transports.limits.clone() };
    let served = Served::new(Vec::new(), limited(settings, limits)).await;
    let mut streams = Vec::new();
    // A reserve of 5 % is the owner's.
    for _ in 0..most * 95 / 100 {
        let peer = Peer::legacy(&served.url, Some("t-hog"), json!({})).await;
        streams.push(listening(&peer).await);
    }
    assert!(streams.iter().all(|stream| stream.head.status == 200));
    for token in ["t-owner", "t-ada", "t-ada", "t-ada", "t-owner"] {
        let peer = Peer::legacy(&served.url, Some(token), json!({})).await;
        let tools = peer.ask("tools/list", json!({})).await;
        assert!(tools["result"]["tools"].is_array(), "{token}: {tools}");
    }
    served.end().await;
}

#[tokio::test]
async fn one_identity_with_every_connection_gives_way_to_others_and_the_owner() {
    let most = 20;
    let settings = with_tokens(["hog", "ada", "owner"].map(str::to_owned));
    let limits = TransportLimits { connections: most, ..settings.transports.limits.clone() };
    let served = Served::new(Vec::new(), limited(settings, limits)).await;
    let mut peers = Vec::new();
    // A reserve of 5 % is the owner's.
    for _ in 0..most {
        peers.push(Peer::legacy(&served.url, Some("t-hog"), json!({})).await);
    }
    let mut streams = Vec::new();
    for peer in &peers {
        streams.push(listening(peer).await);
    }
    let refused = streams.iter().filter(|stream| stream.head.status == 503).count();
    assert_eq!(refused, 1, "its own streams are not closed for its own sake");
    for token in ["t-ada", "t-owner", "t-ada"] {
        let peer = Peer::modern(&served.url, Some(token), json!({}));
        let tools = peer.ask("tools/list", json!({})).await;
        assert!(tools["result"]["tools"].is_array(), "{token}: {tools}");
    }
    served.end().await;
}

#[tokio::test]
async fn rights_belong_to_an_identity_and_never_to_its_name() {
    let tokens = vec![BearerToken::client("owner", "t-imitator"), BearerToken::owner("t-owner")];
    let settings = open_to(quick(), ClientAccess::Tokens(tokens));
    let served = Served::new(Vec::new(), settings).await;
    let metrics = async |token| {
        let peer = Peer::modern(&served.at("/metrics"), Some(token), json!({}));
        peer.bare("GET").await.head.status
    };
    assert_eq!(metrics("t-imitator").await, 403);
    assert_eq!(metrics("t-owner").await, 200);
    // A session of the one is none of the other's.
    let session = Peer::legacy(&served.url, Some("t-imitator"), json!({})).await;
    let stolen = session.stolen_by("t-owner").begin("tools/list", json!({})).await;
    assert_eq!(stolen.head.status, 404);
    served.end().await;
}
