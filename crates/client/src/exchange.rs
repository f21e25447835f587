//! One request and its answer, over any transport.

pub(crate) mod context;
pub(crate) mod own_request;
mod reply;
mod resuming;
mod session_refusal;

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use consort_protocol::json::DEPTH;
use consort_protocol::{
    JsonRpcMessage, Notification, Object, PendingServerRequest, ServerRequestHandling,
};

use crate::call::PendingCallEvent;
use crate::call::mailbox::{CallMailbox, MailboxItem};
use crate::call::owner::{CallOwner, CallTask, RequestOwner};
use crate::connection::SharedConnection;
use crate::error::{ClientCallError, NotSent};
use crate::exchange::context::CallExecution;
use crate::notices::ConnectionNotice;
use crate::request::FollowUpRound;
use crate::request::dialect::RequestDialect;
use crate::tool_requirements::ToolRequirements;
use crate::transport::SendPermit;
use crate::transport::http::{self, HttpTransport};
use crate::transport::pool::ResponseContent;

impl CallExecution<'_> {
    /// Sends one request and returns its answer; events in between are emitted.
    pub(crate) async fn exchange(
        &self,
        id: u64,
        dialect: &RequestDialect,
        round: Option<&FollowUpRound>,
    ) -> Result<Object, ClientCallError> {
        let facts = self.link.facts();
        let as_task = !dialect.is_modern()
            && !facts.is_empty()
            && self.request.param("task").is_none()
            && self
                .request
                .tool_name()
                .is_some_and(|name| facts.as_task(&name, self.request.tasks))
            && self.link.about().offers("tasks.requests.tools.call");
        let bytes = self.request.write(id, dialect, round, as_task);
        let mut open = self.open(id, dialect, as_task)?;
        let (mailbox, ticket) = (Arc::clone(&open.mailbox), Arc::clone(&open.ticket));
        let mut result = match self.link.transport.http() {
            Some(http) => {
                pin!(self.over_http(http, dialect, &facts, id, bytes, &mailbox, &ticket)).await
            }
            None => pin!(self.over_channel(dialect, bytes, &mailbox, ticket)).await,
        };
        if let Ok(object) = &mut result
            && keeps(&self.request.method)
        {
            // What is kept for long shall not keep the room of a message.
            *object = object.detached();
        }
        open.answered = !matches!(result, Err(ClientCallError::Unknown(_)));
        result
    }

    /// Exchanges a request on the channel that all calls share.
    async fn over_channel(
        &self,
        dialect: &RequestDialect,
        bytes: Bytes,
        mailbox: &CallMailbox,
        ticket: Arc<SendPermit>,
    ) -> Result<Object, ClientCallError> {
        self.link.transport.send(dialect, bytes, Some(ticket)).await?;
        self.wait(mailbox).await
    }

    #[expect(clippy::too_many_arguments, reason = "they are the parts of one request in flight")]
    async fn over_http(
        &self,
        http: &HttpTransport,
        dialect: &RequestDialect,
        facts: &ToolRequirements,
        id: u64,
        bytes: Bytes,
        mailbox: &CallMailbox,
        ticket: &SendPermit,
    ) -> Result<Object, ClientCallError> {
        let reply = {
            let mut posted = pin!(http.post(dialect, self.request, facts, bytes, ticket));
            loop {
                tokio::select! {
                    reply = &mut posted => break reply?,
                    arrival = mailbox.next() => if let Some(end) = self.take(arrival).await {
                        return end;
                    }
                }
            }
        };
        if !reply.status().is_success() {
            let in_session = !dialect.is_modern()
                && self.request.method != "initialize"
                && http.session().is_some();
            let status = reply.status();
            let error = Box::pin(http::refused(reply)).await;
            let refused = in_session && session_refusal::is_refused(status, &error);
            return Err(if refused { NotSent::SessionRefused.into() } else { error });
        }
        match reply.content() {
            // Boxed, so that answers without a stream do not carry its weight.
            ResponseContent::Events => {
                Box::pin(self.read_events(http, dialect, id, reply, mailbox)).await
            }
            ResponseContent::Json => pin!(self.read_json(id, reply, mailbox)).await,
            ResponseContent::Other => {
                let kind = reply.content_type();
                Err(ClientCallError::Malformed(format!(
                    "a response body of type {kind}; expected JSON or an event stream"
                )))
            }
        }
    }

    fn open(
        &self,
        id: u64,
        dialect: &RequestDialect,
        as_task: bool,
    ) -> Result<OpenExchange<'_>, ClientCallError> {
        let closed = |closed| ClientCallError::closed(closed, false);
        let mut owner = self.owner();
        if as_task {
            owner.task = CallTask::Unnamed;
        }
        let mailbox = self
            .link
            .calls
            .open(id, &self.link.settings.limits, self.pulse, owner)
            .map_err(closed)?;
        // A modern HTTP server is told by the end of the connection, and a handshake is never cancelled.
        let stream = dialect.is_modern() && self.link.transport.http().is_some();
        let handshake = matches!(self.request.method.as_ref(), "initialize" | "server/discover");
        let silent = stream || handshake;
        if let Some(postmark) = &self.request.postmark {
            postmark.numbered(id);
        }
        Ok(OpenExchange {
            link: self.link,
            id,
            mailbox,
            ticket: self.tickets.issue(self.request.postmark.clone()),
            silent,
            answered: false,
        })
    }

    /// Returns the party that receives the server's messages during the request.
    pub(crate) fn request_owner(&self) -> RequestOwner {
        match self.events {
            None => RequestOwner::Ours,
            // It goes on for ever, and nothing said without a name is about it.
            Some(_) if self.request.method == "subscriptions/listen" => RequestOwner::Ours,
            Some(_) if self.request.questions == ServerRequestHandling::Answer => {
                RequestOwner::Caller
            }
            Some(_) => RequestOwner::Answering,
        }
    }

    /// The party that the request is made for.
    pub(crate) fn owner(&self) -> CallOwner {
        let task = match self.request.method.as_ref() {
            "tasks/result" => self.request.subject().map(|task| CallTask::Named((*task).into())),
            _ => self.request.param("task").map(|_| CallTask::Unnamed),
        };
        CallOwner {
            owner: self.request_owner(),
            identity: self.request.identity.clone(),
            is_owner: self.request.is_owner,
            session: self.request.session,
            log: self.request.log,
            task: task.unwrap_or_default(),
        }
    }

    /// Waits for the answer on a shared channel.
    pub(crate) async fn wait(&self, mailbox: &CallMailbox) -> Result<Object, ClientCallError> {
        loop {
            if let Some(end) = self.take(mailbox.next().await).await {
                return end;
            }
        }
    }

    /// Handles an arrival: an event is emitted, an end is returned.
    async fn take(&self, arrival: MailboxItem) -> Option<Result<Object, ClientCallError>> {
        // What may be said about another call is no sign that the server works on this one.
        if !matches!(arrival, MailboxItem::SharedLog(_)) {
            self.pulse.beat();
        }
        let event = match arrival {
            MailboxItem::Message(JsonRpcMessage::Response { result, .. }) => {
                return Some(Ok(result));
            }
            MailboxItem::Message(JsonRpcMessage::Error { error, .. }) => {
                return Some(Err(ClientCallError::Refused(error)));
            }
            MailboxItem::TooLarge => return Some(Err(self.too_large())),
            MailboxItem::NoRoom => return Some(Err(self.no_room())),
            MailboxItem::TooDeep => return Some(Err(ClientCallError::TooDeep { limit: DEPTH })),
            MailboxItem::Closed(closed) => {
                return Some(Err(ClientCallError::closed(closed, self.tickets.left())));
            }
            MailboxItem::Ended => return Some(Ok(Object::empty())),
            MailboxItem::Skipped(count) => PendingCallEvent::Skipped(count),
            MailboxItem::Asked(asked) => PendingCallEvent::Question(asked),
            MailboxItem::SharedLog(body) => PendingCallEvent::Log(body.params),
            // What comes during a request of our own is nobody's event, but may be someone's notice.
            MailboxItem::Message(JsonRpcMessage::Notification(body))
                if self.events.is_none() && body.method.starts_with("notifications/") =>
            {
                self.link.notices.send(ConnectionNotice::Notification(body));
                return None;
            }
            MailboxItem::Message(
                JsonRpcMessage::Notification(body) | JsonRpcMessage::Request { body, .. },
            ) => event(body),
        };
        self.emit(event).await;
        None
    }

    fn too_large(&self) -> ClientCallError {
        ClientCallError::TooLarge { limit: self.link.settings.limits.message_bytes }
    }

    fn no_room(&self) -> ClientCallError {
        ClientCallError::NoRoom { limit: self.link.settings.budget.bytes().unwrap_or_default() }
    }
}

/// Returns true for requests whose answers are kept in memory: handshakes and lists.
fn keeps(method: &str) -> bool {
    method.ends_with("/list") || matches!(method, "initialize" | "server/discover")
}

fn event(body: Notification) -> PendingCallEvent {
    match body.method.as_str() {
        "notifications/progress" => PendingCallEvent::Progress(body.params.into()),
        "notifications/message" => PendingCallEvent::Log(body.params),
        method if !method.starts_with("notifications/") => {
            PendingCallEvent::Question(PendingServerRequest {
                method: body.method,
                params: body.params,
                reply: None,
            })
        }
        _ => PendingCallEvent::Notification(body),
    }
}

/// A request in flight. Dropping it before its answer cancels it at the server.
struct OpenExchange<'a> {
    link: &'a Arc<SharedConnection>,
    id: u64,
    mailbox: Arc<CallMailbox>,
    ticket: Arc<SendPermit>,
    silent: bool,
    answered: bool,
}

impl Drop for OpenExchange<'_> {
    fn drop(&mut self) {
        if self.answered || !self.ticket.left() {
            self.link.calls.remove(self.id);
            self.link.call_ended(self.id);
            return;
        }
        self.link.calls.abandon(self.id, self.link.settings.times.total);
        self.link.call_ended(self.id);
        if !self.silent && self.link.calls.closed().is_none() {
            self.link.cancel(self.id, "the caller disconnected");
        }
    }
}
