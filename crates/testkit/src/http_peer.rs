//! A server on this machine that treats each request as its test requires, byte by byte.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the message")]

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Treatment of one request.
#[derive(Debug)]
pub enum Does {
    /// Sends these bytes, and keeps the connection.
    Say(Vec<u8>),
    /// Sends these bytes, and closes the connection.
    Cut(Vec<u8>),
    /// Sends these bytes, and then nothing more.
    Hang(Vec<u8>),
}

/// A request as received.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The number of its connection, from 0.
    pub connection: usize,
    /// Its request line and headers.
    pub head: String,
    /// Its body.
    pub body: String,
}

/// The server, until it is dropped.
#[derive(Debug)]
pub struct Peer {
    port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
    /// Number of clients that disconnected during their response.
    left: watch::Receiver<usize>,
    serving: JoinHandle<()>,
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Peer {
    /// Starts a server that treats one request each like this, in writes of `piece` bytes.
    pub async fn start(does: Vec<Does>, piece: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (leaving, left) = watch::channel(0);
        let does = Arc::new(Mutex::new(VecDeque::from(does)));
        let noted = Arc::clone(&seen);
        let serving = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            for connection in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                let (does, seen) = (Arc::clone(&does), Arc::clone(&noted));
                let leaving = leaving.clone();
                connections.spawn(async move {
                    serve(stream, connection, piece, &does, &seen, &leaving).await;
                });
            }
        });
        Self { port, seen, left, serving }
    }

    /// Returns the URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Returns the requests received so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().clone()
    }

    /// Waits until a client disconnects during its response.
    pub async fn somebody_left(&mut self) {
        self.left.wait_for(|left| *left > 0).await.unwrap();
    }
}

async fn serve(
    mut stream: TcpStream,
    connection: usize,
    piece: usize,
    does: &Mutex<VecDeque<Does>>,
    seen: &Mutex<Vec<Seen>>,
    leaving: &watch::Sender<usize>,
) {
    stream.set_nodelay(true).unwrap();
    while let Some((head, body)) = read(&mut stream).await {
        seen.lock().push(Seen { connection, head, body });
        let next = does.lock().pop_front();
        let next = next.unwrap_or_else(|| Does::Say(answer(418, &[], "asked too often")));
        let (Does::Say(bytes) | Does::Cut(bytes) | Does::Hang(bytes)) = &next;
        for piece in bytes.chunks(piece) {
            if stream.write_all(piece).await.is_err() {
                return;
            }
            tokio::task::yield_now().await;
        }
        match next {
            Does::Say(_) => {}
            Does::Cut(_) => return,
            Does::Hang(_) => {
                // Nothing more is said to us either, so this ends when the client leaves.
                let _ = stream.read(&mut [0]).await;
                leaving.send_modify(|left| *left += 1);
                return;
            }
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let whole = end + 4 + length.map_or(0, |length| length.parse().unwrap());
            if bytes.len() >= whole {
                return Some((head, String::from_utf8(bytes[end + 4..].to_vec()).unwrap()));
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

/// A response of known length.
pub fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} Said\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
    [head.as_str(), "\r\n", body].concat().into_bytes()
}

/// An event stream, each event a chunk of its own.
pub fn events(body: &str) -> Vec<u8> {
    let mut bytes = begun(body);
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

/// An event stream without its end.
pub fn begun(body: &str) -> Vec<u8> {
    let mut bytes = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\
        transfer-encoding: chunked\r\n\r\n"
        .to_vec();
    for event in body.split_inclusive("\n\n") {
        bytes.extend_from_slice(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes());
    }
    bytes
}
