//! Requests to servers from the console, and the elicitation requests they send meanwhile.

use std::sync::{Arc, OnceLock};

use consort_core::{
    Call, CallEvent, CallEvents, Caller, CatalogSection, ClientCapabilities, ClientContext,
    ClientSession, LogDelivery, Object, PendingServerRequest, RequestRefusal as Refused, ServerId,
    nearest,
};

use crate::pending_requests::{PendingEntry, PendingRequest, RequestKind};
use crate::route::AdminError;
use crate::state::AdminState;

/// Client capabilities of the console. Every request declares the same, so that a legacy server sees one client.
pub(crate) fn console_capabilities() -> Arc<ClientCapabilities> {
    static OFFERS: OnceLock<Arc<ClientCapabilities>> = OnceLock::new();
    let offers =
        || Arc::new(ClientCapabilities { form: true, url: true, ..ClientCapabilities::default() });
    Arc::clone(OFFERS.get_or_init(offers))
}

/// The client session of the console. Identities are separated in addition.
pub(crate) fn console_session() -> ClientSession {
    static SESSION: OnceLock<ClientSession> = OnceLock::new();
    SESSION.get_or_init(ClientSession::new).clone()
}

/// Elicitation requests during one operation. They are pending until it ends.
pub(crate) struct ElicitationGuard {
    state: AdminState,
    caller: Caller,
    server: ServerId,
    /// The server's name of the tool, if a tool is called.
    tool: Option<String>,
    entries: Vec<PendingEntry>,
}

impl ElicitationGuard {
    pub(crate) fn new(
        state: &AdminState,
        caller: &Caller,
        server: &ServerId,
        tool: Option<&str>,
    ) -> Self {
        let tool = tool.map(str::to_owned);
        let (state, caller, server) = (state.clone(), caller.clone(), server.clone());
        Self { state, caller, server, tool, entries: Vec::new() }
    }

    /// Adds a pending request; `None` if the console cannot answer one of this kind.
    pub(crate) fn add_request(
        &mut self,
        kind: RequestKind,
        request: PendingServerRequest,
    ) -> Option<PendingRequest> {
        let PendingServerRequest { method, params, reply } = request;
        // Without a reply channel, the answer comes from elsewhere.
        let reply = reply?;
        if method != "elicitation/create" || !console_capabilities().allow(&method, &params) {
            reply.send(Err(Refused::not_offered(&method)));
            return None;
        }
        let mut question = PendingRequest::new(kind, &self.caller, &params);
        if kind == RequestKind::Approval {
            let limits = self.state.active().limits.approvals;
            question = question.expires_in(limits.answer);
        }
        question.server = Some(self.server.to_string());
        question.tool.clone_from(&self.tool);
        self.entries.retain(PendingEntry::waits);
        let entry = self.state.0.pending.add(question, reply);
        let question = entry.request.clone();
        self.entries.push(entry);
        Some(question)
    }
}

impl AdminState {
    /// The server of this name, if the caller may see it.
    pub(crate) fn server(&self, caller: &Caller, name: &str) -> Result<ServerId, AdminError> {
        let catalog = self.active().tools.catalog(caller);
        let shelves = [&catalog.prompts, &catalog.resources, &catalog.templates];
        let on_shelves = shelves.into_iter().flat_map(CatalogSection::entries);
        let on_shelves = on_shelves.map(|entry| &entry.route.server);
        let mut known: Vec<&ServerId> =
            catalog.abouts().keys().chain(catalog.pending()).chain(on_shelves).collect();
        known.sort_unstable();
        known.dedup();
        if let Some(server) = known.iter().find(|server| server.as_str() == name) {
            return Ok((*server).clone());
        }
        let refusal = AdminError::not_found(format!("unknown server `{name}`"));
        let near = nearest(name, known.iter().map(|server| server.as_str()));
        Err(match near.first() {
            Some(near) => refusal.hint(format!("did you mean `{near}`?")),
            None => refusal,
        })
    }

    /// Makes a call and returns its result. Requests of the server become pending requests meanwhile.
    pub(crate) async fn request(&self, call: Call) -> Result<Object, AdminError> {
        let call = Call {
            log: LogDelivery::None,
            ..call.by(ClientContext::local(console_capabilities(), console_session()))
        };
        let mut guard = ElicitationGuard::new(self, &call.caller, call.server(), None);
        let mut events: CallEvents = self.active().tools.call(call);
        loop {
            match events.next().await {
                Some(CallEvent::End(end)) => {
                    let end = end.map_err(|error| AdminError::of_call(&error, &guard.caller))?;
                    return Ok(end.object().clone());
                }
                Some(CallEvent::Question(request)) => {
                    drop(guard.add_request(RequestKind::Server, request));
                }
                Some(CallEvent::Approval(request)) => {
                    drop(guard.add_request(RequestKind::Approval, request));
                }
                Some(_) => {}
                None => unreachable!("an end comes before nothing"),
            }
        }
    }
}
