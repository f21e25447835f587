//! Execution of a run: performs the next action that the run's state requires.

mod call;
mod cost;
mod fit;
mod people;
mod request;
mod sampling;
mod shorter;
mod tools;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use consort_core::{CallingAgent, ClientSession, Emitter, Emitting, Tool, Toolbox};
use tokio::sync::Semaphore;

use crate::bound::Bound;
use crate::conversation::{Conversation, ConversationError, Taken, now};
use crate::event::Event;
use crate::hook::{Moment, Verdict};
use crate::meter::RunMeter;
use crate::observe::RunObservation;
use crate::run::{CallState, Next, Run, UNKNOWN};
use crate::settings::Settings;
use crate::step::{Began, Report, Status, What};
use crate::task::Ready;
use consort_models::{
    ChatMessage, MediaHandling, Model, ModelReply, ModelRequest, ProviderError, ToolCallResult,
};

use fit::Fit;

/// Status and reason of a run's end.
type End = (Status, String);

/// An agent: a model with a toolbox.
///
/// ```
/// use std::sync::Arc;
/// use consort_agent::{Agent, Conversation, Event, Settings, Status};
/// use consort_models::{ChatMessage, Model, ModelScript};
/// # use consort_core::{Call, Caller, Catalog, Changes, Emitting, Events, Toolbox};
/// # struct Nothing;
/// # impl Toolbox for Nothing {
/// #     fn catalog(&self, _: &Caller) -> Arc<Catalog> { Arc::default() }
/// #     fn call(&self, _: Call) -> Events { unreachable!() }
/// #     fn changes(&self) -> Changes { Emitting::new(|_| std::future::pending()) }
/// # }
/// # let toolbox = Arc::new(Nothing);
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let script = ModelScript::parse(r#"{"turns": [{"text": "Good morning."}]}"#)?;
/// let agent = Agent::new(Model::scripted(script), toolbox, Settings::new("greeter"));
/// let mut events = agent.run(&Conversation::new(), vec![ChatMessage::user("Hello!")]);
/// while let Some(event) = events.next().await {
///     if let Event::Over { report } = event {
///         assert_eq!((report.status, &*report.text), (Status::Completed, "Good morning."));
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
    pub settings: Settings,
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent").field("name", &self.settings.name).finish_non_exhaustive()
    }
}

impl Agent {
    /// Creates an agent from a model and a toolbox.
    pub fn new(model: Model, toolbox: Arc<dyn Toolbox>, settings: Settings) -> Self {
        Self { model, toolbox, settings }
    }

    /// Answers the input. The run proceeds while the stream is read; dropping the stream interrupts it and cancels its
    /// calls, and [`Conversation::stop`] ends it in order. Without input, a run that was interrupted, or that waited
    /// for a user, continues where it was, and one that completed reports its end again. The stream ends with exactly
    /// one [`Event::Over`].
    pub fn run(&self, conversation: &Conversation, input: Vec<ChatMessage>) -> Emitting<Event> {
        self.go(conversation, input, None)
    }

    /// Performs a task, with its own tools and session.
    pub fn perform(&self, conversation: &Conversation, ready: Ready) -> Emitting<Event> {
        let Ready { task, tools } = ready;
        let mut agent = self.clone();
        agent.settings.session = task.session.or(Some(task.id)).filter(|id| !id.is_empty());
        agent.go(conversation, vec![ChatMessage::user(task.description)], Some(tools))
    }

    fn go(
        &self,
        conversation: &Conversation,
        input: Vec<ChatMessage>,
        tools: Option<Bound>,
    ) -> Emitting<Event> {
        let (agent, conversation) = (self.clone(), conversation.clone());
        Emitting::new(|emitter| async move {
            let report = match conversation.take() {
                Some(taken) => Box::pin(agent.work(taken, input, tools, &emitter)).await,
                None => Report {
                    status: Status::Error,
                    reason: ConversationError::Busy.to_string(),
                    ..conversation.report()
                },
            };
            Event::Over { report }
        })
    }

    async fn work(
        self,
        taken: Taken,
        input: Vec<ChatMessage>,
        tools: Option<Bound>,
        emitter: &Emitter<Event>,
    ) -> Report {
        // What is done is done, also for those who did not hear of it.
        if input.is_empty() && taken.look(|run| run.over() == Some(Status::Completed)) {
            return taken.look(|run| run.report(self.model.facts.price));
        }
        let (mut hint, mut observation) = (None, None);
        let (status, reason) = match self.begin(&taken, &input, tools, emitter).await {
            Ok(mut worker) => {
                observation.clone_from(&worker.observation);
                let limit = self.settings.limits.time;
                let working = async {
                    let end = worker.work(&taken, emitter).await;
                    hint = worker.hint.take();
                    end
                };
                tokio::select! {
                    end = working => end,
                    () = taken.stopped() => (Status::Cancelled, "it was stopped".to_owned()),
                    () = pause(limit) => {
                        (Status::LimitReached, self.settings.limits.time_reached())
                    }
                }
            }
            Err(end) => end,
        };
        // What was on its way is no longer waited for.
        let closed = close_left(&taken);
        let kept = closed.and_then(|()| taken.step(What::Over { status, reason }));
        let mut report = taken.look(|run| run.report(self.model.facts.price));
        report.hint = hint;
        if let Err(error) = kept {
            (report.status, report.reason) = unkept(&error);
        }
        if let Some(observation) = observation {
            observation.end(&report);
        }
        for hook in &self.settings.hooks {
            hook.at(Moment::Over(&report)).await;
        }
        report
    }

    /// Begins or resumes a run.
    async fn begin(
        &self,
        taken: &Taken,
        input: &[ChatMessage],
        tools: Option<Bound>,
        emitter: &Emitter<Event>,
    ) -> Result<Worker, End> {
        self.check_price()?;
        let resumed = input.is_empty() && taken.look(Run::is_unfinished);
        let began = taken.look(|run| run.began().cloned()).filter(|_| resumed);
        let tools = match tools {
            Some(tools) => tools,
            None => {
                self.choose(began.as_ref()).await.map_err(|error| tools::unavailable(&error))?
            }
        };
        let run = match began {
            Some(began) => {
                close_left(taken).map_err(|error| unkept(&error))?;
                began.run
            }
            None => {
                self.verdict(Moment::Input(input)).await?;
                self.start(taken, input, &tools).map_err(|error| unkept(&error))?
            }
        };
        let model = self.model.id.clone();
        let observation = self.observe(&run);
        let calling = CallingAgent { name: self.settings.name.clone(), model: model.clone() };
        emitter.emit(Event::Began { run: run.clone(), model, tools: tools.ids().len() }).await;
        Ok(Worker {
            fit: Fit::default(),
            agent: self.clone(),
            calling: Arc::new(calling),
            observation,
            tools,
            run,
            session: ClientSession::new(),
            offered: None,
            slots: HashMap::new(),
            meter: self.meter(taken),
            hint: None,
        })
    }

    fn start(
        &self,
        taken: &Taken,
        input: &[ChatMessage],
        tools: &Bound,
    ) -> std::io::Result<String> {
        let run = id();
        taken.step(What::Began(Began {
            run: run.clone(),
            agent: self.settings.name.clone(),
            model: self.model.id.clone(),
            tools: tools.ids(),
        }))?;
        for message in input {
            taken.step(What::Message { message: message.clone() })?;
        }
        Ok(run)
    }

    /// Calls the hooks at a moment at which all they can do is to stop the run.
    async fn verdict(&self, moment: Moment<'_>) -> Result<(), End> {
        for hook in &self.settings.hooks {
            match hook.at(moment).await {
                Verdict::Go | Verdict::Edit(_) => {}
                Verdict::Refuse(reason) | Verdict::Stop(reason) => {
                    return Err((Status::Denied, reason));
                }
            }
        }
        Ok(())
    }
}

/// A run in progress.
struct Worker {
    agent: Agent,
    /// The agent as named in calls.
    calling: Arc<CallingAgent>,
    observation: Option<Arc<dyn RunObservation>>,
    tools: Bound,
    run: String,
    /// The client session of the run at servers.
    session: ClientSession,
    /// Tools listed to the model last, and true if `read_result` was among them.
    offered: Option<(bool, Arc<[Tool]>)>,
    /// Limits of concurrent calls, by server.
    slots: HashMap<consort_core::ServerId, Arc<Semaphore>>,
    /// Cost of the run, with the agents it calls.
    meter: Arc<RunMeter>,
    /// Use of the model's context window.
    fit: Fit,
    /// Advice about an error.
    hint: Option<String>,
}

impl Worker {
    /// Performs the next action until the run ends.
    async fn work(&mut self, taken: &Taken, emitter: &Emitter<Event>) -> End {
        loop {
            let (limits, price) = (&self.agent.settings.limits, self.agent.model.facts.price);
            let next = taken.look(|run| run.next(limits, price, now()));
            if matches!(next, Next::Ask | Next::Call(_))
                && let Some(reached) = self.meter.exceeded_outside()
            {
                return (Status::LimitReached, reached);
            }
            let done = match next {
                Next::Ask => self.ask(taken, emitter).await,
                Next::Call(calls) => Box::pin(self.call(taken, calls, emitter)).await,
                Next::End(status, reason) => return (status, reason),
                Next::Rest => return (Status::Error, "nothing was said".to_owned()),
            };
            if let Err(end) = done {
                return end;
            }
        }
    }

    /// Requests an answer of the model; again with less while the request exceeds the context window.
    async fn ask(&mut self, taken: &Taken, emitter: &Emitter<Event>) -> Result<(), End> {
        let turn = taken.look(Run::turns) + 1;
        let mut tries = 0;
        let reply = loop {
            let ask = self.question(taken).await.map_err(|error| unkept(&error))?;
            self.agent.verdict(Moment::Asking(&ask)).await?;
            emitter.emit(Event::Asking { turn }).await;
            let error = match self.hear(ask, emitter).await? {
                Ok(reply) => break reply,
                Err(error) => error,
            };
            tries += 1;
            let most = self.agent.settings.context_tries;
            if tries > most || !self.make_shorter(taken, &error).await? {
                return Err(self.failed(&error));
            }
            emitter.emit(Event::Again { error: error.to_string(), after: 0 }).await;
        };
        self.agent.verdict(Moment::Said(&reply)).await?;
        let ModelReply { message, usage, .. } = reply.clone();
        self.fit.sent(taken, usage.input);
        self.charge(&usage);
        taken.step(What::Said { reply }).map_err(|error| unkept(&error))?;
        emitter.emit(Event::Said { turn, message: message.into(), usage }).await;
        Ok(())
    }

    fn failed(&mut self, error: &ProviderError) -> End {
        self.hint = error.hint();
        (Status::Error, error.to_string())
    }

    /// Builds the next model request.
    async fn question(&mut self, taken: &Taken) -> std::io::Result<ModelRequest> {
        let tools = self.offer(taken.look(Run::has_wholes));
        let cut = self.fit.make(taken, &self.agent.model.facts, &self.agent.settings, &tools);
        if let Some(before) = cut {
            self.leave_out(taken, before).await?;
        }
        let settings = &self.agent.settings;
        let mut ask = ModelRequest::new(&self.agent.model.name, Vec::new());
        if !settings.instructions.is_empty() {
            ask.messages.push(ChatMessage::system(&settings.instructions).into());
        }
        ask.messages.extend(taken.look(Run::shown));
        ask.tools = tools;
        ask.max_tokens = self.agent.settings.max_tokens;
        ask.temperature = self.agent.settings.temperature;
        ask.reasoning = self.agent.settings.reasoning;
        ask.images =
            if self.agent.model.facts.images { MediaHandling::Shown } else { MediaHandling::Named };
        Ok(ask)
    }
}

/// Sets the outcome of calls that were sent and whose result will not arrive to unknown.
fn close_left(taken: &Taken) -> std::io::Result<()> {
    let left = taken.look(|run| {
        let left = run.pending().iter().filter(|pending| pending.state == CallState::Left);
        left.map(|pending| pending.call.id.clone()).collect::<Vec<_>>()
    });
    for call in left {
        let result = ToolCallResult::error(call, UNKNOWN);
        let error = Some("outcome_unknown".to_owned());
        taken.step(What::Result { result, error, whole: None, took: 0 })?;
    }
    Ok(())
}

fn unkept(error: &std::io::Error) -> End {
    (Status::Error, format!("the conversation cannot be kept: {error}"))
}

async fn pause(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}

/// Returns an id for a run: its time, and random digits.
fn id() -> String {
    let millis = now();
    let when = consort_core::utc(millis / 1000).replace(['-', ':'], "").replace('T', "-");
    let random = RandomState::new().hash_one(millis) & 0xffff;
    format!("{}-{random:04x}", when.trim_end_matches('Z'))
}

#[cfg(test)]
mod tests;
