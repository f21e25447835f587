//! A raw client of either era, whose every byte a test controls.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

mod event;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub use event::RawEvent;

/// Time limit that no operation here reaches.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// One connection with the bytes read so far.
#[derive(Debug)]
pub struct Wire {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// The head of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The status.
    pub status: u16,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
}

impl Head {
    /// The value of a header.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl Wire {
    /// A connection to this address.
    pub async fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, buffer: Vec::new() }
    }

    /// Sends bytes.
    pub async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        // A server that refuses early may close before it was told everything.
        let _ = self.stream.write_all(bytes.as_ref()).await;
    }

    /// Reads some more. Returns false at the end.
    async fn more(&mut self) -> bool {
        let read = self.stream.read_buf(&mut self.buffer);
        let read = tokio::time::timeout(PATIENCE, read).await.expect("something comes");
        read.is_ok_and(|count| count > 0)
    }

    /// Reads up to and including `mark`; `None` if the connection ends before.
    async fn until(&mut self, mark: &[u8]) -> Option<Vec<u8>> {
        loop {
            let at = self.buffer.windows(mark.len()).position(|part| part == mark);
            if let Some(at) = at {
                let rest = self.buffer.split_off(at + mark.len());
                return Some(std::mem::replace(&mut self.buffer, rest));
            }
            if !self.more().await {
                return None;
            }
        }
    }

    async fn exactly(&mut self, count: usize) -> Option<Vec<u8>> {
        while self.buffer.len() < count {
            if !self.more().await {
                return None;
            }
        }
        let rest = self.buffer.split_off(count);
        Some(std::mem::replace(&mut self.buffer, rest))
    }

    /// Waits for the peer to close; always returns true.
    pub async fn is_closed(&mut self) -> bool {
        while self.more().await {}
        true
    }

    /// Reads the head of the next response; none if the connection ends before.
    pub async fn head(&mut self) -> Option<Head> {
        let head = String::from_utf8(self.until(b"\r\n\r\n").await?).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().unwrap();
        let header = |line: &str| {
            let (name, value) = line.split_once(':').unwrap();
            (name.to_ascii_lowercase(), value.trim().to_owned())
        };
        Some(Head { status, headers: lines.map(header).collect() })
    }

    async fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = String::from_utf8(self.until(b"\r\n").await?).unwrap();
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        let chunk = self.exactly(size).await?;
        self.exactly(2).await?;
        (size > 0).then_some(chunk)
    }
}

/// A response in progress. Dropping it closes its connection.
#[derive(Debug)]
pub struct Exchange {
    wire: Wire,
    /// Its head.
    pub head: Head,
    text: String,
    over: bool,
}

impl Exchange {
    /// Sends a request on a connection of its own.
    pub async fn send(address: &str, request: impl AsRef<[u8]>) -> Self {
        let mut wire = Wire::open(address).await;
        wire.write(request).await;
        Self::of(wire).await
    }

    /// Reads the response to what was written.
    pub async fn of(mut wire: Wire) -> Self {
        let head = wire.head().await.expect("an answer comes");
        Self { wire, head, text: String::new(), over: false }
    }

    /// Reads the whole body, if it is not a stream.
    pub async fn body(&mut self) -> String {
        let length = self.head.get("content-length").map_or(0, |length| length.parse().unwrap());
        String::from_utf8(self.wire.exactly(length).await.unwrap_or_default()).unwrap()
    }

    /// Returns true if it is a stream of events.
    pub fn is_stream(&self) -> bool {
        self.head.get("content-type") == Some("text/event-stream")
    }

    /// Reads the next message; `None` at the end.
    pub async fn next(&mut self) -> Option<Value> {
        if !self.is_stream() {
            if std::mem::replace(&mut self.over, true) {
                return None;
            }
            let body = self.body().await;
            return serde_json::from_str(&body).ok();
        }
        loop {
            if let Some(at) = self.text.find("\n\n") {
                let rest = self.text.split_off(at + 2);
                let event = std::mem::replace(&mut self.text, rest);
                let data: Vec<&str> =
                    event.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
                let data = data.join("\n");
                if !data.is_empty() {
                    return Some(serde_json::from_str(&data).unwrap_or(Value::String(data)));
                }
                continue;
            }
            let chunk = self.wire.chunk().await?;
            self.text.push_str(&String::from_utf8(chunk).unwrap());
        }
    }

    /// Reads up to the next message that matches.
    pub async fn until(&mut self, like: impl Fn(&Value) -> bool) -> Value {
        let found = async {
            loop {
                let message = self.next().await.expect("it comes");
                if like(&message) {
                    return message;
                }
            }
        };
        // A stream that is kept open by its pulse alone says nothing.
        tokio::time::timeout(PATIENCE, found).await.expect("it comes in time")
    }

    /// Reads all messages, the response last.
    pub async fn all(mut self) -> Vec<Value> {
        let mut messages = Vec::new();
        while let Some(message) = self.next().await {
            messages.push(message);
        }
        messages
    }

    /// Reads the response; there is exactly one, and it is last.
    pub async fn end(self) -> Value {
        let head = self.head.clone();
        let messages = self.all().await;
        let answers: Vec<&Value> =
            messages.iter().filter(|message| message.get("method").is_none()).collect();
        assert!(answers.len() == 1, "{head:?} {messages:?}");
        answers[0].clone()
    }
}

/// A client of an endpoint.
#[derive(Clone, Debug)]
pub struct Peer {
    address: String,
    /// Path of its requests.
    pub path: String,
    /// Bearer token.
    pub token: Option<String>,
    talk: Talk,
    ids: Arc<AtomicU64>,
}

#[derive(Clone, Debug)]
enum Talk {
    Modern { capabilities: Value },
    Legacy { session: String },
}

impl Peer {
    /// A modern client that declares these capabilities. `url` is that of the gateway's endpoint.
    pub fn modern(url: &str, token: Option<&str>, capabilities: Value) -> Self {
        Self::new(url, token, Talk::Modern { capabilities })
    }

    fn new(url: &str, token: Option<&str>, talk: Talk) -> Self {
        let rest = url.strip_prefix("http://").unwrap();
        let at = rest.find('/').unwrap();
        Self {
            address: rest[..at].to_owned(),
            path: rest[at..].to_owned(),
            token: token.map(ToOwned::to_owned),
            talk,
            ids: Arc::new(AtomicU64::new(1)),
        }
    }

    /// A legacy client after its handshake.
    pub async fn legacy(url: &str, token: Option<&str>, capabilities: Value) -> Self {
        Self::of_revision(url, token, capabilities, "2025-11-25").await
    }

    /// A legacy client of this revision.
    pub async fn of_revision(
        url: &str,
        token: Option<&str>,
        capabilities: Value,
        revision: &str,
    ) -> Self {
        let mut peer = Self::new(url, token, Talk::Legacy { session: String::new() });
        let params = json!({
            "protocolVersion": revision, "capabilities": capabilities,
            "clientInfo": { "name": "test", "version": "0" },
        });
        let exchange = peer.post(&message(0, "initialize", &params)).await;
        assert_eq!(exchange.head.status, 200);
        let session = exchange.head.get("mcp-session-id").unwrap().to_owned();
        peer.talk = Talk::Legacy { session };
        peer.notify("notifications/initialized", &json!({})).await;
        peer
    }

    /// Another caller that knows this client's session.
    #[must_use]
    pub fn stolen_by(&self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self.clone() }
    }

    /// The same client at another path.
    #[must_use]
    pub fn at(&self, path: &str) -> Self {
        Self { path: path.to_owned(), ..self.clone() }
    }

    /// The head of a request, without its end.
    pub fn head(&self, method: &str) -> String {
        let mut head = format!(
            "{method} {} HTTP/1.1\r\nHost: {}\r\nAccept: application/json, text/event-stream\r\n",
            self.path, self.address
        );
        if let Some(token) = &self.token {
            head.push_str("Authorization: Bearer ");
            head.push_str(token);
            head.push_str("\r\n");
        }
        if let Talk::Legacy { session } = &self.talk
            && !session.is_empty()
        {
            head.push_str("MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: ");
            head.push_str(session);
            head.push_str("\r\n");
        }
        head
    }

    /// The serialized request with a message.
    pub fn written(&self, message: &Value) -> String {
        let mut message = message.clone();
        let mut head = self.head("POST");
        if let Talk::Modern { capabilities } = &self.talk {
            let meta = &mut message["params"]["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            meta["io.modelcontextprotocol/clientCapabilities"] = capabilities.clone();
            let method = message["method"].as_str().unwrap_or_default();
            head.extend(["MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: ", method, "\r\n"]);
            let params = &message["params"];
            let subject = [&params["name"], &params["uri"], &params["taskId"]];
            if let Some(name) = subject.iter().find_map(|value| value.as_str())
                && method != "completion/complete"
            {
                head.extend(["Mcp-Name: ", name, "\r\n"]);
            }
        }
        let body = message.to_string();
        head.push_str("Content-Type: application/json\r\n");
        format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())
    }

    /// Sends a message.
    pub async fn post(&self, message: &Value) -> Exchange {
        Exchange::send(&self.address, self.written(message)).await
    }

    /// Sends a message, and returns the connection with nothing read yet.
    pub async fn sent(&self, message: &Value) -> Wire {
        let mut wire = Wire::open(&self.address).await;
        wire.write(self.written(message)).await;
        wire
    }

    /// Sends a notification; returns the status.
    pub async fn notify(&self, method: &str, params: &Value) -> u16 {
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.post(&message).await.head.status
    }

    /// Begins a request.
    pub async fn begin(&self, method: &str, params: Value) -> Exchange {
        self.post(&self.next(method, &params)).await
    }

    /// A request with a unique id.
    pub fn next(&self, method: &str, params: &Value) -> Value {
        message(self.ids.fetch_add(1, Ordering::Relaxed), method, params)
    }

    /// Sends a request and returns its response.
    pub async fn ask(&self, method: &str, params: Value) -> Value {
        self.begin(method, params).await.end().await
    }

    /// Makes a call and returns its response.
    pub async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// Begins a call, with a progress token.
    pub async fn begin_call(&self, tool: &str, arguments: Value) -> Exchange {
        let params = json!({
            "name": tool, "arguments": arguments, "_meta": { "progressToken": "token" },
        });
        self.begin("tools/call", params).await
    }

    /// Returns every message that a rogue has received on this client's connection to it.
    pub async fn seen(&self, tool: &str) -> Vec<Value> {
        let answer = self.call(tool, json!({})).await;
        answer["result"]["seen"].as_array().unwrap_or_else(|| panic!("{answer}")).clone()
    }

    /// Sends a request without a body.
    pub async fn bare(&self, method: &str) -> Exchange {
        Exchange::send(&self.address, format!("{}\r\n", self.head(method))).await
    }

    /// Resumes a stream after an event.
    pub async fn resume(&self, last: &str) -> Exchange {
        let head = self.head("GET");
        Exchange::send(&self.address, format!("{head}Last-Event-ID: {last}\r\n\r\n")).await
    }

    /// The host and the port it connects to.
    pub fn address(&self) -> &str {
        &self.address
    }
}

/// A request.
pub fn message(id: u64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}
