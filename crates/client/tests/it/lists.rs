//! Lists, read completely or not at all.

use std::time::{Duration, Instant};

use consort_client::Limits;
use consort_protocol::PrimitiveKind;
use serde_json::json;
use testkit::rogue::{Manner, Step};

use crate::{Pair, WAYS, Way, quick, tool};

#[tokio::test]
async fn all_pages_are_read_in_order() {
    for way in WAYS {
        let pair = Pair::new(way, Manner { pages: 30, ..Manner::legacy() }).await;
        let listing = pair.client.list(PrimitiveKind::Tools).await.unwrap();
        let names: Vec<_> = listing.items.iter().map(|item| item.name.as_str()).collect();
        assert_eq!(names.len(), 35);
        assert_eq!((names[0], names[5], names[34]), ("result", "page-1", "page-30"));
        assert_eq!(
            listing.items[0].definition.json().as_str(),
            r#"{"inputSchema":{"type":"object"},"name":"result"}"#
        );
    }
}

#[tokio::test]
async fn a_shelf_the_server_does_not_have_is_empty_without_asking() {
    let pair = Pair::new(Way::Stdio, Manner::legacy()).await;
    for shelf in [PrimitiveKind::Prompts, PrimitiveKind::Resources, PrimitiveKind::Templates] {
        assert!(pair.client.list(shelf).await.unwrap().items.is_empty());
    }
    let asked: Vec<_> = pair.seen().await.iter().map(|message| message["method"].clone()).collect();
    assert!(
        !asked.iter().any(|method| method.as_str().is_some_and(|method| method.ends_with("/list"))),
        "{asked:?}"
    );
}

#[tokio::test]
async fn a_list_the_server_does_not_know_is_empty_and_any_other_error_is_an_error() {
    let error = |code: i64| {
        let message = json!({ "code": code, "message": "no" });
        Step::Message(format!(r#"{{"jsonrpc":"2.0","id":$ID,"error":{message}}}"#))
    };
    let capabilities = json!({ "tools": {}, "prompts": {}, "resources": {} });
    let manner = |code| {
        let manner = Manner { capabilities: capabilities.clone(), ..Manner::default() };
        PrimitiveKind::ALL
            .iter()
            .fold(manner, |manner, shelf| manner.on(shelf.method(), [error(code)]))
    };
    for way in WAYS {
        let unsupported = Pair::new(way, manner(-32601)).await;
        let broken = Pair::new(way, manner(-32603)).await;
        for shelf in PrimitiveKind::ALL {
            let listing = unsupported.client.list(shelf).await.unwrap();
            assert!(listing.items.is_empty() && listing.left_out.is_empty(), "{way:?} {shelf:?}");
            let error = broken.client.list(shelf).await.unwrap_err();
            assert_eq!(
                error.to_string(),
                "the server returned an error: no (code -32603)",
                "{way:?} {shelf:?}"
            );
        }
    }
}

// F14
#[tokio::test]
async fn a_list_that_does_not_end_is_no_list() {
    let list = async |manner: Manner, limits: Limits| {
        let mut settings = quick();
        settings.limits = limits;
        settings.times.list = Duration::from_millis(600);
        let pair = Pair::with(Way::Stdio, manner, settings).await;
        pair.client.list(PrimitiveKind::Tools).await.unwrap_err().to_string()
    };
    let many = || Manner { pages: 10_000, ..Manner::legacy() };
    assert_eq!(
        list(many(), Limits::default()).await,
        "the listing has more than 100 pages (`list_pages` in `[consort.limits]`)"
    );
    let few = Limits { items: 20, ..Limits::default() };
    assert_eq!(
        list(many(), few).await,
        "the listing has more than 20 items (`list_items` in `[consort.limits]`)"
    );
    let small = Limits { list_bytes: 1000, ..Limits::default() };
    assert_eq!(
        list(many(), small).await,
        "the listing has more than 1000 bytes (`list_bytes` in `[consort.limits]`)"
    );
    let circle = Manner { circle: true, ..Manner::legacy() };
    assert_eq!(
        list(circle, Limits::default()).await,
        "the server's listing is invalid: its pages repeat a cursor"
    );
    let begun = Instant::now();
    let silent = Manner::legacy().on("tools/list", []);
    assert_eq!(list(silent, Limits::default()).await, "the listing was not complete within 600ms");
    assert!(begun.elapsed() < Duration::from_secs(2));
    let nonsense = Manner::legacy().answer("tools/list", &json!({ "tools": 5 }));
    assert_eq!(
        list(nonsense, Limits::default()).await,
        "the server's listing is invalid: a page without items"
    );
}

#[tokio::test]
async fn a_cursor_that_expires_restarts_the_list_once() {
    let expired =
        r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32602,"message":"cursor expired"}}"#;
    let page = json!({ "tools": [{ "name": "a" }], "nextCursor": "" });
    let last = json!({ "tools": [{ "name": "b" }] });
    let manner = Manner::legacy()
        .answer("tools/list", &page)
        .on("tools/list", [Step::Message(expired.to_owned())])
        .answer("tools/list", &page)
        .answer("tools/list", &last);
    let pair = Pair::new(Way::Stdio, manner).await;
    let listing = pair.client.list(PrimitiveKind::Tools).await.unwrap();
    let names: Vec<_> = listing.items.iter().map(|item| item.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    // An empty cursor is a cursor.
    assert!(pair.seen().await.iter().any(|message| message["params"]["cursor"] == ""));
}

#[tokio::test]
async fn what_cannot_be_used_is_left_out_with_its_reason() {
    let long = "x".repeat(70_000);
    let tools = json!({ "tools": [
        { "name": "good", "inputSchema": { "type": "object" } },
        { "name": "long", "description": long },
        { "title": "nameless" },
        5,
    ]});
    let pair = Pair::new(Way::Stdio, Manner::legacy().answer("tools/list", &tools)).await;
    let listing = pair.client.list(PrimitiveKind::Tools).await.unwrap();
    assert_eq!(listing.items.len(), 1);
    let reasons: Vec<_> =
        listing.left_out.iter().map(|out| (out.name.as_str(), out.reason.as_str())).collect();
    assert_eq!(
        reasons,
        [
            (
                "long",
                "its definition is larger than 65536 bytes (`definition_bytes` in `[consort.limits]`)"
            ),
            ("", "it has no `name`"),
            ("", "it is not an object"),
        ]
    );
}

#[tokio::test]
async fn how_long_a_list_stays_fresh_is_what_its_pages_agree_on() {
    let page = |ttl: i64, scope: &str, cursor: Option<&str>| json!({ "tools": [], "ttlMs": ttl, "cacheScope": scope, "nextCursor": cursor });
    let manner = Manner::modern()
        .answer("tools/list", &page(5000, "public", Some("1")))
        .answer("tools/list", &page(3000, "private", None))
        .answer("tools/list", &page(-1, "public", None));
    let pair = Pair::new(Way::Stdio, manner).await;
    let listing = pair.client.list(PrimitiveKind::Tools).await.unwrap();
    assert_eq!((listing.fresh, listing.public), (Duration::from_secs(3), false));
    let listing = pair.client.list(PrimitiveKind::Tools).await.unwrap();
    assert_eq!((listing.fresh, listing.public), (Duration::ZERO, true));
}

fn region() -> Manner {
    let schema = json!({ "type": "object", "properties": { "region": { "type": "string", "x-mcp-header": "Region" } } });
    Manner {
        extra_tool: Some(json!({ "name": "deploy", "inputSchema": schema }).to_string()),
        ..Manner::modern()
    }
}

#[tokio::test]
async fn an_argument_is_mirrored_in_the_header_its_tool_names() {
    let pair = Pair::new(Way::Http, region()).await;
    pair.client.list(PrimitiveKind::Tools).await.unwrap();
    let _ = pair.client.request(tool("deploy", &json!({ "region": "eu-west1" }))).await;
    let _ = pair.client.request(tool("deploy", &json!({ "region": null }))).await;
    let requests = pair.http.as_ref().unwrap().requests();
    let mirrored: Vec<_> =
        requests.iter().map(|request| request.headers.get("mcp-param-region").cloned()).collect();
    assert_eq!(mirrored, [None, None, Some("eu-west1".to_owned()), None]);
}

#[tokio::test]
async fn a_tool_whose_headers_changed_is_listed_again_and_called_once_more() {
    let mismatch =
        r#"{"jsonrpc":"2.0","id":$ID,"error":{"code":-32020,"message":"Header mismatch"}}"#;
    let manner = region()
        .on(
            "tools/call",
            [Step::Status(400, "application/json".to_owned(), mismatch.replace("$ID", "2"))],
        )
        .answer("tools/call", &json!({ "content": [] }));
    let pair = Pair::new(Way::Http, manner).await;
    pair.client.request(tool("deploy", &json!({ "region": "eu" }))).await.unwrap();
    let requests = pair.http.as_ref().unwrap().requests();
    let asked: Vec<_> = requests
        .iter()
        .map(|request| {
            (
                request.headers["mcp-method"].as_str(),
                request.headers.contains_key("mcp-param-region"),
            )
        })
        .collect();
    assert_eq!(
        asked,
        [
            ("server/discover", false),
            ("tools/call", false),
            ("tools/list", false),
            ("tools/call", true),
        ]
    );
}

#[tokio::test]
async fn a_tool_with_a_bad_header_is_left_out_over_http_alone() {
    let bad = json!({ "name": "bad", "inputSchema": { "type": "object", "properties": {
        "n": { "type": "number", "x-mcp-header": "N" },
    }}});
    for (way, usable) in [(Way::Http, false), (Way::Stdio, true)] {
        let manner = Manner { extra_tool: Some(bad.to_string()), ..Manner::modern() };
        let pair = Pair::new(way, manner).await;
        let listing = pair.client.list(PrimitiveKind::Tools).await.unwrap();
        assert_eq!(listing.items.iter().any(|item| item.name == "bad"), usable);
        assert_eq!(listing.left_out.len(), usize::from(!usable));
    }
}
