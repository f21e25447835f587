//! Servers whose credentials are replaced while they are in use.

use std::sync::Arc;
use std::time::Duration;

use consort_client::{Credentials, RefusedRequest, ServerLocation, ServerUrl};
use consort_core::{
    BoxFuture, Call, CallEvent, Caller, ClientCapabilities, ClientContext, Json, Subscription,
    SubscriptionEvent, Target, Toolbox,
};
use consort_hub::{Hub, ServerSettings};
use http::HeaderValue;
use parking_lot::Mutex;
use serde_json::json;
use testkit::rogue::{Http, Manner, Step};
use tokio::sync::watch;

use crate::{id, quick, ready, start};

/// Credentials that a test replaces or renews.
#[derive(Debug)]
struct Account {
    token: Mutex<String>,
    generation: watch::Sender<u64>,
}

impl Account {
    fn new(token: &str) -> Arc<Self> {
        Arc::new(Self { token: Mutex::new(token.to_owned()), generation: watch::Sender::new(1) })
    }

    /// Renews the token of the same login.
    fn renew(&self, token: &str) {
        token.clone_into(&mut self.token.lock());
    }

    /// Replaces the login by another.
    fn replace(&self, token: &str) {
        self.renew(token);
        self.generation.send_modify(|generation| *generation += 1);
    }
}

impl Credentials for Account {
    fn key(&self) -> &'static str {
        "account"
    }

    fn authorization(&self) -> BoxFuture<'_, Option<HeaderValue>> {
        let token = self.token.lock().clone();
        Box::pin(async move { HeaderValue::try_from(format!("Bearer {token}")).ok() })
    }

    fn refused(&self, _refused: RefusedRequest) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async { Err("log in".to_owned()) })
    }

    fn generation(&self) -> u64 {
        *self.generation.borrow()
    }

    fn changed(&self) -> BoxFuture<'_, ()> {
        let mut generation = self.generation.subscribe();
        Box::pin(async move {
            let _ = generation.changed().await;
        })
    }
}

/// A server at this URL with these credentials.
fn server(http: &Http, account: &Arc<Account>) -> ServerSettings {
    let account = Arc::<Account>::clone(account);
    let endpoint = ServerUrl::new(&http.url()).unwrap().credentials(account);
    let mut settings = quick(ServerSettings::new(id("a"), ServerLocation::Http(endpoint)));
    settings.times.idle = Duration::from_secs(20);
    settings.times.total = Duration::from_secs(20);
    settings
}

fn call(caller: &Caller, steps: &[Step]) -> Call {
    let offers = Arc::new(ClientCapabilities { form: true, ..ClientCapabilities::default() });
    let arguments = Json::from(json!({ "steps": steps }));
    let target: Target = "a.write".parse().unwrap();
    Call {
        client: Some(ClientContext::new(offers)),
        ..Call::tool(caller.clone(), target, arguments)
    }
}

/// The tokens and sessions of the requests with this HTTP method, in their order.
fn shown(http: &Http, method: &str) -> Vec<(String, String)> {
    let requests = http.requests();
    let of_method = requests.iter().filter(|request| request.method == method);
    let shown = of_method.map(|request| {
        let header = |name| request.headers.get(name).cloned().unwrap_or_default();
        (header("authorization").trim_start_matches("Bearer ").to_owned(), header("mcp-session-id"))
    });
    shown.collect()
}

/// The session of the last message that had one.
fn last_session(http: &Http) -> String {
    let sessions = shown(http, "POST").into_iter().map(|(_, session)| session);
    sessions.rev().find(|session| !session.is_empty()).unwrap()
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    testkit::wait_until_async(what, async || is_so()).await;
}

async fn end(hub: &Hub, call: Call) -> bool {
    consort_core::end(hub.call(call)).await.is_ok()
}

#[tokio::test]
async fn a_connection_made_with_a_replaced_login_ends_its_calls_and_gets_no_new_ones() {
    let http = Http::start(Manner::legacy()).await;
    let account = Account::new("ada");
    let hub = start(vec![server(&http, &account)]);
    ready(&hub, "a").await;
    let fast = [Step::result(&json!({ "content": [] }))];
    let slow = [Step::Sleep(300), Step::result(&json!({ "content": [] }))];
    // The main connection serves its first caller, another identity has one of its own.
    for caller in [Caller::owner(), Caller::client("eve")] {
        assert!(end(&hub, call(&caller, &fast)).await);
        let before = last_session(&http);
        account.renew("ada, renewed");
        assert!(end(&hub, call(&caller, &fast)).await);
        assert_eq!(last_session(&http), before, "a renewed token changes nothing");

        let sent = shown(&http, "POST").len();
        let running = |steps: &[Step]| {
            let (hub, call) = (hub.clone(), call(&caller, steps));
            tokio::spawn(async move { end(&hub, call).await })
        };
        let (slow, endless) = (running(&slow), running(&[Step::Hang]));
        until("the calls are under way", || shown(&http, "POST").len() >= sent + 2).await;
        assert_eq!(last_session(&http), before);
        account.replace("bob");
        assert!(end(&hub, call(&caller, &fast)).await);
        let after = last_session(&http);
        assert_ne!(after, before, "the session of the earlier login is not used");
        assert!(slow.await.unwrap(), "a call under way ends well");
        let closed = |session: &str| shown(&http, "DELETE").iter().any(|(_, it)| it == session);
        assert!(!closed(&before) && !endless.is_finished(), "another goes on");
        endless.abort();
        until("the connection is closed once its calls have ended", || closed(&before)).await;
        assert!(!closed(&after));
        account.replace("ada");
        assert!(end(&hub, call(&caller, &fast)).await);
    }
    hub.drain().await;
}

#[tokio::test]
async fn a_server_is_connected_anew_once_its_login_is_replaced_though_nobody_calls() {
    let http = Http::start(Manner::modern()).await;
    let account = Account::new("ada");
    let hub = start(vec![server(&http, &account)]);
    ready(&hub, "a").await;
    account.replace("bob");
    let is_bob = |(token, _): &(String, String)| token == "bob";
    until("its lists are read as the other account", || {
        http.seen().iter().filter(|message| message["method"] == "tools/list").count() == 2
            && shown(&http, "POST").iter().any(is_bob)
    })
    .await;
    assert_eq!(ready(&hub, "a").await.restarts, 0);
    hub.drain().await;
}

#[tokio::test]
async fn a_subscription_moves_to_a_connection_of_the_new_login() {
    let capabilities = json!({ "resources": { "subscribe": true } });
    let manner = Manner { capabilities, ..Manner::legacy() }
        .answer("resources/list", &json!({ "resources": [{ "uri": "file:///a", "name": "a" }] }))
        .answer("resources/subscribe", &json!({}));
    let http = Http::start(manner).await;
    let account = Account::new("ada");
    let hub = start(vec![server(&http, &account)]);
    ready(&hub, "a").await;
    let subscription = Subscription {
        caller: Caller::client("eve"),
        server: id("a"),
        offers: Arc::default(),
        session: None,
        resources: vec!["file:///a".to_owned()],
        tasks: Vec::new(),
    };
    let mut events = hub.subscribe(subscription);
    let first = events.next().await;
    assert!(matches!(first, Some(SubscriptionEvent::Accepted)), "{first:?}");
    account.replace("bob");
    // Updates may have been missed, so it tells of one.
    let second = tokio::time::timeout(Duration::from_secs(20), events.next()).await.unwrap();
    assert!(matches!(second, Some(SubscriptionEvent::Notification { .. })), "{second:?}");
    let subscribed =
        http.seen().iter().filter(|message| message["method"] == "resources/subscribe").count();
    assert_eq!(subscribed, 2);
    drop(events);
    hub.drain().await;
}

#[tokio::test]
async fn a_bearer_token_that_the_config_replaces_is_not_shown_by_new_calls() {
    let http = Http::start(Manner::legacy()).await;
    let bearing = |token: &str| {
        let endpoint = ServerUrl::new(&http.url()).unwrap();
        let endpoint = endpoint.header("authorization", &format!("Bearer {token}")).unwrap();
        quick(ServerSettings::new(id("a"), ServerLocation::Http(endpoint)))
    };
    let hub = start(vec![bearing("one")]);
    ready(&hub, "a").await;
    let slow = [Step::Sleep(500), Step::result(&json!({ "content": [] }))];
    let fast = [Step::result(&json!({ "content": [] }))];
    let caller = Caller::client("eve");
    assert!(end(&hub, call(&caller, &fast)).await);
    let mut running = hub.call(call(&caller, &slow));
    let sent = shown(&http, "POST").len();
    let ended = tokio::spawn(async move {
        loop {
            if let Some(CallEvent::End(end)) = running.next().await {
                return end.is_ok();
            }
        }
    });
    until("the call is under way", || shown(&http, "POST").len() > sent).await;
    hub.reload(vec![bearing("two")], std::collections::BTreeSet::new(), Duration::from_secs(10));
    ready(&hub, "a").await;
    let begun = shown(&http, "POST").len();
    assert!(end(&hub, call(&caller, &fast)).await);
    let tokens: Vec<String> =
        shown(&http, "POST").split_off(begun).into_iter().map(|(token, _)| token).collect();
    assert!(tokens.iter().all(|token| token == "two"), "{tokens:?}");
    assert!(ended.await.unwrap(), "the call under way ends well");
    hub.drain().await;
}
