//! Tool calls: concurrent, each to its end, their results in order.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use consort_core::{
    Call as ServerCall, CallError, ClientContext, Emitter, Event as Happening, Json, Object,
    Offers, Outcome, Repeat, SESSION,
};
use consort_wire::splice::Writer;
use serde_json::Value;
use tokio::sync::Semaphore;

use super::{End, Worker, unkept};
use crate::arguments;
use crate::bound::{ASK_USER, BoundTool, READ_RESULT};
use crate::conversation::Taken;
use crate::event::Event;
use crate::hook::{Moment, Verdict};
use crate::meter::CallMeter;
use crate::run::{CallState, Pending};
use crate::settings::Treat;
use crate::shorten::{boundary, rest, shortened};
use crate::step::{Question, Status, What};
use consort_models::{MessagePart, ToolCall, ToolCallResult};

/// Pause before the first retry of a call; later ones are multiples of it.
const PAUSE: Duration = Duration::from_secs(1);

/// Result of a call.
pub(super) struct Came {
    pub(super) result: ToolCallResult,
    pub(super) error: Option<&'static str>,
}

/// A call to be made, with its context.
pub(super) struct Making<'a> {
    pub(super) worker: &'a Worker,
    pub(super) taken: &'a Taken,
    pub(super) emitter: &'a Emitter<Event>,
    pub(super) call: &'a ToolCall,
    /// Answer of a user to the question of an earlier attempt.
    pub(super) answered: Option<(&'a Question, &'a Value)>,
    slot: Option<Arc<Semaphore>>,
}

impl Worker {
    /// Makes calls concurrently, within the limit of each server.
    pub(super) async fn call(
        &mut self,
        taken: &Taken,
        calls: Vec<Pending>,
        emitter: &Emitter<Event>,
    ) -> Result<(), End> {
        let slots: Vec<Option<Arc<Semaphore>>> =
            calls.iter().map(|pending| self.slot(&pending.call)).collect();
        let worker = &*self;
        let is_foreign = |call: &ToolCall| {
            worker.agent.settings.foreign.iter().any(|tool| tool.name() == call.name)
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
            let making_one = Making { worker, taken, emitter, call: &pending.call, answered, slot };
            making.push(Box::pin(making_one.make()));
        }
        let are_foreign = making.len() < calls.len();
        together(making).await?;
        if are_foreign {
            return Err((Status::Waiting, "calls are handed out".to_owned()));
        }
        Ok(())
    }

    fn slot(&mut self, call: &ToolCall) -> Option<Arc<Semaphore>> {
        let (bound, _) = self.tools.find(&call.name).ok()?;
        let slots = self.agent.settings.parallel.max(1);
        let slot = self.slots.entry(bound.target.server.clone());
        Some(Arc::clone(slot.or_insert_with(|| Arc::new(Semaphore::new(slots)))))
    }
}

impl Making<'_> {
    /// Makes the call and stores its result; stores none if it waits for a user.
    async fn make(self) -> Result<(), End> {
        let _slot = match &self.slot {
            // Nobody closes it.
            Some(slot) => slot.acquire().await.ok(),
            None => None,
        };
        let began = Instant::now();
        let meter = CallMeter::new(&self.worker.meter);
        let came = self.came(&meter).await?;
        let cost = meter.spent();
        if !cost.is_zero() {
            let step = What::Charged { call: self.call.id.clone(), cost };
            self.taken.step(step).map_err(|error| unkept(&error))?;
        }
        let Some(came) = came else { return Ok(()) };
        let Came { result, error } = came;
        let most = self.result_bytes();
        let (result, whole) = shortened(result, most);
        let took = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let error = error.map(str::to_owned);
        let step = What::Result { result: result.clone(), error: error.clone(), whole, took };
        self.taken.step(step).map_err(|error| unkept(&error))?;
        let agent = &self.worker.agent;
        agent.verdict(Moment::Called { call: self.call, result: &result }).await?;
        self.emitter.emit(Event::Result { result, error, took }).await;
        Ok(())
    }

    /// Maximum bytes of a result's text that the model sees at once.
    fn result_bytes(&self) -> usize {
        let usual = self.worker.agent.settings.result_bytes;
        self.taken.look(crate::run::Run::result_bytes).map_or(usual, |most| most.min(usual))
    }

    async fn came(&self, meter: &Arc<CallMeter>) -> Result<Option<Came>, End> {
        let settings = &self.worker.agent.settings;
        match &*self.call.name {
            ASK_USER if settings.person => return self.ask_user().await,
            READ_RESULT if self.taken.look(crate::run::Run::has_wholes) => {
                return Ok(Some(self.read_result()));
            }
            _ => {}
        }
        let (bound, tool) = match self.worker.tools.find(&self.call.name) {
            Ok(found) => found,
            Err(nearest) => return Ok(Some(self.unknown(nearest))),
        };
        let arguments = match arguments::read(&self.call.arguments, &tool.input_schema()) {
            Ok(arguments) => arguments,
            Err(wrong) => return Ok(Some(self.wrong(wrong, "arguments"))),
        };
        let arguments = match self.looked_at(bound, arguments).await? {
            Ok(arguments) => arguments,
            Err(reason) => return Ok(Some(self.wrong(format!("denied: {reason}"), "denied"))),
        };
        self.leave(bound, &arguments)?;
        let call = self.call.clone();
        self.emitter.emit(Event::Called { call, tool: bound.id.clone() }).await;
        let mut tries = 1;
        loop {
            let Some(end) = self.go(bound, &arguments, meter).await? else { return Ok(None) };
            let error = match end {
                Ok(outcome) => return Ok(Some(self.outcome(&outcome))),
                Err(error) => error,
            };
            match settings.on_error.0.get(error.kind()).copied().unwrap_or_default() {
                Treat::Fail => return Err((Status::Error, format!("`{}`: {error}", bound.id))),
                Treat::Retry
                    if error.repeat() == Repeat::Safe && tries < settings.work.call_attempts =>
                {
                    tokio::time::sleep(PAUSE * tries).await;
                    tries += 1;
                }
                Treat::Retry | Treat::Tell => return Ok(Some(self.failed(&error))),
            }
        }
    }

    /// Returns the result for a tool that was not listed to the model. If an exposure lists other tools in place of
    /// tools, it explains how they are called.
    fn unknown(&self, nearest: Vec<String>) -> Came {
        let (tools, name) = (&self.worker.tools, self.call.name.clone());
        let way = if tools.find("consort.call_tool").is_ok() {
            "tools that `find_tools` finds are called with `call_tool`: {\"name\": …, \"arguments\": {…}}"
        } else if nearest.is_empty() && tools.has_server_tools() {
            "the tools of a server are called with its `mcp_…` tool: {\"tool_name\": …, \"tool_inputs\": {…}}"
        } else {
            return self.failed(&CallError::Unknown { kind: "tool", name, nearest });
        };
        self.wrong(format!("unknown tool `{name}`; {way}"), "unknown")
    }

    /// Calls the hooks before a call: returns its arguments, or the reason it is not made.
    async fn looked_at(
        &self,
        bound: &BoundTool,
        mut arguments: Object,
    ) -> Result<Result<Object, String>, End> {
        for hook in &self.worker.agent.settings.hooks {
            let moment =
                Moment::Calling { call: self.call, tool: &bound.id, arguments: &arguments };
            match hook.at(moment).await {
                Verdict::Go => {}
                Verdict::Edit(edited) => arguments = edited,
                Verdict::Refuse(reason) => return Ok(Err(reason)),
                Verdict::Stop(reason) => return Err((Status::Denied, reason)),
            }
        }
        Ok(Ok(arguments))
    }

    /// Stores that the call is sent, before it is.
    pub(super) fn leave(&self, bound: &BoundTool, arguments: &Object) -> Result<(), End> {
        let same = arguments.json().as_str() == self.call.arguments.as_str();
        let arguments = if same { None } else { arguments.json().read().ok() };
        let (call, tool) = (self.call.id.clone(), bound.id.clone());
        let step = What::Called { call, tool, arguments };
        self.taken.step(step).map_err(|error| unkept(&error))
    }

    /// Makes the call once; returns `None` if it waits for a user and so was not sent.
    async fn go(
        &self,
        bound: &BoundTool,
        arguments: &Object,
        meter: &Arc<CallMeter>,
    ) -> Result<Option<Result<Outcome, CallError>>, End> {
        let settings = &self.worker.agent.settings;
        let offers = Offers {
            form: settings.person,
            sampling: settings.sampling.is_offered(settings.person),
            ..Offers::default()
        };
        let mut meta = Writer::new();
        meta.text(SESSION, settings.session.as_deref().unwrap_or(&self.worker.run));
        for (key, value) in self.worker.observation.iter().flat_map(|it| it.context()) {
            meta.text(key, &value);
        }
        let (caller, target) = (settings.caller.clone(), bound.target.clone());
        let mut call = ServerCall::tool(caller, target, arguments.json().clone())
            .by(ClientContext::local(Arc::new(offers), self.worker.session.clone()));
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
                    self.emitter.emit(Event::Progress { call, progress, total, message }).await;
                }
                Some(Happening::Log(params)) => {
                    let log = params.json().clone();
                    self.emitter.emit(Event::Log { call, log }).await;
                }
                Some(Happening::Approval(asked)) => {
                    if !self.approve(bound, arguments, asked).await? {
                        return Ok(None);
                    }
                }
                Some(Happening::Question(asked)) => self.question(asked).await,
                Some(Happening::Skipped(count)) => {
                    let text = format!("{count} events of `{}` were not told", bound.id);
                    self.emitter.emit(Event::Note { text }).await;
                }
                Some(Happening::End(end)) => return Ok(Some(end)),
                Some(_) => {}
                None => unreachable!("an end comes before nothing"),
            }
        }
    }

    fn outcome(&self, outcome: &Outcome) -> Came {
        match outcome {
            Outcome::Complete(result) => {
                Came { result: ToolCallResult::new(&self.call.id, result), error: None }
            }
            Outcome::InputRequired(_) => {
                let text = "the server needs answers that nobody here can give";
                self.wrong(text.to_owned(), "input_required")
            }
            Outcome::Task(task) => {
                let status = task.text("status").unwrap_or_default();
                self.wrong(format!("the server made a task of it ({status})"), "task")
            }
        }
    }

    fn failed(&self, error: &CallError) -> Came {
        let hint = error.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
        self.wrong(format!("{error}{hint}"), error.kind())
    }

    pub(super) fn wrong(&self, text: String, kind: &'static str) -> Came {
        Came { result: ToolCallResult::error(&self.call.id, text), error: Some(kind) }
    }

    /// Returns a part of a result that was too large.
    fn read_result(&self) -> Came {
        let wanted = self.call.arguments.object();
        let call = wanted.as_ref().and_then(|object| object.text("call")).unwrap_or_default();
        let from = wanted.and_then(|object| object.get("from")?.read::<usize>().ok()).unwrap_or(0);
        let Some(whole) = self.taken.look(|run| run.whole(&call).cloned()) else {
            let text = format!("no shortened result is called `{call}`");
            return self.wrong(text, "unknown");
        };
        let most = self.result_bytes();
        let begin = boundary(&whole, from);
        let end = boundary(&whole, begin.saturating_add(most));
        let mut text = whole[begin..end].to_owned();
        if end < whole.len() {
            text.push_str(&rest(&call, end, whole.len()));
        }
        let parts = vec![MessagePart::text(text)];
        let result = ToolCallResult { call: self.call.id.clone(), parts, is_error: false };
        Came { result, error: None }
    }
}

/// Runs futures concurrently until all are done, or one fails.
async fn together<F>(mut running: Vec<Pin<Box<F>>>) -> Result<(), End>
where
    F: Future<Output = Result<(), End>>,
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
pub(super) fn json(value: &Value) -> Json {
    Json::from(value.clone())
}
