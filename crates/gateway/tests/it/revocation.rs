//! Access that is revoked: whatever is done under it ends, and nothing else does.

use std::sync::Arc;
use std::time::Duration;

use consort_core::{
    AccessLease, BoxFuture, Caller, CallerKind, GroupMembership, Identity, IdentityId, Rights,
    UserProfile,
};
use consort_server::{
    AuthError, Authenticator, ClientAccess, CredentialDigest, InvalidCredential,
    PresentedCredential, RequestedEndpoint,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use testkit::raw::{Exchange, Peer};
use testkit::rogue::{Manner, Step};

use crate::{SLACK, Served, open_to, quick, stdio, steps};

/// A user with a lease for each of two tokens, and groups that change.
#[derive(Debug, Default)]
struct Leases {
    leases: [Arc<AccessLease>; 2],
    groups: Mutex<Vec<String>>,
}

impl Leases {
    fn caller(&self, credential: &PresentedCredential<'_>) -> Option<Caller> {
        let names = ["first", "second"];
        let known = |name: &&str| PresentedCredential::new(name).digest() == credential.digest();
        let lease = Arc::clone(&self.leases[names.iter().position(known)?]);
        let groups = self.groups.lock().iter().cloned().collect();
        let identity = Identity {
            id: IdentityId::new("user:7f"),
            name: "acme/ada".to_owned(),
            rights: Rights::Member,
            user: Some(UserProfile {
                issuer: "acme".to_owned(),
                name: "ada".to_owned(),
                label: None,
                groups: GroupMembership::Known(groups),
                linked_caller: None,
            }),
            lease: Some(lease),
        };
        Some(Caller::new(CallerKind::Client, identity)).filter(|caller| !caller.is_revoked())
    }
}

impl Authenticator for Leases {
    fn cached(&self, shown: &PresentedCredential<'_>, _: &RequestedEndpoint<'_>) -> Option<Caller> {
        self.caller(shown)
    }

    fn authenticate<'a>(
        &'a self,
        _: PresentedCredential<'a>,
        _: &'a RequestedEndpoint<'a>,
    ) -> BoxFuture<'a, Result<Caller, AuthError>> {
        Box::pin(async { Err(AuthError::Invalid(InvalidCredential::Revoked)) })
    }

    fn is_valid(&self, _: &CredentialDigest, _: &Caller) -> bool {
        true
    }
}

async fn served(leases: &Arc<Leases>) -> Served {
    let access = ClientAccess::Authenticator(Arc::clone(leases) as Arc<dyn Authenticator>);
    let servers = vec![stdio("r", &Manner::legacy())];
    Served::new(servers, open_to(quick(), access)).await
}

/// Reads to the end of a stream, which must come soon.
async fn ends(stream: Exchange, what: &str) {
    let read = tokio::time::timeout(Duration::from_secs(1) + SLACK, stream.all());
    assert!(read.await.is_ok(), "{what} goes on");
}

// T-A6.
#[tokio::test(flavor = "multi_thread")]
async fn everything_under_a_revoked_access_ends_at_once_and_nothing_else_does() {
    let leases = Arc::new(Leases::default());
    let served = served(&leases).await;
    let tools = || json!({ "notifications": { "toolsListChanged": true } });
    let slow = || steps(&[Step::Hang]);
    let modern = Peer::modern(&served.url, Some("first"), json!({ "elicitation": { "form": {} } }));
    let other = Peer::modern(&served.url, Some("second"), json!({}));
    let legacy = Peer::legacy(&served.url, Some("first"), json!({})).await;
    let streams = [
        ("a stream of notifications", legacy.bare("GET").await),
        ("a call of a legacy client", legacy.begin_call("do", slow()).await),
        ("a subscription", modern.begin("subscriptions/listen", tools()).await),
    ];
    let kept = other.begin("subscriptions/listen", tools()).await;
    let question = json!({ "method": "elicitation/create",
        "params": { "message": "who?", "requestedSchema": { "type": "object" } } });
    let asked = modern.call("ask", question).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    assert_eq!(served.gateway.counts().suspended_calls, 1);
    leases.leases[0].end();
    served.gateway.end_revoked();
    for (what, stream) in streams {
        ends(stream, what).await;
    }
    assert_eq!(served.gateway.counts().suspended_calls, 0);
    assert_eq!(served.gateway.counts().sessions, 0);
    for peer in [&modern, &legacy] {
        assert_eq!(peer.begin("tools/list", json!({})).await.head.status, 401);
    }
    assert!(other.ask("tools/list", json!({})).await["result"].is_object());
    let read = tokio::time::timeout(Duration::from_millis(300), kept.all()).await;
    assert!(read.is_err(), "another access of the same user goes on");
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_continues_when_the_groups_of_its_user_change() {
    let leases = Arc::new(Leases::default());
    let served = served(&leases).await;
    let legacy = Peer::legacy(&served.url, Some("first"), json!({})).await;
    let lists = async |peer: &Peer| -> Value { peer.ask("tools/list", json!({})).await };
    assert!(lists(&legacy).await["result"].is_object());
    leases.groups.lock().push("staff".to_owned());
    assert!(lists(&legacy).await["result"].is_object());
    // Nor does it depend on the bytes of a token.
    assert!(lists(&legacy.stolen_by("second")).await["result"].is_object());
    served.end().await;
}
