//! A request about one task to its server.

use std::borrow::Cow;
use std::sync::Arc;

use consort_core::{
    CallError, Caller, Events, Json, Object, Offers, Passage, Questions, ServerId, Tasks, end,
};

use super::Ticket;
use crate::front::Front;
use crate::request::Request;
use crate::session::Session;

/// A task at its server, and the party that asks about it.
#[derive(Clone, Debug)]
pub(super) struct TaskRequest {
    front: Arc<Front>,
    pub(super) caller: Caller,
    pub(super) server: ServerId,
    /// What the server calls the task.
    pub(super) task: String,
    /// What the client can answer now.
    pub(super) offers: Arc<Offers>,
    /// What was declared on the connection that knows the task.
    declared: Arc<Offers>,
    /// The client's capabilities as it wrote them, for a modern server.
    pub(super) capabilities: Option<Json>,
    params: Object,
}

impl TaskRequest {
    /// What a client asks about a task.
    pub(super) fn new(request: &Request, ticket: &Ticket, offers: &Arc<Offers>) -> Self {
        Self {
            front: Arc::clone(&request.front),
            caller: request.caller.clone(),
            server: ticket.server.clone(),
            task: ticket.task.clone(),
            offers: Arc::clone(offers),
            declared: ticket.offers(offers),
            capabilities: None,
            params: request.params.clone(),
        }
    }

    /// What is asked about a task on behalf of a session.
    pub(super) fn of_session(session: &Session, server: &ServerId, task: String) -> Self {
        Self {
            front: Arc::clone(&session.front),
            caller: session.caller.clone(),
            server: server.clone(),
            task,
            offers: Arc::clone(&session.offers),
            declared: Arc::clone(&session.offers),
            capabilities: None,
            params: Object::empty(),
        }
    }

    /// The same without what only the first request said.
    pub(super) fn quiet(self) -> Self {
        Self { params: Object::empty(), ..self }
    }

    /// The request as it is passed on.
    pub(super) fn passage(&self, method: impl Into<Cow<'static, str>>) -> Passage {
        let (caller, server) = (self.caller.clone(), self.server.clone());
        let mut passage = Passage::new(caller, server, method, self.params.clone());
        passage.set("taskId", Json::string(&self.task));
        passage.tasks = Tasks::Return;
        passage.offers = Arc::clone(&self.declared);
        passage.capabilities.clone_from(&self.capabilities);
        passage
    }

    /// Asks the server, leaving out what happens before the answer.
    pub(super) async fn ask(
        &self,
        method: impl Into<Cow<'static, str>>,
    ) -> Result<Object, CallError> {
        let mut passage = self.passage(method);
        passage.questions = Questions::Return;
        Ok(end(self.front.pass(passage)).await?.object().clone())
    }

    /// Begins to wait for the result of a task of 2025-11-25, and for what it asks on the way.
    pub(super) fn result(&self) -> Events {
        let mut passage = self.passage("tasks/result");
        passage.questions = Questions::Hand;
        passage.params = Object::empty();
        self.front.pass(passage)
    }

    /// Listens to what the server says about the task.
    pub(super) async fn listen(&self) -> Option<Events> {
        let params = serde_json::json!({ "notifications": { "taskIds": [self.task] } });
        let params = Json::from(params).to_object().expect("it was written as one");
        let (caller, server) = (self.caller.clone(), self.server.clone());
        let mut passage = Passage::new(caller, server, "subscriptions/listen", params);
        passage.offers = Arc::clone(&self.declared);
        let mut events = self.front.pass(passage);
        loop {
            match events.next().await? {
                consort_core::Event::Notification { .. } => return Some(events),
                consort_core::Event::End(_) => return None,
                _ => {}
            }
        }
    }
}
