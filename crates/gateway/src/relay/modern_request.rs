//! Requests of modern clients: their calls, and the calls that wait for input.

use std::sync::Arc;

use consort_audit::ledger::OutcomeClass;
use consort_core::{
    Call, CallError, CallEvent, CallOutcome, Json, Object, RequestRefusal, ServerId, StreamSender,
};
use consort_protocol::Era;
use consort_protocol::splice::{self, ObjectWriter};
use consort_server::answer::{
    INTERNAL, INVALID_PARAMS, RequestAnswer, RequestFailure, URL_REQUIRED,
};
use consort_server::{BodyChunks, ClientMessage, ModernDeclarations, UsagePermit};

use super::{MadeCall, TOGETHER, next};
use crate::era_results;
use crate::gateway_state::GatewayState;
use crate::request::ClientRequest;
use crate::retold::{is_included, logged, report, under_our_names};
use crate::suspended_calls::{self, CallStateKind, ResumedCall, SuspendedCall, input_required};
use crate::tasks;

/// A request of a modern client in progress.
pub(super) struct ModernRequest<'a> {
    pub(super) gateway: &'a Arc<GatewayState>,
    pub(super) request: &'a ClientRequest,
    pub(super) modern: &'a ModernDeclarations,
    pub(super) emitter: &'a StreamSender<ClientMessage>,
}

/// The call of a modern client's request.
pub(super) enum ModernCall {
    Made(MadeCall),
    /// One that waits for the client's answer.
    Suspended {
        call: u64,
        turn: u32,
    },
}

impl ModernRequest<'_> {
    /// Makes a call, unless the request goes on with one that waits.
    pub(super) fn begin(&self, mut call: Call) -> Result<ModernCall, RequestFailure> {
        let request = self.request;
        if let Some(state) = request.params.get("requestState") {
            let invalid = |reason: String| RequestFailure::new(INVALID_PARAMS, reason);
            let state =
                state.text().ok_or_else(|| invalid("`requestState` is not a string".to_owned()))?;
            let bound = self.bound();
            let state =
                suspended_calls::open(&self.gateway.seal, request.caller.id(), &bound, &state)
                    .map_err(|refused| invalid(refused.to_string()))?;
            match state.kind {
                CallStateKind::Suspended { call, turn } => {
                    return Ok(ModernCall::Suspended { call, turn });
                }
                CallStateKind::Wrapped(original) => {
                    let mut writer = ObjectWriter::new();
                    writer.members(&request.params, &["requestState"]);
                    writer.raw("requestState", original.as_bytes());
                    call.params = writer.finish_object();
                }
                CallStateKind::Again => {
                    let mut writer = ObjectWriter::new();
                    writer.members(&request.params, &["requestState", "inputResponses"]);
                    call.params = writer.finish_object();
                }
            }
        }
        Ok(ModernCall::Made(MadeCall::new(request, call)))
    }

    /// A call that may come to wait for its client.
    pub(super) fn suspendable(&self, MadeCall { server, events }: MadeCall) -> SuspendedCall {
        SuspendedCall {
            events,
            server,
            log: self.modern.log,
            questions: suspended_calls::InputRequests::default(),
            caller: self.request.caller.id().clone(),
            lease: self.request.caller.identity().lease.clone(),
        }
    }

    /// Resumes a call that waited for input.
    pub(super) async fn resume(
        &self,
        call: u64,
        turn: u32,
    ) -> Result<RequestAnswer, RequestFailure> {
        let gone = |reason: &str| RequestFailure::new(INVALID_PARAMS, reason);
        let mut suspended = match self.gateway.suspended.take(call, turn) {
            ResumedCall::Waiting(suspended) => *suspended,
            ResumedCall::Running => return Err(gone("`requestState` was already used")),
            ResumedCall::Ended(Some(result)) => {
                let result = Json::parse(result).expect("it was a result");
                return Ok(RequestAnswer::result(&self.request.id, &result));
            }
            ResumedCall::Ended(None) | ResumedCall::Gone => {
                return Err(gone("`requestState` belongs to a call that has ended"));
            }
        };
        let responses = self.request.params.get("inputResponses");
        let responses = responses.and_then(|responses| responses.to_object());
        suspended.questions.answer(&responses.unwrap_or_else(Object::empty));
        if !suspended.questions.is_empty() {
            return self.suspend(Some(call), suspended);
        }
        let guard = suspended_calls::SuspendedCallGuard { calls: &self.gateway.suspended, call };
        let answer = self.follow(Some(call), suspended).await;
        std::mem::forget(guard);
        answer
    }

    /// Follows a call to its end, or to the next question of its server.
    pub(super) async fn follow(
        &self,
        place: Option<u64>,
        mut suspended: SuspendedCall,
    ) -> Result<RequestAnswer, RequestFailure> {
        let token = self.request.token();
        let mut ahead = None;
        loop {
            let event = match ahead.take() {
                Some(event) => event,
                None => next(&mut suspended.events).await,
            };
            let message = match event {
                CallEvent::Progress(progress) => {
                    token.as_ref().map(|token| report(token, &progress))
                }
                CallEvent::Log(params) => {
                    let wanted = suspended.log.is_some() && is_included(&params, suspended.log);
                    wanted.then(|| logged(&params))
                }
                CallEvent::Question(asked) | CallEvent::Approval(asked) => {
                    let allowed = self.modern.offers.allow(&asked.method, &asked.params);
                    if allowed {
                        suspended.questions.add(asked);
                        ahead = Box::pin(self.gather(&mut suspended)).await;
                        if ahead.is_none() {
                            return self.suspend(place, suspended);
                        }
                        suspended.questions.refuse("the call continued without a response");
                        continue;
                    }
                    if let Some(reply) = asked.reply {
                        reply.send(Err(RequestRefusal::not_offered(&asked.method)));
                    }
                    None
                }
                CallEvent::Notification { method, params } => {
                    Some(splice::notification(&method, Some(params.json())))
                }
                CallEvent::End(end) => {
                    let _ = self.request.outcome.set(OutcomeClass::of(&end));
                    let result = self.end(end, &suspended.server);
                    if let Some(call) = place {
                        let kept = result.as_ref().ok().map(|result| result.clone().into_bytes());
                        self.gateway.suspended.ended(call, kept);
                    }
                    return Ok(RequestAnswer::result(&self.request.id, result?));
                }
                _ => None,
            };
            if let Some(message) = message {
                self.emitter.emit(ClientMessage::Message(message.into())).await;
            }
        }
    }

    /// Waits briefly for further questions of the server after its first, so that a client gets all of them at once.
    /// Returns the end, if the server does not wait for an answer.
    async fn gather(&self, suspended: &mut SuspendedCall) -> Option<CallEvent> {
        let until = tokio::time::Instant::now() + TOGETHER;
        loop {
            match tokio::time::timeout_at(until, next(&mut suspended.events)).await {
                Ok(CallEvent::Question(asked) | CallEvent::Approval(asked)) => {
                    if self.modern.offers.allow(&asked.method, &asked.params) {
                        suspended.questions.add(asked);
                    } else if let Some(reply) = asked.reply {
                        reply.send(Err(RequestRefusal::not_offered(&asked.method)));
                    }
                }
                Ok(event @ CallEvent::End(_)) => return Some(event),
                Ok(CallEvent::Progress(progress)) => {
                    if let Some(token) = self.request.token() {
                        self.emitter
                            .emit(ClientMessage::Message(report(&token, &progress).into()))
                            .await;
                    }
                }
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }

    /// Suspends a call and requests input from the client.
    fn suspend(
        &self,
        place: Option<u64>,
        suspended: SuspendedCall,
    ) -> Result<RequestAnswer, RequestFailure> {
        let requests = suspended.questions.requests();
        let server = suspended.server.clone();
        let usage = self.request.usage.as_ref();
        let most_each = usage.and_then(UsagePermit::max_suspended_calls);
        let kind = self.gateway.suspended.put(place, Box::new(suspended), most_each).map_err(
            |mut suspended| {
                suspended.questions.refuse("too many calls are waiting for a client response");
                RequestFailure::new(INTERNAL, "too many calls are waiting for a client response")
            },
        )?;
        Ok(RequestAnswer::result(
            &self.request.id,
            &input_required(&requests, &self.seal(&server, kind)),
        ))
    }

    fn seal(&self, server: &ServerId, kind: CallStateKind) -> String {
        let lasts = self.gateway.settings.limits.suspended_time;
        let caller = self.request.caller.id();
        suspended_calls::seal(&self.gateway.seal, caller, &self.bound(), server, lasts, kind)
    }

    fn bound(&self) -> suspended_calls::StateBinding<'_> {
        suspended_calls::StateBinding { method: &self.request.method, params: &self.request.params }
    }

    /// Returns the end of a call as a modern client expects it.
    fn end(
        &self,
        end: Result<CallOutcome, CallError>,
        server: &ServerId,
    ) -> Result<BodyChunks, RequestFailure> {
        let result = match end {
            Ok(CallOutcome::InputRequired(result)) => {
                return Ok((&self.wrapped(&result, server)).into());
            }
            Ok(CallOutcome::Task(task)) => {
                let created = tasks::created(&self.gateway.tasks, self.request, server, &task);
                return Ok(created.json().into());
            }
            Ok(outcome) => outcome.object().clone(),
            Err(CallError::Execution { code: URL_REQUIRED, raw, message, .. }) => {
                let urls = self
                    .urls(&raw, server)
                    .ok_or_else(|| RequestFailure::new(INTERNAL, message))?;
                return Ok((&urls).into());
            }
            Err(error) => era_results::failed(Era::Modern, &error)?,
        };
        let result = under_our_names(&self.request.current_listing(), server, result);
        Ok(era_results::modern(&self.request.method, &result))
    }

    /// A modern server's `input_required` result, with its state sealed by the gateway.
    fn wrapped(&self, result: &Object, server: &ServerId) -> Json {
        let Some(state) = result.get("requestState") else { return result.json().clone() };
        let sealed = self.seal(server, CallStateKind::Wrapped(state.to_string()));
        let mut writer = ObjectWriter::with_capacity(result.as_bytes().len() + sealed.len());
        writer.members(result, &["requestState"]);
        writer.text("requestState", &sealed);
        writer.finish()
    }

    /// A legacy server's error that requires URLs to be opened, as input requests.
    fn urls(&self, raw: &Json, server: &ServerId) -> Option<Json> {
        let data = raw.to_object()?.get("data")?.to_object()?;
        let wanted = data.get("elicitations")?.to_items()?;
        if wanted.is_empty() || !self.modern.offers.url {
            return None;
        }
        let mut requests = ObjectWriter::new();
        for (at, elicitation) in wanted.iter().enumerate() {
            let elicitation = elicitation.to_object()?;
            requests.object(&format!("q{}", at + 1), |request| {
                request.text("method", "elicitation/create");
                request.object("params", |params| {
                    params.members(&elicitation, &["elicitationId"]);
                });
            });
        }
        Some(input_required(&requests.finish(), &self.seal(server, CallStateKind::Again)))
    }
}
