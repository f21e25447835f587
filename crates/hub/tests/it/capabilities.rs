//! Lists of servers for clients with different capabilities and identities.

use std::sync::Arc;
use std::time::Duration;

use consort_client::{EraPreference, ServerLocation, ServerUrl};
use consort_core::{
    Call, CallError, CallEvent, CallOutcome, Caller, ClientCapabilities, ClientContext, Json,
    ListPurpose, LogDelivery, LogLevel, PrimitiveKind, Subscription, SubscriptionEvent, Target,
    Toolbox,
};
use consort_hub::{Hub, HubSettings, ListLimits, ServerSettings};
use serde_json::json;
use testkit::rogue::{Http, Manner, Step};
use testkit::{Everything, everything, everything_stdio, fastmcp_sessions};

use crate::{id, ready, rogue, rogue_http};

const LISTING: ListPurpose = ListPurpose::Listing(PrimitiveKind::Tools);

/// Long enough for a slow machine.
const LONG: Duration = Duration::from_mins(1);

/// A hub whose lists wait for a server as long as it takes.
fn patient(servers: Vec<ServerSettings>) -> Hub {
    let lists = ListLimits { wait: LONG, server_wait: LONG, ..ListLimits::default() };
    Hub::start(HubSettings { servers, lists, ..HubSettings::default() })
}

fn able() -> Arc<ClientCapabilities> {
    Arc::new(ClientCapabilities {
        form: true,
        url: true,
        sampling: true,
        sampling_tools: true,
        roots: true,
        ..ClientCapabilities::default()
    })
}

/// The names of the tools that a caller is listed.
async fn listed(hub: &Hub, caller: &Caller) -> Vec<String> {
    if let Some(lists) = hub.await_lists(caller, LISTING) {
        lists.await;
    }
    names(hub, caller)
}

fn names(hub: &Hub, caller: &Caller) -> Vec<String> {
    hub.catalog(caller).tools.entries().iter().map(|entry| entry.name.clone()).collect()
}

/// Waits until a caller is listed what a test wants.
async fn until_listed(hub: &Hub, caller: &Caller, like: impl Fn(&[String]) -> bool) -> Vec<String> {
    let mut catalogs = hub.watch();
    let waiting = async {
        loop {
            let names = names(hub, caller);
            if like(&names) {
                return names;
            }
            catalogs.changed().await.unwrap();
        }
    };
    let waited = tokio::time::timeout(LONG, waiting).await;
    waited.unwrap_or_else(|_| panic!("{:?}", names(hub, caller)))
}

fn call(caller: &Caller, tool: &str, arguments: serde_json::Value) -> Call {
    let offers = Arc::clone(caller.capabilities().unwrap());
    let target: Target = tool.parse().unwrap();
    Call {
        client: Some(ClientContext::new(offers)),
        ..Call::tool(caller.clone(), target, Json::from(arguments))
    }
}

async fn lists_follow_capabilities(server: ServerLocation) {
    let hub = patient(vec![ServerSettings::new(id("all"), server)]);
    ready(&hub, "all").await;
    for plain in [Caller::owner(), Caller::client("ada")] {
        let (weak, strong) = (
            plain.clone().with_capabilities(Arc::default()),
            plain.clone().with_capabilities(able()),
        );
        tokio::join!(listed(&hub, &weak), listed(&hub, &strong));
        // Some tools are added right after the handshake, and announced.
        let strong_tools = until_listed(&hub, &strong, |names| names.len() >= 16).await;
        let weak_tools = until_listed(&hub, &weak, |names| names.len() == 13).await;
        assert!(weak_tools.iter().all(|name| strong_tools.contains(name)));
        let gated = "trigger-elicitation-request";
        assert!(strong_tools.iter().any(|name| name == gated), "{strong_tools:?}");
        // A tool of one list is called on a connection that has it, and is unknown to others.
        let mut asked = hub.call(call(&strong, &format!("all.{gated}"), json!({})));
        let first = asked.next().await;
        assert!(matches!(first, Some(CallEvent::Question(_))), "{first:?}");
        drop(asked);
        let refused =
            consort_core::end(hub.call(call(&weak, &format!("all.{gated}"), json!({})))).await;
        assert!(matches!(refused, Err(CallError::Unknown { .. })), "{refused:?}");
    }
    // So is an agent, or what else calls in this process, if it declares capabilities.
    let agent = Caller::agent("bot").with_capabilities(able());
    listed(&hub, &agent).await;
    until_listed(&hub, &agent, |names| names.len() >= 16).await;
    hub.drain().await;
}

#[tokio::test]
async fn clients_are_listed_what_server_everything_has_for_their_capabilities_over_stdio() {
    lists_follow_capabilities(ServerLocation::Command(everything_stdio())).await;
}

#[tokio::test]
async fn clients_are_listed_what_server_everything_has_for_their_capabilities_over_http() {
    let server = everything(Everything::StreamableHttp);
    let url = ServerUrl::new(&server.url("/mcp")).unwrap();
    lists_follow_capabilities(ServerLocation::Http(url)).await;
}

#[tokio::test]
async fn identities_whose_lists_are_equal_share_one_catalog_and_one_connection() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    let manner = Manner { ledger: Some(ledger.clone()), ..Manner::legacy() };
    let hub = patient(vec![rogue("a", &manner)]);
    ready(&hub, "a").await;
    let main = hub.catalog(&Caller::owner());
    let mut listing = tokio::task::JoinSet::new();
    for n in 0..64 {
        let hub = hub.clone();
        listing.spawn(async move {
            let caller = Caller::client(format!("client {n}")).with_capabilities(able());
            listed(&hub, &caller).await;
            hub.catalog(&caller)
        });
    }
    while let Some(catalog) = listing.join_next().await {
        assert!(Arc::ptr_eq(&catalog.unwrap(), &main));
    }
    let connected = std::fs::read_to_string(ledger).unwrap();
    let connected = connected.lines().filter(|line| *line == "initialize").count();
    assert_eq!(connected, 2, "the main connection, and one with the capabilities");
    hub.drain().await;
}

/// A server that lists another tool from the second time on.
fn unlocking() -> Manner {
    let tools = |names: &[&str]| {
        let tool = |name: &&str| json!({ "name": name, "inputSchema": { "type": "object" } });
        json!({ "tools": names.iter().map(tool).collect::<Vec<_>>() })
    };
    let manner =
        Manner { capabilities: json!({ "tools": { "listChanged": true } }), ..Manner::legacy() };
    manner
        .answer("tools/list", &tools(&["write"]))
        .answer("tools/list", &tools(&["write", "unlocked"]))
}

/// Has the server say on the caller's connection that its tools changed.
async fn announce(hub: &Hub, caller: &Caller) {
    let steps = [
        Step::notify("notifications/tools/list_changed", &json!({})),
        Step::result(&json!({ "content": [] })),
    ];
    let called = hub.call(call(caller, "a.write", json!({ "steps": steps })));
    let called = consort_core::end(called).await;
    assert!(matches!(called, Ok(CallOutcome::Complete(_))), "{called:?}");
}

#[tokio::test]
async fn a_connection_with_other_capabilities_hears_that_its_lists_changed() {
    let hub = patient(vec![rogue("a", &unlocking())]);
    ready(&hub, "a").await;
    let (owner, ada) = (
        Caller::owner().with_capabilities(Arc::default()),
        Caller::client("ada").with_capabilities(able()),
    );
    assert_eq!(listed(&hub, &ada).await, ["write"]);
    announce(&hub, &ada).await;
    until_listed(&hub, &ada, |names| names == ["write", "unlocked"]).await;
    assert_eq!(listed(&hub, &owner).await, ["write"]);
    hub.drain().await;
}

#[tokio::test]
async fn what_a_server_unlocks_for_one_identity_is_not_listed_to_another() {
    let hub = patient(vec![rogue("a", &unlocking())]);
    ready(&hub, "a").await;
    let caller = |name: &str| Caller::client(name).with_capabilities(Arc::default());
    let (owner, ada, bob) =
        (Caller::owner().with_capabilities(Arc::default()), caller("ada"), caller("bob"));
    assert_eq!(listed(&hub, &ada).await, ["write"]);
    // The first reading on its connection is as on the main one, the second is not.
    while names(&hub, &ada).len() < 2 {
        announce(&hub, &ada).await;
        let mut catalogs = hub.watch();
        let _ = tokio::time::timeout(Duration::from_secs(2), catalogs.changed()).await;
    }
    assert_eq!(names(&hub, &ada), ["write", "unlocked"]);
    for other in [&owner, &bob] {
        assert_eq!(listed(&hub, other).await, ["write"]);
    }
    hub.drain().await;
}

#[tokio::test]
async fn what_fastmcp_unlocks_in_one_session_is_listed_to_its_identity_alone() {
    let server = fastmcp_sessions();
    let url = ServerUrl::new(&server.url("/mcp")).unwrap();
    let mut settings = ServerSettings::new(id("py"), ServerLocation::Http(url));
    settings.speak = EraPreference::Legacy;
    let hub = patient(vec![settings]);
    ready(&hub, "py").await;
    let caller = |name: &str| Caller::client(name).with_capabilities(able());
    let (owner, ada, bob) =
        (Caller::owner().with_capabilities(Arc::default()), caller("ada"), caller("bob"));
    // Whoever is listed first reads the lists that the others have.
    for caller in [&owner, &ada, &bob] {
        assert_eq!(listed(&hub, caller).await, ["unlock"]);
    }
    let unlocked = consort_core::end(hub.call(call(&ada, "py.unlock", json!({})))).await;
    assert!(matches!(unlocked, Ok(CallOutcome::Complete(_))), "{unlocked:?}");
    until_listed(&hub, &ada, |names| names.len() == 2).await;
    let found = consort_core::end(hub.call(call(&ada, "py.treasure", json!({})))).await;
    assert!(matches!(found, Ok(CallOutcome::Complete(_))), "{found:?}");
    for caller in [&owner, &bob] {
        assert_eq!(listed(&hub, caller).await, ["unlock"]);
    }
    hub.drain().await;
}

#[tokio::test]
async fn a_connection_that_several_calls_wait_for_is_made_once_though_the_first_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    let welcome = json!({
        "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
        "serverInfo": { "name": "slow", "version": "1" },
    });
    let mut manner = Manner { ledger: Some(ledger.clone()), ..Manner::legacy() };
    let steps = vec![Step::Sleep(1000), Step::result(&welcome)];
    manner.script.insert("initialize".to_owned(), [steps].into());
    let hub = patient(vec![rogue("a", &manner)]);
    ready(&hub, "a").await;
    let ada = Caller::client("ada").with_capabilities(Arc::default());
    let nothing = json!({ "steps": [Step::result(&json!({ "content": [] }))] });
    let connects = async |times: usize| {
        testkit::wait_until_async("the server is connected", async || {
            let ledger = std::fs::read_to_string(&ledger).unwrap();
            ledger.lines().filter(|line| *line == "initialize").count() >= times
        })
        .await;
    };
    let first = consort_core::end(hub.call(call(&ada, "a.write", nothing.clone())));
    tokio::select! {
        _ = first => panic!("it was to be given up"),
        () = connects(2) => {}
    }
    let second = consort_core::end(hub.call(call(&ada, "a.write", nothing))).await;
    assert!(matches!(second, Ok(CallOutcome::Complete(_))), "{second:?}");
    let ledger = std::fs::read_to_string(&ledger).unwrap();
    assert_eq!(ledger.lines().filter(|line| *line == "initialize").count(), 2, "{ledger}");
    hub.drain().await;
}

#[tokio::test]
async fn a_subscription_that_is_dropped_outside_the_runtime_is_unsubscribed() {
    let mut manner = Manner::legacy()
        .answer("resources/subscribe", &json!({}))
        .answer("resources/unsubscribe", &json!({}));
    manner.capabilities = json!({ "resources": { "subscribe": true } });
    let http = Http::start(manner).await;
    let hub = patient(vec![rogue_http("a", &http)]);
    ready(&hub, "a").await;
    let mut events = hub.subscribe(Subscription {
        caller: Caller::client("ada"),
        server: id("a"),
        resources: vec!["memo://note".to_owned()],
        tasks: Vec::new(),
        offers: Arc::default(),
        session: None,
    });
    let accepted = events.next().await;
    assert!(matches!(accepted, Some(SubscriptionEvent::Accepted)), "{accepted:?}");
    std::thread::spawn(move || drop(events)).join().unwrap();
    testkit::wait_until_async("the server is told", async || {
        http.seen().iter().any(|message| message["method"] == "resources/unsubscribe")
    })
    .await;
    hub.drain().await;
}

#[tokio::test]
async fn a_subscription_that_hangs_does_not_hold_up_others() {
    let mut manner = Manner::legacy().answer("resources/unsubscribe", &json!({}));
    let first = vec![Step::Hang];
    let others = vec![Step::result(&json!({}))];
    manner.script.insert("resources/subscribe".to_owned(), [first, others].into());
    manner.capabilities = json!({ "resources": { "subscribe": true } });
    let http = Http::start(manner).await;
    let mut settings = rogue_http("a", &http);
    // It hangs for longer than the test waits.
    (settings.times.idle, settings.times.total) = (LONG * 10, LONG * 10);
    let hub = patient(vec![settings]);
    ready(&hub, "a").await;
    let subscribe = |uri: &str| {
        hub.subscribe(Subscription {
            caller: Caller::client("ada"),
            server: id("a"),
            resources: vec![uri.to_owned()],
            tasks: Vec::new(),
            offers: Arc::default(),
            session: None,
        })
    };
    let (mut hanging, mut other) = (subscribe("memo://hangs"), subscribe("memo://note"));
    let asked = testkit::wait_until_async("the server is asked", async || {
        http.seen().iter().any(|message| message["method"] == "resources/subscribe")
    });
    tokio::select! {
        event = hanging.next() => panic!("{event:?}"),
        () = asked => {}
    }
    let accepted = tokio::select! {
        event = hanging.next() => panic!("{event:?}"),
        accepted = tokio::time::timeout(LONG, other.next()) => accepted.unwrap(),
    };
    assert!(matches!(accepted, Some(SubscriptionEvent::Accepted)), "{accepted:?}");
    drop((hanging, other));
    hub.drain().await;
}

#[tokio::test]
async fn calls_share_the_end_of_one_request_for_a_log_level() {
    let mut manner = Manner::legacy();
    manner.script.insert("logging/setLevel".to_owned(), [vec![Step::Hang]].into());
    manner.capabilities = json!({ "logging": {} });
    let http = Http::start(manner).await;
    let hub = patient(vec![rogue_http("a", &http)]);
    ready(&hub, "a").await;
    let ada = Caller::client("ada").with_capabilities(Arc::default());
    let nothing = json!({ "steps": [Step::result(&json!({ "content": [] }))] });
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let log = LogDelivery::From(LogLevel::Debug);
        let call = Call { log, ..call(&ada, "a.write", nothing.clone()) };
        calls.spawn(consort_core::end(hub.call(call)));
    }
    while let Some(called) = calls.join_next().await {
        let called = called.unwrap();
        assert!(matches!(called, Ok(CallOutcome::Complete(_))), "{called:?}");
    }
    let seen = http.seen();
    let asked = seen.iter().filter(|message| message["method"] == "logging/setLevel").count();
    assert!(asked < 8, "each waited for the one before it: {asked}");
    hub.drain().await;
}

#[tokio::test]
async fn a_modern_server_is_asked_for_its_lists_with_the_capabilities_of_the_client() {
    let http = Http::start(Manner::modern()).await;
    let hub = patient(vec![rogue_http("a", &http)]);
    ready(&hub, "a").await;
    let ada = Caller::client("ada").with_capabilities(able());
    listed(&hub, &ada).await;
    let declared = |message: &serde_json::Value| {
        message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]["roots"]
            .is_object()
    };
    let seen = http.seen();
    let lists = seen.iter().filter(|message| message["method"] == "tools/list");
    assert_eq!(lists.filter(|message| declared(message)).count(), 1);
    // They are the same: nothing is kept of it.
    assert!(Arc::ptr_eq(&hub.catalog(&ada), &hub.catalog(&Caller::owner())));
    hub.drain().await;
}
