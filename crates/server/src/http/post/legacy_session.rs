//! The session of a legacy request, and the responses to requests without one.

use std::sync::Arc;

use consort_protocol::{RequestId, Revision};
use http::{HeaderMap, HeaderValue, StatusCode};

use super::PostContext;
use super::headers::{SESSION, VERSION, header};
use crate::http::reply::{HttpReply, limited, text};
use crate::server_handler::SessionStart;
use crate::session::ClientSessionState;
use crate::session::store::{NoSession, OwnSessions};

impl PostContext<'_> {
    /// Returns the ceiling of sessions that the caller has.
    pub(super) fn own_sessions(&self) -> Option<OwnSessions> {
        let most = self.server.usages.ceilings_of(&self.caller).max_sessions?;
        Some(OwnSessions { most, elsewhere: self.server.sse_clients.held_by(self.caller.id()) })
    }

    /// Refuses a request without a session.
    pub(crate) async fn refuse_session(
        &self,
        missing: MissingSession,
        id: Option<RequestId>,
    ) -> HttpReply {
        match missing {
            MissingSession::Not(NoSession::Over) => {
                text(StatusCode::NOT_FOUND, "this session has ended")
            }
            MissingSession::Not(NoSession::Full) => too_many(),
            MissingSession::Not(NoSession::Ceiling(most)) => {
                let refusal = self.server.usages.refuse_session(most);
                limited(self.server, &self.caller, refusal, id.as_ref()).await
            }
            MissingSession::Invalid(reason) => text(StatusCode::BAD_REQUEST, reason),
        }
    }

    /// Returns the session of a legacy request.
    pub(crate) fn session(
        &self,
        headers: &HeaderMap,
    ) -> Result<Arc<ClientSessionState>, MissingSession> {
        let Some(id) = header(headers, &SESSION) else {
            return Err(MissingSession::Invalid(
                "not initialized: send `initialize` first, or use revision 2026-07-28 with the \
                    `MCP-Protocol-Version` header",
            ));
        };
        let own = || self.own_sessions();
        let (session, is_anew) =
            self.server.sessions.get(id, &self.caller, self.endpoint.key(), own)?;
        if is_anew {
            self.follow(&session, SessionStart::Restored);
        }
        let version = header(headers, &VERSION);
        if version.is_some_and(|version| version.parse::<Revision>().is_err()) {
            return Err(MissingSession::Invalid("unsupported `MCP-Protocol-Version`"));
        }
        session.touch();
        Ok(session)
    }
}

/// The reason why a request has no session.
pub(crate) enum MissingSession {
    /// There is none.
    Not(NoSession),
    /// The request is wrong.
    Invalid(&'static str),
}

impl From<NoSession> for MissingSession {
    fn from(reason: NoSession) -> Self {
        Self::Not(reason)
    }
}

fn too_many() -> HttpReply {
    let mut reply = text(StatusCode::SERVICE_UNAVAILABLE, "too many open sessions");
    reply.headers_mut().insert("retry-after", HeaderValue::from_static("10"));
    reply
}
