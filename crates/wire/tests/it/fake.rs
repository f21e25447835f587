//! Servers that do what no real one does on demand.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use consort_wire::{Client, Endpoint, Request, Server, Settings, Times};
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};
use testkit::Fake;

/// What a fake server was asked, in order.
type Asked = Arc<Mutex<Vec<String>>>;

/// A legacy server that has no common stream to offer, and takes its time to say so.
async fn legacy(hesitation: Duration) -> (Fake, Asked) {
    let asked = Asked::default();
    let noted = Arc::clone(&asked);
    let fake = Fake::start(move |request| {
        let asked = Arc::clone(&noted);
        let note = move |what: &str| {
            let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
            asked.push(what.to_owned());
        };
        async move {
            if request.method() == Method::GET {
                tokio::time::sleep(hesitation).await;
                note("no stream");
                return status(StatusCode::METHOD_NOT_ALLOWED);
            }
            let message: Value = serde_json::from_slice(request.body()).unwrap_or_default();
            let method = message["method"].as_str().unwrap_or("nothing");
            note(method);
            let result = match method {
                "initialize" => json!({ "protocolVersion": "2025-11-25", "capabilities": {} }),
                "tools/call" => json!({ "content": [] }),
                "server/discover" => return status(StatusCode::BAD_REQUEST),
                _ => return status(StatusCode::ACCEPTED),
            };
            let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
            let mut response = Response::new(answer.to_string());
            let kind = http::HeaderValue::from_static("application/json");
            response
                .headers_mut()
                .insert(http::header::CONTENT_TYPE, kind);
            response
        }
    })
    .await;
    (fake, asked)
}

fn status(status: StatusCode) -> Response<String> {
    let mut response = Response::new(String::new());
    *response.status_mut() = status;
    response
}

/// Connects and calls a tool, and says what the server was asked for.
async fn call(hesitation: Duration, patience: Duration) -> Vec<String> {
    let (fake, asked) = legacy(hesitation).await;
    let settings = Settings {
        times: Times {
            listen: patience,
            ..Times::default()
        },
        ..Settings::default()
    };
    let server = Server::Http(Endpoint::new(&fake.url("/mcp")).expect("it is a URL"));
    let client = Client::connect(&server, settings)
        .await
        .expect("it is a server");
    let request = Request::tool("any", &json!({}).into());
    client.request(request).await.expect("it has every tool");
    client.close().await;
    asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

#[tokio::test]
async fn nothing_is_called_before_it_is_known_whether_a_legacy_server_has_a_common_stream() {
    let asked = call(Duration::from_millis(100), Duration::from_secs(30)).await;
    assert_eq!(
        asked,
        [
            "server/discover",
            "initialize",
            "notifications/initialized",
            "no stream",
            "tools/call"
        ]
    );
}

#[tokio::test]
async fn a_legacy_server_that_does_not_say_whether_it_has_a_common_stream_can_be_called() {
    let asked = call(Duration::from_mins(1), Duration::from_millis(50)).await;
    assert_eq!(
        asked,
        [
            "server/discover",
            "initialize",
            "notifications/initialized",
            "tools/call"
        ]
    );
}
