//! Arbitrary bytes from clients: each request is answered, and nothing crashes.

use std::time::Duration;

use consort_server::TransportLimits;
use serde_json::{Value, json};
use testkit::rogue::Manner;

use crate::{Served, limited, quick, steps, until};
use testkit::raw::{Exchange, Peer, Wire, message};
use testkit::rogue::Step;

async fn small() -> Served {
    let limits = TransportLimits {
        body_bytes: 64 << 10,
        body: Duration::from_millis(300),
        head: Duration::from_millis(500),
        ..quick().transports.limits
    };
    Served::new(vec![crate::stdio("r", &Manner::modern())], limited(quick(), limits)).await
}

/// A request with this body, unchanged.
fn post(peer: &Peer, more: &str, body: &[u8]) -> Vec<u8> {
    let head = peer.head("POST");
    let kind =
        if more.contains("Content-Type") { "" } else { "Content-Type: application/json\r\n" };
    let head = format!("{head}{more}{kind}Content-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

async fn status(peer: &Peer, request: impl AsRef<[u8]>) -> u16 {
    Exchange::send(peer.address(), request).await.head.status
}

async fn lives(served: &Served) {
    for peer in served.peers(json!({})).await {
        assert!(peer.call("result", json!({ "raw": "{}" })).await["result"].is_object());
    }
}

// I8
#[tokio::test(flavor = "multi_thread")]
async fn malformed_messages_of_a_client_are_refused_and_later_ones_are_served() {
    let served = small().await;
    let modern = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: x\r\n";
    let deep = "[".repeat(30_000);
    let deep_object = "{\"a\":".repeat(10_000);
    let bodies: Vec<&[u8]> = vec![
        b"", b" ", b"null", b"true", b"7", b"\"x\"", b"{", b"}", b"[", b"]", b"{}", b"[]", b"[[]]",
        b"[1,2]", b"{\"jsonrpc\":\"2.0\"}", b"{\"jsonrpc\":\"2.0\",\"id\":1}", b"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":7}", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[]}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"safe\",\"name\":\"danger\"}}",
        b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", b"{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"ping\"}",
        b"\xff\xfe", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", b"\xef\xbb\xbf{}", b"{\"a\":1}garbage",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",}", b"{'jsonrpc':'2.0'}", b"NaN", b"[1,,2]", b"\0",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"x\":\"\\ud800\"", b"1e999", b"-", b"\"\\u12\"",
        deep.as_bytes(), deep_object.as_bytes(),
    ];
    for peer in served.peers(json!({})).await {
        for more in ["", modern] {
            for body in &bodies {
                let status = status(&peer, post(&peer, more, body)).await;
                assert!(
                    (400..500).contains(&status),
                    "{status} {:?}",
                    String::from_utf8_lossy(body)
                );
            }
        }
    }
    lives(&served).await;
    served.rests().await;
    served.end().await;
}

// F30
#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_too_large_too_slow_or_of_another_kind_are_refused() {
    let served = small().await;
    for peer in served.peers(json!({})).await {
        let huge = vec![b' '; (64 << 10) + 1];
        assert_eq!(status(&peer, post(&peer, "", &huge)).await, 413);
        let head = peer.head("POST");
        let claimed =
            format!("{head}Content-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n");
        assert_eq!(status(&peer, claimed).await, 413);
        let chunks =
            format!("{head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
        let chunk = format!("8000\r\n{}\r\n", " ".repeat(0x8000));
        assert_eq!(status(&peer, format!("{chunks}{}", chunk.repeat(3))).await, 413);
        for encoding in ["gzip", "br", "identity", "x"] {
            let more = format!("Content-Encoding: {encoding}\r\n");
            assert_eq!(status(&peer, post(&peer, &more, b"{}")).await, 415);
        }
        for kind in
            ["text/plain", "application/jsonx", "application/xml", "", "multipart/form-data"]
        {
            let more = format!("Content-Type: {kind}\r\n");
            assert_eq!(status(&peer, post(&peer, &more, b"{}")).await, 415);
        }
        let slow =
            format!("{head}Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{{\"json");
        assert_eq!(status(&peer, slow).await, 408);
        let flood: String =
            (0..150).flat_map(|n| ["X-".to_owned(), n.to_string(), ": y\r\n".to_owned()]).collect();
        assert_eq!(status(&peer, post(&peer, &flood, b"{}")).await, 431);
        for method in ["PUT", "PATCH", "HEAD", "OPTIONS", "TRACE"] {
            let exchange = peer.bare(method).await;
            assert_eq!(
                (exchange.head.status, exchange.head.get("allow")),
                (405, Some("GET, POST, DELETE"))
            );
        }
    }
    // A head without end is given up.
    let mut wire = Wire::open(served.modern().address()).await;
    wire.write("POST /mcp HTTP/1.1\r\nHost: localhost\r\nX: ").await;
    assert_eq!(wire.head().await.map(|head| head.status), Some(408));
    for bytes in [
        "\0\0\0\0",
        "GET\r\n\r\n",
        "\u{16}\u{3}\u{1}\u{2}\0",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
    ] {
        let mut wire = Wire::open(served.modern().address()).await;
        wire.write(bytes).await;
        assert!(
            wire.head().await.is_none_or(|head| (400..600).contains(&head.status)),
            "{bytes:?}"
        );
    }
    lives(&served).await;
    served.rests().await;
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_for_a_request_without_handshake_or_revision_names_the_remedy() {
    let served = small().await;
    let peer = served.modern();
    let list = message(1, "tools/list", &json!({})).to_string();
    let exchange = &mut Exchange::send(peer.address(), post(&peer, "", list.as_bytes())).await;
    assert_eq!(exchange.head.status, 400);
    assert!(exchange.body().await.contains("initialize"));
    let unknown = "MCP-Protocol-Version: 2099-01-01\r\nMcp-Method: tools/list\r\n";
    let mut named = message(1, "tools/list", &json!({}));
    named["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    let body = named.to_string();
    let exchange = Exchange::send(peer.address(), post(&peer, unknown, body.as_bytes())).await;
    assert_eq!(exchange.head.status, 400);
    let refused = exchange.end().await;
    assert_eq!(refused["error"]["code"], -32022);
    assert_eq!(refused["error"]["data"]["supported"], json!(["2026-07-28"]));
    assert_eq!(peer.bare("GET").await.head.status, 400);
    assert_eq!(peer.bare("DELETE").await.head.status, 400);
    assert_eq!(peer.at("/nowhere").bare("GET").await.head.status, 404);
    assert_eq!(peer.at("/servers/nobody/mcp").bare("GET").await.head.status, 404);
    assert_eq!(peer.at("/servers/../mcp").bare("GET").await.head.status, 404);
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_is_in_use_is_refused_and_then_free_again() {
    let served = Served::over(&Manner::legacy()).await;
    let peer = served.legacy().await;
    let params = json!({ "name": "write", "arguments": steps(&[
        Step::Sleep(300),
        Step::Message(r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"n":7}}"#.to_owned()),
    ]) });
    let first = peer.sent(&message(5, "tools/call", &params)).await;
    until("it runs", async || (served.gateway.counts().requests == 1).then_some(())).await;
    let second = peer.post(&message(5, "ping", &json!({}))).await.end().await;
    assert_eq!(second["error"]["code"], -32600, "{second}");
    // The same id as a text is another id.
    let text = json!({ "jsonrpc": "2.0", "id": "5", "method": "ping" });
    assert_eq!(
        peer.post(&text).await.end().await,
        json!({ "jsonrpc": "2.0", "id": "5", "result": {} })
    );
    assert_eq!(Exchange::of(first).await.end().await["result"]["n"], 7);
    assert!(peer.post(&message(5, "ping", &json!({}))).await.end().await["result"].is_object());
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_are_for_their_own_revision_only() {
    let served = Served::over(&Manner::legacy()).await;
    let batch = json!([
        message(1, "ping", &json!({})),
        { "jsonrpc": "2.0", "method": "notifications/x" },
        { "jsonrpc": "1.0" },
        message(2, "tools/call", &json!({ "name": "result", "arguments": { "raw": "{\"n\":7}" } })),
        message(3, "nonsense", &json!({})),
    ])
    .to_string();
    let send = async |peer: &Peer| {
        let request = post(peer, "", batch.as_bytes());
        let request = String::from_utf8(request).unwrap();
        let request = request.replace("MCP-Protocol-Version: 2025-11-25\r\n", "");
        Exchange::send(peer.address(), request).await
    };
    let newest = served.legacy().await;
    assert_eq!(send(&newest).await.head.status, 400);
    assert_eq!(send(&served.modern()).await.head.status, 400);
    let peer = Peer::of_revision(&served.url, None, json!({}), "2025-03-26").await;
    assert_eq!(status(&peer, post(&peer, "", b"[]").as_slice()).await, 400);
    let mut exchange = send(&peer).await;
    assert_eq!(exchange.head.status, 200);
    let answers = exchange.next().await.unwrap();
    let ids: Vec<&Value> = answers.as_array().unwrap().iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [&json!(1), &Value::Null, &json!(2), &json!(3)], "{answers}");
    assert_eq!(answers[2]["result"]["n"], 7);
    served.end().await;
}

/// The answer to a body over HTTP+SSE, in a session of this revision.
async fn answered_over_sse(served: &Served, revision: &str, body: &str) -> Value {
    let client = Peer::modern(&served.at("/sse"), None, json!({}));
    let mut stream = client.bare("GET").await;
    let Some(Value::String(path)) = stream.next().await else { panic!("it says where to post") };
    let params = json!({
        "protocolVersion": revision, "capabilities": {}, "clientInfo": { "name": "x", "version": "0" },
    });
    let peer = client.at(&path);
    // Requests run side by side: what is sent next may be answered before the first.
    let initialize = message(0, "initialize", &params).to_string();
    assert_eq!(status(&peer, post(&peer, "", initialize.as_bytes())).await, 202);
    assert!(stream.next().await.unwrap()["result"].is_object());
    assert_eq!(status(&peer, post(&peer, "", body.as_bytes())).await, 202);
    stream.next().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_batch_is_refused_alike_over_every_transport() {
    let served = Served::over(&Manner::legacy()).await;
    for revision in ["2025-03-26", "2025-11-25"] {
        let peer = Peer::of_revision(&served.url, None, json!({}), revision).await;
        let request = String::from_utf8(post(&peer, "", b"[]")).unwrap();
        let named = format!("MCP-Protocol-Version: {revision}");
        let request = request.replace("MCP-Protocol-Version: 2025-11-25", &named);
        let over_http = Exchange::send(peer.address(), request).await.end().await;
        assert_eq!(over_http["error"]["code"], -32600, "{over_http}");
        let over_sse = answered_over_sse(&served, revision, "[]").await;
        assert_eq!(over_sse["error"], over_http["error"], "{revision}");
    }
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_are_no_requests_get_the_error_code_of_their_fault() {
    let served = Served::over(&Manner::legacy()).await;
    let batch = json!([message(1, "ping", &json!({}))]).to_string();
    for peer in served.peers(json!({})).await {
        for (body, code) in [
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
            (batch.as_str(), -32600),
            ("[]", -32600),
            (r#"{"jsonrpc":"2.0","id":7}"#, -32600),
            (r#"{"jsonrpc":"2.0","#, -32700),
        ] {
            let exchange = Exchange::send(peer.address(), post(&peer, "", body.as_bytes())).await;
            assert_eq!(exchange.head.status, 400, "{body}");
            let refused = exchange.end().await;
            assert_eq!(refused["error"]["code"], code, "{body} {refused}");
        }
    }
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revision_in_the_header_that_is_not_the_one_in_the_body_is_a_header_mismatch() {
    let served = Served::over(&Manner::legacy()).await;
    let modern = served.modern();
    let written = modern.written(&message(5, "tools/list", &json!({})));
    let header = "MCP-Protocol-Version: 2026-07-28";
    assert!(written.contains(header), "{written}");
    for other in ["MCP-Protocol-Version: 2025-11-25", "MCP-Protocol-Version: 2025-03-26", "X: y"] {
        let request = written.replace(header, other);
        let exchange = Exchange::send(modern.address(), request).await;
        assert_eq!(exchange.head.status, 400, "{other}");
        let refused = exchange.end().await;
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(5), &json!(-32020)));
    }
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn structured_content_that_is_no_object_reaches_a_legacy_client_as_text() {
    let served = Served::over(&Manner::modern()).await;
    let raw = r#"{"content":[],"structuredContent":[1.50],"resultType":"complete"}"#;
    let [modern, legacy] = served.peers(json!({})).await;
    let answer = modern.call("result", json!({ "raw": raw })).await;
    assert_eq!(answer["result"]["structuredContent"], json!([1.5]), "{answer}");
    let answer = legacy.call("result", json!({ "raw": raw })).await;
    assert!(answer["result"].get("structuredContent").is_none(), "{answer}");
    assert_eq!(answer["result"]["content"], json!([{ "type": "text", "text": "[1.50]" }]));
    assert_eq!(answer["result"]["_meta"]["consort/structuredContent"], json!([1.5]));
    served.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_of_a_modern_request_that_disagree_with_it_are_refused() {
    let mirrored = json!({
        "name": "mirrored",
        "inputSchema": { "type": "object", "properties": { "region": { "type": "string", "x-mcp-header": "Region" } } },
    });
    let manner = Manner { extra_tool: Some(mirrored.to_string()), ..Manner::modern() };
    let served = Served::over(&manner).await;
    let peer = served.modern();
    let call =
        message(1, "tools/call", &json!({ "name": "mirrored", "arguments": { "region": "eu" } }));
    let written = peer.written(&call);
    let send = async |request: String| Exchange::send(peer.address(), request).await.end().await;
    let with = |header: &str| written.replacen("Accept:", &format!("{header}\r\nAccept:"), 1);
    for wrong in [
        written.clone(),
        with("Mcp-Param-Region: us"),
        with("Mcp-Param-Region: eu\r\nMcp-Param-Region: eu"),
        with("Mcp-Param-Region: eu").replace("Mcp-Name: mirrored", "Mcp-Name: result"),
        with("Mcp-Param-Region: eu").replace("Mcp-Name: mirrored\r\n", ""),
        with("Mcp-Param-Region: eu").replace("Mcp-Method: tools/call", "Mcp-Method: tools/list"),
    ] {
        let answer = send(wrong.clone()).await;
        assert_eq!(answer["error"]["code"], -32020, "{wrong} {answer}");
    }
    // Right, it reaches the server, which has no such tool after all.
    assert_eq!(send(with("Mcp-Param-Region: eu")).await["error"]["message"], "unknown tool");
    served.end().await;
}

/// A client that sends everything before it reads, and prints the status that it then reads.
const SENDS_FIRST: &str = r#"
import os, socket, time
address, head, kind = (os.environ[name] for name in ("ADDRESS", "HEAD", "KIND"))
host, port = address.rsplit(":", 1)
client = socket.create_connection((host, int(port)), timeout=60)
client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

# Slower than the gateway waits for a body.
def trickle():
    for _ in range(30):
        time.sleep(0.1)
        client.sendall(b" ")

if kind == "large":
    client.sendall((head + "Content-Length: 5242880\r\n\r\n").encode())
    client.sendall(b" " * 5242880)
elif kind == "slow body":
    client.sendall((head + "Content-Length: 500\r\n\r\n").encode())
    trickle()
else:
    client.sendall((head + "X: ").encode())
    trickle()
print(client.recv(4096).split()[1].decode())
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_keeps_sending_still_reads_why_it_is_refused() {
    let mut settings = quick();
    settings.transports.limits = TransportLimits {
        body: Duration::from_millis(300),
        head: Duration::from_millis(500),
        linger: Duration::from_mins(1),
        ..settings.transports.limits
    };
    let served = Served::new(vec![crate::stdio("r", &Manner::modern())], settings).await;
    for peer in served.peers(json!({})).await {
        let head = format!("{}Content-Type: application/json\r\n", peer.head("POST"));
        for (kind, status) in [("large", "413"), ("slow body", "408"), ("slow head", "408")] {
            let output = tokio::process::Command::new(testkit::fixtures::python("python3"))
                .args(["-c", SENDS_FIRST])
                .env("ADDRESS", peer.address())
                .env("HEAD", &head)
                .env("KIND", kind)
                .output()
                .await
                .unwrap();
            let read = String::from_utf8_lossy(&output.stdout);
            let error = String::from_utf8_lossy(&output.stderr);
            assert_eq!(read.trim(), status, "{kind}: {error}");
        }
    }
    lives(&served).await;
    served.end().await;
}
