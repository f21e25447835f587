//! A request being answered while its client waits: as one message, or as a stream.

use std::sync::Arc;
use std::time::Duration;

use consort_core::Caller;
use consort_protocol::deadline::timeout;
use http::StatusCode;

use crate::http::reply::{HttpReply, bare, message, resumable, stream};
use crate::message::body_chunks::BodyChunks;
use crate::message::event_frame::event;
use crate::message::received_request::{AnsweringRequest, ClientMessage};
use crate::server_state::ServerState;
use crate::session::ClientSessionState;

/// A request being answered to a client. If a legacy client disconnects, the call continues: to disconnect is not to
/// cancel.
pub(crate) struct AttendedRequest<'a> {
    server: &'a Arc<ServerState>,
    caller: &'a Caller,
    /// The session of a legacy client.
    session: Option<Arc<ClientSessionState>>,
    call: Option<AnsweringRequest>,
}

impl<'a> AttendedRequest<'a> {
    pub(crate) fn new(
        server: &'a Arc<ServerState>,
        caller: &'a Caller,
        session: Option<Arc<ClientSessionState>>,
        call: AnsweringRequest,
    ) -> Self {
        Self { server, caller, session, call: Some(call) }
    }

    pub(crate) async fn next(&mut self) -> Option<ClientMessage> {
        let out = match &mut self.call {
            Some(call) => call.next().await,
            None => None,
        };
        if !matches!(out, Some(ClientMessage::Message(_))) {
            self.call = None;
        }
        out
    }

    /// The rest of the response as a stream that begins with a message.
    fn stream(mut self, first: Option<BodyChunks>) -> HttpReply {
        let server = self.server;
        match (self.session.take(), self.call.take()) {
            (Some(session), Some(call)) => {
                resumable(server, server.streams.request(&session, call, first))
            }
            (None, Some(call)) => stream(server, call, first.map(|first| event(first, None))),
            (_, None) => bare(StatusCode::ACCEPTED),
        }
    }

    /// Time before a response becomes a stream. One that its client can resume becomes a stream soon.
    fn stream_delay(&self) -> Duration {
        let limits = &self.server.settings.limits;
        let primed = |session: &Arc<ClientSessionState>| session.revision.has_priming_events();
        if self.session.as_ref().is_some_and(primed) {
            limits.stream_after.min(limits.silence)
        } else {
            limits.silence
        }
    }
}

impl Drop for AttendedRequest<'_> {
    fn drop(&mut self) {
        if let (Some(session), Some(call)) = (&self.session, self.call.take()) {
            self.server.streams.detach(session, call);
        }
    }
}

/// The response to a request: a single message if nothing precedes it, a stream if something does or it takes long.
pub(crate) async fn answer(mut attended: AttendedRequest<'_>, events: bool) -> HttpReply {
    let (server, caller) = (attended.server, attended.caller);
    loop {
        let first = if events {
            match timeout(attended.stream_delay(), attended.next()).await {
                Ok(first) => first,
                Err(_) => return attended.stream(None),
            }
        } else {
            attended.next().await
        };
        match first {
            Some(ClientMessage::End(end)) => {
                return match end.message {
                    Some(whole) => message(server, caller, end.status, whole).await,
                    None => bare(StatusCode::ACCEPTED),
                };
            }
            Some(ClientMessage::Message(first)) if events => return attended.stream(Some(first)),
            // A client that takes no events does without.
            Some(ClientMessage::Message(_)) => {}
            None => return bare(StatusCode::ACCEPTED),
        }
    }
}
