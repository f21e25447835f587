//! Clients over HTTP+SSE and over standard input and output.

use std::time::{Duration, Instant};

use consort_client::{
    BoxFuture, Client, ClientHandler, OutgoingRequest, PendingCallEvent, ServerAnswer,
    ServerLocation, ServerRequest, ServerUrl,
};
use consort_protocol::{ClientCapabilities, Json, PrimitiveKind, RequestRefusal};
use consort_server::TransportLimits;
use serde_json::{Value, json};
use std::sync::Arc;
use testkit::rogue::{Manner, Step};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio::task::JoinHandle;

use crate::{SLACK, Served, limited, quick, stdio, steps, until, with_tokens};
use testkit::raw::{Exchange, Peer, message};

struct Ada;

impl ClientHandler for Ada {
    fn offers(&self) -> ClientCapabilities {
        ClientCapabilities { form: true, ..ClientCapabilities::default() }
    }

    fn answer(&self, _: ServerRequest) -> BoxFuture<'_, Result<Json, RequestRefusal>> {
        Box::pin(async { Ok(json!({ "action": "accept", "content": { "name": "Ada" } }).into()) })
    }
}

fn form() -> Value {
    json!({ "method": "elicitation/create", "params": { "message": "who?", "requestedSchema": { "type": "object" } } })
}

fn done() -> Step {
    Step::Message(r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"n":7}}"#.to_owned())
}

async fn old(served: &Served) -> Client {
    let server = ServerLocation::Sse(ServerUrl::new(&served.at("/sse")).unwrap());
    let settings = consort_client::ClientSettings {
        host: Arc::new(Ada),
        ..consort_client::ClientSettings::default()
    };
    Client::connect(&server, settings).await.unwrap()
}

fn tool(name: &str, arguments: Value) -> OutgoingRequest {
    OutgoingRequest::tool(name, &Json::from(arguments))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_http_and_sse_client_lists_calls_and_answers_questions() {
    for manner in [Manner::legacy(), Manner::modern()] {
        let served = Served::over(&manner).await;
        let client = old(&served).await;
        assert_eq!(served.gateway.counts().pipes, 1);
        let tools = client.list(PrimitiveKind::Tools).await.unwrap();
        assert_eq!(tools.items.len(), 5);
        let mut call = client.call(tool("progress", json!({ "count": 3 })));
        let mut reports = 0;
        while let Some(event) = call.next().await {
            match event {
                PendingCallEvent::Progress(_) => reports += 1,
                PendingCallEvent::End(end) => assert!(matches!(end, Ok(ServerAnswer::Complete(_)))),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(reports, 3);
        if !manner.modern {
            let answer = client.request(tool("ask", form())).await.unwrap();
            let answer: Value = answer.object().get("answer").unwrap().read().unwrap();
            assert_eq!(answer["result"]["content"]["name"], "Ada");
        }
        client.close().await;
        served.rests().await;
        served.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_http_and_sse_client_that_disconnects_cancels_its_calls() {
    let served = Served::over(&Manner::modern()).await;
    let client = old(&served).await;
    let calling = tokio::spawn({
        let client = client.clone();
        async move { client.request(tool("write", steps(&[Step::Hang]))).await.is_err() }
    });
    let peer = served.modern();
    until("it runs", async || {
        let seen = peer.seen("seen").await;
        seen.iter().any(|m| m["params"]["name"] == "write").then_some(())
    })
    .await;
    client.close().await;
    assert!(calling.await.unwrap());
    until("the server is told", async || {
        let seen = peer.seen("seen").await;
        seen.iter().any(|m| m["method"] == "notifications/cancelled").then_some(())
    })
    .await;
    served.rests().await;
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_endpoint_of_an_http_and_sse_client_refuses_other_identities() {
    let settings = with_tokens(["ada".to_owned(), "bob".to_owned()]);
    let served = Served::new(vec![stdio("r", &Manner::legacy())], settings).await;
    let ada = Peer::modern(&served.at("/sse"), Some("t-ada"), json!({}));
    let mut stream = ada.bare("GET").await;
    let Some(Value::String(path)) = stream.next().await else { panic!("it says where to post") };
    assert!(path.starts_with("/sse?session="), "{path}");
    let say = async |peer: &Peer| {
        let body = message(1, "ping", &json!({})).to_string();
        let head = peer.at(&path).head("POST");
        let request = format!(
            "{head}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        Exchange::send(peer.address(), request).await.head.status
    };
    assert_eq!(say(&ada.stolen_by("t-bob")).await, 404);
    assert_eq!(say(&ada.stolen_by("x")).await, 401);
    assert_eq!(say(&ada.at("/sse?session=x")).await, 202);
    // Without a handshake it is told so, and is told only that.
    let told = stream.next().await.unwrap();
    assert_eq!(told["error"]["code"], -32600, "{told}");
    drop(stream);
    served.rests().await;
    assert_eq!(say(&ada).await, 404);
    served.end().await;
}

// F25
#[tokio::test(flavor = "multi_thread")]
async fn a_call_over_http_and_sse_still_ends_while_the_gateway_drains() {
    let served = Served::over(&Manner::modern()).await;
    let client = old(&served).await;
    let calling = tokio::spawn({
        let client = client.clone();
        async move { client.request(tool("write", steps(&[Step::Sleep(500), done()]))).await }
    });
    until("it runs", async || (served.gateway.counts().requests == 1).then_some(())).await;
    let begun = Instant::now();
    served.gateway.drain().await;
    assert!(begun.elapsed() < Duration::from_millis(1500), "{:?}", begun.elapsed());
    let answer = calling.await.unwrap().unwrap();
    assert_eq!(answer.object().get("n").unwrap().integer(), Some(7));
    client.close().await;
    served.end().await;
}

/// A client on a pair of streams.
struct Piped {
    input: Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: WriteHalf<DuplexStream>,
    serving: JoinHandle<bool>,
}

impl Piped {
    fn new(served: &Served) -> Self {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        let (read, write) = tokio::io::split(theirs);
        let gateway = served.gateway.clone();
        let serving = tokio::spawn(async move { gateway.serve_streams(None, read, write).await });
        let (read, write) = tokio::io::split(ours);
        Self { input: BufReader::new(read).lines(), output: write, serving }
    }

    async fn line(&mut self, line: &str) {
        let line = format!("{line}\n");
        self.output.write_all(line.as_bytes()).await.unwrap();
    }

    async fn say(&mut self, message: &Value) {
        self.line(&message.to_string()).await;
    }

    async fn next(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(testkit::raw::PATIENCE, self.input.next_line());
        let line = line.await.expect("something comes").unwrap()?;
        Some(serde_json::from_str(&line).unwrap())
    }

    async fn answer(&mut self, id: &Value) -> Value {
        loop {
            let message = self.next().await.expect("an answer comes");
            if message["id"] == *id && message.get("method").is_none() {
                return message;
            }
        }
    }

    async fn close(mut self) {
        self.output.shutdown().await.unwrap();
        assert!(self.serving.await.unwrap());
    }

    async fn shake_hands(&mut self, capabilities: Value) {
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities });
        self.say(&message(0, "initialize", &params)).await;
        assert_eq!(self.answer(&json!(0)).await["result"]["protocolVersion"], "2025-11-25");
        self.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    }
}

/// A modern request.
fn modern(id: u64, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    message(id, method, &params)
}

fn call(name: &str, arguments: &Value) -> Value {
    json!({ "name": name, "arguments": arguments })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stdio_client_may_use_either_era() {
    for manner in [Manner::legacy(), Manner::modern()] {
        let served = Served::over(&manner).await;
        let mut piped = Piped::new(&served);
        piped.say(&message(1, "tools/list", &json!({}))).await;
        assert_eq!(piped.answer(&json!(1)).await["error"]["code"], -32600);
        piped.shake_hands(json!({ "elicitation": {} })).await;
        piped.say(&message(2, "tools/list", &json!({}))).await;
        assert_eq!(piped.answer(&json!(2)).await["result"]["tools"].as_array().unwrap().len(), 5);
        piped.say(&modern(3, "tools/list", json!({}))).await;
        assert_eq!(piped.answer(&json!(3)).await["result"]["resultType"], "complete");
        if !manner.modern {
            piped.say(&message(4, "tools/call", &call("ask", &form()))).await;
            let asked = piped.next().await.unwrap();
            assert_eq!(asked["method"], "elicitation/create");
            piped.say(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "cancel" } })).await;
            let end = piped.answer(&json!(4)).await;
            assert_eq!(end["result"]["answer"]["result"]["action"], "cancel");
        }
        piped.close().await;
        served.rests().await;
        served.end().await;
    }
}

// I8
#[tokio::test(flavor = "multi_thread")]
async fn malformed_messages_over_stdio_are_answered_and_later_requests_are_served() {
    let limits = TransportLimits { body_bytes: 32 << 10, ..quick().transports.limits };
    let settings = limited(quick(), limits);
    let served = Served::new(vec![stdio("r", &Manner::modern())], settings).await;
    let mut piped = Piped::new(&served);
    for junk in ["x", "{", "[]", "null", "\u{0}", "{\"jsonrpc\":\"2.0\",\"id\":1}", "[1]", "{}"] {
        piped.line(junk).await;
        let told = piped.next().await.unwrap();
        assert!(told["error"]["code"].is_number(), "{junk}: {told}");
    }
    piped.line("").await;
    piped.line(" \r").await;
    let huge = json!({ "jsonrpc": "2.0", "id": 9, "method": "x".repeat(40 << 10) });
    piped.say(&huge).await;
    assert_eq!(piped.next().await.unwrap()["error"]["code"], -32600);
    piped.say(&modern(10, "tools/call", call("result", &json!({ "raw": "{\"n\":7}" })))).await;
    assert_eq!(piped.answer(&json!(10)).await["result"]["n"], 7);
    piped.close().await;
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_over_stdio_are_cancelled_by_id_and_an_id_in_use_is_refused() {
    let served = Served::over(&Manner::modern()).await;
    let mut piped = Piped::new(&served);
    piped.shake_hands(json!({})).await;
    let hang = || call("write", &steps(&[Step::Hang]));
    for request in [modern(1, "tools/call", hang()), message(2, "tools/call", &hang())] {
        piped.say(&request).await;
        until("it runs", async || (served.gateway.counts().requests == 1).then_some(())).await;
        piped.say(&request).await;
        assert_eq!(piped.answer(&request["id"]).await["error"]["code"], -32600);
        assert_eq!(served.gateway.counts().requests, 1);
        let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": request["id"] } });
        piped.say(&cancelled).await;
        served.rests().await;
    }
    let peer = served.modern();
    until("the server is told", async || {
        let seen = peer.seen("seen").await;
        let told = seen.iter().filter(|m| m["method"] == "notifications/cancelled").count();
        (told == 2).then_some(())
    })
    .await;
    piped.close().await;
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stdio_client_that_closes_its_input_is_answered_and_hanging_calls_are_ended() {
    let served = Served::over(&Manner::modern()).await;
    let mut piped = Piped::new(&served);
    piped.shake_hands(json!({})).await;
    let wanted = json!({ "notifications": { "toolsListChanged": true } });
    piped.say(&modern(1, "subscriptions/listen", wanted)).await;
    assert_eq!(piped.next().await.unwrap()["method"], "notifications/subscriptions/acknowledged");
    piped.say(&message(2, "tools/call", &call("write", &steps(&[Step::Sleep(300), done()])))).await;
    piped.output.shutdown().await.unwrap();
    let begun = Instant::now();
    assert_eq!(piped.answer(&json!(2)).await["result"]["n"], 7);
    assert!(piped.serving.await.unwrap());
    // The subscription would go on for ever.
    assert!(begun.elapsed() < Duration::from_millis(300) + SLACK, "{:?}", begun.elapsed());
    served.rests().await;
    served.end().await;
}

// F20, F25
#[tokio::test(flavor = "multi_thread")]
async fn a_stdio_client_that_does_not_read_does_not_block_the_end_of_the_gateway() {
    let limits =
        TransportLimits { stalled: Duration::from_millis(300), ..quick().transports.limits };
    let served = Served::new(vec![stdio("r", &Manner::modern())], limited(quick(), limits)).await;
    let mut piped = Piped::new(&served);
    let raw = json!({ "x": "y".repeat(100_000) }).to_string();
    for id in 0..4 {
        piped.say(&modern(id, "tools/call", call("result", &json!({ "raw": raw })))).await;
    }
    served.rests().await;
    let begun = Instant::now();
    served.gateway.drain().await;
    assert!(piped.serving.await.unwrap());
    assert!(begun.elapsed() < Duration::from_millis(300) + SLACK, "{:?}", begun.elapsed());
    served.end().await;
}
