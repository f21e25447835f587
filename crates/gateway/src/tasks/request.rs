//! A request about one task to its server.

use std::borrow::Cow;
use std::sync::Arc;

use consort_core::{
    Call, CallError, CallEvents, Caller, ClientCapabilities, ClientContext, ClientSession, Json,
    LogDelivery, Object, ServerId, ServerRequestHandling, Subscription, SubscriptionEvent,
    SubscriptionEvents, TaskHandling, end,
};
use consort_server::ClientSessionState;

use super::TaskRef;
use crate::endpoint::GatewayEndpoint;
use crate::request::ClientRequest;

/// A task at its server, and the client that asks about it.
#[derive(Clone, Debug)]
pub(crate) struct TaskRequest {
    endpoint: Arc<GatewayEndpoint>,
    pub(crate) caller: Caller,
    pub(crate) server: ServerId,
    /// The server's own id of the task.
    pub(crate) task: String,
    /// The client's current capabilities.
    pub(crate) offers: Arc<ClientCapabilities>,
    /// The capabilities declared on the connection that knows the task.
    declared: Arc<ClientCapabilities>,
    /// The client's capabilities as it wrote them, for a modern server.
    pub(crate) capabilities: Option<Json>,
    params: Object,
    session: Option<ClientSession>,
}

impl TaskRequest {
    /// Creates a client's request about a task.
    pub(crate) fn new(
        request: &ClientRequest,
        ticket: &TaskRef,
        offers: &Arc<ClientCapabilities>,
    ) -> Self {
        Self {
            endpoint: Arc::clone(&request.endpoint),
            caller: request.caller.clone(),
            server: ticket.server.clone(),
            task: ticket.task.clone(),
            offers: Arc::clone(offers),
            declared: ticket.offers(offers),
            capabilities: None,
            params: request.params.clone(),
            session: request.session(),
        }
    }

    /// Creates a request about a task on behalf of a session.
    pub(crate) fn of_session(
        endpoint: &Arc<GatewayEndpoint>,
        session: &ClientSessionState,
        server: &ServerId,
        task: String,
    ) -> Self {
        Self {
            endpoint: Arc::clone(endpoint),
            caller: session.caller.clone(),
            server: server.clone(),
            task,
            offers: Arc::clone(&session.offers),
            declared: Arc::clone(&session.offers),
            capabilities: None,
            params: Object::empty(),
            session: Some(session.client.clone()),
        }
    }

    /// Removes the parameters of the original request.
    pub(crate) fn quiet(self) -> Self {
        Self { params: Object::empty(), ..self }
    }

    /// Returns the request to forward.
    pub(crate) fn call(
        &self,
        method: impl Into<Cow<'static, str>>,
        questions: ServerRequestHandling,
    ) -> Call {
        let (caller, server) = (self.caller.clone(), self.server.clone());
        let mut call = Call::other(caller, server, method, self.params.clone());
        call.set("taskId", Json::string(&self.task));
        call.log = LogDelivery::None;
        call.by(ClientContext {
            offers: Arc::clone(&self.declared),
            capabilities: self.capabilities.clone(),
            questions,
            tasks: TaskHandling::Return,
            session: self.session.clone(),
            is_local: false,
        })
    }

    /// Sends the request, and ignores events before the response.
    pub(crate) async fn ask(
        &self,
        method: impl Into<Cow<'static, str>>,
    ) -> Result<Object, CallError> {
        let call = self.call(method, ServerRequestHandling::Return);
        Ok(end(self.endpoint.call(call)).await?.object().clone())
    }

    /// Begins to wait for the result of a task of 2025-11-25, and for its questions meanwhile.
    pub(crate) fn result(&self) -> CallEvents {
        let mut call = self.call("tasks/result", ServerRequestHandling::Hand);
        call.params = Object::empty();
        self.endpoint.call(call)
    }

    /// Subscribes to the server's notifications about the task.
    pub(crate) async fn listen(&self) -> Option<SubscriptionEvents> {
        let mut events = self.endpoint.subscribe(Subscription {
            caller: self.caller.clone(),
            server: self.server.clone(),
            resources: Vec::new(),
            tasks: vec![self.task.clone()],
            offers: Arc::clone(&self.declared),
            session: self.session.clone(),
        });
        match events.next().await? {
            SubscriptionEvent::End(_) => None,
            _ => Some(events),
        }
    }
}
