//! HTTP requests to an endpoint: detects the era of each and dispatches it.

mod headers;

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use consort_audit::MessageTransport;
use consort_audit::trace;
use consort_core::{BoxFuture, Caller, Object, PrimitiveKind};
use consort_protocol::{Era, JsonRpcMessage, MessageError, Notification, RequestId, Revision};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request as HttpRequest, StatusCode};
use hyper::body::Incoming;

use crate::answer::{RequestAnswer, RequestFailure};
use crate::attended_request::{AttendedRequest, answer};
use crate::body_chunks::BodyChunks;
use crate::endpoint::{CachedListing, GatewayEndpoint};
use crate::gateway::Inner;
use crate::handshake::{negotiated, welcome};
use crate::listen;
use crate::reply::{HttpReply, bare, message, only, text};
use crate::request::{
    AnsweringRequest, ClientDialect, ClientMessage, ClientRequest, ModernDeclarations, NameSearch,
    RequestOrigin, by_client,
};
use crate::request_body::read;
use crate::seek;
use crate::serve::serve;
use crate::session::ClientSessionState;
use crate::sessions::NoSession;
use headers::{SESSION, VERSION, check, speaks_modern};

pub(crate) use headers::{accepts_events, header};

/// Answers a request to an endpoint.
pub(crate) async fn respond(
    gateway: &Arc<Inner>,
    front: &Arc<GatewayEndpoint>,
    caller: Caller,
    request: HttpRequest<Incoming>,
) -> HttpReply {
    let (Parts { method, headers, .. }, body) = request.into_parts();
    let origin = RequestOrigin { via: MessageTransport::Http, trace: trace::of_headers(&headers) };
    let here = PostContext { gateway, front, caller, origin };
    match method {
        Method::POST => {
            let bytes = match read(gateway, &here.caller, &headers, body).await {
                Ok(bytes) => bytes,
                Err(bad) => return bad.reply(),
            };
            let mut posted = here.post(headers, bytes);
            if let PostResult::Pending(pending) = posted {
                posted = pending.await;
            }
            match posted {
                PostResult::Answered(reply) => reply,
                PostResult::Request(answering, session, hears) => {
                    let attended = AttendedRequest::new(gateway, &here.caller, session, answering);
                    answer(attended, hears).await
                }
                PostResult::Pending(_) => unreachable!("what is pending ends"),
            }
        }
        Method::GET | Method::DELETE if speaks_modern(&headers, None) => only("POST"),
        Method::GET => here.listen(&headers),
        Method::DELETE => here.leave(&headers).await,
        _ => only("GET, POST, DELETE"),
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

/// Facts that checking the headers of a request looked up already.
#[derive(Default)]
struct LookedUp {
    sought: Option<NameSearch>,
    listing: Option<CachedListing>,
}

/// Context of an HTTP request: its endpoint, caller and origin.
pub(crate) struct PostContext<'a> {
    pub(crate) gateway: &'a Arc<Inner>,
    pub(crate) front: &'a Arc<GatewayEndpoint>,
    caller: Caller,
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
        let params = match &read {
            JsonRpcMessage::Request { body, .. } | JsonRpcMessage::Notification(body) => {
                Some(&body.params)
            }
            _ => None,
        };
        if speaks_modern(&headers, params) {
            return self.modern(headers, read);
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
            Err(reply) => return reply.into(),
        };
        match read {
            JsonRpcMessage::Request { id, body } => self.request(&headers, id, body, session),
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
            Err(reply) if headers.contains_key(SESSION) => return reply,
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
                    let speaker = ClientDialect::Legacy(Arc::clone(&session));
                    let answering = self.serve(id, body, speaker, false);
                    let session = Some(Arc::clone(&session));
                    let mut answering =
                        AttendedRequest::new(self.gateway, &self.caller, session, answering);
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
        message(self.gateway, &self.caller, 200, Bytes::from(all).into()).await
    }

    fn modern(&'a self, headers: HeaderMap, read: JsonRpcMessage) -> PostResult<'a> {
        // A modern client over HTTP has nothing else to say: leaving is cancelling.
        let JsonRpcMessage::Request { id, body } = read else {
            return bare(StatusCode::ACCEPTED).into();
        };
        if body.method != "tools/call" {
            return self.checked(&headers, id, body, LookedUp::default());
        }
        // What its headers must say depends on what is offered.
        let caller = by_client(&self.caller, &body.params);
        if self.gateway.is_settled() {
            let listing = self.front.listing(&caller);
            let name = body.params.borrowed_text("name");
            if name.is_none_or(|name| listing.listing.has_tool(&name)) {
                let looked_up = LookedUp { sought: None, listing: Some(listing) };
                return self.checked(&headers, id, body, looked_up);
            }
        }
        PostResult::Pending(Box::pin(async move {
            self.gateway.settled().await;
            let name = body.params.text("name").unwrap_or_default();
            let (front, kind) = (self.front, PrimitiveKind::Tools);
            let sought = seek::seek(self.gateway, front, &caller, kind, &name).await;
            let looked_up = LookedUp { sought, listing: Some(front.listing(&caller)) };
            match self.checked(&headers, id, body, looked_up) {
                PostResult::Pending(pending) => pending.await,
                posted => posted,
            }
        }))
    }

    /// Serves a modern request if its headers match it.
    fn checked(
        &'a self,
        headers: &HeaderMap,
        id: RequestId,
        body: Notification,
        looked_up: LookedUp,
    ) -> PostResult<'a> {
        let check = |version: &str| check(headers, &body, looked_up.listing.as_ref(), version);
        match ModernDeclarations::read(&body.params, check) {
            Ok(modern) => {
                let hears = accepts_events(headers);
                let speaker = ClientDialect::Modern(modern);
                let answering = self.serve_sought(id, body, speaker, hears, looked_up);
                PostResult::Request(answering, None, hears)
            }
            Err(failure) => {
                let answer = RequestAnswer::error(Era::Modern, Some(&id), &failure);
                PostResult::Pending(Box::pin(async move { self.send(400, answer).await.into() }))
            }
        }
    }

    /// Returns the error for a body that is no valid message.
    async fn malformed(&self, error: MessageError, bytes: &Bytes) -> HttpReply {
        let failure = RequestFailure::new(error.code(bytes), error.to_string());
        self.send(400, RequestAnswer::error(Era::Modern, None, &failure)).await
    }

    async fn send(&self, status: u16, answer: RequestAnswer) -> HttpReply {
        message(self.gateway, &self.caller, status, answer.message.unwrap_or_default()).await
    }

    /// Handles `initialize` of a legacy client.
    async fn initialize(&self, id: &RequestId, params: &Object) -> HttpReply {
        let (revision, offers) = negotiated(params);
        let caller = self.caller.clone();
        let Some(session) = self.gateway.sessions.open(&self.front.key, caller, revision, offers)
        else {
            return too_many();
        };
        self.follow(&session, true);
        let answer = RequestAnswer::result(id, &welcome(self.front, &session));
        let mut reply = self.send(200, answer).await;
        let value =
            HeaderValue::try_from(&session.id).expect("an id is made of letters and digits");
        reply.headers_mut().insert(SESSION, value);
        reply
    }

    /// Starts the list change notifications of a session.
    fn follow(&self, session: &Arc<ClientSessionState>, is_new: bool) {
        let (gateway, front) = (Arc::clone(self.gateway), Arc::clone(self.front));
        let followed = listen::follow(gateway, front, Arc::clone(session), is_new);
        self.gateway.tasks.spawn(followed);
    }

    /// Returns the session of a legacy request.
    #[expect(clippy::result_large_err, reason = "it is the answer, made once")]
    pub(crate) fn session(
        &self,
        headers: &HeaderMap,
    ) -> Result<Arc<ClientSessionState>, HttpReply> {
        let Some(id) = header(headers, &SESSION) else {
            return Err(text(
                StatusCode::BAD_REQUEST,
                "shake hands first: send `initialize`, or speak 2026-07-28 and say so in `MCP-Protocol-Version`",
            ));
        };
        let (session, is_anew) = match self.gateway.sessions.get(id, &self.caller, &self.front.key)
        {
            Ok(found) => found,
            Err(NoSession::Over) => {
                return Err(text(StatusCode::NOT_FOUND, "this session is over"));
            }
            Err(NoSession::Full) => return Err(too_many()),
        };
        if is_anew {
            self.follow(&session, false);
        }
        let version = header(headers, &VERSION);
        if version.is_some_and(|version| version.parse::<Revision>().is_err()) {
            return Err(text(StatusCode::BAD_REQUEST, "unknown `MCP-Protocol-Version`"));
        }
        session.touch();
        Ok(session)
    }

    fn request(
        &self,
        headers: &HeaderMap,
        id: RequestId,
        body: Notification,
        session: Arc<ClientSessionState>,
    ) -> PostResult<'a> {
        let hears = accepts_events(headers);
        let speaker = ClientDialect::Legacy(Arc::clone(&session));
        PostResult::Request(self.serve(id, body, speaker, hears), Some(session), hears)
    }

    fn serve(
        &self,
        id: RequestId,
        body: Notification,
        speaker: ClientDialect,
        hears: bool,
    ) -> AnsweringRequest {
        self.serve_sought(id, body, speaker, hears, LookedUp::default())
    }

    fn serve_sought(
        &self,
        id: RequestId,
        body: Notification,
        speaker: ClientDialect,
        hears: bool,
        looked_up: LookedUp,
    ) -> AnsweringRequest {
        let LookedUp { sought, listing } = looked_up;
        let request = ClientRequest {
            endpoint: Arc::clone(self.front),
            caller: speaker.identify(&self.caller),
            listing: listing.map_or_else(OnceLock::new, OnceLock::from),
            id,
            method: body.method,
            params: body.params,
            speaker,
            hears,
            sought,
            origin: self.origin.clone(),
            outcome: OnceLock::new(),
        };
        serve(self.gateway, request)
    }
}

fn too_many() -> HttpReply {
    let mut reply = text(StatusCode::SERVICE_UNAVAILABLE, "too many sessions are open");
    reply.headers_mut().insert("retry-after", HeaderValue::from_static("10"));
    reply
}
