//! Dispatch of one request: answered by the gateway itself, or by the server it addresses.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use consort_audit::MessageTransport;
use consort_audit::ledger::OutcomeClass;
use consort_audit::metrics::GatewayMetrics;
use consort_audit::otlp::{CallSpan, SpanDescription, SpanKind};
use consort_core::{Json, ListPurpose, LogLevel, Operation, PrimitiveKind, StreamSender};
use consort_protocol::splice::ObjectWriter;
use consort_protocol::trace;
use consort_protocol::{DrivenStream, Era, Revision};
use consort_server::answer::{INVALID_PARAMS, RequestAnswer, RequestFailure};
use consort_server::{
    AnsweringRequest, ClientDialect, ClientMessage, ClientSessionState, ClientTransport,
};
use serde_json::json;

use crate::era_results::empty;
use crate::gateway_state::GatewayState;
use crate::listen;
use crate::relay;
use crate::request::ClientRequest;
use crate::spelling;
use crate::task_requests;

/// Cache lifetime of the `server/discover` result, in milliseconds.
const ABOUT_TTL: u64 = 30_000;

/// The same while the lists of some server are not known yet.
const PARTIAL_TTL: u64 = 1000;

/// Answers a request.
pub(crate) fn serve(gateway: &Arc<GatewayState>, mut request: ClientRequest) -> AnsweringRequest {
    let gateway = Arc::clone(gateway);
    let running = Arc::clone(&gateway.lifecycle.requests);
    DrivenStream::new(|emitter| async move {
        let (id, era) = (request.id.clone(), request.era());
        let span = traced(&gateway, &mut request);
        let mut record = RequestRecord {
            metrics: &gateway.records.metrics,
            request: &request,
            begun: Instant::now(),
            span,
            is_over: false,
        };
        // Pinned here, as all that a call awaits: a future that is awaited by value is copied first.
        let answered = pin!(until_cancelled(&gateway, &request, &emitter)).await;
        record.note(match (&answered, request.outcome.get()) {
            (Ok(answer), _) if answer.message.is_none() => OutcomeClass::Cancelled { sent: None },
            (_, Some(class)) => *class,
            (Ok(_), None) => OutcomeClass::Ok,
            (Err(failure), None) => OutcomeClass::Error { code: Some(failure.code) },
        });
        drop(running);
        ClientMessage::End(
            answered.unwrap_or_else(|failure| RequestAnswer::error(era, Some(&id), &failure)),
        )
    })
}

/// The record of a request in progress. If dropped before the end, it records a cancellation: the client disconnected.
struct RequestRecord<'a> {
    metrics: &'a GatewayMetrics,
    request: &'a ClientRequest,
    begun: Instant,
    span: Option<CallSpan>,
    is_over: bool,
}

impl RequestRecord<'_> {
    fn note(&mut self, class: OutcomeClass) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        let (era, method) = (self.request.era(), &self.request.method);
        self.metrics.request(era, method, class, self.begun.elapsed());
        if let Some(span) = self.span.take() {
            span.end(class);
        }
    }
}

impl Drop for RequestRecord<'_> {
    fn drop(&mut self) {
        self.note(OutcomeClass::Cancelled { sent: None });
    }
}

/// Begins the span of a request and makes it the parent of the call that follows.
fn traced(gateway: &GatewayState, request: &mut ClientRequest) -> Option<CallSpan> {
    // A message may be of another trace than the request that carries it.
    let parent = trace::of_params(&request.params);
    let in_headers = parent.is_none().then(|| request.origin.trace.take()).flatten();
    let tracer = &gateway.records.tracer;
    if !tracer.is_on() {
        if let Some(context) = in_headers {
            request.params = trace::params_with(&request.params, &context);
        }
        return None;
    }
    let name = known_name(request);
    let id = request.id.json().to_string();
    let (session, revision) = match &request.dialect {
        ClientDialect::Modern(_) => (None, Revision::NEWEST_MODERN),
        ClientDialect::Legacy(session) => (Some(session.id.as_str()), session.revision),
    };
    let about = SpanDescription {
        name: name.as_deref(),
        request: Some(&id),
        session,
        revision: Some(revision.as_str()),
        via: Some(match request.origin.via {
            ClientTransport::Stdio => MessageTransport::PIPE,
            ClientTransport::Http => MessageTransport::HTTP,
        }),
        ..SpanDescription::new(SpanKind::Server, &request.method)
    };
    let span = tracer.begin(&about, parent.or(in_headers).as_ref());
    request.params = trace::params_with(&request.params, span.context());
    Some(span)
}

/// Returns the name in a request if the caller is offered it. Other names are arbitrary client input.
fn known_name(request: &ClientRequest) -> Option<String> {
    let (kind, member) = match request.method.as_str() {
        "tools/call" => (PrimitiveKind::Tools, "name"),
        "prompts/get" => (PrimitiveKind::Prompts, "name"),
        "resources/read" => (PrimitiveKind::Resources, "uri"),
        _ => return None,
    };
    let name = request.params.text(member)?;
    request.current_listing().board(kind).get(&name).map(|_| name)
}

/// Answers a request until a legacy client cancels it. A modern client cancels by closing the connection.
async fn until_cancelled(
    gateway: &Arc<GatewayState>,
    request: &ClientRequest,
    emitter: &StreamSender<ClientMessage>,
) -> Result<RequestAnswer, RequestFailure> {
    let session = match &request.dialect {
        ClientDialect::Modern(_) => None,
        ClientDialect::Legacy(session) => Some(session),
    };
    let running = match session.map(|session| session.begin(&request.id)) {
        Some(None) => {
            let message = format!("a request with the id {} is running", request.id.json());
            return Err(RequestFailure::new(-32600, message));
        }
        Some(running) => running,
        None => None,
    };
    let mut answer = pin!(run(gateway, request, emitter));
    let Some(running) = &running else { return answer.await };
    poll_fn(|cx| match running.cancellation.poll_cancelled(cx) {
        Poll::Ready(()) => Poll::Ready(Ok(RequestAnswer::nothing())),
        Poll::Pending => answer.as_mut().poll(cx),
    })
    .await
}

async fn run(
    gateway: &Arc<GatewayState>,
    request: &ClientRequest,
    emitter: &StreamSender<ClientMessage>,
) -> Result<RequestAnswer, RequestFailure> {
    spelling::check(&request.method, &request.params)?;
    let method = request.method.as_str();
    match (method, &request.dialect) {
        ("server/discover", ClientDialect::Modern(_)) => return Ok(discover(request)),
        ("ping", ClientDialect::Legacy(_)) => {
            return Ok(RequestAnswer::result(&request.id, &empty()));
        }
        ("logging/setLevel", ClientDialect::Legacy(session)) => return set_level(request, session),
        _ => {}
    }
    // All else needs the names of what is on offer.
    gateway.settled().await;
    if let Some(kind) = PrimitiveKind::ALL.into_iter().find(|kind| kind.method() == method) {
        if request.params.get_bytes("cursor").is_none() {
            Box::pin(await_lists(gateway, request, kind)).await;
        }
        return list(request, kind, gateway.settings.limits.page_items);
    }
    match (method, &request.dialect) {
        ("tools/call" | "prompts/get" | "resources/read" | "completion/complete", _) => {
            pin!(relay::relay(gateway, request, emitter)).await
        }
        ("subscriptions/listen", ClientDialect::Modern(_)) => {
            Box::pin(listen::listen(gateway, request, emitter)).await
        }
        ("resources/subscribe", ClientDialect::Legacy(session)) => {
            Box::pin(listen::subscribe(gateway, request, session)).await
        }
        ("resources/unsubscribe", ClientDialect::Legacy(session)) => {
            session.unwatch(&request.text("uri")?);
            Ok(RequestAnswer::result(&request.id, &empty()))
        }
        (method, _) if method.starts_with("tasks/") => {
            Box::pin(task_requests::serve(gateway, request, emitter)).await
        }
        _ => Box::pin(unknown(gateway, request, emitter)).await,
    }
}

/// Waits for servers whose lists are not known yet, as long as the toolbox decides.
async fn await_lists(gateway: &GatewayState, request: &ClientRequest, kind: PrimitiveKind) {
    let Some(lists) =
        request.endpoint.toolbox().await_lists(&request.caller, ListPurpose::Listing(kind))
    else {
        return;
    };
    let changed = tokio::select! {
        changed = lists => changed,
        // Whoever waits is still answered, with what is known.
        () = gateway.lifecycle.draining.cancelled() => false,
    };
    if changed {
        gateway.refresh();
    }
}

/// Answers a list request with a page of at most `items` items.
fn list(
    request: &ClientRequest,
    kind: PrimitiveKind,
    items: usize,
) -> Result<RequestAnswer, RequestFailure> {
    let listing = request.current_listing();
    let promised = match &request.dialect {
        ClientDialect::Legacy(session) => session.is_promised_all(),
        ClientDialect::Modern(_) => false,
    };
    if !listing.has(kind) && !promised {
        return Err(RequestFailure::unknown_method(&request.method));
    }
    let cursor = match request.params.get("cursor") {
        None => None,
        Some(cursor) => Some(cursor.text().ok_or_else(stale)?.into_owned()),
    };
    let page = listing
        .board(kind)
        .page(kind, request.era(), cursor.as_deref(), items)
        .ok_or_else(stale)?;
    Ok(RequestAnswer::result(&request.id, &page))
}

fn stale() -> RequestFailure {
    RequestFailure::new(
        INVALID_PARAMS,
        "unknown `cursor`: the list may have changed; restart without a \
        cursor",
    )
}

/// Answers `server/discover` of a modern client.
fn discover(request: &ClientRequest) -> RequestAnswer {
    let listing = request.current_listing();
    let mut writer = ObjectWriter::new();
    let revisions = Json::from(json!(consort_server::modern_revisions()));
    writer.raw("supportedVersions", revisions.as_bytes());
    writer.raw("capabilities", listing.capabilities(Era::Modern).as_bytes());
    if let Some(instructions) = listing.instructions() {
        writer.text("instructions", &instructions);
    }
    writer.text("resultType", "complete");
    writer.number("ttlMs", if listing.is_partial() { PARTIAL_TTL } else { ABOUT_TTL });
    writer.text("cacheScope", "private");
    writer.object("_meta", |meta| {
        meta.raw("io.modelcontextprotocol/serverInfo", crate::handshake::identity().as_bytes());
    });
    RequestAnswer::result(&request.id, &writer.finish())
}

fn set_level(
    request: &ClientRequest,
    session: &ClientSessionState,
) -> Result<RequestAnswer, RequestFailure> {
    let level = request.text("level")?;
    let level = LogLevel::parse(&level).ok_or_else(|| {
        RequestFailure::new(INVALID_PARAMS, format!("unknown log level `{}`", level.escape_debug()))
    })?;
    session.set_level(level);
    Ok(RequestAnswer::result(&request.id, &empty()))
}

/// Forwards an unknown method to the only server, if there is just one.
async fn unknown(
    gateway: &Arc<GatewayState>,
    request: &ClientRequest,
    emitter: &StreamSender<ClientMessage>,
) -> Result<RequestAnswer, RequestFailure> {
    // These are between a client and us; passed on, they would change what we and the server agreed.
    let ours = matches!(
        request.method.as_str(),
        "initialize"
            | "server/discover"
            | "ping"
            | "logging/setLevel"
            | "resources/subscribe"
            | "resources/unsubscribe"
            | "subscriptions/listen"
    ) || request.method.starts_with("notifications/");
    let listing = request.current_listing();
    let server = listing.only().filter(|_| !ours);
    let server = server.ok_or_else(|| RequestFailure::unknown_method(&request.method))?;
    let (server, method) = (server.clone(), request.method.clone().into());
    relay::pass(gateway, request, Operation::Other { server, method }, None, emitter).await
}
