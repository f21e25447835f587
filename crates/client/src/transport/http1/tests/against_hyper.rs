//! Comparison with hyper's client: the same bytes from the server, in the same pieces.
//!
//! A response that this client accepts is one that hyper accepts, with the same status and body. It refuses more than
//! hyper does, for the reasons in `STRICTER`.

use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::*;

/// Parts of error messages for responses that hyper accepts.
const STRICTER: [&str; 8] = [
    "more than one Content-Length",
    "invalid Content-Length",
    "Transfer-Encoding",
    "another protocol",
    "larger than",
    "trailer",
    "chunk",
    "invalid status",
];

/// Plays the pieces to hyper. Returns the status and the body.
async fn play_to_hyper(pieces: Vec<Vec<u8>>) -> Result<(u16, Vec<u8>), String> {
    let (ours, peer) = duplex(64 << 10);
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(MAX_HEAD)
        .handshake::<_, Full<Bytes>>(TokioIo::new(ours))
        .await
        .map_err(|error| error.to_string())?;
    let driver = tokio::spawn(connection);
    let server = serve(peer, pieces);
    let request = ::http::Request::post("/mcp").body(Full::new(Bytes::from_static(b"{}"))).unwrap();
    let exchanged = async {
        let response = sender.send_request(request).await.map_err(|error| format!("{error:?}"))?;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.map_err(|error| format!("{error:?}"))?;
        Ok((status, body.to_bytes().to_vec()))
    };
    let exchanged = exchanged.await;
    server.abort();
    driver.abort();
    exchanged
}

fn line_end() -> impl Strategy<Value = &'static str> {
    prop_oneof![12 => Just("\r\n"), 1 => Just("\n"), 1 => Just("\r"), 1 => Just("")]
}

fn header() -> impl Strategy<Value = String> {
    let name = select(vec![
        "content-length",
        "Content-Length",
        "transfer-encoding",
        "Transfer-Encoding",
        "connection",
        "content-type",
        "content-encoding",
        "x",
        "content-length ",
        "transfer\u{0}encoding",
    ]);
    let values = "0|3|5|5, 5|+5|0x5| 5 ||chunked|Chunked|gzip, chunked|chunked, gzip|identity|close|keep-alive|\
                  application/json|text/event-stream|18446744073709551616|chunked\u{b}|\t5";
    let value = select(values.split('|').collect::<Vec<_>>());
    (name, value, line_end()).prop_map(|(name, value, end)| format!("{name}: {value}{end}"))
}

fn body() -> impl Strategy<Value = String> {
    select(vec![
        "",
        "abc",
        "hello",
        "hello, world",
        "5\r\nhello\r\n0\r\n\r\n",
        "5;x=y\r\nhello\r\n0\r\n\r\n",
        "5\r\nhello\r\n0\r\na: b\r\n\r\n",
        "5\nhello\n0\n\n",
        "5 \r\nhello\r\n00\r\n\r\n",
        "5\r\nhello0\r\n\r\n",
        "\r\n5\r\nhello\r\n0\r\n\r\n",
        "FFFFFFFFFFFFFFFFF\r\n",
        "5\r\nhello\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        "5\r\nhello\r\n0\r\na b\r\n\r\n",
        "0\r\n\r\n",
    ])
    .prop_map(str::to_owned)
}

fn response() -> impl Strategy<Value = Vec<u8>> {
    let statuses = "HTTP/1.1 200 OK|HTTP/1.1 200|HTTP/1.0 200 OK|HTTP/1.1 204 No Content|HTTP/1.1 304 Not Modified|\
                    HTTP/1.1 404 Not Found|HTTP/1.1 100 Continue|HTTP/1.1 101 Switching Protocols|HTTP/2.0 200 OK|\
                    HTTP/1.1  200 OK|HTTP/1.1 99 Low|HTTP/1.1 999 High|ICY 200 OK";
    let status = select(statuses.split('|').collect::<Vec<_>>());
    let headers = prop::collection::vec(header(), 0..4);
    let noise = prop::collection::vec((any::<Index>(), any::<u8>()), 0..2);
    (status, line_end(), headers, line_end(), body(), noise).prop_map(
        |(status, first, headers, last, body, noise)| {
            let text = format!("{status}{first}{}{last}{body}", headers.concat());
            let mut bytes = text.into_bytes();
            for (at, byte) in noise {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes
        },
    )
}

fn pieces(bytes: &[u8], cuts: &[Index]) -> Vec<Vec<u8>> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    cuts.sort_unstable();
    let ends = cuts.iter().copied().chain([bytes.len()]);
    let begins = [0].into_iter().chain(cuts.iter().copied());
    let all = begins.zip(ends).map(|(begin, end)| bytes[begin..end].to_vec());
    all.filter(|piece| !piece.is_empty()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1_000),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn hyper_reads_what_this_client_accepts(
        bytes in response(),
        cuts in prop::collection::vec(any::<Index>(), 0..4),
    ) {
        let pieces = pieces(&bytes, &cuts);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (ours, theirs) =
            runtime.block_on(async { (play(pieces.clone()).await, play_to_hyper(pieces).await) });
        let shown = String::from_utf8_lossy(&bytes);
        match (ours, theirs) {
            (Ok((status, body, _)), Ok(theirs)) => prop_assert_eq!((status, body), theirs, "{:?}", shown),
            (Ok(ours), Err(theirs)) => prop_assert!(false, "{shown:?}: {ours:?}, hyper: {theirs}"),
            (Err(ours), Ok(theirs)) => prop_assert!(
                STRICTER.iter().any(|reason| ours.contains(reason)),
                "{shown:?}: {ours}, hyper: {theirs:?}"
            ),
            (Err(_), Err(_)) => {}
        }
    }
}
