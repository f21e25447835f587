//! A server whose endpoint is no gateway's: the transports need nothing but a handler.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

mod ceilings;

use std::sync::Arc;

use consort_core::Caller;
use consort_protocol::{DrivenStream, Json};
use consort_server::answer::RequestAnswer;
use consort_server::{
    AnsweringRequest, ClientMessage, ClientSessionState, EndpointKey, EndpointPath, McpServer,
    ReceivedRequest, ServedEndpoint, ServerCounts, ServerHandler, TransportSettings,
};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// An endpoint that answers every request with its parameters.
#[derive(Debug)]
struct EchoEndpoint(EndpointKey);

impl EchoEndpoint {
    fn new() -> Arc<Self> {
        Arc::new(Self(EndpointKey::new("echo")))
    }
}

impl ServedEndpoint for EchoEndpoint {
    fn key(&self) -> &EndpointKey {
        &self.0
    }

    fn serve(self: Arc<Self>, request: ReceivedRequest) -> AnsweringRequest {
        DrivenStream::new(|_| async move {
            ClientMessage::End(RequestAnswer::result(&request.id, request.params.json()))
        })
    }

    fn initialize(&self, session: &ClientSessionState) -> Json {
        let version = session.revision.as_str();
        serde_json::json!({ "protocolVersion": version, "capabilities": {} }).into()
    }
}

/// A handler of one endpoint, at `/mcp`.
struct EchoHandler;

impl ServerHandler for EchoHandler {
    fn endpoint(&self, path: &str, _: &Caller) -> Option<EndpointPath> {
        (path == "/mcp").then(|| EndpointPath::Mcp(EchoEndpoint::new()))
    }
}

fn server() -> McpServer {
    McpServer::new(
        TransportSettings::default(),
        Arc::new(EchoHandler),
        Arc::new(()),
        Arc::default(),
    )
}

/// Time limit for a response.
const LIMIT: std::time::Duration = std::time::Duration::from_mins(2);

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;
const ECHO: &str = r#"{"jsonrpc":"2.0","id":2,"method":"test/echo","params":{"said":"hello"}}"#;
const ECHOED: &str = r#"{"jsonrpc":"2.0","id":2,"result":{"said":"hello"}}"#;

#[tokio::test]
async fn a_handler_is_served_on_a_pair_of_streams() {
    let (client, stream) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(stream);
    let asking = async {
        let (read, mut write) = tokio::io::split(client);
        let mut answers = BufReader::new(read).lines();
        write.write_all(format!("{INITIALIZE}\n").as_bytes()).await.unwrap();
        let answer = answers.next_line().await.unwrap().unwrap();
        assert!(answer.contains(r#""protocolVersion":"2025-11-25""#), "{answer}");
        write.write_all(format!("{ECHO}\n").as_bytes()).await.unwrap();
        assert_eq!(answers.next_line().await.unwrap().unwrap(), ECHOED);
    };
    let server = server();
    tokio::join!(server.serve_streams(EchoEndpoint::new(), input, output), asking);
}

/// Sends a message to `/mcp`, and returns the whole response.
async fn posted(address: &str, headers: &str, message: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = message.len();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n{headers}\r\n{message}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    let reading = tokio::time::timeout(LIMIT, stream.read_to_string(&mut response)).await;
    assert!(reading.is_ok(), "no end of the response within {LIMIT:?}: {response}");
    response
}

#[tokio::test]
async fn a_handler_is_served_over_http_in_a_session() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = server();
    let asking = async {
        let opened = posted(&address, "", INITIALIZE).await;
        let id = opened.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
        assert_eq!(server.counts().sessions, 1);
        let session = format!("Mcp-Session-Id: {id}\r\n");
        let accepted = "Accept: application/json, text/event-stream\r\n";
        let answer = posted(&address, &format!("{session}{accepted}"), ECHO).await;
        assert!(answer.ends_with(ECHOED), "{answer}");
        let refused = posted(&address, "", ECHO).await;
        assert!(refused.starts_with("HTTP/1.1 400"), "{refused}");
        server.end().await;
    };
    tokio::join!(server.serve_all(vec![listener.into()], 1), asking);
    assert_eq!(server.counts(), ServerCounts::default());
}
