//! Tests of the connection, among them a comparison with hyper.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ::http::{HeaderValue, Method};
use bytes::{Bytes, BytesMut};
use consort_protocol::SendObserver;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::{ExchangeError, Http1Connection, RequestMessage, RequestWriter, ResponseHead};
use crate::transport::SendPermit;

mod against_hyper;

const MAX_HEAD: usize = 8 << 10;

/// A response: status, body and whether the connection can be reused.
type Exchanged = Result<(u16, Vec<u8>, bool), String>;

fn post(body: impl Into<Bytes>) -> RequestMessage {
    RequestWriter::new(Method::POST, &["/mcp"]).finish(body.into(), &SendPermit::default())
}

async fn read_body(
    connection: &mut Http1Connection<DuplexStream>,
    head: &ResponseHead,
) -> Exchanged {
    let mut body = Vec::new();
    while let Some(chunk) = poll_fn(|cx| connection.poll_chunk(cx)).await {
        body.extend_from_slice(&chunk?);
    }
    Ok((head.status.as_u16(), body, connection.is_reusable()))
}

async fn exchange(
    connection: &mut Http1Connection<DuplexStream>,
    mut request: RequestMessage,
) -> Exchanged {
    match connection.exchange(&mut request).await {
        Ok(head) => read_body(connection, &head).await,
        Err(ExchangeError::NotSent(error)) => Err(format!("not sent: {error}")),
        Err(ExchangeError::Broken(reason)) => Err(reason),
    }
}

/// Reads a request, writes a response in these pieces, and closes the connection.
fn serve(mut peer: DuplexStream, pieces: Vec<Vec<u8>>) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move {
        let mut request = [0; 256];
        let _ = peer.read(&mut request).await;
        for piece in pieces {
            if peer.write_all(&piece).await.is_err() {
                return;
            }
            tokio::task::yield_now().await;
        }
    })
}

/// Plays a response in these pieces to a request.
async fn play(pieces: Vec<Vec<u8>>) -> Exchanged {
    let (ours, peer) = duplex(64 << 10);
    let mut connection = Http1Connection::new(ours, MAX_HEAD);
    let server = serve(peer, pieces);
    let exchanged = exchange(&mut connection, post("{}")).await;
    server.abort();
    exchanged
}

async fn answer(response: &str) -> Exchanged {
    let whole = play(vec![response.as_bytes().to_vec()]).await;
    let in_bytes = play(response.bytes().map(|byte| vec![byte]).collect()).await;
    assert_eq!(whole.is_ok(), in_bytes.is_ok(), "{response:?}: {whole:?}, {in_bytes:?}");
    if let (Ok(whole), Ok(in_bytes)) = (&whole, &in_bytes) {
        assert_eq!((whole.0, &whole.1), (in_bytes.0, &in_bytes.1));
    }
    whole
}

#[tokio::test]
async fn a_request_is_one_write_and_reports_its_last_byte() {
    #[derive(Debug, Default)]
    struct Sent(AtomicBool);
    impl SendObserver for Sent {
        fn numbered(&self, _: u64) {}
        fn sent(&self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let (ours, mut peer) = duplex(64);
    let mut connection = Http1Connection::new(ours, MAX_HEAD);
    let sent = Arc::new(Sent::default());
    let mut writer = RequestWriter::new(Method::POST, &["/mcp", "?a=b"]);
    writer.header(&::http::header::ACCEPT, &HeaderValue::from_static("*/*"));
    let permit = SendPermit::new(Some(Arc::clone(&sent) as _));
    let mut request = writer.finish(Bytes::from_static(b"[1,2,3]"), &permit);
    let exchanging = tokio::spawn(async move {
        let head = connection.exchange(&mut request).await.unwrap();
        read_body(&mut connection, &head).await
    });
    let expected = "POST /mcp?a=b HTTP/1.1\r\naccept: */*\r\ncontent-length: 7\r\n\r\n[1,2,3]";
    let mut received = vec![0; expected.len()];
    peer.read_exact(&mut received[..9]).await.unwrap();
    assert!(!sent.0.load(Ordering::Relaxed), "the pipe holds 64 bytes");
    peer.read_exact(&mut received[9..]).await.unwrap();
    assert_eq!(String::from_utf8(received).unwrap(), expected);
    peer.write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n").await.unwrap();
    assert_eq!(exchanging.await.unwrap(), Ok((202, Vec::new(), true)));
    assert!(sent.0.load(Ordering::Relaxed));
}

#[tokio::test]
async fn bodies_end_where_their_framing_says() {
    for (response, body, reusable) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", "hello", true),
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello, world", "hello", false),
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\nConnection: Close\r\n\r\nhello", "hello", false),
        ("HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello", "hello", false),
        ("HTTP/1.1 200 OK\r\n\r\nhello", "hello", false),
        ("HTTP/1.1 204 No Content\r\n\r\n", "", true),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n1",
            "1",
            true,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n5;a=\"b\"\r\nhello\r\n1 \r\n!\r\n0\r\n\r\n",
            "hello!",
            true,
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n05\r\nhello\r\n0\r\nexpires: never\r\n\r\n",
            "hello",
            true,
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 99\r\ntransfer-encoding: chunked\r\n\r\n1\r\n1\r\n0\r\n\r\n",
            "1",
            false,
        ),
    ] {
        let (_, received, reused) =
            answer(response).await.unwrap_or_else(|reason| panic!("{response:?}: {reason}"));
        assert_eq!(String::from_utf8(received).unwrap(), body, "{response:?}");
        assert_eq!(reused, reusable, "{response:?}");
    }
}

#[tokio::test]
async fn a_response_without_a_certain_end_is_an_error() {
    for (response, reason) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhell", "before the end"),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 5\r\n\r\nhello",
            "more than one Content-Length",
        ),
        ("HTTP/1.1 200 OK\r\ncontent-length: 5, 5\r\n\r\nhello", "invalid Content-Length"),
        ("HTTP/1.1 200 OK\r\ncontent-length: +5\r\n\r\nhello", "invalid Content-Length"),
        ("HTTP/1.1 200 OK\r\ncontent-length:\r\n\r\nhello", "invalid Content-Length"),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n",
            "invalid Content-Length",
        ),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nhello", "Transfer-Encoding"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked, gzip\r\n\r\nhello", "Transfer-Encoding"),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            "Transfer-Encoding",
        ),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n", "Transfer-Encoding"),
        ("HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", "HTTP/1.0"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello0\r\n\r\n", "CR LF"),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n",
            "chunk size",
        ),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n",
            "chunk size",
        ),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n10000000000000000\r\n", "64 bits"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\nno colon\r\n\r\n", "trailers"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\na: b\n\r\n", "CR LF"),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n", "before the end"),
        ("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n", "another protocol"),
        ("HTTP/1.1 200 OK\r\nbad header: 1\r\n\r\n", "invalid"),
        ("HTTP/1.1 200 OK\r\na: b\r\n c: d\r\n\r\n", "invalid"),
        ("HTTP/2 200 OK\r\n\r\n", "invalid"),
        ("HTTP/1.1 200 OK\r\ncontent-len", "before the end"),
        ("", "before the end"),
    ] {
        let error = answer(response).await.expect_err(response);
        assert!(error.contains(reason), "{response:?}: {error}");
    }
}

#[tokio::test]
async fn heads_extensions_and_trailers_have_limits() {
    let long = "x".repeat(17 << 10);
    for (response, reason) in [
        (format!("HTTP/1.1 200 OK\r\na: {long}\r\n\r\n"), "larger than 8192 bytes"),
        (format!("HTTP/1.1 200 OK\r\na: {long}"), "larger than 8192 bytes"),
        (format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;{long}"), "extensions"),
        (
            format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\na: {long}"),
            "trailers",
        ),
        (format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(101)), "too many headers"),
    ] {
        let error = answer(&response).await.expect_err(reason);
        assert!(error.contains(reason), "{error}");
    }
    let many = format!("HTTP/1.1 200 OK\r\n{}content-length: 2\r\n\r\nok", "a: b\r\n".repeat(99));
    assert_eq!(answer(&many).await, Ok((200, b"ok".to_vec(), true)));
}

#[tokio::test]
async fn a_connection_that_closed_while_idle_returns_the_request() {
    let (ours, peer) = duplex(1024);
    let mut connection = Http1Connection::new(ours, MAX_HEAD);
    drop(peer);
    let mut request = post("{}");
    let refused = connection.exchange(&mut request).await;
    assert!(matches!(refused, Err(ExchangeError::NotSent(_))), "{refused:?}");

    let (ours, mut peer) = duplex(1024);
    let mut connection = Http1Connection::new(ours, MAX_HEAD);
    peer.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    let refused = connection.exchange(&mut request).await;
    assert!(matches!(refused, Err(ExchangeError::NotSent(_))), "unasked: {refused:?}");

    let (ours, mut peer) = duplex(1024);
    let mut connection = Http1Connection::new(ours, MAX_HEAD);
    let exchanging = tokio::spawn(async move { exchange(&mut connection, request).await });
    let mut received = [0; 128];
    let count = peer.read(&mut received).await.unwrap();
    assert!(received[..count].ends_with(b"content-length: 2\r\n\r\n{}"), "the whole request");
    peer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
    assert_eq!(exchanging.await.unwrap(), Ok((200, Vec::new(), true)));
}

#[tokio::test]
async fn an_early_refusal_of_a_large_body_is_read_and_ends_the_connection() {
    let refusal = b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 4\r\n\r\nlong";
    for closes in [false, true] {
        let (ours, mut peer) = duplex(1024);
        let mut connection = Http1Connection::new(ours, MAX_HEAD);
        let exchanging =
            tokio::spawn(async move { exchange(&mut connection, post(vec![b'x'; 1 << 20])).await });
        let mut received = [0; 512];
        peer.read_exact(&mut received).await.unwrap();
        peer.write_all(refusal).await.unwrap();
        let open = (!closes).then_some(peer);
        assert_eq!(exchanging.await.unwrap(), Ok((413, b"long".to_vec(), false)));
        drop(open);
    }
}

#[tokio::test]
async fn a_request_is_written_to_its_end_while_its_response_is_read() {
    for length in ["content-length: 10", "transfer-encoding: chunked"] {
        let (ours, mut peer) = duplex(1024);
        let mut connection = Http1Connection::new(ours, MAX_HEAD);
        let server = tokio::spawn(async move {
            let mut begin = [0; 512];
            peer.read_exact(&mut begin).await.unwrap();
            let is_chunked = length.contains("chunked");
            let head = format!("HTTP/1.1 200 OK\r\n{length}\r\n\r\n");
            peer.write_all(head.as_bytes()).await.unwrap();
            peer.write_all(if is_chunked { b"5\r\nearly\r\n" } else { b"early" }).await.unwrap();
            let mut rest = vec![0; (1 << 20) - 512];
            peer.read_exact(&mut rest).await.unwrap();
            peer.write_all(if is_chunked { b"5\r\nlater\r\n0\r\n\r\n" } else { b"later" })
                .await
                .unwrap();
            peer
        });
        let exchanged = exchange(&mut connection, post(vec![b'x'; 1 << 20])).await;
        assert_eq!(
            exchanged.as_ref().map(|(_, body, _)| body.as_slice()),
            Ok(b"earlylater".as_slice())
        );
        drop(server.await.unwrap());
    }
}

#[tokio::test]
async fn a_large_body_is_read_into_one_buffer() {
    let (ours, mut peer) = duplex(1 << 16);
    let mut connection = Http1Connection::new(ours, MAX_HEAD);
    let body: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    let sent = body.clone();
    let server = tokio::spawn(async move {
        let mut request = [0; 256];
        let _ = peer.read(&mut request).await.unwrap();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", sent.len());
        peer.write_all(head.as_bytes()).await.unwrap();
        peer.write_all(&sent).await.unwrap();
        peer
    });
    connection.exchange(&mut post("{}")).await.unwrap();
    let mut received = BytesMut::with_capacity(body.len());
    let place = received.as_ptr();
    poll_fn(|cx| connection.poll_rest(&mut received, cx)).await.unwrap();
    assert!(received == body, "another body");
    assert_eq!(received.as_ptr(), place);
    assert!(connection.is_reusable());
    drop(server.await.unwrap());
}
