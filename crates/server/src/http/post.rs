//! HTTP requests to an endpoint: detects the era of each and dispatches it.

mod headers;
mod legacy_session;

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use consort_core::{BoxFuture, Caller};
use consort_protocol::trace;
use consort_protocol::{
    Era, JsonRpcMessage, MessageError, Notification, Object, RequestId, Revision,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request as HttpRequest, StatusCode};
use hyper::body::Incoming;

use crate::ceilings::CeilingRefusal;
use crate::http::attended_request::{AttendedRequest, answer};
use crate::http::pending_reply::PendingReply;
use crate::http::reply::{HttpReply, bare, limited, message, only};
use crate::http::request_body::read;
use crate::message::answer::{RequestAnswer, RequestFailure};
use crate::message::body_chunks::BodyChunks;
use crate::message::received_request::{
    AnsweringRequest, ClientDialect, ClientMessage, ClientTransport, ModernDeclarations,
    ReceivedRequest, RequestOrigin,
};
use crate::server_handler::{CheckedCall, ServedEndpoint, SessionStart};
use crate::server_state::ServerState;
use crate::session::ClientSessionState;
use crate::session::negotiation::negotiated;
use crate::usage::UsagePermit;
use headers::{SESSION, VERSION, check, speaks_modern};

pub(crate) use headers::{accepts_events, header};

/// Answers a request to an endpoint.
pub(crate) fn respond(
    server: &Arc<ServerState>,
    endpoint: Arc<dyn ServedEndpoint>,
    caller: Caller,
    request: HttpRequest<Incoming>,
) -> PendingReply<'_> {
    let (Parts { method, headers, .. }, body) = request.into_parts();
    let origin = RequestOrigin { via: ClientTransport::Http, trace: trace::of_headers(&headers) };
    let here = PostContext { server, endpoint, caller, origin };
    match method {
        Method::POST => PendingReply::preparing(async move {
            let bytes = match pin!(read(server, &here.caller, &headers, body)).await {
                Ok(bytes) => bytes,
                Err(bad) => return bad.reply(),
            };
            let mut posted = here.post(headers, bytes);
            if let PostResult::Pending(pending) = posted {
                posted = pending.await;
            }
            match posted {
                PostResult::Answered(reply) => reply,
                PostResult::Request(answering, session, accepts_events) => {
                    let attended = AttendedRequest::new(server, &here.caller, session, answering);
                    pin!(answer(attended, accepts_events)).await
                }
                PostResult::Pending(_) => unreachable!("what is pending ends"),
            }
        }),
        Method::GET | Method::DELETE if speaks_modern(&headers, None) => only("POST").into(),
        Method::GET => PendingReply::preparing(async move { here.listen(&headers).await }),
        Method::DELETE => PendingReply::preparing(async move { here.leave(&headers).await }),
        _ => only("GET, POST, DELETE").into(),
    }
}

/// Result of a POST. A call may take long, so nothing of the request head is kept for it: that would keep the buffer it
/// was read into.
enum PostResult<'a> {
    Answered(HttpReply),
    /// Something has to be waited for first. Few requests have to, and those that do are large.
    Pending(BoxFuture<'a, PostResult<'a>>),
    /// A request in progress, the session of a legacy client, and true if the client accepts an event stream.
    Request(AnsweringRequest, Option<Arc<ClientSessionState>>, bool),
}

impl From<HttpReply> for PostResult<'_> {
    fn from(reply: HttpReply) -> Self {
        Self::Answered(reply)
    }
}

/// Context of an HTTP request: its endpoint, caller and origin.
pub(crate) struct PostContext<'a> {
    pub(crate) server: &'a Arc<ServerState>,
    pub(crate) endpoint: Arc<dyn ServedEndpoint>,
    pub(crate) caller: Caller,
    origin: RequestOrigin,
}

impl<'a> PostContext<'a> {
    fn post(&'a self, headers: HeaderMap, bytes: Bytes) -> PostResult<'a> {
        let batched = || {
            header(&headers, &VERSION)
                .is_none_or(|version| version.parse().is_ok_and(Revision::has_batches))
        };
        let read = match JsonRpcMessage::parse(bytes.clone()) {
            Ok(read) => read,
            Err(MessageError::Batch) if batched() => {
                let batch = async move { self.batch(&headers, bytes).await.into() };
                return PostResult::Pending(Box::pin(batch));
            }
            Err(error) => {
                let malformed = async move { self.malformed(error, &bytes).await.into() };
                return PostResult::Pending(Box::pin(malformed));
            }
        };
        let usage = match &read {
            JsonRpcMessage::Request { id, body } => {
                match self.server.usages.admit(&self.caller, body) {
                    Ok(usage) => usage,
                    Err(refusal) => return self.limited(refusal, Some(id.clone())),
                }
            }
            _ => None,
        };
        let params = match &read {
            JsonRpcMessage::Request { body, .. } | JsonRpcMessage::Notification(body) => {
                Some(&body.params)
            }
            _ => None,
        };
        if speaks_modern(&headers, params) {
            return self.modern(headers, read, usage);
        }
        let read = match read {
            JsonRpcMessage::Request { id, body } if body.method == "initialize" => {
                let opened = async move { self.initialize(&id, &body.params).await.into() };
                return PostResult::Pending(Box::pin(opened));
            }
            read => read,
        };
        let session = match self.session(&headers) {
            Ok(session) => session,
            Err(missing) => {
                let id = match read {
                    JsonRpcMessage::Request { id, .. } => Some(id),
                    _ => None,
                };
                let refused = async move { self.refuse_session(missing, id).await.into() };
                return PostResult::Pending(Box::pin(refused));
            }
        };
        match read {
            JsonRpcMessage::Request { id, body } => {
                self.request(&headers, id, body, session, usage)
            }
            other => {
                session.receive(other);
                bare(StatusCode::ACCEPTED).into()
            }
        }
    }

    /// Answers a batch of messages, as in revision 2025-03-26.
    async fn batch(&self, headers: &HeaderMap, bytes: Bytes) -> HttpReply {
        let session = match self.session(headers) {
            Ok(session) if session.revision.has_batches() => session,
            Err(missing) if headers.contains_key(SESSION) => {
                return self.refuse_session(missing, None).await;
            }
            _ => return self.malformed(MessageError::Batch, &bytes).await,
        };
        let messages = match JsonRpcMessage::parse_batch(bytes.clone()) {
            Ok(messages) => messages,
            Err(error) => return self.malformed(error, &bytes).await,
        };
        let mut answers = Vec::new();
        for read in messages {
            match read {
                Ok(JsonRpcMessage::Request { id, body }) => {
                    let usage = match self.server.usages.admit(&self.caller, &body) {
                        Ok(usage) => usage,
                        Err(refusal) => {
                            let failure = RequestFailure::from(&refusal);
                            let answer = RequestAnswer::error(Era::Legacy, Some(&id), &failure);
                            answers.extend(answer.message.map(BodyChunks::into_bytes));
                            continue;
                        }
                    };
                    let dialect = ClientDialect::Legacy(Arc::clone(&session));
                    let answering = self.serve(id, body, dialect, false, usage);
                    let session = Some(Arc::clone(&session));
                    let mut answering =
                        AttendedRequest::new(self.server, &self.caller, session, answering);
                    while let Some(out) = answering.next().await {
                        if let ClientMessage::End(end) = out {
                            answers.extend(end.message.map(BodyChunks::into_bytes));
                        }
                    }
                }
                Ok(other) => session.receive(other),
                Err(error) => {
                    let failure = RequestFailure::new(error.code(&bytes), error.to_string());
                    let answer = RequestAnswer::error(Era::Legacy, None, &failure);
                    answers.extend(answer.message.map(BodyChunks::into_bytes));
                }
            }
        }
        if answers.is_empty() {
            return bare(StatusCode::ACCEPTED);
        }
        let all = [b"[", answers.join(&b","[..]).as_slice(), b"]"].concat();
        message(self.server, &self.caller, 200, Bytes::from(all).into()).await
    }

    fn modern(
        &'a self,
        headers: HeaderMap,
        read: JsonRpcMessage,
        usage: Option<UsagePermit>,
    ) -> PostResult<'a> {
        // A modern client over HTTP has nothing else to say: leaving is cancelling.
        let JsonRpcMessage::Request { id, body } = read else {
            return bare(StatusCode::ACCEPTED).into();
        };
        let check = |version: &str| check(&headers, &body, version);
        let modern = match ModernDeclarations::read(&body.params, check) {
            Ok(modern) => modern,
            Err(failure) => {
                let answer = RequestAnswer::error(Era::Modern, Some(&id), &failure);
                return self.mismatch(answer);
            }
        };
        let accepts_events = accepts_events(&headers);
        let is_tool_call = body.method == "tools/call";
        let request = self.received(id, body, ClientDialect::Modern(modern), accepts_events, usage);
        let endpoint = Arc::clone(&self.endpoint);
        if !is_tool_call {
            return PostResult::Request(endpoint.serve(request), None, accepts_events);
        }
        match endpoint.serve_tool_call(request, headers) {
            CheckedCall::Answering(answering) => {
                PostResult::Request(answering, None, accepts_events)
            }
            CheckedCall::Mismatch(answer) => self.mismatch(answer),
            CheckedCall::Pending(pending) => PostResult::Pending(Box::pin(async move {
                match pending.await {
                    Ok(answering) => PostResult::Request(answering, None, accepts_events),
                    Err(answer) => self.send(400, answer).await.into(),
                }
            })),
        }
    }

    /// Refuses a request for a ceiling of its caller.
    fn limited(&'a self, refusal: CeilingRefusal, id: Option<RequestId>) -> PostResult<'a> {
        PostResult::Pending(Box::pin(async move {
            limited(self.server, &self.caller, refusal, id.as_ref()).await.into()
        }))
    }

    /// Refuses a request whose headers or declarations are wrong.
    fn mismatch(&'a self, answer: RequestAnswer) -> PostResult<'a> {
        PostResult::Pending(Box::pin(async move { self.send(400, answer).await.into() }))
    }

    /// Returns the error for a body that is no valid message.
    async fn malformed(&self, error: MessageError, bytes: &Bytes) -> HttpReply {
        let failure = RequestFailure::new(error.code(bytes), error.to_string());
        self.send(400, RequestAnswer::error(Era::Modern, None, &failure)).await
    }

    async fn send(&self, status: u16, answer: RequestAnswer) -> HttpReply {
        message(self.server, &self.caller, status, answer.message.unwrap_or_default()).await
    }

    /// Handles `initialize` of a legacy client.
    async fn initialize(&self, id: &RequestId, params: &Object) -> HttpReply {
        let (revision, offers) = negotiated(params);
        let caller = self.caller.clone();
        let own = self.own_sessions();
        let opened = self.server.sessions.open(self.endpoint.key(), caller, revision, offers, own);
        let session = match opened {
            Ok(session) => session,
            Err(missing) => {
                return self.refuse_session(missing.into(), Some(id.clone())).await;
            }
        };
        self.follow(&session, SessionStart::Initialized);
        let answer = RequestAnswer::result(id, &self.endpoint.initialize(&session));
        let mut reply = self.send(200, answer).await;
        let value =
            HeaderValue::try_from(&session.id).expect("an id is made of letters and digits");
        reply.headers_mut().insert(SESSION, value);
        reply
    }

    /// Starts the list change notifications of a session.
    fn follow(&self, session: &Arc<ClientSessionState>, start: SessionStart) {
        let followed = Arc::clone(&self.endpoint).follow(Arc::clone(session), start);
        self.server.lifecycle.tasks.spawn(followed);
    }

    fn request(
        &self,
        headers: &HeaderMap,
        id: RequestId,
        body: Notification,
        session: Arc<ClientSessionState>,
        usage: Option<UsagePermit>,
    ) -> PostResult<'a> {
        let accepts_events = accepts_events(headers);
        let dialect = ClientDialect::Legacy(Arc::clone(&session));
        PostResult::Request(
            self.serve(id, body, dialect, accepts_events, usage),
            Some(session),
            accepts_events,
        )
    }

    fn serve(
        &self,
        id: RequestId,
        body: Notification,
        dialect: ClientDialect,
        accepts_events: bool,
        usage: Option<UsagePermit>,
    ) -> AnsweringRequest {
        Arc::clone(&self.endpoint).serve(self.received(id, body, dialect, accepts_events, usage))
    }

    fn received(
        &self,
        id: RequestId,
        body: Notification,
        dialect: ClientDialect,
        accepts_events: bool,
        usage: Option<UsagePermit>,
    ) -> ReceivedRequest {
        ReceivedRequest {
            caller: dialect.identify(&self.caller),
            id,
            method: body.method,
            params: body.params,
            dialect,
            accepts_events,
            origin: self.origin.clone(),
            usage,
        }
    }
}
