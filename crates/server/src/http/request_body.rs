//! Bodies of requests, read within their limits.

use std::pin::pin;

use bytes::{Bytes, BytesMut};
use consort_core::Caller;
use http::header::{CONNECTION, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode};
use hyper::body::{Body as HttpBody, Incoming};

use crate::http::reply::{HttpReply, text};
use crate::server_state::ServerState;
use crate::socket::connection_shares::memory_holder;

/// A message of fewer bytes is copied out of its connection's read buffer: the buffer can then be reused, and a waiting
/// call keeps only the bytes it needs.
const COPIED: usize = 8 << 10;

/// The reason why a body was refused.
pub(crate) enum BadBody {
    Kind,
    Encoded,
    TooLarge,
    Slow,
    Broken,
}

impl BadBody {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Kind | Self::Encoded => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::Broken => StatusCode::BAD_REQUEST,
        }
    }

    pub(crate) fn message(&self) -> &'static str {
        match self {
            Self::Kind => "the `Content-Type` must be application/json",
            Self::Encoded => "compressed request bodies are not supported",
            Self::TooLarge => "the request body is too large",
            Self::Slow => "timeout while reading the request body",
            Self::Broken => "the request body is incomplete",
        }
    }

    pub(crate) fn reply(&self) -> HttpReply {
        let mut reply = text(self.status(), self.message());
        if matches!(self, Self::TooLarge | Self::Slow) {
            reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        reply
    }
}

/// Reads a JSON message of a caller, within its limits.
pub(crate) async fn read(
    server: &ServerState,
    caller: &Caller,
    headers: &HeaderMap,
    body: Incoming,
) -> Result<Bytes, BadBody> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let is_json = |kind: &str| {
        let essence = kind.split(';').next().unwrap_or_default().trim();
        essence.eq_ignore_ascii_case("application/json")
    };
    if kind != "application/json" && !is_json(kind) {
        return Err(BadBody::Kind);
    }
    read_any(server, Some(caller), headers, body).await
}

/// Reads a body of any kind, within its limits, which is charged to its caller.
pub(crate) async fn read_any(
    server: &ServerState,
    caller: Option<&Caller>,
    headers: &HeaderMap,
    body: Incoming,
) -> Result<Bytes, BadBody> {
    if headers.contains_key(CONTENT_ENCODING) {
        return Err(BadBody::Encoded);
    }
    let limits = &server.settings.limits;
    let size = body.size_hint();
    let expected = size.upper().unwrap_or(limits.body_bytes as u64);
    if size.lower() > limits.body_bytes as u64 {
        return Err(BadBody::TooLarge);
    }
    let reading = pin!(async {
        let expected = usize::try_from(expected).unwrap_or(usize::MAX);
        if !server.budget.counts(expected) {
            return collect(body, limits.body_bytes).await;
        }
        let holder = caller.map(memory_holder).unwrap_or_default();
        let mut room = server.budget.reservation_of(holder);
        Box::pin(room.extend(expected, expected)).await;
        Ok(room.attach(collect(body, limits.body_bytes).await?))
    });
    let read = consort_protocol::late::timeout(limits.body, limits.late, reading).await;
    let read = read.unwrap_or(Err(BadBody::Slow));
    server.observer.received(read.as_ref().map_or(0, Bytes::len));
    read
}

async fn collect(mut body: Incoming, limit: usize) -> Result<Bytes, BadBody> {
    let mut first = Bytes::new();
    let mut rest: Option<BytesMut> = None;
    loop {
        let frame = std::future::poll_fn(|cx| std::pin::Pin::new(&mut body).poll_frame(cx)).await;
        let Some(frame) = frame else { break };
        let Ok(data) = frame.map_err(|_| BadBody::Broken)?.into_data() else { continue };
        if first.len() + rest.as_ref().map_or(0, BytesMut::len) + data.len() > limit {
            return Err(BadBody::TooLarge);
        }
        match &mut rest {
            None if first.is_empty() => first = data,
            None => {
                let mut bytes = BytesMut::with_capacity(first.len() + data.len());
                bytes.extend_from_slice(&std::mem::take(&mut first));
                bytes.extend_from_slice(&data);
                rest = Some(bytes);
            }
            Some(rest) => rest.extend_from_slice(&data),
        }
    }
    Ok(match rest {
        Some(rest) => rest.freeze(),
        None if first.len() < COPIED => Bytes::copy_from_slice(&first),
        None => first,
    })
}
