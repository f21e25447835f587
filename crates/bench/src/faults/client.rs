//! A client of the gateway, one of several principals, whose ids all start at 1.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use consort_audit::ledger::ValueDigest;
use consort_protocol::Era;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use super::record::{Outcome, Record};
use crate::Failure;

/// Longer than any call may take: a response that takes so long counts as lost.
pub(super) const FORGOTTEN: Duration = Duration::from_secs(20);

/// A caller with a token.
#[derive(Debug)]
pub(super) struct Principal {
    pub(super) name: String,
    token: String,
    address: String,
    session: Option<String>,
    ids: AtomicU64,
}

/// A tool call.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    /// The tool's name at the gateway.
    pub(super) tool: String,
    pub(super) nonce: String,
    /// The arguments, as JSON.
    pub(super) arguments: String,
}

impl Principal {
    /// Connects a caller of this era to a gateway. A legacy one opens a session.
    pub(super) async fn enter(
        address: &str,
        name: &str,
        token: &str,
        era: Era,
    ) -> Result<Self, Failure> {
        let mut principal = Self {
            name: name.to_owned(),
            token: token.to_owned(),
            address: address.to_owned(),
            session: None,
            ids: AtomicU64::new(1),
        };
        if era == Era::Legacy {
            let params = json!({
                "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": { "name": "faults", "version": "0" },
            });
            let hello =
                json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
            let answer = principal.exchange(&hello.to_string(), "", FORGOTTEN).await?;
            let session = header(&answer.head, "mcp-session-id").ok_or("no session")?;
            principal.session = Some(session.to_owned());
            let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
            principal.exchange(&ready.to_string(), "", FORGOTTEN).await?;
        }
        Ok(principal)
    }

    /// The bytes of a request.
    fn request(&self, body: &str, name: &str) -> String {
        let method = serde_json::from_str::<Value>(body).unwrap_or_default();
        let method = method["method"].as_str().unwrap_or_default();
        let era = match &self.session {
            Some(session) => {
                format!("MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: {session}\r\n")
            }
            None if method == "initialize" => String::new(),
            None => {
                let name =
                    if name.is_empty() { String::new() } else { format!("Mcp-Name: {name}\r\n") };
                format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{name}")
            }
        };
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nAccept: application/json, text/event-stream\r\n\
             Content-Type: application/json\r\nConnection: close\r\n{era}Content-Length: {}\r\n\r\n{body}",
            self.address,
            self.token,
            body.len()
        )
    }

    /// The serialized request of a call.
    pub(super) fn written(&self, ask: &Ask) -> String {
        self.numbered(ask, self.ids.fetch_add(1, Ordering::Relaxed))
    }

    fn numbered(&self, ask: &Ask, id: u64) -> String {
        let params = format!(
            r#""name":"{}","arguments":{},"_meta":{{"progressToken":{id}{}}}"#,
            ask.tool,
            ask.arguments,
            self.meta()
        );
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{{params}}}}}"#);
        self.request(&body, &ask.tool)
    }

    fn meta(&self) -> &'static str {
        if self.session.is_some() {
            ""
        } else {
            r#","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#
        }
    }

    /// The names of the listed tools.
    pub(super) async fn tools(&self) -> Result<Vec<String>, Failure> {
        let meta = self.meta().trim_start_matches(',');
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{{{meta}}}}}}}"#
        );
        let answer = self.exchange(&body, "", FORGOTTEN).await?;
        let [message] = answer.messages().try_into().map_err(|_| "not one answer to a list")?;
        let tools = message["result"]["tools"].as_array().ok_or("no tools in a list")?.clone();
        Ok(tools.iter().filter_map(|tool| Some(tool["name"].as_str()?.to_owned())).collect())
    }

    /// Returns a connection on which a call was written, and nothing read.
    pub(super) async fn begin(&self, ask: &Ask) -> Result<TcpStream, Failure> {
        let mut socket = TcpStream::connect(&self.address).await?;
        socket.write_all(self.written(ask).as_bytes()).await?;
        Ok(socket)
    }

    /// Begins a call and disconnects once it `arrived`. A legacy client, whose calls continue, then cancels it.
    pub(super) async fn leave(
        &self,
        ask: &Ask,
        arrived: impl Future<Output = Result<(), Failure>>,
    ) -> Result<(), Failure> {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let mut socket = TcpStream::connect(&self.address).await?;
        socket.write_all(self.numbered(ask, id).as_bytes()).await?;
        arrived.await?;
        drop(socket);
        if self.session.is_some() {
            let params = json!({ "requestId": id });
            let cancelled =
                json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
            self.exchange(&cancelled.to_string(), "", FORGOTTEN).await?;
        }
        Ok(())
    }

    /// Makes a call and returns its record.
    pub(super) async fn call(&self, ask: &Ask) -> Record {
        let begun = Instant::now();
        let answered = timeout(FORGOTTEN, async { Heard::read(self.begin(ask).await?).await });
        self.record(ask, begun, answered.await)
    }

    fn record(
        &self,
        ask: &Ask,
        begun: Instant,
        answered: Result<Result<Heard, Failure>, Elapsed>,
    ) -> Record {
        let took = begun.elapsed();
        let messages = match answered {
            Ok(Ok(answer)) if answer.whole && !answer.messages().is_empty() => {
                Ok(answer.messages())
            }
            Ok(Ok(answer)) if answer.whole => Err(format!("no answer in HTTP {}", answer.text())),
            Ok(Ok(answer)) => Err(format!("the answer breaks off: {}", answer.text())),
            Ok(Err(failure)) => Err(failure.to_string()),
            Err(_) => Err("no answer at all".to_owned()),
        };
        let (messages, lost) = match messages {
            Ok(messages) => (messages, None),
            Err(reason) => (Vec::new(), Some(reason)),
        };
        let answers: Vec<&Value> =
            messages.iter().filter(|message| message.get("method").is_none()).collect();
        let outcome = match (answers.as_slice(), lost) {
            (_, Some(reason)) => Outcome::Lost(reason),
            ([answer], _) => Outcome::of(answer),
            (answers, _) => Outcome::Lost(format!("{} answers", answers.len())),
        };
        Record {
            nonce: ask.nonce.clone(),
            principal: self.name.clone(),
            digest: hex(&ValueDigest::of(ask.arguments.as_bytes()).sha256),
            said: answers.first().map(|answer| start(answer)).unwrap_or_default(),
            progress: messages.len() - answers.len(),
            outcome,
            took,
        }
    }

    async fn exchange(&self, body: &str, name: &str, patience: Duration) -> Result<Heard, Failure> {
        raw(&self.address, self.request(body, name).as_bytes(), patience).await
    }
}

/// Sends these bytes, and reads until the peer closes.
pub(super) async fn raw(
    address: &str,
    request: &[u8],
    patience: Duration,
) -> Result<Heard, Failure> {
    let exchange = async {
        let mut socket = TcpStream::connect(address).await?;
        // Who refuses early may close before it has heard everything.
        let _ = socket.write_all(request).await;
        Heard::read(socket).await
    };
    timeout(patience, exchange).await.map_err(|_| "no answer at all")?
}

/// A response: its head and its body, which ends with the connection.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) head: String,
    body: Vec<u8>,
    /// True if the body is complete.
    whole: bool,
}

impl Heard {
    pub(super) async fn read(mut socket: TcpStream) -> Result<Self, Failure> {
        let mut bytes = Vec::new();
        let read = socket.read_to_end(&mut bytes).await;
        let Some(at) = memchr::memmem::find(&bytes, b"\r\n\r\n") else {
            read?;
            return Err(format!("no HTTP answer in {} bytes", bytes.len()).into());
        };
        let body = bytes.split_off(at + 4);
        let head = String::from_utf8_lossy(&bytes).into_owned();
        let (body, whole) = if header(&head, "transfer-encoding") == Some("chunked") {
            unchunked(&body)
        } else {
            let length = header(&head, "content-length").and_then(|length| length.parse().ok());
            let whole = length.is_none_or(|length: usize| body.len() == length);
            (body, whole)
        };
        Ok(Self { head, body, whole })
    }

    /// The beginning of the response, for display.
    fn text(&self) -> String {
        let body = String::from_utf8_lossy(&self.body);
        format!("{}{body}", self.head.trim_start_matches("HTTP/1.1 ")).chars().take(400).collect()
    }

    pub(super) fn status(&self) -> u16 {
        self.head.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0)
    }

    /// Every message in it: that of a JSON body, or those of a stream of events.
    pub(super) fn messages(&self) -> Vec<Value> {
        let text = String::from_utf8_lossy(&self.body);
        if header(&self.head, "content-type") != Some("text/event-stream") {
            return serde_json::from_str(&text).into_iter().collect();
        }
        let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
        data.filter_map(|data| serde_json::from_str(data.trim()).ok()).collect()
    }
}

/// The beginning of a response, for the record.
fn start(answer: &Value) -> String {
    let mut text = answer.to_string();
    let most = (0..=4096.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    text.truncate(most.unwrap_or(0));
    text
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The value of a header.
fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut headers = head.lines().filter_map(|line| line.split_once(':'));
    let found = headers.find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.trim())
}

/// Decodes a chunked body; true if the last chunk arrived.
fn unchunked(mut bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(at) = memchr::memmem::find(bytes, b"\r\n") {
        let size = std::str::from_utf8(&bytes[..at]).ok();
        let size = size.and_then(|size| usize::from_str_radix(size.trim(), 16).ok());
        let Some(size) = size else { break };
        if size == 0 {
            return (body, true);
        }
        let from = at + 2;
        let Some(chunk) = bytes.get(from..from + size) else { break };
        body.extend_from_slice(chunk);
        bytes = bytes.get(from + size + 2..).unwrap_or_default();
    }
    (body, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_in_chunks_is_whole_only_with_its_last() {
        assert_eq!(unchunked(b"3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n"), (b"abcd".to_vec(), true));
        assert_eq!(unchunked(b"3\r\nabc\r\n1\r\nd\r\n"), (b"abcd".to_vec(), false));
        assert_eq!(unchunked(b"3\r\nab"), (Vec::new(), false));
    }
}
