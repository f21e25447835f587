//! A request of a client, independent of its transport.

use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

use consort_audit::MessageTransport;
use consort_audit::ledger::OutcomeClass;
use consort_audit::trace::TraceContext;
use consort_core::{
    CallError, Caller, ClientCapabilities, ClientSession, DrivenStream, Json, LogLevel, Object,
    PrimitiveKind, RefusedCall, RefusedTarget,
};
use consort_protocol::{Era, RequestId, Revision};

use crate::answer::{INVALID_PARAMS, RequestAnswer, RequestFailure, UNSUPPORTED_VERSION};
use crate::body_chunks::BodyChunks;
use crate::endpoint::{CachedListing, GatewayEndpoint};
use crate::listing::EndpointListing;
use crate::session::ClientSessionState;

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
pub(crate) const TASKS: &str = "io.modelcontextprotocol/tasks";

/// A request of a client.
#[derive(Debug)]
pub(crate) struct ClientRequest {
    pub(crate) endpoint: Arc<GatewayEndpoint>,
    pub(crate) caller: Caller,
    /// The listing for its client, once it was looked up.
    pub(crate) listing: OnceLock<CachedListing>,
    pub(crate) id: RequestId,
    pub(crate) method: String,
    pub(crate) params: Object,
    pub(crate) speaker: ClientDialect,
    /// True if the client can receive messages before the answer.
    pub(crate) hears: bool,
    /// Result of the search for the name in the request, if it was done already.
    pub(crate) sought: Option<NameSearch>,
    /// The transport, and the trace context in the headers that came with it.
    pub(crate) origin: RequestOrigin,
    /// Outcome of the call that the request was forwarded as, once it has ended.
    pub(crate) outcome: OnceLock<OutcomeClass>,
}

/// The transport of a request, and the trace context in its headers.
#[derive(Clone, Debug)]
pub(crate) struct RequestOrigin {
    pub(crate) via: MessageTransport,
    pub(crate) trace: Option<TraceContext>,
}

/// Result of the search for a name that was not listed: true if the listing is to be looked up again, or the reason for
/// its absence.
pub(crate) type NameSearch = Result<bool, CallError>;

/// Era of the client, and its declarations.
#[derive(Debug)]
pub(crate) enum ClientDialect {
    /// A modern client: every request carries its capabilities.
    Modern(ModernDeclarations),
    /// A legacy client, with the session that `initialize` opened.
    Legacy(Arc<ClientSessionState>),
}

impl ClientDialect {
    /// Returns the caller with the capabilities of this client.
    pub(crate) fn identify(&self, caller: &Caller) -> Caller {
        let offers = match self {
            Self::Modern(modern) => &modern.offers,
            Self::Legacy(session) => &session.offers,
        };
        caller.clone().with_capabilities(Arc::clone(offers))
    }
}

/// Client declarations in a modern request.
#[derive(Debug)]
pub(crate) struct ModernDeclarations {
    pub(crate) offers: Arc<ClientCapabilities>,
    pub(crate) capabilities: Json,
    pub(crate) log: Option<LogLevel>,
    /// The client's session, if the transport distinguishes clients.
    pub(crate) session: Option<ClientSession>,
}

impl ModernDeclarations {
    /// Reads the declarations from a request's `_meta`. `check` validates the revision that is named there first.
    pub(crate) fn read(
        params: &Object,
        check: impl FnOnce(&str) -> Result<(), RequestFailure>,
    ) -> Result<Self, RequestFailure> {
        let invalid = |message: String| RequestFailure::new(INVALID_PARAMS, message);
        let meta = params.meta().ok_or_else(|| invalid("`_meta` is missing".to_owned()))?;
        let version = meta.text(VERSION);
        let version = version.ok_or_else(|| invalid(format!("`_meta` lacks `{VERSION}`")))?;
        check(&version)?;
        Self::speaks(&version)?;
        let (capabilities, offers) =
            declared(meta).ok_or_else(|| invalid(format!("`_meta` lacks `{CAPABILITIES}`")))?;
        Ok(Self {
            offers,
            capabilities,
            log: meta.text(LOG_LEVEL).and_then(|level| LogLevel::parse(&level)),
            session: None,
        })
    }

    /// Returns an error unless this is a supported modern revision.
    fn speaks(version: &str) -> Result<(), RequestFailure> {
        if version.parse::<Revision>().is_ok_and(|known| known.era() == Era::Modern) {
            return Ok(());
        }
        let data =
            serde_json::json!({ "supported": crate::handshake::revisions(), "requested": version });
        Err(RequestFailure::new(UNSUPPORTED_VERSION, "unsupported protocol version").data(data))
    }

    /// Returns true if the client declares the tasks extension.
    pub(crate) fn knows_tasks(&self) -> bool {
        self.offers.extensions.contains_key(TASKS)
    }
}

/// Reads the client capabilities in a `_meta`, if there are any. Clients repeat them in every request, so each thread
/// caches the last ones.
fn declared(meta: &Object) -> Option<(Json, Arc<ClientCapabilities>)> {
    thread_local! {
        static LAST: RefCell<Option<(Json, Arc<ClientCapabilities>)>> = const { RefCell::new(None) };
    }
    let given = meta.get_bytes(CAPABILITIES)?;
    LAST.with_borrow_mut(|last| match last {
        Some((known, offers)) if known.as_bytes() == given => {
            Some((known.clone(), Arc::clone(offers)))
        }
        _ => {
            let declared = meta.get(CAPABILITIES)?.to_object()?;
            let read =
                (declared.json().detached(), Arc::new(ClientCapabilities::declared(&declared)));
            *last = Some(read.clone());
            Some(read)
        }
    })
}

/// Returns the caller with the client capabilities that a modern request declares.
pub(crate) fn by_client(caller: &Caller, params: &Object) -> Caller {
    match params.meta().and_then(|meta| declared(meta)) {
        Some((_, offers)) => caller.clone().with_capabilities(offers),
        None => caller.clone(),
    }
}

/// Returns the revision in a message's `_meta`, if there is one.
pub(crate) fn named_revision(params: &Object) -> Option<String> {
    params.meta()?.text(VERSION)
}

impl ClientRequest {
    /// Returns the primitive kind and the name or URI that the request is for.
    pub(crate) fn subject(&self) -> Option<(PrimitiveKind, String)> {
        let (kind, member) = match self.method.as_str() {
            "tools/call" => (PrimitiveKind::Tools, "name"),
            "prompts/get" => (PrimitiveKind::Prompts, "name"),
            "resources/read" | "resources/subscribe" => (PrimitiveKind::Resources, "uri"),
            _ => return None,
        };
        Some((kind, self.params.text(member).unwrap_or_default()))
    }

    /// Records that the request names something its caller is not offered, or that it was not forwarded because of
    /// `error`.
    pub(crate) fn record_refusal(&self, error: Option<CallError>) {
        let Some((kind, name)) = self.subject() else { return };
        let class =
            error.as_ref().map_or(OutcomeClass::Rejected { reason: None }, OutcomeClass::of_error);
        let _ = self.outcome.set(class);
        let call = RefusedCall {
            caller: self.caller.clone(),
            method: self.method.clone().into(),
            target: RefusedTarget { server: None, name },
            arguments: self.params.get("arguments"),
            error,
        };
        self.endpoint.refused(kind, call);
    }

    /// Returns the session of its client, if the transport distinguishes clients.
    pub(crate) fn session(&self) -> Option<ClientSession> {
        match &self.speaker {
            ClientDialect::Modern(modern) => modern.session.clone(),
            ClientDialect::Legacy(session) => Some(session.client.clone()),
        }
    }

    pub(crate) fn era(&self) -> Era {
        match self.speaker {
            ClientDialect::Modern(_) => Era::Modern,
            ClientDialect::Legacy(_) => Era::Legacy,
        }
    }

    /// Returns the current listing for its client.
    pub(crate) fn current_listing(&self) -> Arc<EndpointListing> {
        let listing = self.listing.get_or_init(|| self.endpoint.listing(&self.caller));
        if self.endpoint.is_current(listing) {
            Arc::clone(&listing.listing)
        } else {
            self.endpoint.current_listing(&self.caller)
        }
    }

    /// Returns the progress token of the request.
    pub(crate) fn token(&self) -> Option<Json> {
        let token = self.params.meta()?.get("progressToken")?;
        (token.text().is_some() || token.number().is_some()).then_some(token)
    }

    /// Returns a parameter that must be a string.
    pub(crate) fn text(&self, name: &str) -> Result<String, RequestFailure> {
        let invalid =
            || RequestFailure::new(INVALID_PARAMS, format!("`{name}` is missing or no text"));
        self.params.text(name).ok_or_else(invalid)
    }
}

/// A message to the client in the course of its request.
#[derive(Debug)]
pub(crate) enum ClientMessage {
    /// A notification, or a request to a legacy client.
    Message(BodyChunks),
    /// The final response.
    End(RequestAnswer),
}

/// A request being answered. It runs while it is polled; dropped, it is cancelled.
pub(crate) type AnsweringRequest = DrivenStream<ClientMessage>;
