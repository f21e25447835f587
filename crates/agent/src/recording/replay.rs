//! Replay of a recording: the same answers to the same requests, and nothing else.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use consort_core::{
    CallError, CallEvent, CallEvents, Caller, Catalog, CatalogChanges, DrivenStream,
    PendingServerRequest as Question, Progress, RequestResponder as Answering, StreamSender,
    Toolbox,
};
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::sync::oneshot;

use super::difference;
use super::line::{
    self, RecordLine, RecordedAnswer, RecordedCall, RecordedCatalog, RecordedDelta, RecordedEvent,
    RecordedFinish, RecordedOperation, name_of,
};
use super::output::clean_message;
use super::redact::{Redactor, without_numbers};
use consort_models::{
    ModelProvider, ModelRequest, ProviderError, ProviderErrorKind, ProviderEvent,
};

/// A recording that is replayed, and its progress.
pub(super) struct RecordingPlayer {
    redactor: Redactor,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Recorded model requests, in order.
    turns: Vec<ReplayTurn>,
    /// Number of model requests in this run.
    model_requests: usize,
    calls: Vec<ReplayCall>,
    catalogs: Vec<(String, usize, Arc<Catalog>)>,
    /// First difference from the recorded run.
    diverged: Option<String>,
}

impl Inner {
    /// Notes a difference; returns the first one.
    fn diverge(&mut self, difference: &str) -> String {
        let turn = self.model_requests;
        self.diverged.get_or_insert_with(|| format!("turn {turn}: {difference}")).clone()
    }
}

struct ReplayTurn {
    number: usize,
    messages: Vec<Value>,
    tools: Vec<String>,
    /// Absent once it was replayed.
    reply: Option<(VecDeque<RecordedDelta>, Option<RecordedFinish>)>,
}

struct ReplayCall {
    number: usize,
    request: RecordedOperation,
    played: bool,
    events: Vec<RecordedEvent>,
    end: Option<line::RecordedEnd>,
}

impl RecordingPlayer {
    /// Returns true if a tool of this name was listed to the model.
    pub(super) fn lists_tool(&self, tool: &str) -> bool {
        let inner = self.lock();
        inner.turns.iter().any(|turn| turn.tools.iter().any(|known| known == tool))
    }

    pub(super) fn new(lines: impl IntoIterator<Item = RecordLine>, redactor: Redactor) -> Self {
        let mut inner = Inner::default();
        let mut last: Vec<Value> = Vec::new();
        for line in lines {
            match line {
                RecordLine::Head { .. } => {}
                RecordLine::Catalog(catalog) => {
                    let RecordedCatalog { caller, model_requests, .. } = &catalog;
                    let (caller, model_requests) = (caller.clone(), *model_requests);
                    inner.catalogs.push((caller, model_requests, catalog.play()));
                }
                RecordLine::Ask(ask) => {
                    last.truncate(ask.same);
                    last.extend(ask.messages);
                    inner.turns.push(ReplayTurn {
                        number: ask.turn,
                        messages: last.clone(),
                        tools: ask.tools,
                        reply: Some((ask.deltas.into(), ask.end)),
                    });
                }
                RecordLine::Call(RecordedCall { number, request, events, end }) => {
                    inner.calls.push(ReplayCall { number, request, played: false, events, end });
                }
            }
        }
        inner.turns.sort_by_key(|turn| turn.number);
        inner.calls.sort_by_key(|call| call.number);
        Self { redactor, inner: Mutex::new(inner) }
    }

    /// Returns the difference from the recorded run: the first one, or the first request that was not repeated.
    pub(super) fn divergence(&self) -> Option<String> {
        let inner = self.lock();
        let diverged = inner.diverged.clone();
        let turn = || {
            let unplayed = inner.turns.iter().find(|turn| turn.reply.is_some())?;
            Some(format!("turn {}: the recorded model request was not made", unplayed.number))
        };
        let call = || {
            let unplayed = inner.calls.iter().find(|call| !call.played)?;
            Some(format!("`{}` was recorded and is not called", unplayed.request.name))
        };
        diverged.or_else(turn).or_else(call)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    /// Returns the recorded answer to this model request.
    fn take_turn(
        &self,
        ask: &ModelRequest,
    ) -> Result<(VecDeque<RecordedDelta>, Option<RecordedFinish>), String> {
        let now: Vec<Value> =
            ask.messages.iter().map(|message| clean_message(message, &self.redactor)).collect();
        let tools: Vec<String> = ask.tools.iter().map(consort_core::Tool::name).collect();
        let mut inner = self.lock();
        inner.model_requests += 1;
        if let Some(diverged) = &inner.diverged {
            return Err(diverged.clone());
        }
        let differs = |turn: &ReplayTurn| {
            difference::compare_requests((&turn.messages, &turn.tools), (&now, &tools))
        };
        let open = |turn: &&mut ReplayTurn| turn.reply.is_some();
        // In order; or, where several ask side by side, whichever it is.
        let turn = inner.turns.iter_mut().filter(open).find(|turn| differs(turn).is_none());
        let same = turn.and_then(|turn| turn.reply.take());
        if let Some(reply) = same {
            return Ok(reply);
        }
        let next = inner.turns.iter().find(|turn| turn.reply.is_some());
        let difference = match next {
            None => format!(
                "turn {}: one model request more than the {} recorded",
                inner.model_requests,
                inner.turns.len()
            ),
            Some(turn) => {
                let difference = differs(turn).unwrap_or_default();
                format!("turn {}: the model request differs: {difference}", turn.number)
            }
        };
        inner.diverged = Some(difference.clone());
        Err(difference)
    }

    /// Returns the recorded events of this call.
    fn take_call(
        &self,
        request: RecordedOperation,
    ) -> Result<(Vec<RecordedEvent>, Option<line::RecordedEnd>), String> {
        let name = request.name.clone();
        let request = self.redactor.clean(request).ok_or("it cannot be compared")?;
        let mut inner = self.lock();
        let hidden = |request: &RecordedOperation| without_numbers(&request.arguments.to_string());
        let exact = |call: &ReplayCall| call.request == request;
        let same = |call: &ReplayCall| {
            call.request.name == name && hidden(&call.request) == hidden(&request)
        };
        let open = |call: &ReplayCall| !call.played;
        let calls = &mut inner.calls;
        let position = calls.iter().position(|call| open(call) && exact(call));
        let position = position.or_else(|| calls.iter().position(|call| open(call) && same(call)));
        if let Some(at) = position {
            let call = &mut calls[at];
            call.played = true;
            return Ok((std::mem::take(&mut call.events), call.end.take()));
        }
        let times = calls.iter().filter(|call| same(call)).count();
        let other = calls.iter().find(|call| open(call) && call.request.name == name);
        let difference = match other {
            _ if times > 0 => {
                format!(
                    "`{name}` is called with the same arguments more often than the {times} times recorded"
                )
            }
            Some(other) => {
                let difference =
                    difference::compare_values(&other.request.arguments, &request.arguments, "");
                format!(
                    "`{name}` is called with different arguments{}",
                    difference.unwrap_or_default()
                )
            }
            None => {
                let arguments = difference::truncate(&request.arguments);
                format!("`{name}` is called with {arguments}, which was not recorded")
            }
        };
        Err(inner.diverge(&difference))
    }

    /// Repeats a question of a server or a policy, and compares the answer.
    async fn ask(
        &self,
        question: line::RecordedQuestion,
        emitter: &StreamSender<CallEvent>,
        event: impl FnOnce(Question) -> CallEvent,
    ) -> Result<(), String> {
        let line::RecordedQuestion { method, params, open, answer } = question;
        let params = params.0.to_object().ok_or("a question has no parameters")?;
        if !open {
            emitter.emit(event(Question { method, params, reply: None })).await;
            return Ok(());
        }
        let (sender, receiver) = oneshot::channel();
        let reply = Answering::new(move |answer| {
            let _ = sender.send(answer);
        });
        emitter.emit(event(Question { method: method.clone(), params, reply: Some(reply) })).await;
        let given = match receiver.await {
            Ok(Ok(given)) => RecordedAnswer::Result(given.read().unwrap_or_default()),
            Ok(Err(refusal)) => {
                RecordedAnswer::Error { code: refusal.code, message: refusal.message }
            }
            Err(_) => return Ok(()),
        };
        let Some(answer) = answer else { return Ok(()) };
        let given = self.redactor.clean(given).ok_or("an answer cannot be compared")?;
        let [before, now] =
            [&answer, &given].map(|it| serde_json::to_value(it).unwrap_or_default());
        match difference::compare_values(&before, &now, "") {
            None => Ok(()),
            Some(difference) => {
                let difference = format!("the response to `{method}` differs{difference}");
                Err(self.lock().diverge(&difference))
            }
        }
    }

    async fn play(
        &self,
        request: RecordedOperation,
        emitter: &StreamSender<CallEvent>,
    ) -> CallEvent {
        let refused =
            |reason: String| CallEvent::End(Err(CallError::Denied { server: None, reason }));
        let (events, end) = match self.take_call(request) {
            Ok(taken) => taken,
            Err(difference) => return refused(difference),
        };
        for event in events {
            let replayed = match event {
                RecordedEvent::Question(question) => {
                    self.ask(question, emitter, CallEvent::Question).await
                }
                RecordedEvent::Approval(question) => {
                    self.ask(question, emitter, CallEvent::Approval).await
                }
                other => {
                    if let Some(event) = replayed_event(other) {
                        emitter.emit(event).await;
                    }
                    Ok(())
                }
            };
            if let Err(difference) = replayed {
                return refused(difference);
            }
        }
        match end.map(line::RecordedEnd::play) {
            Some(Some(end)) => CallEvent::End(end),
            Some(None) => refused("the recorded result is invalid".to_owned()),
            // The recorded caller cancelled here: the replay ends as well.
            None => CallEvent::End(Err(CallError::Cancelled { sent: true })),
        }
    }
}

/// Returns a recorded event; `None` if it cannot be repeated.
fn replayed_event(happening: RecordedEvent) -> Option<CallEvent> {
    Some(match happening {
        RecordedEvent::Progress(params) => {
            CallEvent::Progress(Progress::from(params.0.to_object()?))
        }
        RecordedEvent::Log(log) => CallEvent::Log(log.0.to_object()?),
        RecordedEvent::Task(task) => CallEvent::Task(task.0.to_object()?),
        RecordedEvent::Notification { method, params } => {
            CallEvent::Notification { method, params: params.0.to_object()? }
        }
        RecordedEvent::Skipped(count) => CallEvent::Skipped(count),
        RecordedEvent::Question(_) | RecordedEvent::Approval(_) => return None,
    })
}

/// A provider that repeats the recorded answers.
pub(super) struct ReplayProvider(pub(super) Arc<RecordingPlayer>);

impl ModelProvider for ReplayProvider {
    fn request(&self, ask: ModelRequest) -> DrivenStream<ProviderEvent> {
        let player = Arc::clone(&self.0);
        DrivenStream::new(|emitter| async move {
            let refused = |difference: String| {
                ProviderEvent::End(Err(ProviderError::new(ProviderErrorKind::Invalid, difference)))
            };
            let (deltas, end) = match player.take_turn(&ask) {
                Ok(turn) => turn,
                Err(difference) => return refused(difference),
            };
            for delta in deltas {
                let event = match delta {
                    RecordedDelta::Delta(delta) => ProviderEvent::Delta(delta),
                    RecordedDelta::Retry { error, after_ms } => {
                        ProviderEvent::Retry { error, after: Duration::from_millis(after_ms) }
                    }
                };
                emitter.emit(event).await;
            }
            match end {
                Some(RecordedFinish::Reply(reply)) => ProviderEvent::End(Ok(reply)),
                Some(RecordedFinish::Error(error)) => ProviderEvent::End(Err(error)),
                None => refused("the recording ends in the middle of this answer".to_owned()),
            }
        })
    }
}

/// A toolbox that repeats the recorded calls.
pub(super) struct ReplayToolbox(pub(super) Arc<RecordingPlayer>);

impl ReplayToolbox {
    fn play(&self, request: RecordedOperation) -> CallEvents {
        let player = Arc::clone(&self.0);
        CallEvents::new(|emitter| async move { player.play(request, &emitter).await })
    }
}

impl Toolbox for ReplayToolbox {
    /// Returns the recorded catalog of this caller, else that of any caller.
    fn catalog(&self, caller: &Caller) -> Arc<Catalog> {
        let inner = self.0.lock();
        let name = name_of(caller);
        let is_current = |(_, requests_before, _): &&(String, usize, Arc<Catalog>)| {
            *requests_before <= inner.model_requests
        };
        let own = inner.catalogs.iter().filter(|(caller, ..)| *caller == name).rfind(is_current);
        let catalog = own.or_else(|| inner.catalogs.iter().rfind(is_current));
        catalog.map(|(_, _, catalog)| Arc::clone(catalog)).unwrap_or_default()
    }

    fn call(&self, call: consort_core::Call) -> CallEvents {
        self.play(RecordedOperation::of(&call))
    }

    fn changes(&self) -> CatalogChanges {
        DrivenStream::new(|_| std::future::pending())
    }
}
