//! A request of a client, whichever way it came.

use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

use consort_core::{
    CallError, Caller, Emitting, Json, LogLevel, Object, Offers, RefusedCall, RefusedTarget,
    ShelfKind,
};
use consort_wire::{Era, Id, Revision};

use crate::answer::{Answer, Failure, INVALID_PARAMS, UNSUPPORTED_VERSION};
use crate::front::Front;
use crate::ledger::Class;
use crate::menu::Menu;
use crate::otlp::Via;
use crate::pieces::Pieces;
use crate::session::Session;
use crate::trace::TraceContext;

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
pub(crate) const TASKS: &str = "io.modelcontextprotocol/tasks";

/// A request of a client.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) front: Arc<Front>,
    pub(crate) caller: Caller,
    pub(crate) id: Id,
    pub(crate) method: String,
    pub(crate) params: Object,
    pub(crate) speaker: Speaker,
    /// Whether the client hears anything before the answer.
    pub(crate) hears: bool,
    /// What came of looking for what it names, if that was done already.
    pub(crate) sought: Option<Sought>,
    /// The transport, and the trace context in the headers that came with it.
    pub(crate) origin: Origin,
    /// How the call ended that the request was passed on as, once it has.
    pub(crate) outcome: OnceLock<Class>,
}

/// The transport of a request, and the trace context in its headers.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) via: Via,
    pub(crate) trace: Option<TraceContext>,
}

/// What came of looking for something that was not on offer: whether to look again, or why it is not there.
pub(crate) type Sought = Result<bool, CallError>;

/// How the client speaks.
#[derive(Debug)]
pub(crate) enum Speaker {
    /// Every request says all that is to know of its client.
    Modern(Modern),
    /// The client shook hands.
    Legacy(Arc<Session>),
}

/// What a modern request says of its client.
#[derive(Debug)]
pub(crate) struct Modern {
    pub(crate) offers: Arc<Offers>,
    pub(crate) capabilities: Json,
    pub(crate) log: Option<LogLevel>,
}

impl Modern {
    /// Reads it from a request's `_meta`. Whether the revision that is spoken there is the right one,
    /// `check` says first.
    pub(crate) fn read(
        params: &Object,
        check: impl FnOnce(&str) -> Result<(), Failure>,
    ) -> Result<Self, Failure> {
        let invalid = |message: String| Failure::new(INVALID_PARAMS, message);
        let meta = params.get("_meta").and_then(|meta| meta.to_object());
        let meta = meta.ok_or_else(|| invalid("`_meta` is missing".to_owned()))?;
        let version = meta.text(VERSION);
        let version = version.ok_or_else(|| invalid(format!("`_meta` lacks `{VERSION}`")))?;
        check(&version)?;
        Self::speaks(&version)?;
        let capabilities = meta.get(CAPABILITIES);
        let declared = capabilities.as_ref().and_then(Json::to_object);
        let declared =
            declared.ok_or_else(|| invalid(format!("`_meta` lacks `{CAPABILITIES}`")))?;
        Ok(Self {
            offers: offers(&declared),
            capabilities: declared.json().clone(),
            log: meta.text(LOG_LEVEL).and_then(|level| LogLevel::parse(&level)),
        })
    }

    /// Whether we speak this revision, the modern way.
    fn speaks(version: &str) -> Result<(), Failure> {
        if version.parse::<Revision>().is_ok_and(|known| known.era() == Era::Modern) {
            return Ok(());
        }
        let data =
            serde_json::json!({ "supported": crate::handshake::revisions(), "requested": version });
        Err(Failure::new(UNSUPPORTED_VERSION, "unsupported protocol version").data(data))
    }

    /// Whether the client knows tasks.
    pub(crate) fn knows_tasks(&self) -> bool {
        self.offers.extensions.contains_key(TASKS)
    }
}

/// What capabilities offer. Clients say the same with every request, so the last are remembered.
fn offers(declared: &Object) -> Arc<Offers> {
    thread_local! {
        static LAST: RefCell<Option<(Json, Arc<Offers>)>> = const { RefCell::new(None) };
    }
    LAST.with_borrow_mut(|last| match last {
        Some((known, offers)) if known == declared.json() => Arc::clone(offers),
        _ => {
            let offers = Arc::new(Offers::declared(declared));
            *last = Some((declared.json().detached(), Arc::clone(&offers)));
            offers
        }
    })
}

/// The revision a message's `_meta` names, if it names one.
pub(crate) fn named_revision(params: &Object) -> Option<String> {
    params.get("_meta")?.to_object()?.text(VERSION)
}

impl Request {
    /// The kind and the name of what the request is for.
    pub(crate) fn subject(&self) -> Option<(ShelfKind, String)> {
        let (kind, member) = match self.method.as_str() {
            "tools/call" => (ShelfKind::Tools, "name"),
            "prompts/get" => (ShelfKind::Prompts, "name"),
            "resources/read" | "resources/subscribe" => (ShelfKind::Resources, "uri"),
            _ => return None,
        };
        Some((kind, self.params.text(member).unwrap_or_default()))
    }

    /// Has it recorded that the request names nothing its caller is offered, or cannot be passed on for this reason.
    pub(crate) fn record_refusal(&self, error: Option<CallError>) {
        let Some((kind, name)) = self.subject() else { return };
        let class = error.as_ref().map_or(Class::Rejected { reason: None }, Class::of_error);
        let _ = self.outcome.set(class);
        let call = RefusedCall {
            caller: self.caller.clone(),
            method: self.method.clone().into(),
            target: RefusedTarget { server: None, name },
            arguments: self.params.get("arguments"),
            error,
        };
        self.front.refused(kind, call);
    }

    pub(crate) fn era(&self) -> Era {
        match self.speaker {
            Speaker::Modern(_) => Era::Modern,
            Speaker::Legacy(_) => Era::Legacy,
        }
    }

    /// What its client may see.
    pub(crate) fn menu(&self) -> Arc<Menu> {
        self.front.menu(&self.caller)
    }

    /// The token under which the client wants to hear of progress.
    pub(crate) fn token(&self) -> Option<Json> {
        let token = self.params.get("_meta")?.to_object()?.get("progressToken")?;
        (token.text().is_some() || token.number().is_some()).then_some(token)
    }

    /// A member that must be a text.
    pub(crate) fn text(&self, name: &str) -> Result<String, Failure> {
        let invalid = || Failure::new(INVALID_PARAMS, format!("`{name}` is missing or no text"));
        self.params.text(name).ok_or_else(invalid)
    }
}

/// What a client hears of its request.
#[derive(Debug)]
pub(crate) enum Out {
    /// A notification, or a question to a legacy client.
    Message(Pieces),
    /// The end.
    End(Answer),
}

/// A request being answered. It runs while it is polled; dropped, it is cancelled.
pub(crate) type Answering = Emitting<Out>;
