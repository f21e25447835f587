//! Requests as transports receive them, and the messages that answer them.

use std::cell::RefCell;
use std::sync::Arc;

use consort_core::{Caller, ClientSession};
use consort_protocol::trace::TraceContext;
use consort_protocol::{
    ClientCapabilities, DrivenStream, Era, Json, LogLevel, Object, RequestId, Revision,
};

use crate::message::answer::{INVALID_PARAMS, RequestAnswer, RequestFailure, UNSUPPORTED_VERSION};
use crate::message::body_chunks::BodyChunks;
use crate::session::ClientSessionState;
use crate::usage::UsagePermit;

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The tasks extension.
pub const TASKS: &str = "io.modelcontextprotocol/tasks";

/// A request as a transport received it.
#[derive(Debug)]
pub struct ReceivedRequest {
    /// The caller, with the capabilities of its client.
    pub caller: Caller,
    /// The id that the answer carries.
    pub id: RequestId,
    /// The method.
    pub method: String,
    /// The parameters.
    pub params: Object,
    /// The era and the declarations of the client.
    pub dialect: ClientDialect,
    /// True if the client can receive messages before the answer.
    pub accepts_events: bool,
    /// The transport, and the trace context in the headers that came with it.
    pub origin: RequestOrigin,
    /// Its share of the ceilings of its caller, if that has any. The handler keeps it until the request is answered.
    pub usage: Option<UsagePermit>,
}

/// The transport of a request, and the trace context in its headers.
#[derive(Clone, Debug)]
pub struct RequestOrigin {
    /// The transport.
    pub via: ClientTransport,
    /// The trace context in the headers.
    pub trace: Option<TraceContext>,
}

/// The transport of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientTransport {
    /// Standard input and output, or another pair of streams.
    Stdio,
    /// Streamable HTTP or HTTP+SSE.
    Http,
}

/// Era of the client, and its declarations.
#[derive(Debug)]
pub enum ClientDialect {
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
pub struct ModernDeclarations {
    /// The capabilities.
    pub offers: Arc<ClientCapabilities>,
    /// The same as the client wrote them.
    pub capabilities: Json,
    /// The level from which log messages are requested.
    pub log: Option<LogLevel>,
    /// The client's session, if the transport distinguishes clients.
    pub session: Option<ClientSession>,
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
        let data = serde_json::json!({ "supported": modern_revisions(), "requested": version });
        Err(RequestFailure::new(UNSUPPORTED_VERSION, "unsupported protocol version").data(data))
    }

    /// Returns true if the client declares the tasks extension.
    pub fn knows_tasks(&self) -> bool {
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

/// Returns the revision in a message's `_meta`, if there is one.
pub(crate) fn named_revision(params: &Object) -> Option<String> {
    params.meta()?.text(VERSION)
}

/// The modern revisions that are supported: those a client may name in a request.
pub fn modern_revisions() -> Vec<&'static str> {
    let modern = Revision::ALL.iter().filter(|revision| revision.era() == Era::Modern);
    modern.map(|revision| revision.as_str()).collect()
}

/// A message to the client in the course of its request.
#[derive(Debug)]
pub enum ClientMessage {
    /// A notification, or a request to a legacy client.
    Message(BodyChunks),
    /// The final response.
    End(RequestAnswer),
}

/// A request being answered. It runs while it is polled; dropped, it is cancelled.
pub type AnsweringRequest = DrivenStream<ClientMessage>;
