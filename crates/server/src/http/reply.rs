//! HTTP responses.

use std::sync::Arc;

use bytes::Bytes;
use consort_core::Caller;
use consort_protocol::{Era, RequestId};
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, Response, StatusCode};

use crate::auth::authenticator::{Authenticator, RequestedEndpoint};
use crate::ceilings::CeilingRefusal;
use crate::guard::RequestRejection;
use crate::http::body::{EventSource, EventStreamBody, ResponseBody};
use crate::message::answer::{RequestAnswer, RequestFailure};
use crate::message::body_chunks::BodyChunks;
use crate::message::received_request::AnsweringRequest;
use crate::server_state::ServerState;
use crate::socket::connection_shares::memory_holder;
use crate::streams::StreamBody;

/// HTTP response of the server.
pub(crate) type HttpReply = Response<ResponseBody>;

/// A plain-text response.
pub(crate) fn text(status: StatusCode, text: &'static str) -> HttpReply {
    let body = Bytes::from(format!("{text}\n"));
    let mut reply = Response::new(ResponseBody::Whole(Some(body.into())));
    *reply.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    reply.headers_mut().insert(CONTENT_TYPE, kind);
    reply
}

/// A response without content.
pub(crate) fn bare(status: StatusCode) -> HttpReply {
    let mut reply = Response::new(ResponseBody::empty());
    *reply.status_mut() = status;
    reply
}

/// The response to a refused request.
pub(crate) fn refuse(
    refused: RequestRejection,
    authenticator: &dyn Authenticator,
    endpoint: &RequestedEndpoint<'_>,
) -> HttpReply {
    let mut reply = text(refused.status(), refused.message());
    match refused {
        RequestRejection::Token | RequestRejection::Credential(_) => {
            challenged(reply, authenticator, endpoint, refused)
        }
        RequestRejection::Authenticator => {
            reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
            reply
        }
        _ => reply,
    }
}

/// A refusal with the `WWW-Authenticate` challenge of its endpoint.
pub(crate) fn challenged(
    mut reply: HttpReply,
    authenticator: &dyn Authenticator,
    endpoint: &RequestedEndpoint<'_>,
    refused: RequestRejection,
) -> HttpReply {
    let refusal = match refused {
        RequestRejection::Credential(reason) => Some(reason),
        _ => None,
    };
    reply.headers_mut().insert(WWW_AUTHENTICATE, authenticator.challenge(endpoint, refusal));
    reply
}

/// The 405 response, with the methods that are allowed.
pub(crate) fn only(methods: &'static str) -> HttpReply {
    let mut reply = text(StatusCode::METHOD_NOT_ALLOWED, "method not allowed");
    reply.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    reply
}

/// A message as a body.
pub(crate) async fn message(
    server: &ServerState,
    caller: &Caller,
    status: u16,
    message: BodyChunks,
) -> HttpReply {
    server.observer.sent(message.len());
    let message = if message.is_ours() && server.budget.counts(message.len()) {
        Box::pin(held(server, Some(caller), message)).await
    } else {
        message
    };
    let mut reply = Response::new(ResponseBody::Whole(Some(message)));
    *reply.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    reply
}

/// The 429 response to a request beyond a ceiling of its caller, with the error for its id if it was read.
pub(crate) async fn limited(
    server: &ServerState,
    caller: &Caller,
    refusal: CeilingRefusal,
    id: Option<&RequestId>,
) -> HttpReply {
    let answer = RequestAnswer::error(Era::Legacy, id, &RequestFailure::from(&refusal));
    let mut reply = message(server, caller, 429, answer.message.unwrap_or_default()).await;
    reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from(refusal.retry_seconds()));
    reply
}

/// A stream of events; the call is cancelled if the stream breaks off.
pub(crate) fn stream(
    server: &ServerState,
    messages: AnsweringRequest,
    first: Option<BodyChunks>,
) -> HttpReply {
    events(server, EventSource::Messages(messages), first)
}

/// A stream of events that can be resumed.
pub(crate) fn resumable(server: &ServerState, stream: StreamBody) -> HttpReply {
    events(server, EventSource::Stream(stream), None)
}

fn events(server: &ServerState, source: EventSource, first: Option<BodyChunks>) -> HttpReply {
    let observer = Arc::clone(&server.observer);
    let body = EventStreamBody::body(source, first, server.settings.limits.silence, observer);
    let mut reply = Response::new(body);
    let headers = reply.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    reply
}

/// The same bytes, charged to the memory budget for as long as they exist.
pub(crate) async fn held(
    server: &ServerState,
    caller: Option<&Caller>,
    pieces: BodyChunks,
) -> BodyChunks {
    let holder = caller.map(memory_holder).unwrap_or_default();
    let mut room = server.budget.reservation_of(holder);
    room.extend(pieces.len(), pieces.len()).await;
    pieces.owned(|bytes| room.attach(bytes))
}
