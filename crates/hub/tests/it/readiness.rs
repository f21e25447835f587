//! Servers that are not known yet, and lists that are no longer true.

use std::time::{Duration, Instant};

use consort_client::{ServerCommand, ServerLocation, ServerUrl};
use consort_core::{
    Call, CallError, CallOutcome, Json, ListPurpose, MissingName, PrimitiveKind, RepeatSafety,
    Target, Toolbox,
};
use consort_hub::{ConnectTrigger, Hub, HubSettings, ListLimits, ManagedState, ServerSettings};
use serde_json::json;
use testkit::rogue::{Http, Manner};
use testkit::{Everything, everything, fastmcp_growing};

use crate::{call, id, me, quick, ready, rogue, rogue_http, start, status, tools, until};

const LISTING: ListPurpose = ListPurpose::Listing(PrimitiveKind::Tools);

fn program(name: &str, program: &str, arguments: &[&str]) -> ServerSettings {
    quick(ServerSettings::new(
        id(name),
        ServerLocation::Command(ServerCommand::new(program).arguments(arguments.iter().copied())),
    ))
}

fn with_lists(servers: Vec<ServerSettings>, lists: ListLimits) -> Hub {
    Hub::start(HubSettings { servers, lists, ..HubSettings::default() })
}

/// A name that nobody is known to have.
fn missing(hub: &Hub, name: &str) -> MissingName {
    MissingName::new(&hub.catalog(&me()), me(), PrimitiveKind::Tools, name)
}

#[tokio::test]
async fn a_list_waits_a_moment_for_a_server_that_is_starting_and_never_again_for_one_that_hangs() {
    let lists = ListLimits { wait: Duration::from_secs(3), ..ListLimits::default() };
    let hub = with_lists(vec![program("hung", "sleep", &["1000"])], lists);
    let first = hub.await_lists(&me(), LISTING).expect("nothing is known of it");
    assert!(!first.await);
    assert_eq!(status(&hub, "hung").state, ManagedState::Connecting);
    assert!(hub.await_lists(&me(), LISTING).is_none(), "it was seen hanging");
    hub.drain().await;
}

#[tokio::test]
async fn a_list_does_not_wait_for_a_server_that_is_known_or_down() {
    let hub = start(vec![rogue("up", &Manner::modern()), program("down", "false", &[])]);
    ready(&hub, "up").await;
    until(&hub, "down", |status| status.state == ManagedState::Failed).await;
    assert!(hub.await_lists(&me(), LISTING).is_none());
    hub.drain().await;
}

#[tokio::test]
async fn a_server_that_connects_at_the_first_call_is_connected_once_to_learn_what_it_has() {
    let lazy = ServerSettings { connect: ConnectTrigger::Call, ..rogue("lazy", &Manner::modern()) };
    let lists = ListLimits { wait: Duration::from_secs(20), ..ListLimits::default() };
    let hub = with_lists(vec![lazy], lists);
    hub.settled().await;
    assert_eq!(status(&hub, "lazy").state, ManagedState::Configured);
    assert!(hub.await_lists(&me(), LISTING).expect("nothing is known of it").await);
    assert_eq!(tools(&hub).len(), 5);
    hub.drain().await;
}

#[tokio::test]
async fn a_tool_of_a_server_that_cannot_be_reached_is_not_unknown() {
    let other = json!({ "name": "search", "inputSchema": { "type": "object" } });
    let other = Manner { extra_tool: Some(other.to_string()), ..Manner::modern() };
    let hub = start(vec![program("down", "false", &[]), rogue("other", &other)]);
    ready(&hub, "other").await;
    until(&hub, "down", |status| status.state == ManagedState::Failed).await;
    let target: Target = "down.search".parse().unwrap();
    let called = hub.call(Call::tool(me(), target, Json::from(json!({}))));
    let error = consort_core::end(called).await.unwrap_err();
    assert!(matches!(error, CallError::Connection { .. }), "{error:?}");
    assert_eq!((error.repeat(), error.hint()), (RepeatSafety::Safe, None));
    assert_eq!(error.server(), Some(&id("down")));
    // Who names no server may mean one of the server that is down.
    let error = hub.find_missing(missing(&hub, "serch")).await.unwrap_err();
    assert!(matches!(error, CallError::Connection { .. }), "{error:?}");
    assert_eq!(error.hint(), None);
    // What another server has is not looked for elsewhere, and a server that is up has what it has.
    assert!(matches!(
        call(&hub, "other.serch", json!({})).await,
        Err(CallError::Unknown { nearest, .. }) if nearest == ["other.search"]
    ));
    hub.drain().await;
}

#[tokio::test]
async fn a_call_of_a_tool_of_a_server_that_is_starting_waits_for_it() {
    let manner = serde_json::to_string(&Manner::modern()).unwrap();
    let words = ["-c", r#"sleep 1; exec "$0" "$1""#].map(Into::into);
    let words = words.into_iter().chain([testkit::bin("rogue").into_os_string(), manner.into()]);
    let slow = ServerLocation::Command(ServerCommand::new("sh").arguments(words));
    let hub = start(vec![quick(ServerSettings::new(id("slow"), slow))]);
    let target: Target = "slow.result".parse().unwrap();
    let arguments = Json::from(json!({ "raw": r#"{"content":[]}"# }));
    let called = consort_core::end(hub.call(Call::tool(me(), target, arguments))).await;
    assert!(matches!(called, Ok(CallOutcome::Complete(_))), "{called:?}");
    hub.drain().await;
}

/// A server that lists its tools partially this many times, then all of them.
fn growing(times: usize) -> Manner {
    let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
    let partial = json!({ "tools": [tool("seen")], "_meta": { "consort/partial": true } });
    let whole = json!({ "tools": [tool("seen"), tool("result")] });
    let manner =
        (0..times).fold(Manner::legacy(), |manner, _| manner.answer("tools/list", &partial));
    manner.answer("tools/list", &whole)
}

#[tokio::test]
async fn a_tool_that_a_partial_list_lacks_is_waited_for_and_not_unknown() {
    // Its first list is read when it is connected.
    let hub = start(vec![rogue("a", &growing(3))]);
    ready(&hub, "a").await;
    let arguments = json!({ "raw": r#"{"content":[]}"# });
    assert_eq!(tools(&hub), ["a.seen"]);
    let target: Target = "a.result".parse().unwrap();
    let called = hub.call(Call::tool(me(), target, Json::from(arguments)));
    let called = consort_core::end(called).await;
    assert!(matches!(called, Ok(CallOutcome::Complete(_))), "{called:?}");
    // Now it is complete, and what it lacks is unknown at once.
    let found = hub.find_missing(missing(&hub, "a.other")).await;
    assert!(matches!(found, Ok(false)), "{found:?}");
    hub.drain().await;
}

#[tokio::test]
async fn whether_a_list_that_stays_partial_has_a_tool_is_not_known() {
    let lists = ListLimits { server_wait: Duration::from_secs(2), ..ListLimits::default() };
    let hub = with_lists(vec![rogue("a", &growing(50))], lists);
    ready(&hub, "a").await;
    let target: Target = "a.result".parse().unwrap();
    let called = || hub.call(Call::tool(me(), target.clone(), Json::from(json!({}))));
    let error = consort_core::end(called()).await.unwrap_err();
    assert!(matches!(error, CallError::Connection { .. }), "{error:?}");
    assert_eq!(error.repeat(), RepeatSafety::Safe);
    assert!(format!("{error:?}").contains("its list of tools is not complete yet"), "{error:?}");
    hub.drain().await;
}

/// A `FastMCP` server that adds tools while it runs, and the tool that was added.
async fn grown(lists: ListLimits) -> (Hub, testkit::Listening) {
    let server = fastmcp_growing();
    let url = ServerUrl::new(&server.url("/mcp")).unwrap();
    let hub = with_lists(vec![ServerSettings::new(id("py"), ServerLocation::Http(url))], lists);
    ready(&hub, "py").await;
    let catalog = hub.catalog(&me());
    assert!(!catalog.abouts()[&id("py")].offers("tools.listChanged"), "it would tell");
    call(&hub, "py.grow", json!({ "name": "late" })).await.unwrap();
    assert_eq!(tools(&hub), ["py.grow"]);
    (hub, server)
}

/// Nothing is read again but for the reason under test.
const NEVER: ListLimits = ListLimits {
    wait: Duration::from_secs(1),
    server_wait: Duration::from_secs(10),
    max_age: Duration::from_hours(1),
    min_age: Duration::from_millis(1),
    change_wait: Duration::from_secs(5),
    variants: 64,
};

#[tokio::test]
async fn a_tool_that_was_added_silently_is_found_when_it_is_called() {
    let (hub, _server) = grown(NEVER).await;
    let begun = Instant::now();
    let answered = loop {
        match call(&hub, "py.late", json!({})).await {
            Err(CallError::Unknown { .. }) if begun.elapsed() < Duration::from_secs(20) => {}
            answered => break answered.unwrap(),
        }
    };
    assert_eq!(answered.flattened(), "this is late");
    hub.drain().await;
}

#[tokio::test]
async fn a_tool_that_was_added_silently_is_read_behind_a_clients_list() {
    let (hub, _server) = grown(NEVER).await;
    let mut catalogs = hub.watch();
    let grown = async {
        while tools(&hub).len() < 2 {
            assert!(hub.await_lists(&me(), LISTING).is_none(), "nobody waits for that");
            let _ = tokio::time::timeout(Duration::from_millis(200), catalogs.changed()).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), grown).await.unwrap();
    assert_eq!(tools(&hub), ["py.grow", "py.late"]);
    hub.drain().await;
}

#[tokio::test]
async fn a_tool_that_was_added_silently_is_read_on_a_timer() {
    let (hub, _server) = grown(ListLimits { max_age: Duration::from_millis(300), ..NEVER }).await;
    let mut catalogs = hub.watch();
    let grown = catalogs.wait_for(|catalog| catalog.tools.len() == 2);
    tokio::time::timeout(Duration::from_secs(20), grown).await.unwrap().unwrap();
    hub.drain().await;
}

#[tokio::test]
async fn what_a_modern_server_says_of_itself_is_read_again_with_its_lists() {
    let about = |instructions: &str| {
        json!({
            "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
            "instructions": instructions, "resultType": "complete",
        })
    };
    let manner = Manner::modern()
        .answer("server/discover", &about("Read first."))
        .answer("server/discover", &about("Write first."));
    let http = Http::start(manner).await;
    let lists = ListLimits { max_age: Duration::from_millis(300), ..NEVER };
    let hub = with_lists(vec![rogue_http("a", &http)], lists);
    let mut catalogs = hub.watch();
    for said in ["Read first.", "Write first."] {
        let says = catalogs.wait_for(|catalog| {
            let about = catalog.abouts().get(&id("a"));
            about.is_some_and(|about| about.instructions.as_deref() == Some(said))
        });
        let says = tokio::time::timeout(Duration::from_secs(20), says).await;
        assert!(says.is_ok(), "{said}");
    }
    hub.drain().await;
}

#[tokio::test]
async fn unknown_names_cause_one_reading_in_a_while_whoever_asks() {
    let http = Http::start(Manner::modern()).await;
    let hub = start(vec![rogue_http("a", &http)]);
    ready(&hub, "a").await;
    let lists = || http.seen().iter().filter(|message| message["method"] == "tools/list").count();
    let before = lists();
    let mut callers = tokio::task::JoinSet::new();
    for n in 0..20 {
        let hub = hub.clone();
        callers.spawn(async move { call(&hub, &format!("a.none{n}"), json!({})).await });
    }
    while let Some(called) = callers.join_next().await {
        assert!(matches!(called.unwrap(), Err(CallError::Unknown { .. })));
    }
    // The list was read less than five seconds before.
    assert!(lists() <= before + 1, "{} readings", lists() - before);
    hub.drain().await;
}

#[tokio::test]
async fn lifecycle_calls_return_when_they_hold() {
    let server = everything(Everything::StreamableHttp);
    let url = ServerLocation::Http(ServerUrl::new(&server.url("/mcp")).unwrap());
    let servers = vec![ServerSettings::new(id("ts"), url), rogue("a", &Manner::legacy())];
    let hub = start(servers);
    for name in ["ts", "a"] {
        let (server, tool, arguments) = match name {
            "ts" => (id("ts"), "ts.echo", json!({ "message": "hi" })),
            _ => (id("a"), "a.result", json!({ "raw": r#"{"content":[]}"# })),
        };
        ready(&hub, name).await;
        for _ in 0..5 {
            assert!(hub.restart(&server).await);
            assert_eq!(status(&hub, name).state, ManagedState::Ready);
            let called = call(&hub, tool, arguments.clone()).await;
            assert!(called.is_ok(), "{called:?}");
        }
        assert!(hub.disable(&server).await);
        assert_eq!(status(&hub, name).state, ManagedState::Disabled);
        assert!(call(&hub, tool, arguments.clone()).await.is_err());
        assert!(hub.connect(&server).await);
        let called = call(&hub, tool, arguments.clone()).await;
        assert!(called.is_ok(), "{called:?}");
        assert!(hub.disconnect(&server).await);
        assert_eq!(status(&hub, name).state, ManagedState::Known);
        // Nothing is on its way that could be waited for.
        tokio::time::timeout(Duration::from_secs(10), hub.settled()).await.unwrap();
    }
    hub.drain().await;
}
