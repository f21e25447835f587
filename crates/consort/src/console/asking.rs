//! What is asked of servers here, and what they ask meanwhile.

use std::sync::{Arc, OnceLock};

use consort_core::{
    Asked, Caller, Event, Events, Json, Logs, Object, Offers, Passage, Refusal as Refused,
    ServerId, Shelf, nearest,
};
use consort_shape::ANSWER;
use serde::Serialize;

use super::Console;
use super::desk::{Kind, Question, Slip};
use super::route::Refusal;

/// What whoever looks at the console can answer. Everything here offers the same, so that a legacy server
/// knows it as one and the same client.
pub(super) fn offers() -> Arc<Offers> {
    static OFFERS: OnceLock<Arc<Offers>> = OnceLock::new();
    let offers = || Arc::new(Offers { form: true, url: true, ..Offers::default() });
    Arc::clone(OFFERS.get_or_init(offers))
}

/// What is asked in the middle of something, and lies on the desk as long as that goes on.
pub(super) struct Asking {
    console: Console,
    caller: Caller,
    server: ServerId,
    /// What the server calls the tool, if it is one.
    tool: Option<String>,
    slips: Vec<Slip>,
}

impl Asking {
    pub(super) fn new(
        console: &Console,
        caller: &Caller,
        server: &ServerId,
        tool: Option<&str>,
    ) -> Self {
        let tool = tool.map(str::to_owned);
        let (console, caller, server) = (console.clone(), caller.clone(), server.clone());
        Self { console, caller, server, tool, slips: Vec::new() }
    }

    /// Puts a question on the desk; nothing if nobody here can answer such a one.
    pub(super) fn put(&mut self, kind: Kind, asked: Asked) -> Option<Question> {
        let Asked { method, params, reply } = asked;
        // Without a way back somebody else is answering.
        let reply = reply?;
        if method != "elicitation/create" || !offers().allow(&method, &params) {
            reply.send(Err(Refused::not_offered(&method)));
            return None;
        }
        let mut question = Question::new(kind, told(&self.caller), &params);
        if kind == Kind::Approval {
            question = question.within(ANSWER);
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

/// Who it is, in a word.
fn told(caller: &Caller) -> String {
    let kind = serde_json::to_value(caller.kind).unwrap_or_default();
    format!("{}:{}", kind.as_str().unwrap_or_default(), caller.name)
}

impl Console {
    /// The server of this name, as far as a caller may see.
    pub(super) fn server(&self, caller: &Caller, name: &str) -> Result<ServerId, Refusal> {
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

    /// A request to a server, made here.
    pub(super) fn passage(
        caller: Caller,
        server: ServerId,
        method: &'static str,
        params: &impl Serialize,
    ) -> Passage {
        let params = Json::from_value(params).ok().and_then(|params| params.to_object());
        let params = params.unwrap_or_else(Object::empty);
        Passage {
            offers: offers(),
            log: Logs::None,
            ..Passage::new(caller, server, method, params)
        }
    }

    /// Passes a request on, and gives what the server answered. What it asks meanwhile lies on the desk.
    pub(super) async fn pass(&self, passage: Passage) -> Result<Object, Refusal> {
        let mut asking = Asking::new(self, &passage.caller, &passage.server, None);
        let mut events: Events = self.scene().tools.pass(passage);
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
