//! A minimal HTTP/1.1 client for a load: one connection, one request at a time, responses read as they arrive.

use bytes::{Buf, Bytes, BytesMut};
use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::Failure;

/// Size of a read.
const PIECE: usize = 64 << 10;

/// Maximum size of a head.
const HEAD: usize = 64 << 10;

/// A persistent connection.
#[derive(Debug)]
pub(super) struct Connection {
    socket: TcpStream,
    inbox: BytesMut,
    rest: Rest,
}

/// Head of a response.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) kind: String,
    pub(super) session: Option<String>,
    pub(super) closes: bool,
    rest: Rest,
}

/// Remaining part of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Rest {
    #[default]
    Nothing,
    Bytes(usize),
    /// The rest of the current chunk in bytes, then more chunks.
    Chunk(usize),
    NextChunk,
    Trailer,
}

impl Connection {
    pub(super) async fn open(address: &str) -> Result<Self, Failure> {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        Ok(Self { socket, inbox: BytesMut::with_capacity(PIECE), rest: Rest::Nothing })
    }

    /// Returns true if the peer has closed it.
    pub(super) fn has_ended(&self) -> bool {
        matches!(self.socket.try_read(&mut [0]), Ok(0))
    }

    /// Sends a complete request and reads the head of its response.
    pub(super) async fn exchange(&mut self, request: &[u8]) -> Result<Head, Failure> {
        self.socket.write_all(request).await?;
        loop {
            if let Some(end) = memmem::find(&self.inbox, b"\r\n\r\n") {
                let head = Head::parse(&self.inbox[..end])?;
                self.inbox.advance(end + 4);
                self.rest = head.rest;
                return Ok(head);
            }
            if self.inbox.len() > HEAD {
                return Err("the head of the answer has no end".into());
            }
            self.fill(PIECE).await?;
        }
    }

    /// The whole body.
    pub(super) async fn body(&mut self) -> Result<Bytes, Failure> {
        if let Rest::Bytes(length) = self.rest {
            while self.inbox.len() < length {
                self.fill((length - self.inbox.len()).max(PIECE)).await?;
            }
            self.rest = Rest::Nothing;
            return Ok(self.inbox.split_to(length).freeze());
        }
        let mut body = BytesMut::new();
        while let Some(piece) = self.piece().await? {
            body.extend_from_slice(&piece);
        }
        Ok(body.freeze())
    }

    /// The next bytes of the body, as soon as there are any; none after the last.
    pub(super) async fn piece(&mut self) -> Result<Option<Bytes>, Failure> {
        loop {
            match self.rest {
                Rest::Nothing | Rest::Bytes(0) => {
                    self.rest = Rest::Nothing;
                    return Ok(None);
                }
                Rest::Bytes(left) if !self.inbox.is_empty() => {
                    let piece = self.inbox.split_to(left.min(self.inbox.len())).freeze();
                    self.rest = Rest::Bytes(left - piece.len());
                    return Ok(Some(piece));
                }
                Rest::Chunk(0) if self.inbox.len() >= 2 => {
                    self.inbox.advance(2);
                    self.rest = Rest::NextChunk;
                }
                Rest::Chunk(left) if left > 0 && !self.inbox.is_empty() => {
                    let piece = self.inbox.split_to(left.min(self.inbox.len())).freeze();
                    self.rest = Rest::Chunk(left - piece.len());
                    return Ok(Some(piece));
                }
                Rest::NextChunk => match line(&mut self.inbox) {
                    Some(size) => {
                        let size = std::str::from_utf8(&size)?;
                        let size = size.split(';').next().unwrap_or_default().trim();
                        self.rest = match usize::from_str_radix(size, 16)? {
                            0 => Rest::Trailer,
                            size => Rest::Chunk(size),
                        };
                    }
                    None => self.fill(PIECE).await?,
                },
                Rest::Trailer => match line(&mut self.inbox) {
                    Some(line) if line.is_empty() => self.rest = Rest::Nothing,
                    Some(_) => {}
                    None => self.fill(PIECE).await?,
                },
                Rest::Bytes(_) | Rest::Chunk(_) => self.fill(PIECE).await?,
            }
        }
    }

    async fn fill(&mut self, bytes: usize) -> Result<(), Failure> {
        self.inbox.reserve(bytes);
        match self.socket.read_buf(&mut self.inbox).await? {
            0 => Err("the connection ended in the middle of an answer".into()),
            _ => Ok(()),
        }
    }
}

impl Head {
    fn parse(head: &[u8]) -> Result<Self, Failure> {
        let text = std::str::from_utf8(head)?;
        let mut lines = text.split("\r\n");
        let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 "));
        let status = status.and_then(|line| line.get(..3)).and_then(|code| code.parse().ok());
        let mut parsed = Self { status: status.ok_or("no HTTP/1.1 answer")?, ..Self::default() };
        for line in lines {
            let (name, value) = line.split_once(':').ok_or("a header without a colon")?;
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                parsed.rest = Rest::Bytes(value.parse()?);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                parsed.rest = Rest::NextChunk;
            } else if name.eq_ignore_ascii_case("content-type") {
                let kind = value.split(';').next().unwrap_or_default();
                parsed.kind = kind.trim().to_ascii_lowercase();
            } else if name.eq_ignore_ascii_case("mcp-session-id") {
                parsed.session = Some(value.to_owned());
            } else if name.eq_ignore_ascii_case("connection") {
                parsed.closes = value.eq_ignore_ascii_case("close");
            }
        }
        Ok(parsed)
    }
}

/// Takes a line, without its end, if it is complete.
fn line(inbox: &mut BytesMut) -> Option<BytesMut> {
    let end = memmem::find(inbox, b"\r\n")?;
    let line = inbox.split_to(end);
    inbox.advance(2);
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    /// Returns a response that arrives in two parts as the client reads it.
    async fn read(first: &'static str, second: &'static str) -> (Head, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = async {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut request = [0; 4];
            socket.read_exact(&mut request).await.unwrap();
            socket.write_all(first.as_bytes()).await.unwrap();
            socket.flush().await.unwrap();
            tokio::task::yield_now().await;
            socket.write_all(second.as_bytes()).await.unwrap();
        };
        let client = async {
            let mut connection = Connection::open(&address).await.unwrap();
            let head = connection.exchange(b"ask\n").await.unwrap();
            let body = connection.body().await.unwrap();
            (head, String::from_utf8(body.to_vec()).unwrap())
        };
        tokio::join!(server, client).1
    }

    #[tokio::test]
    async fn a_body_is_read_whether_its_length_is_said_or_it_comes_in_chunks() {
        let said = "HTTP/1.1 200 OK\r\nContent-Type: Application/JSON; charset=utf-8\r\nconTent-length: 4\r\n\r\nab";
        let (head, body) = read(said, "cd").await;
        assert_eq!((head.status, head.kind.as_str()), (200, "application/json"));
        assert_eq!(body, "abcd");
        let chunks = "HTTP/1.1 404 Not Found\r\nmcp-session-id: s\r\ntransfer-encoding: chunked\r\n\r\n3\r\nab";
        let (head, body) = read(chunks, "c\r\n1;x=y\r\nd\r\n0\r\n\r\n").await;
        assert_eq!((head.status, head.session.as_deref()), (404, Some("s")));
        assert_eq!(body, "abcd");
    }

    #[test]
    fn what_is_not_http_is_refused() {
        assert!(Head::parse(b"SSH-2.0").is_err());
        assert!(Head::parse(b"HTTP/1.1 2").is_err());
        assert!(Head::parse(b"HTTP/1.1 200 OK\r\nnonsense").is_err());
    }
}
