//! One request and its answer, over any transport.

mod resuming;

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::sleep;

use crate::ask::{Asked, Questions};
use crate::budget::Reservation;
use crate::client::Settings;
use crate::client::call::Event;
use crate::client::dialect::Dialect;
use crate::client::error::{CallError, Closed, NotSent};
use crate::client::facts::Facts;
use crate::client::link::{Link, Origin};
use crate::client::mailbox::{Arrival, Mailbox};
use crate::client::notices::Notice;
use crate::client::owner::{CallOwner, CallTask, Whose};
use crate::client::request::Round;
use crate::client::run::Run;
use crate::client::session;
use crate::json::{DEPTH, Object};
use crate::late::timeout;
use crate::message::{Message, Notification};
use crate::sse;
use crate::transport::http::{self, Content, Http};
use crate::transport::pool::{BodyError, Reply};
use crate::transport::{Ticket, Transport};
use resuming::Resuming;

impl Run<'_> {
    /// Sends one request and returns its answer; events in between are emitted.
    pub(crate) async fn exchange(
        &self,
        id: u64,
        dialect: &Dialect,
        round: Option<&Round>,
    ) -> Result<Object, CallError> {
        let facts = self.link.facts();
        let as_task = !dialect.is_modern()
            && self.request.param("task").is_none()
            && self
                .request
                .tool_name()
                .is_some_and(|name| facts.as_task(&name, self.request.tasks))
            && self.link.about().offers("tasks.requests.tools.call");
        let bytes = self.request.write(id, dialect, round, as_task);
        let mut open = self.open(id, dialect, as_task)?;
        let (mailbox, ticket) = (Arc::clone(&open.mailbox), Arc::clone(&open.ticket));
        let result = async {
            match &self.link.transport {
                Transport::Stdio(stdio) => stdio.send(bytes, Some(ticket)).await?,
                Transport::Sse(sse) => sse.send(dialect, bytes, &ticket).await?,
                Transport::Http(http) => {
                    return self
                        .over_http(http, dialect, &facts, id, bytes, &mailbox, &ticket)
                        .await;
                }
            }
            self.wait(&mailbox).await
        };
        let mut result = result.await;
        if let Ok(object) = &mut result
            && keeps(&self.request.method)
        {
            // What is kept for long shall not keep the room of a message.
            *object = object.detached();
        }
        open.answered = !matches!(result, Err(CallError::Unknown(_)));
        result
    }

    #[expect(clippy::too_many_arguments, reason = "they are the parts of one request in flight")]
    async fn over_http(
        &self,
        http: &Http,
        dialect: &Dialect,
        facts: &Facts,
        id: u64,
        bytes: Bytes,
        mailbox: &Mailbox,
        ticket: &Ticket,
    ) -> Result<Object, CallError> {
        let reply = {
            let mut posted = Box::pin(http.post(dialect, self.request, facts, bytes, ticket));
            loop {
                tokio::select! {
                    reply = &mut posted => break reply?,
                    arrival = mailbox.next() => if let Some(end) = self.take(arrival).await {
                        return end;
                    }
                }
            }
        };
        if !reply.status.is_success() {
            let in_session = !dialect.is_modern()
                && self.request.method != "initialize"
                && http.session().is_some();
            let status = reply.status;
            let error = Box::pin(http::refused(reply)).await;
            let refused = in_session && session::is_refused(status, &error);
            return Err(if refused { NotSent::SessionRefused.into() } else { error });
        }
        match http::content(&reply.headers) {
            // Boxed, so that answers without a stream do not carry its weight.
            Content::Events => Box::pin(self.read_events(http, dialect, id, reply, mailbox)).await,
            Content::Json => self.read_json(id, reply, mailbox).await,
            Content::Other => {
                let kind = reply
                    .headers
                    .get("content-type")
                    .and_then(|kind| kind.to_str().ok())
                    .unwrap_or("no type");
                Err(CallError::Malformed(format!("a body of {kind}, neither JSON nor events")))
            }
        }
    }

    fn open(&self, id: u64, dialect: &Dialect, as_task: bool) -> Result<Open<'_>, CallError> {
        let closed = |closed| CallError::closed(closed, false);
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
        let stream = dialect.is_modern() && matches!(self.link.transport, Transport::Http(_));
        let handshake = matches!(self.request.method.as_ref(), "initialize" | "server/discover");
        let silent = stream || handshake;
        if let Some(postmark) = &self.request.postmark {
            postmark.numbered(id);
        }
        Ok(Open {
            link: self.link,
            id,
            mailbox,
            ticket: self.tickets.issue(self.request.postmark.clone()),
            silent,
            answered: false,
        })
    }

    /// Returns the party that receives the server's messages during the request.
    pub(crate) fn whose(&self) -> Whose {
        match self.events {
            None => Whose::Ours,
            // It goes on for ever, and nothing said without a name is about it.
            Some(_) if self.request.method == "subscriptions/listen" => Whose::Ours,
            Some(_) if self.request.questions == Questions::Answer => Whose::Caller,
            Some(_) => Whose::Answering,
        }
    }

    /// The party that the request is made for.
    pub(crate) fn owner(&self) -> CallOwner {
        let task = match self.request.method.as_ref() {
            "tasks/result" => self.request.subject().map(|task| CallTask::Named((*task).into())),
            _ => self.request.param("task").map(|_| CallTask::Unnamed),
        };
        CallOwner {
            whose: self.whose(),
            identity: self.request.identity.clone(),
            is_owner: self.request.is_owner,
            session: self.request.session,
            log: self.request.log,
            task: task.unwrap_or_default(),
        }
    }

    /// Waits for the answer on a shared channel.
    pub(crate) async fn wait(&self, mailbox: &Mailbox) -> Result<Object, CallError> {
        loop {
            if let Some(end) = self.take(mailbox.next().await).await {
                return end;
            }
        }
    }

    /// Handles an arrival: an event is emitted, an end is returned.
    async fn take(&self, arrival: Arrival) -> Option<Result<Object, CallError>> {
        // What may be said about another call is no sign that the server works on this one.
        if !matches!(arrival, Arrival::SharedLog(_)) {
            self.pulse.beat();
        }
        let event = match arrival {
            Arrival::Message(Message::Response { result, .. }) => return Some(Ok(result)),
            Arrival::Message(Message::Error { error, .. }) => {
                return Some(Err(CallError::Refused(error)));
            }
            Arrival::TooLarge => return Some(Err(self.too_large())),
            Arrival::NoRoom => return Some(Err(self.no_room())),
            Arrival::TooDeep => return Some(Err(CallError::TooDeep { limit: DEPTH })),
            Arrival::Closed(closed) => {
                return Some(Err(CallError::closed(closed, self.tickets.left())));
            }
            Arrival::Ended => return Some(Ok(Object::empty())),
            Arrival::Skipped(count) => Event::Skipped(count),
            Arrival::Asked(asked) => Event::Question(asked),
            Arrival::SharedLog(body) => Event::Log(body.params),
            // What comes during a request of our own is nobody's event, but may be someone's notice.
            Arrival::Message(Message::Notification(body))
                if self.events.is_none() && body.method.starts_with("notifications/") =>
            {
                self.link.notices.send(Notice::Notification(body));
                return None;
            }
            Arrival::Message(Message::Notification(body) | Message::Request { body, .. }) => {
                event(body)
            }
        };
        self.emit(event).await;
        None
    }

    fn too_large(&self) -> CallError {
        CallError::TooLarge { limit: self.link.settings.limits.message_bytes }
    }

    fn no_room(&self) -> CallError {
        CallError::NoRoom { limit: self.link.settings.budget.bytes().unwrap_or_default() }
    }

    /// Reads the answer from a JSON body. Nothing else can follow, so unreadable bytes are an error.
    async fn read_json(
        &self,
        id: u64,
        reply: Reply,
        mailbox: &Mailbox,
    ) -> Result<Object, CallError> {
        let Settings { limits, times, budget, .. } = &self.link.settings;
        let room = budget.reservation_of(self.request.holder());
        let body = reply.collect(limits.message_bytes, room, times).await;
        let body = body.map_err(|error| match error {
            BodyError::TooLarge => self.too_large(),
            BodyError::NoRoom => self.no_room(),
            BodyError::Broken(reason) => CallError::Unknown(Closed::Broken(reason)),
        })?;
        self.link.receive(&body, Origin::Call(id)).map_err(CallError::Unknown)?;
        while let Some(arrival) = mailbox.try_next() {
            if let Some(end) = self.take(arrival).await {
                return end;
            }
        }
        Err(CallError::Malformed("its body does not answer the request".to_owned()))
    }

    /// Reads an SSE stream up to the answer, resuming it where a legacy server allows that.
    async fn read_events(
        &self,
        http: &Http,
        dialect: &Dialect,
        id: u64,
        mut reply: Reply,
        mailbox: &Mailbox,
    ) -> Result<Object, CallError> {
        let Settings { limits, times, .. } = &self.link.settings;
        let mut resuming = Resuming::default();
        loop {
            let mut room = self.link.settings.budget.reservation_of(self.request.holder());
            let mut events = sse::Events::new(limits.message_bytes);
            let broken = loop {
                if let Some(end) = self.drain(&mut events, &mut room, id, mailbox).await? {
                    return end;
                }
                tokio::select! {
                    biased;
                    arrival = mailbox.next() => if let Some(end) = self.take(arrival).await {
                        return end;
                    },
                    chunk = reply.chunk() => match chunk {
                        Some(Ok(bytes)) => {
                            let held = events.held() + bytes.len();
                            if !room.covers(held) {
                                let extended = room.extend(held, limits.message_bytes);
                                let extended = timeout(times.room, times.late, extended).await;
                                extended.map_err(|_| self.no_room())?;
                            }
                            events.push(&bytes);
                        }
                        Some(Err(reason)) => break reason,
                        None => break "its stream of events ended".to_owned(),
                    },
                }
            };
            resuming.note(&events);
            reply = loop {
                let Some(last) = resuming.last.clone().filter(|_| !dialect.is_modern()) else {
                    return Err(CallError::Unknown(Closed::Broken(broken)));
                };
                let Some(pause) = resuming.pause(&self.link.settings) else {
                    return Err(CallError::Unknown(Closed::Broken(broken)));
                };
                sleep(pause).await;
                match http.listen(dialect, Some(&last)).await {
                    Ok(reply)
                        if reply.status.is_success()
                            && http::content(&reply.headers) == Content::Events =>
                    {
                        break reply;
                    }
                    // It is not offered, or no longer known: nothing more will come.
                    Ok(reply) if reply.status.is_client_error() => {
                        return Err(CallError::Unknown(Closed::Broken(broken)));
                    }
                    _ => {}
                }
            };
        }
    }

    /// Handles the complete events one by one, so that none waits behind the limit.
    async fn drain(
        &self,
        events: &mut sse::Events,
        room: &mut Reservation,
        id: u64,
        mailbox: &Mailbox,
    ) -> Result<Option<Result<Object, CallError>>, CallError> {
        while let Some(event) = events.next_event().map_err(|_| self.too_large())? {
            if event.kind != "message" {
                continue;
            }
            self.link
                .receive(&room.attach(event.data), Origin::Call(id))
                .map_err(CallError::Unknown)?;
            while let Some(arrival) = mailbox.try_next() {
                if let Some(end) = self.take(arrival).await {
                    return Ok(Some(end));
                }
            }
        }
        Ok(None)
    }
}

/// Returns true for requests whose answers are kept in memory: handshakes and lists.
fn keeps(method: &str) -> bool {
    method.ends_with("/list") || matches!(method, "initialize" | "server/discover")
}

fn event(body: Notification) -> Event {
    match body.method.as_str() {
        "notifications/progress" => Event::Progress(body.params.into()),
        "notifications/message" => Event::Log(body.params),
        method if !method.starts_with("notifications/") => {
            Event::Question(Asked { method: body.method, params: body.params, reply: None })
        }
        _ => Event::Notification(body),
    }
}

/// A request in flight. Dropping it before its answer cancels it at the server.
struct Open<'a> {
    link: &'a Arc<Link>,
    id: u64,
    mailbox: Arc<Mailbox>,
    ticket: Arc<Ticket>,
    silent: bool,
    answered: bool,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if self.answered || !self.ticket.left() {
            self.link.calls.remove(self.id);
            self.link.call_ended(self.id);
            return;
        }
        self.link.calls.abandon(self.id, self.link.settings.times.total);
        self.link.call_ended(self.id);
        if !self.silent && self.link.calls.closed().is_none() {
            self.link.cancel(self.id, "the caller no longer waits");
        }
    }
}
