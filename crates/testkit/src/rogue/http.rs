//! The rogue over HTTP, written by hand so that a test controls every byte: Streamable HTTP at `/mcp`, HTTP+SSE at
//! `/sse`.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufStream};
use tokio::net::TcpListener;
use tokio::sync::{broadcast, watch};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::{Brain, Manner, Step};

mod request;
mod tls;

pub use request::Request;
use request::read;
pub use tls::self_signed;

/// Stream that requests arrive on.
trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Wire for T {}

/// A rogue at a URL of its own, until it is dropped.
#[derive(Debug)]
pub struct Http {
    shared: Arc<Shared>,
    port: u16,
    secure: bool,
    accepting: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    brain: Brain,
    /// The last session number, and the current sessions.
    sessions: Mutex<(u32, Vec<String>)>,
    requests: Mutex<Vec<Request>>,
    /// Number of clients that disconnected before their response was complete.
    gone: watch::Sender<usize>,
    /// Messages on the common stream, and on the one stream of HTTP+SSE.
    common: broadcast::Sender<String>,
    /// Steps for the next attempts to resume a stream.
    resumes: Mutex<VecDeque<Vec<Step>>>,
}

impl Http {
    /// Starts one on a free port of this machine.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub async fn start(manner: Manner) -> Self {
        Self::listen(manner, None).await
    }

    async fn listen(manner: Manner, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let shared = Arc::new(Shared {
            brain: Brain::new(manner),
            sessions: Mutex::default(),
            requests: Mutex::default(),
            gone: watch::Sender::new(0),
            common: broadcast::Sender::new(100_000),
            resumes: Mutex::default(),
        });
        let secure = tls.is_some();
        let accepting = tokio::spawn(accept(listener, tls, Arc::clone(&shared)));
        Self { shared, port, secure, accepting }
    }

    /// Returns its Streamable HTTP URL.
    pub fn url(&self) -> String {
        if self.secure {
            return format!("https://localhost:{}/mcp", self.port);
        }
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns its HTTP+SSE URL.
    pub fn sse_url(&self) -> String {
        format!("http://127.0.0.1:{}/sse", self.port)
    }

    /// Every message received so far.
    pub fn seen(&self) -> Vec<Value> {
        self.shared.brain.seen()
    }

    /// The head of every request received so far.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().clone()
    }

    /// Ends every session, as a restart does.
    pub fn forget_sessions(&self) {
        self.shared.sessions.lock().1.clear();
    }

    /// Behaves as a restarted server that uses the same session ids again.
    pub fn restart(&self) {
        *self.shared.sessions.lock() = (0, Vec::new());
        let _ = self.shared.common.send(String::new());
    }

    /// Ends the common stream, as a proxy with an idle timeout does. Sessions stay.
    pub fn cut(&self) {
        let _ = self.shared.common.send(String::new());
    }

    /// Returns the number of clients on the common stream.
    pub fn listeners(&self) -> usize {
        self.shared.common.receiver_count()
    }

    /// Sends a message on the common stream.
    pub fn say(&self, message: &Value) {
        let _ = self.shared.common.send(format!("data: {message}\n\n"));
    }

    /// Sets the steps for the next time that a stream is resumed.
    pub fn on_resume(&self, steps: Vec<Step>) {
        self.shared.resumes.lock().push_back(steps);
    }

    /// Waits until this many clients have disconnected before their response was complete.
    pub async fn gone(&self, count: usize) {
        let mut gone = self.shared.gone.subscribe();
        gone.wait_for(|gone| *gone >= count).await.expect("the rogue lives");
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, shared: Arc<Shared>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (shared, tls) = (Arc::clone(&shared), tls.clone());
        connections.spawn(async move {
            let _ = stream.set_nodelay(true);
            match tls {
                None => connection(BufStream::new(stream), &shared).await,
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        connection(BufStream::new(stream), &shared).await;
                    }
                }
            }
        });
    }
}

async fn connection(mut stream: BufStream<impl Wire>, shared: &Arc<Shared>) {
    while let Ok(true) = serve(&mut stream, shared).await {}
}

/// Serves one request. Returns true if the connection can take another.
async fn serve(stream: &mut BufStream<impl Wire>, shared: &Arc<Shared>) -> io::Result<bool> {
    let Some((request, body)) = read(stream).await? else {
        return Ok(false);
    };
    shared.requests.lock().push(request.clone());
    let session = request.headers.get("mcp-session-id");
    let known = |session: &String| shared.sessions.lock().1.contains(session);
    match (request.method.as_str(), request.path.split('?').next().unwrap_or_default()) {
        ("GET", "/sse") => common(stream, shared, Some("/messages?session=1")).await,
        ("POST", "/messages") => {
            let message: Value = serde_json::from_slice(&body).unwrap_or_default();
            let steps = shared.brain.react(&message);
            respond(stream, 202, "text/plain", b"", &[]).await?;
            let shared = Arc::clone(shared);
            tokio::spawn(async move { say(&steps, &shared).await });
            Ok(true)
        }
        ("DELETE", "/mcp") => respond(stream, 200, "text/plain", b"", &[]).await,
        (_, "/mcp") if session.is_some_and(|session| !known(session)) => {
            respond(stream, 404, "text/plain", b"unknown session", &[]).await
        }
        ("GET", "/mcp") if request.headers.contains_key("last-event-id") => {
            let steps = shared.resumes.lock().pop_front();
            match steps {
                Some(steps) => stream_steps(stream, shared, &steps, &Value::Null).await,
                None => respond(stream, 405, "text/plain", b"", &[]).await,
            }
        }
        ("GET", "/mcp") if shared.brain.manner.legacy.is_some() => {
            common(stream, shared, None).await
        }
        ("POST", "/mcp") => post(stream, shared, &body).await,
        ("POST" | "GET", "/moved") => {
            respond(stream, 307, "text/plain", b"", &[("Location", "/mcp".to_owned())]).await
        }
        ("GET", _) => respond(stream, 405, "text/plain", b"", &[]).await,
        _ => respond(stream, 404, "text/plain", b"nothing here", &[]).await,
    }
}

async fn post(
    stream: &mut BufStream<impl Wire>,
    shared: &Arc<Shared>,
    body: &[u8],
) -> io::Result<bool> {
    let message: Value = serde_json::from_slice(body).unwrap_or_default();
    let steps = shared.brain.react(&message);
    if message["id"].is_null() || message["method"].is_null() {
        return respond(stream, 202, "text/plain", b"", &[]).await;
    }
    if message["method"] == "tools/call" && message["params"]["name"] != "seen" {
        return stream_steps(stream, shared, &steps, &message).await;
    }
    let mut headers = Vec::new();
    if message["method"] == "initialize" && shared.brain.manner.sessions {
        let mut sessions = shared.sessions.lock();
        sessions.0 += 1;
        // One that is started anew gives no session a name that another had.
        let session = format!("session-{}-{}", std::process::id(), sessions.0);
        sessions.1.push(session.clone());
        headers.push(("Mcp-Session-Id", session));
    }
    match steps.as_slice() {
        [Step::Message(text)] => {
            let failed =
                serde_json::from_str::<Value>(text).is_ok_and(|answer| !answer["error"].is_null());
            respond(
                stream,
                if failed { 400 } else { 200 },
                "application/json",
                text.as_bytes(),
                &headers,
            )
            .await
        }
        [] => respond(stream, 400, "text/plain", b"", &[]).await,
        _ => stream_steps(stream, shared, &steps, &message).await,
    }
}

/// Answers with a stream of events that ends with the connection.
async fn stream_steps(
    stream: &mut BufStream<impl Wire>,
    shared: &Arc<Shared>,
    steps: &[Step],
    message: &Value,
) -> io::Result<bool> {
    let mut head = true;
    let mut dribble = false;
    for step in steps {
        if let Step::Status(status, kind, body) = step {
            return respond(stream, *status, kind, body.as_bytes(), &[]).await;
        }
        if std::mem::take(&mut head) {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n").await?;
            stream.flush().await?;
        }
        let bytes = match step {
            Step::Message(text) => format!("data: {text}\n\n").into_bytes(),
            Step::Filled(text, letters) => {
                format!("data: {}\n\n", Step::filled(text, *letters)).into_bytes()
            }
            Step::Text(text) => text.clone().into_bytes(),
            Step::Hex(digits) => unhex(digits),
            Step::Repeat(text, count) => text.repeat(*count).into_bytes(),
            Step::Answer(id) => {
                let answer = json!({ "jsonrpc": "2.0", "id": id, "result": {} });
                format!("data: {answer}\n\n").into_bytes()
            }
            Step::Dribble => {
                dribble = true;
                continue;
            }
            Step::Sleep(time) => {
                tokio::time::sleep(Duration::from_millis(*time)).await;
                continue;
            }
            Step::Ask(_) | Step::Cut | Step::Exit(_) => return Ok(false),
            Step::Hang => {
                // Whoever reads nothing more can still notice that the other end left.
                while let Ok(1..) = stream.read(&mut [0; 64]).await {}
                shared.brain.left(message);
                shared.gone.send_modify(|gone| *gone += 1);
                return Ok(false);
            }
            Step::Status(..) => unreachable!("handled above"),
        };
        let size = if dribble { 1 } else { bytes.len().max(1) };
        for chunk in bytes.chunks(size) {
            stream.write_all(chunk).await?;
            stream.flush().await?;
        }
    }
    Ok(false)
}

/// Keeps a stream open for all messages. HTTP+SSE first sends the URL to post to.
async fn common(
    stream: &mut BufStream<impl Wire>,
    shared: &Arc<Shared>,
    endpoint: Option<&str>,
) -> io::Result<bool> {
    let mut said = shared.common.subscribe();
    stream
        .write_all(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n",
        )
        .await?;
    if let Some(endpoint) = endpoint {
        stream.write_all(format!("event: endpoint\ndata: {endpoint}\n\n").as_bytes()).await?;
    }
    stream.flush().await?;
    while let Ok(text) = said.recv().await {
        if text.is_empty() {
            break;
        }
        stream.write_all(text.as_bytes()).await?;
        stream.flush().await?;
    }
    Ok(false)
}

/// Sends a response on the one stream of HTTP+SSE.
async fn say(steps: &[Step], shared: &Shared) {
    for step in steps {
        let text = match step {
            Step::Message(text) => format!("data: {text}\n\n"),
            Step::Filled(text, letters) => format!("data: {}\n\n", Step::filled(text, *letters)),
            Step::Text(text) => text.clone(),
            Step::Repeat(text, count) => text.repeat(*count),
            Step::Sleep(time) => {
                tokio::time::sleep(Duration::from_millis(*time)).await;
                continue;
            }
            _ => continue,
        };
        let _ = shared.common.send(text);
    }
}

async fn respond(
    stream: &mut BufStream<impl Wire>,
    status: u16,
    kind: &str,
    body: &[u8],
    headers: &[(&str, String)],
) -> io::Result<bool> {
    let mut head = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.extend([*name, ": ", value, "\r\n"]);
    }
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(b"\r\n").await?;
    stream.write_all(body).await?;
    stream.flush().await?;
    Ok(true)
}

/// Decodes hexadecimal digits.
pub(super) fn unhex(digits: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).expect("the test gives digits");
    digits
        .as_bytes()
        .chunks(2)
        .map(|pair| {
            u8::try_from(digit(pair[0]) * 16 + digit(pair[1])).expect("two digits are a byte")
        })
        .collect()
}
