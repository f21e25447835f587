//! HTTP+SSE, the transport of revision 2024-11-05: one stream for all messages to a client, and a URL of its own for
//! the client's messages.

use std::sync::Arc;

use bytes::Bytes;
use consort_core::Caller;
use consort_protocol::DrivenStream;
use consort_protocol::trace;
use http::{Method, Request as HttpRequest, StatusCode};
use hyper::body::Incoming;

use crate::client_channel::ClientChannel;
use crate::forwarded::BasePath;
use crate::http::reply::{HttpReply, bare, limited, only, stream, text};
use crate::http::request_body::read;
use crate::message::answer::RequestAnswer;
use crate::message::received_request::{ClientMessage, ClientTransport};
use crate::sealing::secret;
use crate::server_handler::ServedEndpoint;
use crate::server_state::ServerState;
use crate::usage::UsagePermit;

/// Answers a request of an HTTP+SSE client.
pub(crate) async fn respond(
    server: &Arc<ServerState>,
    endpoint: Arc<dyn ServedEndpoint>,
    caller: Caller,
    request: HttpRequest<Incoming>,
) -> HttpReply {
    let (head, body) = request.into_parts();
    match head.method {
        Method::GET => {
            let base = head.extensions.get::<BasePath>().map_or("", BasePath::as_str);
            open(server, endpoint, caller, &format!("{base}{}", head.uri.path())).await
        }
        Method::POST => {
            let name = head.uri.query().and_then(|query| query.strip_prefix("session="));
            let pipe = name.and_then(|name| server.sse_clients.get(name));
            let Some(pipe) = pipe.filter(|pipe| pipe.caller.is_same_party(&caller)) else {
                return text(StatusCode::NOT_FOUND, "this session has ended");
            };
            match read(server, &caller, &head.headers, body).await {
                Ok(bytes) => {
                    pipe.authenticated(&caller);
                    pipe.receive(&bytes, trace::of_headers(&head.headers).as_ref());
                    bare(StatusCode::ACCEPTED)
                }
                Err(bad) => bad.reply(),
            }
        }
        _ => only("GET, POST"),
    }
}

/// Opens the stream of a client; it lasts as long as the client reads it.
async fn open(
    server: &Arc<ServerState>,
    endpoint: Arc<dyn ServedEndpoint>,
    caller: Caller,
    path: &str,
) -> HttpReply {
    let limits = &server.settings.limits;
    if !server.sse_clients.has_room(limits, &caller, || server.sessions.len()) {
        return text(StatusCode::SERVICE_UNAVAILABLE, "too many open sessions");
    }
    let ceilings = server.usages.ceilings_of(&caller);
    if let Some(most) = ceilings.max_sessions
        && !server.sse_clients.has_room_within(
            most,
            caller.id(),
            server.sessions.held_by(caller.id()),
        )
    {
        return limited(server, &caller, server.usages.refuse_session(most), None).await;
    }
    let usage = match server.usages.admit_stream(&caller) {
        Ok(usage) => usage,
        Err(refusal) => return limited(server, &caller, refusal, None).await,
    };
    let (pipe, mut sent) = ClientChannel::new(
        limits,
        &server.lifecycle,
        &server.usages,
        endpoint,
        caller,
        ClientTransport::Http,
    );
    let name = secret();
    server.sse_clients.insert(name.clone(), Arc::clone(&pipe));
    let first = Bytes::from(format!("event: endpoint\ndata: {path}?session={name}\n\n")).into();
    let place = SseClientEntry { server: Arc::clone(server), name, pipe, _usage: usage };
    let messages = DrivenStream::new(|emitter| async move {
        let mut drained = std::pin::pin!(place.pipe.drained());
        loop {
            tokio::select! {
                biased;
                message = sent.recv() => match message {
                    Some(message) => emitter.emit(ClientMessage::Message(message)).await,
                    None => return ClientMessage::End(RequestAnswer::nothing()),
                },
                () = &mut drained => return ClientMessage::End(RequestAnswer::nothing()),
                () = place.pipe.given_up.cancelled() => return ClientMessage::End(RequestAnswer::nothing()),
            }
        }
    });
    stream(server, messages, Some(first))
}

/// A client's entry in the registry, removed when its stream ends.
struct SseClientEntry {
    server: Arc<ServerState>,
    name: String,
    pipe: Arc<ClientChannel>,
    /// Its share of the ceilings of its caller.
    _usage: Option<UsagePermit>,
}

impl Drop for SseClientEntry {
    fn drop(&mut self) {
        self.server.sse_clients.remove(&self.name);
        self.pipe.end();
    }
}
