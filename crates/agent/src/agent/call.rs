//! Tool calls: concurrent, each to its end, their results in order.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use consort_core::{
    Call as ServerCall, CallError, CallEvent as Happening, CallOutcome, ClientContext, Json,
    Object, RepeatSafety, SESSION, StreamSender,
};
use consort_protocol::splice::ObjectWriter;
use serde_json::Value;
use tokio::sync::Semaphore;

use super::{RunEnd, RunWorker, storage_failure};
use crate::arguments;
use crate::conversation::LockedConversation;
use crate::event::RunEvent;
use crate::hook::{HookMoment, HookVerdict};
use crate::meter::CallMeter;
use crate::run::{CallState, UnfinishedCall};
use crate::run_tools::{ASK_USER, READ_RESULT, RunTool};
use crate::settings::ErrorTreatment;
use crate::step::{RunStatus, StepEvent, UserQuestion};
use crate::truncate::{boundary, rest_note, shorten_result};
use consort_models::{MessagePart, ToolCall, ToolCallResult};

/// Pause before the first retry of a call; later ones are multiples of it.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Result of a call.
pub(super) struct CallCompletion {
    pub(super) result: ToolCallResult,
    pub(super) error: Option<&'static str>,
}

/// A call to be made, with its context.
pub(super) struct CallAttempt<'a> {
    pub(super) worker: &'a RunWorker,
    pub(super) conversation: &'a LockedConversation,
    pub(super) emitter: &'a StreamSender<RunEvent>,
    pub(super) call: &'a ToolCall,
    /// Answer of a user to the question of an earlier attempt.
    pub(super) earlier_answer: Option<(&'a UserQuestion, &'a Value)>,
    slot: Option<Arc<Semaphore>>,
}

impl RunWorker {
    /// Makes calls concurrently, within the limit of each server.
    pub(super) async fn call(
        &mut self,
        conversation: &LockedConversation,
        calls: Vec<UnfinishedCall>,
        emitter: &StreamSender<RunEvent>,
    ) -> Result<(), RunEnd> {
        let slots: Vec<Option<Arc<Semaphore>>> =
            calls.iter().map(|pending| self.slot(&pending.call)).collect();
        let worker = &*self;
        let is_foreign = |call: &ToolCall| {
            worker.agent.settings.client_tools.iter().any(|tool| tool.name() == call.name)
        };
        let mut making = Vec::new();
        for (pending, slot) in calls.iter().zip(slots) {
            if is_foreign(&pending.call) {
                continue;
            }
            let answered = match &pending.state {
                CallState::Answered(question, answer) => Some((question, answer)),
                _ => None,
            };
            let making_one = CallAttempt {
                worker,
                conversation,
                emitter,
                call: &pending.call,
                earlier_answer: answered,
                slot,
            };
            making.push(Box::pin(making_one.run()));
        }
        let are_foreign = making.len() < calls.len();
        join_all(making).await?;
        if are_foreign {
            return Err((RunStatus::Waiting, "calls are handed out".to_owned()));
        }
        Ok(())
    }

    fn slot(&mut self, call: &ToolCall) -> Option<Arc<Semaphore>> {
        let (run_tool, _) = self.tools.find(&call.name).ok()?;
        let slots = self.agent.settings.parallel.max(1);
        let slot = self.slots.entry(run_tool.target.server.clone());
        Some(Arc::clone(slot.or_insert_with(|| Arc::new(Semaphore::new(slots)))))
    }
}

impl CallAttempt<'_> {
    /// Makes the call and stores its result; stores none if it waits for a user.
    async fn run(self) -> Result<(), RunEnd> {
        let _slot = match &self.slot {
            // It is never closed.
            Some(slot) => slot.acquire().await.ok(),
            None => None,
        };
        let began = Instant::now();
        let meter = CallMeter::new(&self.worker.meter);
        let completion = self.complete(&meter).await?;
        let cost = meter.cost();
        if !cost.is_zero() {
            let step = StepEvent::AgentCost { call: self.call.id.clone(), cost };
            self.conversation.record(step).map_err(|error| storage_failure(&error))?;
        }
        let Some(completion) = completion else { return Ok(()) };
        let CallCompletion { result, error } = completion;
        let most = self.result_bytes();
        let (result, whole) = shorten_result(result, most);
        let took = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let error = error.map(str::to_owned);
        let step = StepEvent::Result {
            result: result.clone(),
            error: error.clone(),
            full_text: whole,
            duration_ms: took,
        };
        self.conversation.record(step).map_err(|error| storage_failure(&error))?;
        let agent = &self.worker.agent;
        agent.run_hooks(HookMoment::AfterCall { call: self.call, result: &result }).await?;
        self.emitter.emit(RunEvent::Result { result, error, duration_ms: took }).await;
        Ok(())
    }

    /// Maximum bytes of a result's text that the model sees at once.
    fn result_bytes(&self) -> usize {
        let usual = self.worker.agent.settings.result_bytes;
        self.conversation
            .read(crate::run::RunState::result_bytes)
            .map_or(usual, |most| most.min(usual))
    }

    async fn complete(&self, meter: &Arc<CallMeter>) -> Result<Option<CallCompletion>, RunEnd> {
        let settings = &self.worker.agent.settings;
        match &*self.call.name {
            ASK_USER if settings.has_user => return self.ask_user().await,
            READ_RESULT if self.conversation.read(crate::run::RunState::has_full_texts) => {
                return Ok(Some(self.read_result()));
            }
            _ => {}
        }
        let (run_tool, tool) = match self.worker.tools.find(&self.call.name) {
            Ok(found) => found,
            Err(nearest) => return Ok(Some(self.unknown_tool(nearest))),
        };
        let arguments = match arguments::read(&self.call.arguments, &tool.input_schema()) {
            Ok(arguments) => arguments,
            Err(wrong) => return Ok(Some(self.error_result(wrong, "arguments"))),
        };
        let arguments = match self.check_hooks(run_tool, arguments).await? {
            Ok(arguments) => arguments,
            Err(reason) => {
                return Ok(Some(self.error_result(format!("denied: {reason}"), "denied")));
            }
        };
        self.record_sent(run_tool, &arguments)?;
        let call = self.call.clone();
        self.emitter.emit(RunEvent::CallStarted { call, tool: run_tool.id.clone() }).await;
        let mut tries = 1;
        loop {
            let Some(end) = self.attempt(run_tool, &arguments, meter).await? else {
                return Ok(None);
            };
            let error = match end {
                Ok(outcome) => return Ok(Some(self.outcome(&outcome))),
                Err(error) => error,
            };
            match settings.on_error.0.get(error.kind()).copied().unwrap_or_default() {
                ErrorTreatment::Fail => {
                    return Err((RunStatus::Error, format!("`{}`: {error}", run_tool.id)));
                }
                ErrorTreatment::Retry
                    if error.repeat() == RepeatSafety::Safe
                        && tries < settings.work.call_attempts =>
                {
                    tokio::time::sleep(RETRY_PAUSE * tries).await;
                    tries += 1;
                }
                ErrorTreatment::Retry | ErrorTreatment::Report => {
                    return Ok(Some(self.failure(&error)));
                }
            }
        }
    }

    /// Returns the result for a tool that was not listed to the model. If an exposure lists other tools in place of
    /// tools, it explains how they are called.
    fn unknown_tool(&self, nearest: Vec<String>) -> CallCompletion {
        let (tools, name) = (&self.worker.tools, self.call.name.clone());
        let way = if tools.find("consort.call_tool").is_ok() {
            "tools that `find_tools` finds are called with `call_tool`: {\"name\": …, \"arguments\": {…}}"
        } else if nearest.is_empty() && tools.has_server_tools() {
            "the tools of a server are called with its `mcp_…` tool: {\"tool_name\": …, \"tool_inputs\": {…}}"
        } else {
            return self.failure(&CallError::Unknown { kind: "tool", name, nearest });
        };
        self.error_result(format!("unknown tool `{name}`; {way}"), "unknown")
    }

    /// Calls the hooks before a call: returns its arguments, or the reason it is not made.
    async fn check_hooks(
        &self,
        run_tool: &RunTool,
        mut arguments: Object,
    ) -> Result<Result<Object, String>, RunEnd> {
        for hook in &self.worker.agent.settings.hooks {
            let moment = HookMoment::BeforeCall {
                call: self.call,
                tool: &run_tool.id,
                arguments: &arguments,
            };
            match hook.check(moment).await {
                HookVerdict::Continue => {}
                HookVerdict::Edit(edited) => arguments = edited,
                HookVerdict::Refuse(reason) => return Ok(Err(reason)),
                HookVerdict::Stop(reason) => return Err((RunStatus::Denied, reason)),
            }
        }
        Ok(Ok(arguments))
    }

    /// Stores that the call is sent, before it is.
    pub(super) fn record_sent(&self, run_tool: &RunTool, arguments: &Object) -> Result<(), RunEnd> {
        let same = arguments.json().as_str() == self.call.arguments.as_str();
        let arguments = if same { None } else { arguments.json().read().ok() };
        let (call, tool) = (self.call.id.clone(), run_tool.id.clone());
        let step = StepEvent::CallSent { call, tool, arguments };
        self.conversation.record(step).map_err(|error| storage_failure(&error))
    }

    /// Makes the call once; returns `None` if it waits for a user and so was not sent.
    async fn attempt(
        &self,
        run_tool: &RunTool,
        arguments: &Object,
        meter: &Arc<CallMeter>,
    ) -> Result<Option<Result<CallOutcome, CallError>>, RunEnd> {
        let agent = &self.worker.agent;
        let settings = &agent.settings;
        let mut meta = ObjectWriter::new();
        meta.text(SESSION, settings.session.as_deref().unwrap_or(&self.worker.run));
        for (key, value) in self.worker.observation.iter().flat_map(|it| it.context()) {
            meta.text(key, &value);
        }
        let (caller, target) = (agent.caller(), run_tool.target.clone());
        let mut call = ServerCall::tool(caller, target, arguments.json().clone())
            .by(ClientContext::local(agent.offers(), self.worker.session.clone()));
        call.set_meta(&meta.finish_object());
        call.agent = Some(Arc::clone(&self.worker.calling));
        call.meter = Some(Arc::<CallMeter>::clone(meter));
        let mut events = self.worker.agent.toolbox.call(call);
        loop {
            let call = self.call.id.clone();
            match events.next().await {
                Some(Happening::Progress(progress)) => {
                    let (total, message) = (progress.total(), progress.message());
                    let progress = progress.progress();
                    self.emitter.emit(RunEvent::Progress { call, progress, total, message }).await;
                }
                Some(Happening::Log(params)) => {
                    let log = params.json().clone();
                    self.emitter.emit(RunEvent::Log { call, log }).await;
                }
                Some(Happening::Approval(request)) => {
                    if !self.approve(run_tool, arguments, request).await? {
                        return Ok(None);
                    }
                }
                Some(Happening::Question(request)) => self.answer_server(request).await,
                Some(Happening::Skipped(count)) => {
                    let text = format!("{count} events of `{}` were skipped", run_tool.id);
                    self.emitter.emit(RunEvent::Note { text }).await;
                }
                Some(Happening::End(end)) => return Ok(Some(end)),
                Some(_) => {}
                None => unreachable!("an end comes before nothing"),
            }
        }
    }

    fn outcome(&self, outcome: &CallOutcome) -> CallCompletion {
        match outcome {
            CallOutcome::Complete(result) => {
                CallCompletion { result: ToolCallResult::new(&self.call.id, result), error: None }
            }
            CallOutcome::InputRequired(_) => {
                let text = "the server requests input, and no user is available to respond";
                self.error_result(text.to_owned(), "input_required")
            }
            CallOutcome::Task(task) => {
                let status = task.text("status").unwrap_or_default();
                self.error_result(format!("the server created a task ({status})"), "task")
            }
        }
    }

    fn failure(&self, error: &CallError) -> CallCompletion {
        let hint = error.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
        self.error_result(format!("{error}{hint}"), error.kind())
    }

    pub(super) fn error_result(&self, text: String, kind: &'static str) -> CallCompletion {
        CallCompletion { result: ToolCallResult::error(&self.call.id, text), error: Some(kind) }
    }

    /// Returns a part of a result that was too large.
    fn read_result(&self) -> CallCompletion {
        let wanted = self.call.arguments.object();
        let call = wanted.as_ref().and_then(|object| object.text("call")).unwrap_or_default();
        let from = wanted.and_then(|object| object.get("from")?.read::<usize>().ok()).unwrap_or(0);
        let Some(whole) = self.conversation.read(|run| run.full_text(&call).cloned()) else {
            let text = format!("unknown result `{call}`");
            return self.error_result(text, "unknown");
        };
        let most = self.result_bytes();
        let begin = boundary(&whole, from);
        let end = boundary(&whole, begin.saturating_add(most));
        let mut text = whole[begin..end].to_owned();
        if end < whole.len() {
            text.push_str(&rest_note(&call, end, whole.len()));
        }
        let parts = vec![MessagePart::text(text)];
        let result = ToolCallResult { call: self.call.id.clone(), parts, is_error: false };
        CallCompletion { result, error: None }
    }
}

/// Runs futures concurrently until all are done, or one fails.
async fn join_all<F>(mut running: Vec<Pin<Box<F>>>) -> Result<(), RunEnd>
where
    F: Future<Output = Result<(), RunEnd>>,
{
    std::future::poll_fn(|cx| {
        let mut failed = None;
        running.retain_mut(|future| match future.as_mut().poll(cx) {
            Poll::Pending => true,
            Poll::Ready(Ok(())) => false,
            Poll::Ready(Err(end)) => {
                failed.get_or_insert(end);
                false
            }
        });
        match failed {
            Some(end) => Poll::Ready(Err(end)),
            None if running.is_empty() => Poll::Ready(Ok(())),
            None => Poll::Pending,
        }
    })
    .await
}

/// Returns the answer of a user as JSON for a server.
pub(super) fn to_json(value: &Value) -> Json {
    Json::from(value.clone())
}
