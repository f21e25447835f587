//! Requests to servers from the console, and the elicitation requests they send meanwhile.

use std::sync::{Arc, OnceLock};

use consort_core::{
    Asked, Call, Caller, ClientContext, ClientSession, Event, Events, Logs, Object, Offers,
    Refusal as Refused, ServerId, Shelf, nearest,
};

use crate::pending_requests::{Kind, Question, Slip};
use crate::route::Refusal;
use crate::state::Console;

/// Client capabilities of the console. Every request declares the same, so that a legacy server sees one client.
pub(crate) fn offers() -> Arc<Offers> {
    static OFFERS: OnceLock<Arc<Offers>> = OnceLock::new();
    let offers = || Arc::new(Offers { form: true, url: true, ..Offers::default() });
    Arc::clone(OFFERS.get_or_init(offers))
}

/// The client session of the console. Identities are separated in addition.
pub(crate) fn session() -> ClientSession {
    static SESSION: OnceLock<ClientSession> = OnceLock::new();
    SESSION.get_or_init(ClientSession::new).clone()
}

/// Elicitation requests during one operation. They are pending until it ends.
pub(crate) struct Asking {
    console: Console,
    caller: Caller,
    server: ServerId,
    /// The server's name of the tool, if a tool is called.
    tool: Option<String>,
    slips: Vec<Slip>,
}

impl Asking {
    pub(crate) fn new(
        console: &Console,
        caller: &Caller,
        server: &ServerId,
        tool: Option<&str>,
    ) -> Self {
        let tool = tool.map(str::to_owned);
        let (console, caller, server) = (console.clone(), caller.clone(), server.clone());
        Self { console, caller, server, tool, slips: Vec::new() }
    }

    /// Adds a pending request; `None` if the console cannot answer one of this kind.
    pub(crate) fn put(&mut self, kind: Kind, asked: Asked) -> Option<Question> {
        let Asked { method, params, reply } = asked;
        // Without a way back somebody else is answering.
        let reply = reply?;
        if method != "elicitation/create" || !offers().allow(&method, &params) {
            reply.send(Err(Refused::not_offered(&method)));
            return None;
        }
        let mut question = Question::new(kind, told(&self.caller), &params);
        if kind == Kind::Approval {
            let limits = self.console.scene().limits.approvals;
            question = question.within(limits.answer);
        }
        question.server = Some(self.server.to_string());
        question.tool.clone_from(&self.tool);
        self.slips.retain(Slip::waits);
        let slip = self.console.0.desk.put(question, reply);
        let question = slip.question.clone();
        self.slips.push(slip);
        Some(question)
    }
}

/// Label of a caller.
fn told(caller: &Caller) -> String {
    caller.label()
}

impl Console {
    /// The server of this name, if the caller may see it.
    pub(crate) fn server(&self, caller: &Caller, name: &str) -> Result<ServerId, Refusal> {
        let catalog = self.scene().tools.catalog(caller);
        let shelves = [&catalog.prompts, &catalog.resources, &catalog.templates];
        let on_shelves = shelves.into_iter().flat_map(Shelf::entries);
        let on_shelves = on_shelves.map(|entry| &entry.route.server);
        let mut known: Vec<&ServerId> =
            catalog.abouts().keys().chain(catalog.pending()).chain(on_shelves).collect();
        known.sort_unstable();
        known.dedup();
        if let Some(server) = known.iter().find(|server| server.as_str() == name) {
            return Ok((*server).clone());
        }
        let refusal = Refusal::missing(format!("no server `{name}` is known"));
        let near = nearest(name, known.iter().map(|server| server.as_str()));
        Err(match near.first() {
            Some(near) => refusal.hint(format!("did you mean `{near}`?")),
            None => refusal,
        })
    }

    /// Makes a call and returns its result. Requests of the server become pending requests meanwhile.
    pub(crate) async fn request(&self, call: Call) -> Result<Object, Refusal> {
        let call = Call { log: Logs::None, ..call.by(ClientContext::local(offers(), session())) };
        let mut asking = Asking::new(self, &call.caller, call.server(), None);
        let mut events: Events = self.scene().tools.call(call);
        loop {
            match events.next().await {
                Some(Event::End(end)) => return Ok(end?.object().clone()),
                Some(Event::Question(asked)) => drop(asking.put(Kind::Server, asked)),
                Some(Event::Approval(asked)) => drop(asking.put(Kind::Approval, asked)),
                Some(_) => {}
                None => unreachable!("an end comes before nothing"),
            }
        }
    }
}
