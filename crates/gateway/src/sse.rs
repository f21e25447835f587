//! HTTP+SSE, the transport of revision 2024-11-05: one stream for all messages to a client, and a URL of its own for
//! the client's messages.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use consort_audit::MessageTransport;
use consort_audit::trace;
use consort_core::{Caller, DrivenStream};
use consort_protocol::Holdings;
use http::{Method, Request as HttpRequest, StatusCode};
use hyper::body::Incoming;

use crate::answer::RequestAnswer;
use crate::client_channel::ClientChannel;
use crate::connection_shares::reserve;
use crate::endpoint::GatewayEndpoint;
use crate::forwarded::BasePath;
use crate::gateway::Inner;
use crate::reply::{HttpReply, bare, only, stream, text};
use crate::request::ClientMessage;
use crate::request_body::read;
use crate::sealing::secret;

/// The clients with an open stream, by the name in their URL.
#[derive(Debug, Default)]
pub(crate) struct SseClients(Mutex<HashMap<String, Arc<ClientChannel>>>);

impl SseClients {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<ClientChannel>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }
}

/// Answers a request of an HTTP+SSE client.
pub(crate) async fn respond(
    gateway: &Arc<Inner>,
    front: &Arc<GatewayEndpoint>,
    caller: Caller,
    request: HttpRequest<Incoming>,
) -> HttpReply {
    let (head, body) = request.into_parts();
    match head.method {
        Method::GET => {
            let base = head.extensions.get::<BasePath>().map_or("", BasePath::as_str);
            open(gateway, front, caller, &format!("{base}{}", head.uri.path()))
        }
        Method::POST => {
            let name = head.uri.query().and_then(|query| query.strip_prefix("session="));
            let pipe = name.and_then(|name| gateway.pipes.lock().get(name).cloned());
            let Some(pipe) = pipe.filter(|pipe| pipe.caller == caller) else {
                return text(StatusCode::NOT_FOUND, "this session is over");
            };
            match read(gateway, &caller, &head.headers, body).await {
                Ok(bytes) => {
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
fn open(
    gateway: &Arc<Inner>,
    front: &Arc<GatewayEndpoint>,
    caller: Caller,
    path: &str,
) -> HttpReply {
    if !has_room(gateway, &caller) {
        return text(StatusCode::SERVICE_UNAVAILABLE, "too many sessions are open");
    }
    let (pipe, mut sent) = ClientChannel::new(gateway, front, caller, MessageTransport::Http);
    let name = secret();
    gateway.pipes.lock().insert(name.clone(), Arc::clone(&pipe));
    let first = Bytes::from(format!("event: endpoint\ndata: {path}?session={name}\n\n")).into();
    let place = SseClientEntry { gateway: Arc::clone(gateway), name, pipe };
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
    stream(gateway, messages, Some(first))
}

/// Returns true if one more client has room, possibly because an identity with more than its share gives up a stream
/// without requests in progress.
fn has_room(gateway: &Inner, caller: &Caller) -> bool {
    let limits = &gateway.settings.limits;
    let reserved =
        if caller.is_owner() { 0 } else { reserve(limits.sessions, limits.owner_reserve) };
    let pipes = gateway.pipes.lock();
    if pipes.len() + gateway.sessions.len() < limits.sessions - reserved {
        return true;
    }
    let open = || pipes.values().filter(|pipe| !pipe.given_up.is_cancelled());
    let holdings: Holdings<_> = open().map(|pipe| pipe.caller.id().clone()).collect();
    let yields = |pipe: &&Arc<ClientChannel>| {
        pipe.is_quiet() && holdings.yields(limits.sessions, pipe.caller.id(), caller.id())
    };
    let largest = open().filter(yields).max_by_key(|pipe| holdings.of(pipe.caller.id()));
    largest.is_some_and(|pipe| {
        pipe.given_up.cancel();
        true
    })
}

/// A client's entry in the registry, removed when its stream ends.
struct SseClientEntry {
    gateway: Arc<Inner>,
    name: String,
    pipe: Arc<ClientChannel>,
}

impl Drop for SseClientEntry {
    fn drop(&mut self) {
        self.gateway.pipes.lock().remove(&self.name);
        self.pipe.end();
    }
}
