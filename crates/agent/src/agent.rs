//! Execution of a run: performs the next action that the run's state requires.

mod call;
mod cost;
mod questions;
mod request;
mod sampling;
mod shortening;
mod tools;
mod window;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use consort_core::{CallingAgent, ClientSession, DrivenStream, StreamSender, Tool, Toolbox};
use tokio::sync::Semaphore;

use crate::conversation::{Conversation, ConversationError, LockedConversation, now};
use crate::event::RunEvent;
use crate::hook::{HookMoment, HookVerdict};
use crate::meter::RunMeter;
use crate::observer::RunObservation;
use crate::run::{CallState, NextAction, OUTCOME_UNKNOWN, RunState};
use crate::run_tools::RunTools;
use crate::settings::AgentSettings;
use crate::step::{RunParameters, RunReport, RunStatus, StepEvent};
use crate::task::ResolvedTask;
use consort_models::{ChatMessage, Model, ModelReply, ProviderError, ToolCallResult};

use window::ContextWindow;

/// Status and reason of a run's end.
type RunEnd = (RunStatus, String);

/// An agent: a model with a toolbox.
///
/// ```
/// use std::sync::Arc;
/// use consort_agent::{Agent, Conversation, RunEvent, AgentSettings, RunStatus};
/// use consort_models::{ChatMessage, Model, ModelScript};
/// # use consort_core::{Call, Caller, Catalog, CallEvents, CatalogChanges, DrivenStream, Toolbox};
/// # struct Nothing;
/// # impl Toolbox for Nothing {
/// #     fn catalog(&self, _: &Caller) -> Arc<Catalog> { Arc::default() }
/// #     fn call(&self, _: Call) -> CallEvents { unreachable!() }
/// #     fn changes(&self) -> CatalogChanges { DrivenStream::new(|_| std::future::pending()) }
/// # }
/// # let toolbox = Arc::new(Nothing);
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let script = ModelScript::parse(r#"{"turns": [{"text": "Good morning."}]}"#)?;
/// let agent = Agent::new(Model::scripted(script), toolbox, AgentSettings::new("greeter"));
/// let mut events = agent.run(&Conversation::new(), vec![ChatMessage::user("Hello!")]);
/// while let Some(event) = events.next().await {
///     if let RunEvent::Ended { report } = event {
///         assert_eq!((report.status, &*report.text), (RunStatus::Completed, "Good morning."));
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Agent {
    /// The model.
    pub model: Model,
    /// Tools that it may call.
    pub toolbox: Arc<dyn Toolbox>,
    /// Settings of its runs.
    pub settings: AgentSettings,
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent").field("name", &self.settings.name).finish_non_exhaustive()
    }
}

impl Agent {
    /// Creates an agent from a model and a toolbox.
    pub fn new(model: Model, toolbox: Arc<dyn Toolbox>, settings: AgentSettings) -> Self {
        Self { model, toolbox, settings }
    }

    /// Answers the input. The run proceeds while the stream is read; dropping the stream interrupts it and cancels its
    /// calls, and [`Conversation::stop`] ends it in order. Without input, a run that was interrupted, or that waited
    /// for a user, continues where it was, and one that completed reports its end again. The stream ends with exactly
    /// one [`RunEvent::Ended`].
    pub fn run(
        &self,
        conversation: &Conversation,
        input: Vec<ChatMessage>,
    ) -> DrivenStream<RunEvent> {
        self.start_run(conversation, input, None)
    }

    /// Performs a task, with its own tools and session.
    pub fn perform(
        &self,
        conversation: &Conversation,
        ready: ResolvedTask,
    ) -> DrivenStream<RunEvent> {
        let ResolvedTask { task, tools } = ready;
        let mut agent = self.clone();
        agent.settings.session = task.session.or(Some(task.id)).filter(|id| !id.is_empty());
        agent.start_run(conversation, vec![ChatMessage::user(task.description)], Some(tools))
    }

    fn start_run(
        &self,
        conversation: &Conversation,
        input: Vec<ChatMessage>,
        tools: Option<RunTools>,
    ) -> DrivenStream<RunEvent> {
        let (agent, conversation) = (self.clone(), conversation.clone());
        DrivenStream::new(|emitter| async move {
            let report = match conversation.lock_for_run() {
                Some(conversation) => {
                    Box::pin(agent.execute(conversation, input, tools, &emitter)).await
                }
                None => RunReport {
                    status: RunStatus::Error,
                    reason: ConversationError::Busy.to_string(),
                    ..conversation.report()
                },
            };
            RunEvent::Ended { report }
        })
    }

    async fn execute(
        self,
        conversation: LockedConversation,
        input: Vec<ChatMessage>,
        tools: Option<RunTools>,
        emitter: &StreamSender<RunEvent>,
    ) -> RunReport {
        // What is done is done, also for those who did not hear of it.
        if input.is_empty() && conversation.read(|run| run.outcome() == Some(RunStatus::Completed))
        {
            return conversation.read(|run| run.report(self.model.facts.price));
        }
        let (mut hint, mut observation) = (None, None);
        let (status, reason) = match self.begin(&conversation, &input, tools, emitter).await {
            Ok(mut worker) => {
                observation.clone_from(&worker.observation);
                let limit = self.settings.limits.time;
                let working = async {
                    let end = worker.run_steps(&conversation, emitter).await;
                    hint = worker.hint.take();
                    end
                };
                tokio::select! {
                    end = working => end,
                    () = conversation.wait_for_stop() => (RunStatus::Cancelled, "the run was stopped".to_owned()),
                    () = sleep_for(limit) => {
                        (RunStatus::LimitReached, self.settings.limits.time_reached())
                    }
                }
            }
            Err(end) => end,
        };
        // What was on its way is no longer waited for.
        let closed = close_sent_calls(&conversation);
        let kept =
            closed.and_then(|()| conversation.record(StepEvent::RunEnded { status, reason }));
        let mut report = conversation.read(|run| run.report(self.model.facts.price));
        report.hint = hint;
        if let Err(error) = kept {
            (report.status, report.reason) = storage_failure(&error);
        }
        if let Some(observation) = observation {
            observation.end(&report);
        }
        for hook in &self.settings.hooks {
            hook.check(HookMoment::End(&report)).await;
        }
        report
    }

    /// Begins or resumes a run.
    async fn begin(
        &self,
        conversation: &LockedConversation,
        input: &[ChatMessage],
        tools: Option<RunTools>,
        emitter: &StreamSender<RunEvent>,
    ) -> Result<RunWorker, RunEnd> {
        self.check_price()?;
        let resumed = input.is_empty() && conversation.read(RunState::is_unfinished);
        let began = conversation.read(|run| run.parameters().cloned()).filter(|_| resumed);
        let tools = match tools {
            Some(tools) => tools,
            None => self
                .select_tools(began.as_ref())
                .await
                .map_err(|error| tools::tools_unavailable(&error))?,
        };
        let run = match began {
            Some(began) => {
                close_sent_calls(conversation).map_err(|error| storage_failure(&error))?;
                began.run
            }
            None => {
                self.run_hooks(HookMoment::Input(input)).await?;
                self.start(conversation, input, &tools).map_err(|error| storage_failure(&error))?
            }
        };
        let model = self.model.id.clone();
        let observation = self.observe(&run);
        let calling = CallingAgent { name: self.settings.name.clone(), model: model.clone() };
        emitter.emit(RunEvent::Started { run: run.clone(), model, tools: tools.ids().len() }).await;
        Ok(RunWorker {
            window: ContextWindow::default(),
            agent: self.clone(),
            calling: Arc::new(calling),
            observation,
            tools,
            run,
            session: ClientSession::new(),
            listed_tools: None,
            slots: HashMap::new(),
            meter: self.meter(conversation),
            hint: None,
        })
    }

    fn start(
        &self,
        conversation: &LockedConversation,
        input: &[ChatMessage],
        tools: &RunTools,
    ) -> std::io::Result<String> {
        let run = new_run_id();
        conversation.record(StepEvent::RunStarted(RunParameters {
            run: run.clone(),
            agent: self.settings.name.clone(),
            model: self.model.id.clone(),
            tools: tools.ids(),
        }))?;
        for message in input {
            conversation.record(StepEvent::Message { message: message.clone() })?;
        }
        Ok(run)
    }

    /// Calls the hooks at a moment at which all they can do is to stop the run.
    async fn run_hooks(&self, moment: HookMoment<'_>) -> Result<(), RunEnd> {
        for hook in &self.settings.hooks {
            match hook.check(moment).await {
                HookVerdict::Continue | HookVerdict::Edit(_) => {}
                HookVerdict::Refuse(reason) | HookVerdict::Stop(reason) => {
                    return Err((RunStatus::Denied, reason));
                }
            }
        }
        Ok(())
    }
}

/// A run in progress.
struct RunWorker {
    agent: Agent,
    /// The agent as named in calls.
    calling: Arc<CallingAgent>,
    observation: Option<Arc<dyn RunObservation>>,
    tools: RunTools,
    run: String,
    /// The client session of the run at servers.
    session: ClientSession,
    /// Tools listed to the model last, and true if `read_result` was among them.
    listed_tools: Option<(bool, Arc<[Tool]>)>,
    /// Limits of concurrent calls, by server.
    slots: HashMap<consort_core::ServerId, Arc<Semaphore>>,
    /// Cost of the run, with the agents it calls.
    meter: Arc<RunMeter>,
    /// Use of the model's context window.
    window: ContextWindow,
    /// Advice about an error.
    hint: Option<String>,
}

impl RunWorker {
    /// Performs the next action until the run ends.
    async fn run_steps(
        &mut self,
        conversation: &LockedConversation,
        emitter: &StreamSender<RunEvent>,
    ) -> RunEnd {
        loop {
            let (limits, price) = (&self.agent.settings.limits, self.agent.model.facts.price);
            let next = conversation.read(|run| run.next(limits, price, now()));
            if matches!(next, NextAction::Request | NextAction::Call(_))
                && let Some(reached) = self.meter.exceeded_outside()
            {
                return (RunStatus::LimitReached, reached);
            }
            let done = match next {
                NextAction::Request => self.request_reply(conversation, emitter).await,
                NextAction::Call(calls) => Box::pin(self.call(conversation, calls, emitter)).await,
                NextAction::End(status, reason) => return (status, reason),
                NextAction::Idle => return (RunStatus::Error, "no message to answer".to_owned()),
            };
            if let Err(end) = done {
                return end;
            }
        }
    }

    /// Requests an answer of the model; again with less while the request exceeds the context window.
    async fn request_reply(
        &mut self,
        conversation: &LockedConversation,
        emitter: &StreamSender<RunEvent>,
    ) -> Result<(), RunEnd> {
        let turn = conversation.read(RunState::turns) + 1;
        let mut tries = 0;
        let reply = loop {
            let request =
                self.build_request(conversation).await.map_err(|error| storage_failure(&error))?;
            self.agent.run_hooks(HookMoment::BeforeRequest(&request)).await?;
            emitter.emit(RunEvent::Requesting { turn }).await;
            let error = match self.receive_reply(request, emitter).await? {
                Ok(reply) => break reply,
                Err(error) => error,
            };
            tries += 1;
            let most = self.agent.settings.context_tries;
            if tries > most || !self.shorten(conversation, &error).await? {
                return Err(self.provider_failure(&error));
            }
            emitter.emit(RunEvent::Retrying { error: error.to_string(), wait_ms: 0 }).await;
        };
        self.agent.run_hooks(HookMoment::AfterReply(&reply)).await?;
        let ModelReply { message, usage, .. } = reply.clone();
        self.window.correct(conversation, usage.input);
        self.charge(&usage);
        conversation.record(StepEvent::Reply { reply }).map_err(|error| storage_failure(&error))?;
        emitter.emit(RunEvent::Reply { turn, message: message.into(), usage }).await;
        Ok(())
    }

    fn provider_failure(&mut self, error: &ProviderError) -> RunEnd {
        self.hint = error.hint();
        (RunStatus::Error, error.to_string())
    }
}

/// Sets the outcome of calls that were sent and whose result will not arrive to unknown.
fn close_sent_calls(conversation: &LockedConversation) -> std::io::Result<()> {
    let sent_calls = conversation.read(|run| {
        let sent_calls = run.pending().iter().filter(|pending| pending.state == CallState::Sent);
        sent_calls.map(|pending| pending.call.id.clone()).collect::<Vec<_>>()
    });
    for call in sent_calls {
        let result = ToolCallResult::error(call, OUTCOME_UNKNOWN);
        let error = Some("outcome_unknown".to_owned());
        conversation.record(StepEvent::Result {
            result,
            error,
            full_text: None,
            duration_ms: 0,
        })?;
    }
    Ok(())
}

fn storage_failure(error: &std::io::Error) -> RunEnd {
    (RunStatus::Error, format!("the conversation cannot be stored: {error}"))
}

async fn sleep_for(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}

/// Returns an id for a run: its time, and random digits.
fn new_run_id() -> String {
    let millis = now();
    let when = consort_core::utc(millis / 1000).replace(['-', ':'], "").replace('T', "-");
    let random = RandomState::new().hash_one(millis) & 0xffff;
    format!("{}-{random:04x}", when.trim_end_matches('Z'))
}

#[cfg(test)]
mod tests;
