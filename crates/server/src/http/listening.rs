//! GET and DELETE of legacy clients: the notification stream, resumption of streams, and the end of a session.

use std::sync::Arc;

use consort_protocol::DrivenStream;
use http::{HeaderMap, HeaderName, StatusCode};

use crate::http::post::{PostContext, accepts_events, header};
use crate::http::reply::{HttpReply, bare, limited, only, resumable, text};
use crate::message::answer::RequestAnswer;
use crate::message::received_request::{AnsweringRequest, ClientMessage};
use crate::session::ClientSessionState;
use crate::streams::ResumedStream;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

impl PostContext<'_> {
    /// Opens or resumes the event stream of a legacy client: messages that belong to no request.
    pub(crate) async fn listen(&self, headers: &HeaderMap) -> HttpReply {
        if !accepts_events(headers) {
            return text(
                StatusCode::NOT_ACCEPTABLE,
                "the `Accept` header must include text/event-stream",
            );
        }
        let session = match self.session(headers) {
            Ok(session) => session,
            Err(missing) => return self.refuse_session(missing, None).await,
        };
        let usage = match self.server.usages.admit_stream(&self.caller) {
            Ok(usage) => usage,
            Err(refusal) => return limited(self.server, &self.caller, refusal, None).await,
        };
        let listen = || self.notices(&session);
        let taken = || text(StatusCode::CONFLICT, "this session already has an open event stream");
        if let Some(last) = header(headers, &LAST_EVENT_ID).filter(|last| !last.is_empty()) {
            match self.server.streams.resume(&session, last, listen) {
                ResumedStream::Stream(stream) => {
                    return resumable(self.server, stream.within(usage));
                }
                // To answer with a stream that ends at once has some clients ask for ever.
                ResumedStream::Complete => return only("POST, DELETE"),
                ResumedStream::Taken => return taken(),
                ResumedStream::Unknown => {
                    return text(
                        StatusCode::BAD_REQUEST,
                        "unknown `Last-Event-ID`: it belongs to another session, or its events were dropped",
                    );
                }
                // What it missed is said anew: every list may have changed.
                ResumedStream::Anew => {
                    self.server.streams.end_notices(&session);
                    self.endpoint.announce(&session);
                }
            }
        }
        match listen() {
            Some(notices) => {
                let stream = self.server.streams.notices(&session, notices);
                resumable(self.server, stream.within(usage))
            }
            None => taken(),
        }
    }

    /// Returns the stream of a session's notifications. `None` if it already has a reader.
    fn notices(&self, session: &Arc<ClientSessionState>) -> Option<AnsweringRequest> {
        let listening = session.listen()?;
        let draining = self.server.lifecycle.draining.clone();
        Some(DrivenStream::new(|emitter| async move {
            loop {
                tokio::select! {
                    notice = listening.next() => match notice {
                        Some(notice) => emitter.emit(ClientMessage::Message(notice.into())).await,
                        None => return ClientMessage::End(RequestAnswer::nothing()),
                    },
                    () = draining.cancelled() => return ClientMessage::End(RequestAnswer::nothing()),
                }
            }
        }))
    }

    /// Ends the session of a legacy client.
    pub(crate) async fn leave(&self, headers: &HeaderMap) -> HttpReply {
        match self.session(headers) {
            Ok(session) => {
                self.server.sessions.remove(&session).await;
                self.server.streams.forget(&session);
                bare(StatusCode::OK)
            }
            Err(missing) => self.refuse_session(missing, None).await,
        }
    }
}
