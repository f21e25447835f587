//! Traps that others fell into: each is a promise here.

use std::time::{Duration, Instant};

use consort_client::{ServerCommand, ServerLocation};
use consort_core::{CallError, ContentBlock, ToolResult};
use consort_hub::{ManagedState, ServerSettings};
use serde_json::{Value, json};
use testkit::rogue::{Http, Manner, Step};

use crate::{
    call, events, id, quick, ready, rogue, rogue_http, seen, start, status, tools, until, write,
};

#[tokio::test]
async fn is_error_is_neither_lost_nor_invented() {
    let hub = start(vec![rogue("a", &Manner::legacy())]);
    ready(&hub, "a").await;
    for (raw, failed) in [
        (r#"{"content":[],"isError":true}"#, true),
        (r#"{"content":[],"isError":false}"#, false),
        (r#"{"content":[{"type":"text","text":"error: isError"}]}"#, false),
    ] {
        let result = call(&hub, "a.result", json!({ "raw": raw })).await.unwrap();
        assert_eq!(result.is_error(), failed, "{raw}");
    }
    hub.drain().await;
}

#[tokio::test]
async fn every_page_of_tools_is_read() {
    let hub = start(vec![rogue("a", &Manner { pages: 12, ..Manner::modern() })]);
    ready(&hub, "a").await;
    assert_eq!(tools(&hub).len(), 17);
    assert_eq!(tools(&hub).last().map(String::as_str), Some("a.page-12"));
    hub.drain().await;
}

#[tokio::test]
async fn configured_variables_and_headers_reach_the_server() {
    let manner = serde_json::to_string(&Manner::legacy()).unwrap();
    let script = r#"printf '%s' "$TOKEN" >&2; exec "$0" "$1""#;
    let rogue = testkit::bin("rogue");
    let words = ["-c".into(), script.into(), rogue.into_os_string(), manner.into()];
    let command = ServerCommand::new("sh").arguments(words).variable("TOKEN", "s3cret");
    let http = Http::start(Manner::modern()).await;
    let endpoint = consort_client::ServerUrl::new(&http.url()).unwrap();
    let endpoint = endpoint.header("Authorization", "Bearer s3cret").unwrap();
    let hub = start(vec![
        quick(ServerSettings::new(id("a"), ServerLocation::Command(command))),
        quick(ServerSettings::new(id("b"), ServerLocation::Http(endpoint))),
    ]);
    hub.settled().await;
    assert_eq!(hub.stderr(&id("a")).for_operator(), "s3cret");
    assert!(
        http.requests().iter().all(|request| request.headers["authorization"] == "Bearer s3cret")
    );
    hub.drain().await;
}

#[tokio::test]
async fn a_server_on_its_way_is_waited_for_not_missed() {
    let slow = rogue("a", &Manner { slow_start: 500, ..Manner::modern() });
    let hub = start(vec![slow]);
    assert_eq!(status(&hub, "a").state, ManagedState::Configured);
    // The very first moment: nothing is connected, nothing is stored.
    let a = id("a");
    let (one, two) = tokio::join!(hub.client(&a), hub.client(&a));
    assert!(one.is_ok() && two.is_ok());
    assert_eq!(status(&hub, "a").restarts, 0, "one connection for both");
    hub.drain().await;
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_gives_an_error_and_no_data() {
    let nowhere = consort_client::ServerUrl::new("http://127.0.0.1:9/mcp").unwrap();
    let hub = start(vec![quick(ServerSettings::new(id("a"), ServerLocation::Http(nowhere)))]);
    until(&hub, "a", |status| status.state == ManagedState::Failed).await;
    assert!(tools(&hub).is_empty());
    let error = call(&hub, "a.anything", json!({})).await.unwrap_err();
    assert!(matches!(error, CallError::Connection { .. }), "{error}");
    hub.drain().await;
}

#[tokio::test]
async fn a_call_does_not_run_on_a_closed_session() {
    let http = Http::start(Manner::legacy()).await;
    let hub = start(vec![rogue_http("a", &http)]);
    ready(&hub, "a").await;
    hub.disconnect(&id("a")).await;
    until(&hub, "a", |status| status.state == ManagedState::Known).await;
    assert!(
        http.requests().iter().any(|request| request.method == "DELETE"),
        "the old one was closed"
    );
    assert!(call(&hub, "a.result", json!({ "raw": "{}" })).await.is_ok());
    let sessions: Vec<_> = http
        .requests()
        .iter()
        .filter(|request| request.method == "POST")
        .filter_map(|request| request.headers.get("mcp-session-id").cloned())
        .collect();
    assert_eq!(
        sessions.last().map(String::as_str),
        Some(format!("session-{}-2", std::process::id()).as_str())
    );
    hub.drain().await;
}

#[tokio::test]
async fn a_listing_holds_the_schemas_it_promises() {
    let schema =
        json!({ "type": "object", "properties": { "n": { "type": "integer", "minimum": 1 } } });
    let tool =
        json!({ "name": "typed", "inputSchema": schema, "outputSchema": { "type": "object" } });
    let hub =
        start(vec![rogue("a", &Manner { extra_tool: Some(tool.to_string()), ..Manner::modern() })]);
    ready(&hub, "a").await;
    let catalog = consort_core::Toolbox::catalog(&hub, &crate::me());
    let typed = catalog.resolve("typed").unwrap().tool();
    assert_eq!(typed.input_schema().read::<Value>().unwrap(), schema);
    assert!(typed.output_schema().is_some());
    hub.drain().await;
}

#[tokio::test]
async fn an_image_stays_an_image() {
    let hub = start(vec![rogue("a", &Manner::modern())]);
    ready(&hub, "a").await;
    let raw = r#"{"content":[{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}]}"#;
    let result: ToolResult = call(&hub, "a.result", json!({ "raw": raw })).await.unwrap();
    let [ContentBlock::Image(image)] = &result.content()[..] else { panic!("{result:?}") };
    assert_eq!((image.data.as_str(), image.mime_type.as_str()), ("iVBORw0KGgo=", "image/png"));
    hub.drain().await;
}

#[tokio::test]
async fn calls_run_side_by_side() {
    let hub = start(vec![rogue("a", &Manner::legacy()), rogue("b", &Manner::modern())]);
    hub.settled().await;
    let slow = [Step::Sleep(400), Step::result(&json!({ "content": [] }))];
    let begun = Instant::now();
    let ends = tokio::join!(
        write(&hub, "a", &slow),
        write(&hub, "a", &slow),
        write(&hub, "a", &slow),
        write(&hub, "b", &slow),
        write(&hub, "b", &slow),
    );
    assert!(ends.0.is_ok() && ends.1.is_ok() && ends.2.is_ok() && ends.3.is_ok() && ends.4.is_ok());
    assert!(begun.elapsed() < Duration::from_millis(1100), "{:?}", begun.elapsed());
    hub.drain().await;
}

#[tokio::test]
async fn one_call_that_ends_takes_nothing_from_the_others() {
    let hub = start(vec![rogue("a", &Manner::legacy())]);
    ready(&hub, "a").await;
    let slow = [Step::Sleep(300), Step::result(&json!({ "content": [], "n": 7 }))];
    let (kept, (), failed) = tokio::join!(
        write(&hub, "a", &slow),
        async {
            // One that is dropped, with its clean-up.
            let dropped = events(&hub, "a.write", json!({ "steps": [Step::Hang] }));
            let _ = tokio::time::timeout(Duration::from_millis(50), dropped).await;
        },
        call(&hub, "a.result", json!({ "raw": r#"{"content":[],"isError":true}"# })),
    );
    assert_eq!(kept.unwrap().object().get("n").unwrap().integer(), Some(7));
    assert!(failed.unwrap().is_error());
    assert_eq!(status(&hub, "a").restarts, 0);
    assert_eq!(
        seen(&hub, "a").await.iter().filter(|message| message["method"] == "initialize").count(),
        1
    );
    hub.drain().await;
}

#[tokio::test]
async fn a_servers_name_selects_that_servers_tools() {
    let hub = start(vec![rogue("a", &Manner::legacy()), rogue("b", &Manner::modern())]);
    hub.settled().await;
    let catalog = consort_core::Toolbox::catalog(&hub, &crate::me());
    assert_eq!(catalog.tools.of(&id("a")).count(), 5);
    assert_eq!(catalog.tools.of(&id("b")).count(), 5);
    assert_eq!(catalog.tools.of(&id("c")).count(), 0);
    hub.drain().await;
}
