//! The lifecycle of one call: from a place among those in flight to its end, on any transport.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use consort_protocol::splice::ObjectWriter;
use consort_protocol::{
    Json, Object, PendingServerRequest, RequestRefusal, RequestResponder, SendObserver,
    ServerRequestHandling, TaskHandling,
};

use crate::call::{CallEventSender, PendingCallEvent, ServerAnswer};
use crate::call_timer::CallTimer;
use crate::connection::SharedConnection;
use crate::dialect::RequestDialect;
use crate::error::{ClientCallError, CloseReason, NotSent, TimeLimitKind};
use crate::gate::CallPermit;
use crate::handler::ServerRequest;
use crate::request::{FollowUpRound, OutgoingRequest};
use crate::transport::{SendPermit, Transport};
use crate::{list, session, task};

/// The most characters of a server's text that an error quotes.
const QUOTED: usize = 64;

/// Runs a call to its end, within its limits.
pub(crate) async fn run(
    link: &Arc<SharedConnection>,
    id: u64,
    request: &OutgoingRequest,
    events: &CallEventSender,
) -> Result<ServerAnswer, ClientCallError> {
    let settings = &link.settings;
    let tool = request
        .tool_name()
        .and_then(|name| settings.tools.get(name.as_ref()).copied())
        .unwrap_or_default();
    let idle = request.idle.or(tool.idle).unwrap_or(settings.times.idle);
    let total = request.total.or(tool.total).unwrap_or(settings.times.total);
    let pulse = Arc::new(CallTimer::default());
    let run = CallExecution {
        link,
        request,
        events: Some(events),
        pulse: &pulse,
        tickets: SendPermits::default(),
    };
    // In place: a future that is named first and awaited later is kept twice.
    let mut work = pin!(async {
        let _place = match link.gate.try_enter() {
            Some(place) => place,
            None => Box::pin(enter(link, request, &pulse, idle)).await?,
        };
        pulse.beat();
        run.rounds(id).await
    });
    // An answer that is there counts, even if the time is up.
    tokio::select! {
        biased;
        end = &mut work => end,
        () = request.cancelled() => Err(ClientCallError::Cancelled { sent: run.tickets.left() }),
        () = link.stop.cancelled() => {
            let closed = link.calls.closed().unwrap_or(CloseReason::Ours);
            Err(ClientCallError::closed(closed, run.tickets.left()))
        }
        kind = pulse.stopped(idle, total, link.settings.times.late) => {
            let limit = if kind == TimeLimitKind::Idle { idle } else { total };
            Err(ClientCallError::TimedOut { kind, limit, sent: run.tickets.left() })
        }
    }
}

/// Waits for a place among the calls in flight. Time in the queue does not count as idle time.
async fn enter(
    link: &SharedConnection,
    request: &OutgoingRequest,
    pulse: &CallTimer,
    idle: Duration,
) -> Result<CallPermit, NotSent> {
    let mut entering = pin!(link.gate.enter(request.identity.as_ref()));
    loop {
        tokio::select! {
            biased;
            place = &mut entering => return place,
            () = tokio::time::sleep(idle / 2) => pulse.beat(),
        }
    }
}

/// Runs a subscription, which has no limits but the connection's.
pub(crate) async fn endless(
    link: &Arc<SharedConnection>,
    id: u64,
    request: &OutgoingRequest,
    events: &CallEventSender,
) -> Result<ServerAnswer, ClientCallError> {
    let run = CallExecution {
        link,
        request,
        events: Some(events),
        pulse: &Arc::default(),
        tickets: SendPermits::default(),
    };
    let dialect = link.dialect();
    tokio::select! {
        biased;
        end = run.exchange(id, &dialect, None) => end.map(ServerAnswer::Complete),
        () = link.stop.cancelled() => {
            Err(ClientCallError::closed(link.calls.closed().unwrap_or(CloseReason::Ours), run.tickets.left()))
        }
    }
}

/// Makes one request of the client's own, without events or rounds. The caller sets the limits.
pub(crate) async fn ask(
    link: &Arc<SharedConnection>,
    dialect: &RequestDialect,
    request: &OutgoingRequest,
) -> Result<Object, ClientCallError> {
    let run = CallExecution {
        link,
        request,
        events: None,
        pulse: &Arc::default(),
        tickets: SendPermits::default(),
    };
    run.exchange(link.next_id(), dialect, None).await
}

/// The same, repeated where a session was lost.
pub(crate) async fn request(
    link: &Arc<SharedConnection>,
    request: &OutgoingRequest,
) -> Result<Object, ClientCallError> {
    let run = CallExecution {
        link,
        request,
        events: None,
        pulse: &Arc::default(),
        tickets: SendPermits::default(),
    };
    run.attempt(link.next_id(), None).await.map(|(_, result)| result)
}

/// Context of one call.
pub(crate) struct CallExecution<'a> {
    pub(crate) link: &'a Arc<SharedConnection>,
    pub(crate) request: &'a OutgoingRequest,
    /// Sender of the call's events. The client's own requests have none.
    pub(crate) events: Option<&'a CallEventSender>,
    pub(crate) pulse: &'a Arc<CallTimer>,
    pub(crate) tickets: SendPermits,
}

impl<'a> CallExecution<'a> {
    /// Another request on behalf of the same call.
    pub(crate) fn with<'b>(&self, request: &'b OutgoingRequest) -> CallExecution<'b>
    where
        'a: 'b,
    {
        CallExecution {
            link: self.link,
            request,
            events: self.events,
            pulse: self.pulse,
            tickets: SendPermits::default(),
        }
    }

    /// Emits an event and waits until it was received, if there is a receiver.
    pub(crate) async fn emit(&self, event: PendingCallEvent) {
        if let Some(events) = self.events {
            events.emit(event).await;
        }
    }

    async fn rounds(&self, first: u64) -> Result<ServerAnswer, ClientCallError> {
        let limit = self.link.settings.limits.rounds;
        let (mut id, mut round) = (first, None);
        for _ in 0..=limit {
            let (dialect, result) = self.attempt(id, round.as_ref()).await?;
            match kind(&dialect, &result) {
                ResultKind::Complete => return Ok(ServerAnswer::Complete(result)),
                ResultKind::Task if self.request.tasks == TaskHandling::Follow => {
                    return Box::pin(task::follow(self, &dialect, id, result)).await;
                }
                ResultKind::Task => return Ok(ServerAnswer::Task(result)),
                ResultKind::InputRequired
                    if self.request.questions == ServerRequestHandling::Return =>
                {
                    return Ok(ServerAnswer::InputRequired(result));
                }
                ResultKind::InputRequired => {
                    round = Some(Box::pin(self.answers(first, &result)).await?);
                }
                ResultKind::Unknown(kind) => {
                    let kind: String = kind.chars().take(QUOTED).collect();
                    let kind = kind.escape_debug();
                    return Err(ClientCallError::Malformed(format!(
                        "a result of unknown kind `{kind}`"
                    )));
                }
            }
            id = self.link.next_id();
        }
        Err(ClientCallError::Rounds { rounds: limit })
    }

    /// Makes one exchange, repeated once if the cause of its failure can be fixed.
    async fn attempt(
        &self,
        id: u64,
        round: Option<&FollowUpRound>,
    ) -> Result<(Arc<RequestDialect>, Object), ClientCallError> {
        let dialect = self.link.dialect();
        let session = session::current(self.link);
        // Boxed: a future is moved once for each that it is within, and this one is large.
        match Box::pin(self.exchange(id, &dialect, round)).await {
            Ok(result) => Ok((dialect, result)),
            Err(error) => {
                let is_mended = Box::pin(self.mends(&dialect, &error, session)).await;
                if !is_mended || !self.request.repeats {
                    return Err(error);
                }
                let dialect = self.link.dialect();
                let again = Box::pin(self.exchange(self.link.next_id(), &dialect, round));
                Ok((Arc::clone(&dialect), again.await?))
            }
        }
    }

    /// Fixes the cause of a refusal, if possible. Returns true if the request may then be repeated.
    async fn mends(&self, dialect: &RequestDialect, error: &ClientCallError, session: u64) -> bool {
        let Transport::Http(http) = &self.link.transport else {
            return false;
        };
        match error {
            // The tool's definition changed, and with it the headers it wants. Nothing has run.
            error if error.is_header_mismatch() && dialect.is_modern() => {
                self.request.tool_name().is_some() && list::tools_again(self.link).await
            }
            // A server that refuses the session has not looked at the request.
            ClientCallError::NotSent(NotSent::SessionRefused) => {
                session::renew(self.link, http, session).await.is_ok()
            }
            _ => false,
        }
    }

    /// Lets the handler answer the server's input requests.
    async fn answers(&self, call: u64, result: &Object) -> Result<FollowUpRound, ClientCallError> {
        let _waiting = self.pulse.wait_for_us();
        let state = result.get("requestState");
        let requests = result.get("inputRequests").and_then(|requests| requests.to_object());
        if state.is_none() && requests.is_none() {
            return Err(ClientCallError::Malformed(
                "it asks for input without saying which".to_owned(),
            ));
        }
        let responses = match requests {
            Some(requests) => Some(self.put(call, &requests, |_| true).await?),
            None => None,
        };
        Ok(FollowUpRound { responses, state })
    }

    /// Passes requests to the handler, one after the other, as a person would want them.
    pub(crate) async fn put(
        &self,
        call: u64,
        requests: &Object,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Json, ClientCallError> {
        if self.request.questions == ServerRequestHandling::Hand {
            return self.hand(requests, wanted).await;
        }
        let host = &self.link.settings.host;
        let offers = host.offers();
        let mut responses = ObjectWriter::new();
        for (key, request) in requests.members().filter(|(key, _)| wanted(key)) {
            let request = request.to_object().unwrap_or_else(Object::empty);
            let method = request.text("method").unwrap_or_default();
            let params = request
                .get("params")
                .and_then(|params| params.to_object())
                .unwrap_or_else(Object::empty);
            if !offers.allow(&method, &params) {
                self.link.counts.refused();
                let method: String = method.chars().take(QUOTED).collect();
                let method = method.escape_debug();
                return Err(ClientCallError::Malformed(format!(
                    "it asks for `{method}`, which was not offered"
                )));
            }
            let asked = PendingServerRequest {
                method: method.clone(),
                params: params.clone(),
                reply: None,
            };
            self.emit(PendingCallEvent::Question(asked)).await;
            match host.answer(ServerRequest { call: Some(call.into()), method, params }).await {
                Ok(answer) => responses.written(key, answer.as_bytes()),
                Err(RequestRefusal { message, .. }) => {
                    return Err(ClientCallError::Malformed(format!(
                        "its question found no answer: {message}"
                    )));
                }
            }
        }
        Ok(responses.finish())
    }
}

impl CallExecution<'_> {
    /// Passes requests to the caller, all at once, and waits until each was answered.
    async fn hand(
        &self,
        requests: &Object,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Json, ClientCallError> {
        let mut answers = Vec::new();
        for (key, request) in requests.members().filter(|(key, _)| wanted(key)) {
            let request = request.to_object().unwrap_or_else(Object::empty);
            let (sender, answer) = tokio::sync::oneshot::channel();
            let reply = RequestResponder::new(move |answer| {
                let _ = sender.send(answer);
            });
            let params = request.get("params").and_then(|params| params.to_object());
            let asked = PendingServerRequest {
                method: request.text("method").unwrap_or_default(),
                params: params.unwrap_or_else(Object::empty),
                reply: Some(reply),
            };
            self.emit(PendingCallEvent::Question(asked)).await;
            answers.push((key.to_owned(), answer));
        }
        let mut responses = ObjectWriter::new();
        for (key, answer) in answers {
            match answer.await {
                Ok(Ok(answer)) => responses.written(&key, answer.as_bytes()),
                Ok(Err(RequestRefusal { message, .. })) => {
                    return Err(ClientCallError::Malformed(format!(
                        "its question found no answer: {message}"
                    )));
                }
                Err(_) => unreachable!("a reply that is dropped refuses"),
            }
        }
        Ok(responses.finish())
    }
}

/// Kind of a result.
enum ResultKind {
    Complete,
    InputRequired,
    Task,
    Unknown(String),
}

fn kind(dialect: &RequestDialect, result: &Object) -> ResultKind {
    if !dialect.is_modern() {
        let created = || {
            result
                .get("task")
                .and_then(|task| task.to_object())
                .is_some_and(|task| task.get("taskId").is_some())
        };
        return if result.get("content").is_none() && created() {
            ResultKind::Task
        } else {
            ResultKind::Complete
        };
    }
    match result.text("resultType").as_deref() {
        None | Some("complete") => ResultKind::Complete,
        Some("input_required") => ResultKind::InputRequired,
        Some("task") => ResultKind::Task,
        Some(other) => ResultKind::Unknown(other.chars().take(40).collect()),
    }
}

/// The send permits of a call's requests, one for each round.
#[derive(Default)]
pub(crate) struct SendPermits(Mutex<Vec<Arc<SendPermit>>>);

impl SendPermits {
    pub(crate) fn issue(&self, postmark: Option<Arc<dyn SendObserver>>) -> Arc<SendPermit> {
        let ticket = Arc::new(SendPermit::new(postmark));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&ticket));
        ticket
    }

    /// Returns true if any of them was sent. Those that were not never will be.
    pub(crate) fn left(&self) -> bool {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .filter(|ticket| ticket.left())
            .count()
            > 0
    }
}
