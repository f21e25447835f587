//! What is sent to an endpoint: requests of either era, told apart by how they speak.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use consort_core::{Caller, Emitting, Object, Refusal, ShelfKind};
use consort_wire::headers::decode;
use consort_wire::{Era, Id, Message, MessageError, Notification, Revision};
use http::header::ACCEPT;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request as HttpRequest, StatusCode};
use hyper::body::Incoming;

use crate::answer::{Answer, Failure, HEADER_MISMATCH};
use crate::front::Front;
use crate::gateway::Inner;
use crate::handshake::{open, welcome};
use crate::http::{Reply, SESSION, answer, bare, message, only, read, stream, text};
use crate::listen;
use crate::otlp::Via;
use crate::pieces::Pieces;
use crate::request::{Answering, Modern, Origin, Out, Request, Sought, Speaker, named_revision};
use crate::seek;
use crate::serve::serve;
use crate::session::Session;
use crate::trace;

/// Answers a request to an endpoint.
pub(crate) async fn respond(
    gateway: &Arc<Inner>,
    front: &Arc<Front>,
    caller: Caller,
    request: HttpRequest<Incoming>,
) -> Reply {
    let (Parts { method, headers, .. }, body) = request.into_parts();
    let origin = Origin { via: Via::Http, trace: trace::of_headers(&headers) };
    let here = Here { gateway, front, caller, origin };
    match method {
        Method::POST => {
            let bytes = match read(gateway, &headers, body).await {
                Ok(bytes) => bytes,
                Err(bad) => return bad.reply(),
            };
            match here.post(headers, bytes).await {
                Posted::Answered(reply) => reply,
                Posted::Request(answering, hears) => answer(gateway, answering, hears).await,
            }
        }
        Method::GET | Method::DELETE if speaks_modern(&headers, None) => only("POST"),
        Method::GET => here.listen(&headers),
        Method::DELETE => here.leave(&headers),
        _ => only("GET, POST, DELETE"),
    }
}

/// What becomes of what was posted. A call may take long: nothing of the head is kept for it, since
/// that keeps the memory it was read into.
enum Posted {
    Answered(Reply),
    /// It is being answered, to a client that may take events.
    Request(Answering, bool),
}

impl From<Reply> for Posted {
    fn from(reply: Reply) -> Self {
        Self::Answered(reply)
    }
}

/// Where a request came in, and whose it is.
struct Here<'a> {
    gateway: &'a Arc<Inner>,
    front: &'a Arc<Front>,
    caller: Caller,
    origin: Origin,
}

impl Here<'_> {
    async fn post(&self, headers: HeaderMap, bytes: Bytes) -> Posted {
        let batched =
            header(&headers, "mcp-protocol-version").is_none_or(|version| version == "2025-03-26");
        let read = match Message::parse(bytes.clone()) {
            Ok(read) => read,
            Err(MessageError::Batch) if batched => {
                return Box::pin(self.batch(&headers, bytes)).await.into();
            }
            Err(error) => return Box::pin(self.malformed(error, &bytes)).await.into(),
        };
        let params = match &read {
            Message::Request { body, .. } | Message::Notification(body) => Some(&body.params),
            _ => None,
        };
        if speaks_modern(&headers, params) {
            return self.modern(&headers, read).await;
        }
        if let Message::Request { id, body } = &read
            && body.method == "initialize"
        {
            return Box::pin(self.initialize(id, &body.params)).await.into();
        }
        let session = match self.session(&headers) {
            Ok(session) => session,
            Err(reply) => return reply.into(),
        };
        match read {
            Message::Request { id, body } => {
                self.request(&headers, id, body, Speaker::Legacy(session))
            }
            other => {
                hear(&session, other);
                bare(StatusCode::ACCEPTED).into()
            }
        }
    }

    /// Several messages at once, as revision 2025-03-26 has it.
    async fn batch(&self, headers: &HeaderMap, bytes: Bytes) -> Reply {
        let session = match self.session(headers) {
            Ok(session) if session.revision == Revision::V2025_03_26 => session,
            Err(reply) if headers.contains_key(SESSION) => return reply,
            _ => return self.malformed(MessageError::Batch, &bytes).await,
        };
        let messages = match Message::parse_batch(bytes.clone()) {
            Ok(messages) if messages.is_empty() => {
                let empty = MessageError::Envelope("the batch is empty");
                return self.malformed(empty, &bytes).await;
            }
            Ok(messages) => messages,
            Err(error) => return self.malformed(error, &bytes).await,
        };
        let mut answers = Vec::new();
        for read in messages {
            match read {
                Ok(Message::Request { id, body }) => {
                    let speaker = Speaker::Legacy(Arc::clone(&session));
                    let mut answering = self.serve(id, body, speaker, false);
                    while let Some(out) = answering.next().await {
                        if let Out::End(end) = out {
                            answers.extend(end.message.map(Pieces::whole));
                        }
                    }
                }
                Ok(other) => hear(&session, other),
                Err(error) => {
                    let failure = Failure::new(error.code(&bytes), error.to_string());
                    let answer = Answer::error(Era::Legacy, None, &failure);
                    answers.extend(answer.message.map(Pieces::whole));
                }
            }
        }
        if answers.is_empty() {
            return bare(StatusCode::ACCEPTED);
        }
        let all = [b"[", answers.join(&b","[..]).as_slice(), b"]"].concat();
        message(self.gateway, 200, Bytes::from(all).into()).await
    }

    async fn modern(&self, headers: &HeaderMap, read: Message) -> Posted {
        // A modern client over HTTP has nothing else to say: leaving is cancelling.
        let Message::Request { id, body } = read else { return bare(StatusCode::ACCEPTED).into() };
        let mut sought = None;
        if body.method == "tools/call" {
            // What its headers must say depends on what is offered.
            self.gateway.settled().await;
            if let Some(name) = body.params.text("name") {
                let (front, caller) = (self.front, &self.caller);
                sought = seek::seek(self.gateway, front, caller, ShelfKind::Tools, &name).await;
            }
        }
        let check = |version: &str| check(self, headers, &body, version);
        match Modern::read(&body.params, check) {
            Ok(modern) => {
                let hears = accepts_events(headers);
                let speaker = Speaker::Modern(modern);
                Posted::Request(self.serve_sought(id, body, speaker, hears, sought), hears)
            }
            Err(failure) => {
                let answer = Answer::error(Era::Modern, Some(&id), &failure);
                Box::pin(self.send(400, answer)).await.into()
            }
        }
    }

    /// The answer to what is no message.
    async fn malformed(&self, error: MessageError, bytes: &Bytes) -> Reply {
        let failure = Failure::new(error.code(bytes), error.to_string());
        self.send(400, Answer::error(Era::Modern, None, &failure)).await
    }

    async fn send(&self, status: u16, answer: Answer) -> Reply {
        message(self.gateway, status, answer.message.unwrap_or_default()).await
    }

    /// A legacy client shakes hands.
    async fn initialize(&self, id: &Id, params: &Object) -> Reply {
        let session = open(self.front, self.caller.clone(), params);
        if !self.gateway.sessions.add(&session) {
            let mut reply = text(StatusCode::SERVICE_UNAVAILABLE, "too many sessions are open");
            reply.headers_mut().insert("retry-after", HeaderValue::from_static("10"));
            return reply;
        }
        self.gateway.crew.spawn(listen::follow(Arc::clone(self.gateway), Arc::clone(&session)));
        let answer = Answer::result(id, &welcome(&session));
        let mut reply = self.send(200, answer).await;
        let value =
            HeaderValue::try_from(&session.id).expect("an id is made of letters and digits");
        reply.headers_mut().insert(SESSION, value);
        reply
    }

    /// The session a legacy request belongs to.
    #[expect(clippy::result_large_err, reason = "it is the answer, made once")]
    fn session(&self, headers: &HeaderMap) -> Result<Arc<Session>, Reply> {
        let Some(id) = header(headers, SESSION.as_str()) else {
            return Err(text(
                StatusCode::BAD_REQUEST,
                "shake hands first: send `initialize`, or speak 2026-07-28 and say so in `MCP-Protocol-Version`",
            ));
        };
        let session = self.gateway.sessions.get(id, &self.caller, self.front);
        let session = session.ok_or_else(|| text(StatusCode::NOT_FOUND, "this session is over"))?;
        let version = header(headers, "mcp-protocol-version");
        if version.is_some_and(|version| version.parse::<Revision>().is_err()) {
            return Err(text(StatusCode::BAD_REQUEST, "unknown `MCP-Protocol-Version`"));
        }
        session.touch();
        Ok(session)
    }

    /// A legacy client wants to hear what belongs to no request.
    fn listen(&self, headers: &HeaderMap) -> Reply {
        if !accepts_events(headers) {
            return text(StatusCode::NOT_ACCEPTABLE, "accept text/event-stream");
        }
        let session = match self.session(headers) {
            Ok(session) => session,
            Err(reply) => return reply,
        };
        let Some(listening) = session.listen() else {
            return text(StatusCode::CONFLICT, "this session is listened to already");
        };
        let draining = self.gateway.draining.clone();
        let messages = Emitting::new(|emitter| async move {
            loop {
                tokio::select! {
                    notice = listening.next() => match notice {
                        Some(notice) => emitter.emit(Out::Message(notice.into())).await,
                        None => return Out::End(Answer::nothing()),
                    },
                    () = draining.cancelled() => return Out::End(Answer::nothing()),
                }
            }
        });
        stream(self.gateway, messages, None)
    }

    /// A legacy client is done.
    fn leave(&self, headers: &HeaderMap) -> Reply {
        match self.session(headers) {
            Ok(session) => {
                self.gateway.sessions.remove(&session);
                bare(StatusCode::OK)
            }
            Err(reply) => reply,
        }
    }

    fn request(&self, headers: &HeaderMap, id: Id, body: Notification, who: Speaker) -> Posted {
        let hears = accepts_events(headers);
        Posted::Request(self.serve(id, body, who, hears), hears)
    }

    fn serve(&self, id: Id, body: Notification, speaker: Speaker, hears: bool) -> Answering {
        self.serve_sought(id, body, speaker, hears, None)
    }

    fn serve_sought(
        &self,
        id: Id,
        body: Notification,
        speaker: Speaker,
        hears: bool,
        sought: Option<Sought>,
    ) -> Answering {
        let request = Request {
            front: Arc::clone(self.front),
            caller: self.caller.clone(),
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

/// Takes in what a legacy client says without asking.
pub(crate) fn hear(session: &Session, message: Message) {
    match message {
        Message::Response { id, result } => {
            session.answer(&id, Ok(result.json().clone()));
        }
        Message::Error { id: Some(id), error } => {
            session.answer(&id, Err(Refusal { code: error.code, message: error.message }));
        }
        Message::Notification(body) if body.method == "notifications/cancelled" => {
            if let Some(id) = body.params.get("requestId").and_then(Id::from_json) {
                session.cancel(&id);
            }
        }
        _ => {}
    }
}

/// Whether a client speaks the modern way: its header or its message names such a revision, or one
/// that nobody knows. Where they disagree, it is refused as a modern one is.
fn speaks_modern(headers: &HeaderMap, params: Option<&Object>) -> bool {
    let modern = |version: &str| {
        version.parse::<Revision>().map_or(true, |revision| revision.era() == Era::Modern)
    };
    header(headers, "mcp-protocol-version").is_some_and(modern)
        || params.and_then(named_revision).is_some_and(|version| modern(&version))
}

/// Whether the headers of a modern request say the same as its body.
fn check(
    here: &Here<'_>,
    headers: &HeaderMap,
    body: &Notification,
    version: &str,
) -> Result<(), Failure> {
    let mismatch = |name: &str, expected: Option<&str>| {
        let message = match expected {
            Some(expected) => {
                format!("the header `{name}` must be `{}`", expected.escape_debug())
            }
            None => format!("the header `{name}` is not for this request"),
        };
        Failure::new(HEADER_MISMATCH, message)
    };
    let same = |name: &str, expected: &str| {
        let mut values = headers.get_all(name).iter();
        let value = values.next().and_then(decode);
        if value.as_deref() == Some(expected) && values.next().is_none() {
            Ok(())
        } else {
            Err(mismatch(name, Some(expected)))
        }
    };
    same("mcp-protocol-version", version)?;
    same("mcp-method", &body.method)?;
    let subject = match body.method.as_str() {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return Ok(()),
    };
    if let Some(name) = body.params.text(subject) {
        same("mcp-name", &name)?;
        if body.method == "tools/call" {
            let menu = here.front.menu(&here.caller);
            let Some(choice) = menu.board(ShelfKind::Tools).get(&name) else { return Ok(()) };
            if choice.mirrors.is_empty() {
                return Ok(());
            }
            let arguments = body.params.get("arguments").unwrap_or_else(crate::gateway::empty);
            let values = choice.mirrors.values(&arguments);
            for header in choice.mirrors.names() {
                match values.iter().find(|(name, _)| name == header) {
                    Some((name, value)) => same(name.as_str(), value)?,
                    None if headers.contains_key(header) => {
                        return Err(mismatch(header.as_str(), None));
                    }
                    None => {}
                }
            }
        }
    }
    Ok(())
}

/// Whether a client takes events for an answer.
fn accepts_events(headers: &HeaderMap) -> bool {
    let mut accepted =
        headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).peekable();
    accepted.peek().is_none()
        || accepted.any(|value| value.contains("text/event-stream") || value.contains("*/*"))
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}
