//! A model over a toolbox, at work: what the run's state says is to be done next is done.

mod call;
mod people;
mod sampling;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use consort_core::{Caller, Emitter, Emitting, Tool, Toolbox};
use tokio::sync::Semaphore;

use crate::bound::{self, Bound};
use crate::conversation::{Conversation, Taken, now};
use crate::event::Event;
use crate::hook::{Hook, Moment, Verdict};
use crate::limits::Limits;
use crate::message::{CallResult, Message};
use crate::provider::{Ask, Images, Model, ProviderError, Reasoning, Reply, Said};
use crate::run::{CallState, Next, UNKNOWN};
use crate::step::{Began, Status, What};

pub use sampling::{Consent, Sampling};

/// A model over a toolbox.
///
/// ```
/// use std::sync::Arc;
/// use consort_agent::{Agent, Conversation, Event, Message, Model, Script, Settings, Status};
/// # use consort_core::{Caller, Catalog, Changes, Emitting, Events, Invocation, Passage, Toolbox};
/// # struct Nothing;
/// # impl Toolbox for Nothing {
/// #     fn catalog(&self, _: &Caller) -> Arc<Catalog> { Arc::default() }
/// #     fn call(&self, _: Invocation) -> Events { unreachable!() }
/// #     fn pass(&self, _: Passage) -> Events { unreachable!() }
/// #     fn changes(&self) -> Changes { Emitting::new(|_| std::future::pending()) }
/// # }
/// # let toolbox = Arc::new(Nothing);
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let script = Script::parse(r#"{"turns": [{"text": "Good morning."}]}"#)?;
/// let agent = Agent::new(Model::scripted(script), toolbox, Settings::new("greeter"));
/// let mut events = agent.run(&Conversation::new(), vec![Message::user("Hello!")]);
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
    /// What it may call.
    pub toolbox: Arc<dyn Toolbox>,
    /// How it works.
    pub settings: Settings,
}

/// How an agent works.
#[derive(Clone)]
pub struct Settings {
    /// What it is called.
    pub name: String,
    /// On whose account it calls.
    pub caller: Caller,
    /// What it is told before anything else.
    pub instructions: String,
    /// The tools it may call, as people write them, or patterns; all of the toolbox if absent.
    pub tools: Option<Vec<String>>,
    /// Tools that whoever runs the agent runs: a run that calls one ends as waiting, with the call
    /// among [`Run::pending`](crate::Run::pending).
    pub foreign: Vec<Tool>,
    /// How much a run may do.
    pub limits: Limits,
    /// How many calls of one server are made at once.
    pub parallel: usize,
    /// How many bytes of text of a result the model sees at once.
    pub result_bytes: usize,
    /// What is done about a call that comes to no result.
    pub on_error: OnError,
    /// Whether somebody can be asked, be it later: without, what wants an approval is refused, and
    /// `ask_user` is not there.
    pub person: bool,
    /// Whether servers may use the model.
    pub sampling: Sampling,
    /// What servers are told to tell sessions apart, in `_meta` as `consort/session`; the run's id if
    /// absent.
    pub session: Option<String>,
    /// The most tokens of one answer.
    pub max_tokens: Option<u32>,
    /// How freely the model chooses its words.
    pub temperature: Option<f64>,
    /// How much the model thinks.
    pub reasoning: Option<Reasoning>,
    /// Those who look on.
    pub hooks: Vec<Arc<dyn Hook>>,
}

/// What is done about a call that comes to no result, by the word for what went wrong (see
/// [`CallError::kind`](consort_core::CallError::kind)); a kind that is not named is told to the model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OnError(pub HashMap<String, Treat>);

/// What is done about a call that comes to no result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Treat {
    /// The model is told.
    #[default]
    Tell,
    /// It is made again, up to twice, if it is certain that it never got there; then the model is told.
    Retry,
    /// The run ends with an error.
    Fail,
}

impl Settings {
    /// The usual settings.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            caller: Caller::agent(&name),
            name,
            instructions: String::new(),
            tools: None,
            foreign: Vec::new(),
            limits: Limits::default(),
            parallel: 4,
            result_bytes: 48 << 10,
            on_error: OnError::default(),
            person: false,
            sampling: Sampling::default(),
            session: None,
            max_tokens: None,
            temperature: None,
            reasoning: None,
            hooks: Vec::new(),
        }
    }
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings").field("name", &self.name).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent").field("name", &self.settings.name).finish_non_exhaustive()
    }
}

impl Agent {
    /// A model over a toolbox.
    pub fn new(model: Model, toolbox: Arc<dyn Toolbox>, settings: Settings) -> Self {
        Self { model, toolbox, settings }
    }

    /// Answers what is said. The run goes on while the stream is read; dropping the stream breaks it
    /// off and cancels its calls, and [`Conversation::stop`] ends it in order. With nothing said, a run
    /// that was broken off, or that waited for a person, goes on where it was. The last event is
    /// [`Event::Over`], and there is exactly one.
    pub fn run(&self, conversation: &Conversation, input: Vec<Message>) -> Emitting<Event> {
        let (agent, conversation) = (self.clone(), conversation.clone());
        Emitting::new(|emitter| async move {
            let report = match conversation.take() {
                Some(taken) => Box::pin(agent.work(taken, input, &emitter)).await,
                None => {
                    let mut report = conversation.report();
                    report.status = Status::Error;
                    report.reason = "a run goes on in this conversation".to_owned();
                    report
                }
            };
            Event::Over { report }
        })
    }

    async fn work(
        self,
        taken: Taken,
        input: Vec<Message>,
        emitter: &Emitter<Event>,
    ) -> crate::step::Report {
        let mut hint = None;
        let (status, reason) = match self.begin(&taken, &input, emitter).await {
            Ok(mut worker) => {
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
        for hook in &self.settings.hooks {
            hook.at(Moment::Over(&report)).await;
        }
        report
    }

    /// A run, begun or taken up again.
    async fn begin(
        &self,
        taken: &Taken,
        input: &[Message],
        emitter: &Emitter<Event>,
    ) -> Result<Worker, (Status, String)> {
        let catalog = self.toolbox.catalog(&self.settings.caller);
        let resumed = input.is_empty() && taken.look(|run| run.is_unfinished());
        let frozen = taken.look(|run| run.began().map(|began| began.tools.clone()));
        let tools = match (&self.settings.tools, frozen.filter(|_| resumed)) {
            (Some(names), _) => Bound::chosen(&catalog, names, None),
            // Taken up again, a run has the tools it had, as far as they are still there.
            (None, Some(ids)) => {
                let there = |id: &String| catalog.tools.get(id).is_some();
                let ids: Vec<String> = ids.into_iter().filter(there).collect();
                Bound::chosen(&catalog, &ids, None)
            }
            (None, None) => Ok(Bound::all(&catalog)),
        };
        let tools = tools.map_err(|error| {
            let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
            (Status::Error, format!("{error}{hint}"))
        })?;
        let run = match taken.look(|run| run.began().map(|began| began.run.clone())) {
            Some(run) if resumed => {
                close_left(taken).map_err(|error| unkept(&error))?;
                run
            }
            _ => {
                self.verdict(Moment::Input(input)).await?;
                self.start(taken, input, &tools).map_err(|error| unkept(&error))?
            }
        };
        let model = self.model.id.clone();
        emitter.emit(Event::Began { run: run.clone(), model, tools: tools.ids().len() }).await;
        Ok(Worker {
            agent: self.clone(),
            tools,
            run,
            offered: None,
            slots: HashMap::new(),
            hint: None,
        })
    }

    fn start(&self, taken: &Taken, input: &[Message], tools: &Bound) -> std::io::Result<String> {
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

    /// What those who look on say, where all they can do is to stop the run.
    async fn verdict(&self, moment: Moment<'_>) -> Result<(), (Status, String)> {
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

/// A run at work.
struct Worker {
    agent: Agent,
    tools: Bound,
    run: String,
    /// What the model was offered last, and whether `read_result` was among it.
    offered: Option<(bool, Arc<[Tool]>)>,
    /// How many calls of each server may be made at once.
    slots: HashMap<consort_core::ServerId, Arc<Semaphore>>,
    /// What to do about an error.
    hint: Option<String>,
}

impl Worker {
    /// Does what is to be done next, until nothing is.
    async fn work(&mut self, taken: &Taken, emitter: &Emitter<Event>) -> (Status, String) {
        loop {
            let (limits, price) = (&self.agent.settings.limits, self.agent.model.facts.price);
            let next = taken.look(|run| run.next(limits, price, now()));
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

    /// Asks the model once.
    async fn ask(
        &mut self,
        taken: &Taken,
        emitter: &Emitter<Event>,
    ) -> Result<(), (Status, String)> {
        let ask = self.question(taken)?;
        self.agent.verdict(Moment::Asking(&ask)).await?;
        let turn = taken.look(|run| run.turns()) + 1;
        emitter.emit(Event::Asking { turn }).await;
        let mut said = self.agent.model.provider.ask(ask);
        let reply = loop {
            match said.next().await {
                Some(Said::Delta(delta)) => emitter.emit(Event::Delta { delta }).await,
                Some(Said::Again { error, after }) => {
                    let after = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
                    emitter.emit(Event::Again { error: error.to_string(), after }).await;
                }
                Some(Said::End(end)) => break end.map_err(|error| self.failed(&error))?,
                None => unreachable!("an end comes before nothing"),
            }
        };
        self.agent.verdict(Moment::Said(&reply)).await?;
        let Reply { message, usage, .. } = reply.clone();
        taken.step(What::Said { reply }).map_err(|error| unkept(&error))?;
        emitter.emit(Event::Said { turn, message: message.into(), usage }).await;
        Ok(())
    }

    fn failed(&mut self, error: &ProviderError) -> (Status, String) {
        self.hint = error.hint();
        (Status::Error, error.to_string())
    }

    /// What the model is asked now.
    fn question(&mut self, taken: &Taken) -> Result<Ask, (Status, String)> {
        let settings = &self.agent.settings;
        let mut ask = Ask::new(&self.agent.model.name, Vec::new());
        if !settings.instructions.is_empty() {
            ask.messages.push(Message::system(&settings.instructions).into());
        }
        let rest = taken.look(|run| (run.has_wholes(), run.messages()[run.cut()..].to_vec()));
        let (shortened, messages) = rest;
        ask.messages.extend(messages);
        ask.tools = self.offer(shortened);
        ask.max_tokens = self.agent.settings.max_tokens;
        ask.temperature = self.agent.settings.temperature;
        ask.reasoning = self.agent.settings.reasoning;
        ask.images = if self.agent.model.facts.images { Images::Shown } else { Images::Named };
        Ok(ask)
    }

    /// The tools as the model sees them, in the same memory as long as they are the same.
    fn offer(&mut self, shortened: bool) -> Arc<[Tool]> {
        if let Some((known, offered)) = &self.offered
            && *known == shortened
        {
            return Arc::clone(offered);
        }
        let mut tools: Vec<Tool> = self.tools.definitions().to_vec();
        tools.extend(self.agent.settings.foreign.iter().cloned());
        if self.agent.settings.person {
            tools.push(bound::ask_user());
        }
        if shortened {
            tools.push(bound::read_result());
        }
        let offered: Arc<[Tool]> = tools.into();
        self.offered = Some((shortened, Arc::clone(&offered)));
        offered
    }
}

/// Says of calls that left, and of which nothing more will be heard, that nobody knows.
fn close_left(taken: &Taken) -> std::io::Result<()> {
    let left = taken.look(|run| {
        let left = run.pending().iter().filter(|pending| pending.state == CallState::Left);
        left.map(|pending| pending.call.id.clone()).collect::<Vec<_>>()
    });
    for call in left {
        let result = CallResult::error(call, UNKNOWN);
        let error = Some("outcome_unknown".to_owned());
        taken.step(What::Result { result, error, whole: None, took: 0 })?;
    }
    Ok(())
}

fn unkept(error: &std::io::Error) -> (Status, String) {
    (Status::Error, format!("the conversation cannot be kept: {error}"))
}

async fn pause(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}

/// An id for a run: when, and something to tell it from others of that time.
fn id() -> String {
    let millis = now();
    let when = consort_core::utc(millis / 1000).replace(['-', ':'], "").replace('T', "-");
    let random = RandomState::new().hash_one(millis) & 0xffff;
    format!("{}-{random:04x}", when.trim_end_matches('Z'))
}

#[cfg(test)]
mod tests;
