//! A proxy before an HTTP server that breaks connections as a call requests, and goes down and comes back on demand.
//!
//! A call requests it by its argument `proxy`: `cut N` and `reset N` end the connection after byte N of the response,
//! `trickle N` forwards a byte every N ms, `stall` forwards nothing, `hold` keeps the request.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use memchr::memmem;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::Failure;

/// A proxy, until it is dropped.
#[derive(Debug)]
pub(super) struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    up: watch::Sender<bool>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    target: Mutex<SocketAddr>,
    accepted: AtomicUsize,
}

/// Fault that is applied to a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Breakage {
    Pass,
    Cut { at: usize, reset: bool },
    Trickle(Duration),
    Stall,
    Hold,
}

impl Breakage {
    /// Returns the fault that a request asks for.
    fn of(request: &[u8]) -> Self {
        const MARK: &[u8] = br#""proxy":""#;
        let Some(at) = memmem::find(request, MARK) else { return Self::Pass };
        let rest = &request[at + MARK.len()..];
        let end = memchr::memchr(b'"', rest).unwrap_or(rest.len());
        let text = String::from_utf8_lossy(&rest[..end]);
        let mut words = text.split(' ');
        let word = words.next();
        let number = words.next().and_then(|number| number.parse().ok()).unwrap_or(0);
        match word {
            Some("cut") => Self::Cut { at: number, reset: false },
            Some("reset") => Self::Cut { at: number, reset: true },
            Some("trickle") => Self::Trickle(Duration::from_millis(number as u64)),
            Some("stall") => Self::Stall,
            Some("hold") => Self::Hold,
            _ => Self::Pass,
        }
    }
}

impl Proxy {
    pub(super) async fn start(target: SocketAddr) -> Result<Self, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { target: Mutex::new(target), accepted: AtomicUsize::new(0) });
        let (up, told) = watch::channel(true);
        let task = tokio::spawn(accept(listener, address, Arc::clone(&shared), told));
        Ok(Self { address, shared, up, task })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Sets the target of new connections.
    pub(super) fn aim(&self, target: SocketAddr) {
        *self.shared.target.lock() = target;
    }

    /// Ends every connection and refuses new ones, until it comes back.
    pub(super) fn go_away(&self) {
        self.up.send_replace(false);
    }

    pub(super) fn come_back(&self) {
        self.up.send_replace(true);
    }

    /// Returns the number of connections so far.
    pub(super) fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
    mut told: watch::Receiver<bool>,
) {
    let mut listener = Some(listener);
    let mut connections = JoinSet::new();
    loop {
        let up = *told.borrow_and_update();
        if !up {
            listener = None;
            connections.shutdown().await;
        } else if listener.is_none() {
            listener = TcpListener::bind(address).await.ok();
        }
        let Some(open) = &listener else {
            let pause = tokio::time::sleep(Duration::from_millis(20));
            tokio::select! {
                changed = told.changed() => if changed.is_err() { return },
                () = pause, if up => {}
            }
            continue;
        };
        tokio::select! {
            changed = told.changed() => if changed.is_err() { return },
            accepted = open.accept() => if let Ok((socket, _)) = accepted {
                shared.accepted.fetch_add(1, Ordering::Relaxed);
                let target = *shared.target.lock();
                connections.spawn(async move {
                    // A connection that breaks is what it is for.
                    let _ = carry(socket, target).await;
                });
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn carry(client: TcpStream, target: SocketAddr) -> std::io::Result<()> {
    let server = TcpStream::connect(target).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (breakage, asked) = watch::channel(Breakage::Pass);
    let ((from_client, to_client), (from_server, to_server)) =
        (client.into_split(), server.into_split());
    tokio::select! {
        there = requests(from_client, to_server, breakage) => there,
        back = answers(from_server, to_client, asked) => back,
    }
}

async fn requests(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    breakage: watch::Sender<Breakage>,
) -> std::io::Result<()> {
    let mut inbox = Vec::new();
    loop {
        let whole = loop {
            if let Some(length) = length(&inbox).filter(|length| inbox.len() >= *length) {
                break length;
            }
            if from.read_buf(&mut inbox).await? == 0 {
                return Ok(());
            }
        };
        let rest = inbox.split_off(whole);
        let request = std::mem::replace(&mut inbox, rest);
        let asked = Breakage::of(&request);
        breakage.send_replace(asked);
        if asked != Breakage::Hold {
            to.write_all(&request).await?;
        }
    }
}

/// Returns the length of the request at the beginning of these bytes, once its head is complete.
fn length(inbox: &[u8]) -> Option<usize> {
    let head = memmem::find(inbox, b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&inbox[..head]).to_ascii_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
    Some(head + length.and_then(|length| length.trim().parse::<usize>().ok()).unwrap_or(0))
}

async fn answers(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut asked: watch::Receiver<Breakage>,
) -> std::io::Result<()> {
    let mut piece = vec![0; 64 << 10];
    let mut passed = 0;
    loop {
        let now = *asked.borrow();
        if now == (Breakage::Cut { at: 0, reset: now.resets() }) {
            return end(&to, now);
        }
        let count = tokio::select! {
            count = from.read(&mut piece) => count?,
            changed = asked.changed() => {
                if changed.is_err() {
                    return Ok(());
                }
                passed = 0;
                continue;
            }
        };
        let now = *asked.borrow_and_update();
        match now {
            Breakage::Stall | Breakage::Hold => {
                if count == 0 {
                    return std::future::pending().await;
                }
            }
            _ if count == 0 => return Ok(()),
            Breakage::Pass => to.write_all(&piece[..count]).await?,
            Breakage::Cut { at, .. } => {
                let most = count.min(at.saturating_sub(passed));
                to.write_all(&piece[..most]).await?;
                passed += most;
                if passed >= at {
                    return end(&to, now);
                }
            }
            Breakage::Trickle(pause) => {
                for byte in &piece[..count] {
                    to.write_all(&[*byte]).await?;
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }
}

impl Breakage {
    fn resets(self) -> bool {
        matches!(self, Self::Cut { reset: true, .. })
    }
}

/// Ends a connection, gracefully or by a reset.
fn end(to: &OwnedWriteHalf, breakage: Breakage) -> std::io::Result<()> {
    if breakage.resets() {
        to.as_ref().set_zero_linger()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_what_is_to_be_broken() {
        let of = |text: &str| Breakage::of(text.as_bytes());
        assert_eq!(of(r#"{"proxy":"cut 17"}"#), Breakage::Cut { at: 17, reset: false });
        assert_eq!(of(r#"{"proxy":"reset 0","x":1}"#), Breakage::Cut { at: 0, reset: true });
        assert_eq!(of(r#"{"proxy":"stall"}"#), Breakage::Stall);
        assert_eq!(of(r#"{"prox":"stall"}"#), Breakage::Pass);
    }

    #[test]
    fn a_request_is_as_long_as_its_head_says() {
        assert_eq!(length(b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcdef"), Some(41));
        assert_eq!(length(b"GET / HTTP/1.1\r\n\r\n"), Some(18));
        assert_eq!(length(b"GET / HTTP/1.1\r\n"), None);
    }
}
