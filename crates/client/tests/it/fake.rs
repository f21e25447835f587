//! Servers with behaviour that no real server shows on demand.

use std::sync::Arc;
use std::time::Duration;

use consort_client::{
    Client, ClientSettings, CloseReason, ConnectError, ConnectionNotice, EraPreference,
    OutgoingRequest, ServerCommand, ServerLocation, ServerUrl, Times,
};
use consort_protocol::PrimitiveKind;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Response, StatusCode};
use parking_lot::Mutex;
use serde_json::{Value, json};
use testkit::Fake;

/// A legacy server with one tool and no common stream.
#[derive(Clone, Default)]
struct Legacy {
    /// Delay of its answer that it has no common stream.
    hesitation: Duration,
    /// Message that it sends on the stream of every request before the answer.
    before: Option<Value>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Legacy {
    async fn start(&self) -> Fake {
        let legacy = self.clone();
        Fake::start(move |request| {
            let legacy = legacy.clone();
            async move {
                if request.method() == Method::POST {
                    return legacy.answer(request.body());
                }
                tokio::time::sleep(legacy.hesitation).await;
                legacy.note("no stream");
                status(StatusCode::METHOD_NOT_ALLOWED)
            }
        })
        .await
    }

    fn answer(&self, body: &[u8]) -> Response<String> {
        let message: Value = serde_json::from_slice(body).unwrap_or_default();
        let method = message["method"].as_str().unwrap_or("nothing");
        self.note(method);
        let result = match method {
            "initialize" => {
                json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} } })
            }
            "tools/list" => json!({ "tools": [{ "name": "any" }] }),
            "tools/call" => json!({ "content": [] }),
            "server/discover" => return status(StatusCode::BAD_REQUEST),
            _ => return status(StatusCode::ACCEPTED),
        };
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
        match &self.before {
            None => body_of("application/json", answer.to_string()),
            Some(before) => {
                body_of("text/event-stream", format!("data: {before}\n\ndata: {answer}\n\n"))
            }
        }
    }

    fn note(&self, what: &str) {
        let mut asked = self.asked.lock();
        asked.push(what.to_owned());
    }

    /// Returns the requests it received, in order.
    fn asked(&self) -> Vec<String> {
        let asked = self.asked.lock();
        asked.clone()
    }
}

fn status(status: StatusCode) -> Response<String> {
    let mut response = Response::new(String::new());
    *response.status_mut() = status;
    response
}

fn body_of(kind: &'static str, body: String) -> Response<String> {
    let mut response = Response::new(body);
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

async fn connect(fake: &Fake, times: Times) -> Client {
    let server = ServerLocation::Http(ServerUrl::new(&fake.url("/mcp")).expect("it is a URL"));
    let settings = ClientSettings { times, ..ClientSettings::default() };
    let connected = Client::connect(&server, settings).await;
    connected.expect("it is a server")
}

/// Connects and calls a tool, and returns the requests that the server received.
async fn asked_for_a_call(hesitation: Duration, patience: Duration) -> Vec<String> {
    let legacy = Legacy { hesitation, ..Legacy::default() };
    let fake = legacy.start().await;
    let times = Times { listen: patience, ..Times::default() };
    let client = connect(&fake, times).await;
    let request = OutgoingRequest::tool("any", &json!({}).into());
    client.request(request).await.expect("it has this tool");
    client.close().await;
    legacy.asked()
}

#[tokio::test]
async fn nothing_is_called_before_it_is_known_whether_a_legacy_server_has_a_common_stream() {
    assert_eq!(
        asked_for_a_call(Duration::from_millis(100), Duration::from_secs(30)).await,
        ["server/discover", "initialize", "notifications/initialized", "no stream", "tools/call"]
    );
}

#[tokio::test]
async fn a_legacy_server_that_does_not_say_whether_it_has_a_common_stream_can_be_called() {
    assert_eq!(
        asked_for_a_call(Duration::from_mins(1), Duration::from_millis(50)).await,
        ["server/discover", "initialize", "notifications/initialized", "tools/call"]
    );
}

#[tokio::test]
async fn what_a_server_says_while_it_lists_is_a_notice_and_does_not_hold_up_the_list() {
    let log = json!({ "level": "info", "data": "looking" });
    let legacy = Legacy {
        before: Some(json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": log })),
        ..Legacy::default()
    };
    let fake = legacy.start().await;
    let times = Times {
        handshake: Duration::from_secs(5),
        list: Duration::from_secs(5),
        ..Times::default()
    };
    let client = connect(&fake, times).await;
    let mut notices = client.notices();
    let tools = client.list(PrimitiveKind::Tools).await.unwrap();
    assert_eq!(tools.items.len(), 1);
    match notices.next().await {
        Some(ConnectionNotice::Notification(notification)) => {
            assert_eq!(notification.params.text("data").as_deref(), Some("looking"));
        }
        other => panic!("{other:?}"),
    }
    client.close().await;
}

#[tokio::test]
async fn a_program_that_closes_its_standard_error_before_it_ends_is_seen_to_end() {
    let script = "exec 2>&-; read -r line; exit 3";
    let server = ServerLocation::Command(ServerCommand::new("sh").arguments(["-c", script]));
    let settings = ClientSettings { speak: EraPreference::Legacy, ..ClientSettings::default() };
    match Client::connect(&server, settings).await {
        Err(ConnectError::Closed(CloseReason::Exited { status, .. })) => {
            assert_eq!(status, "exit status: 3");
        }
        other => panic!("{other:?}"),
    }
}

/// Answers `server/discover` on one connection, and returns once the client closes it.
async fn answered_until_closed(listener: tokio::net::TcpListener) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let (mut socket, _) = listener.accept().await.unwrap();
    let mut heard = Vec::new();
    while socket.read_buf(&mut heard).await.unwrap() > 0 {
        let body = heard.windows(4).position(|part| part == b"\r\n\r\n").map(|at| at + 4);
        let message = body.and_then(|at| serde_json::from_slice::<Value>(&heard[at..]).ok());
        let Some(message) = message else { continue };
        heard.clear();
        let result = json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {},
            "ttlMs": 3_600_000, "cacheScope": "public",
        });
        let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length";
        let answer = format!("{head}: {}\r\n\r\n{answer}", answer.len());
        socket.write_all(answer.as_bytes()).await.unwrap();
    }
}

#[tokio::test]
async fn a_connection_that_nobody_uses_is_closed_when_its_time_is_up() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let closed = tokio::spawn(answered_until_closed(listener));
    let times = Times { idle_connection: Duration::from_millis(50), ..Times::default() };
    let settings = ClientSettings { times, ..ClientSettings::default() };
    let server = ServerLocation::Http(ServerUrl::new(&url).unwrap());
    let client = Client::connect(&server, settings).await.unwrap();
    tokio::time::timeout(Duration::from_secs(10), closed).await.unwrap().unwrap();
    client.close().await;
}
