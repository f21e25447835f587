//! Conversations with agents: started, followed, stopped and resumed from anywhere.
//!
//! They share the store of `consort chat`. A run continues on its own; following it has no effect on it.

mod live;
mod runs;
mod said;
mod told;
mod waiting;

use std::collections::BTreeSet;
use std::sync::Arc;

use consort_agent::store::{
    ConversationHead, ConversationId, ConversationState, ConversationSummary,
};
use consort_agent::{
    Conversation as InHand, ConversationStep, ConversationStore, RunState, RunStatus, StepEvent,
    StoreError,
};
use consort_core::{Emitting, utc};
use consort_models::ChatMessage;
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Console;
use super::agents;
use super::desk::Question;
use super::route::{
    Asked, Begun, Done, Events, Made, Nothing, Refusal, Route, Told, delete, event, get, post,
};
use crate::command::Askable;
use crate::talk::{NAME, title};
pub(super) use runs::Runs;
use said::{Entry, Report, entries};

pub(super) fn routes() -> Vec<Route> {
    vec![
        get("/api/conversations", "Every conversation, the newest first.", list),
        get("/api/conversations/{id}", "One conversation, with all that was said.", detail),
        post("/api/conversations", "Begins one: says something to an agent.", begin),
        post("/api/conversations/{id}", "Says more; without a text, goes on where it was.", say),
        get("/api/conversations/{id}/events", "The run that is on, from its beginning.", events),
        post("/api/conversations/{id}/stop", "Stops the run that is on.", stop),
        post("/api/conversations/{id}/fork", "Makes a copy, of its first messages or all.", fork),
        delete("/api/conversations/{id}", "Removes a conversation for good.", remove),
    ]
}

/// Summary of a conversation.
#[derive(Serialize, JsonSchema)]
struct Conversation {
    id: String,
    /// Title.
    title: String,
    created: String,
    /// Time of its last step.
    last: String,
    messages: usize,
    /// Input tokens of its models.
    input: u64,
    /// Output tokens of its models.
    output: u64,
    /// State: new, unfinished, waiting, completed and so on.
    state: &'static str,
    /// True while a run that the console started is in progress.
    running: bool,
}

/// A conversation with its messages.
#[derive(Serialize, JsonSchema)]
struct Detail {
    #[serde(flatten)]
    listed: Conversation,
    /// Agent of the last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    /// Messages. During a run, those before it and its input; its events have the rest.
    entries: Vec<Entry>,
    /// Pending requests.
    questions: Vec<Question>,
    /// Report of the last run.
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<Report>,
}

/// A created object.
#[derive(Serialize, JsonSchema)]
struct New {
    id: String,
}

impl Conversation {
    fn of(summary: ConversationSummary, running: bool) -> Self {
        Self {
            id: summary.id.to_string(),
            title: summary.title,
            created: utc(summary.created / 1000),
            last: utc(summary.last / 1000),
            messages: summary.messages,
            input: summary.input,
            output: summary.output,
            state: summary.state.as_str(),
            running,
        }
    }

    /// Builds the summary from the steps.
    fn read(
        head: &ConversationHead,
        steps: &[ConversationStep],
        run: &RunState,
        running: bool,
    ) -> Self {
        let (mut input, mut output) = (0, 0);
        for step in steps {
            if let StepEvent::Reply { reply } = &step.event {
                input += reply.usage.input;
                output += reply.usage.output;
            }
        }
        let state = match run.outcome() {
            _ if run.is_unfinished() => ConversationState::Unfinished,
            Some(status) => ConversationState::Over(status),
            None => ConversationState::New,
        };
        Self {
            id: head.id.to_string(),
            title: head.title.clone(),
            created: utc(head.created / 1000),
            last: utc(steps.last().map_or(head.created, |step| step.at) / 1000),
            messages: run.messages().len(),
            input,
            output,
            state: state.as_str(),
            running,
        }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let status = match &error {
            StoreError::Unknown { .. } | StoreError::Ambiguous { .. } | StoreError::Empty => {
                StatusCode::NOT_FOUND
            }
            StoreError::InUse { .. } => StatusCode::CONFLICT,
            StoreError::Unusable { .. } => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::UNPROCESSABLE_ENTITY,
        };
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
        let refusal = Self::new(status, format!("{error}{}", cause.unwrap_or_default()));
        match &error {
            StoreError::InUse { .. } => {
                refusal.hint("another process goes on with it; wait for it, or go on from a copy")
            }
            _ => error.hint().into_iter().fold(refusal, Self::hint),
        }
    }
}

/// The refusal while a run is in progress in the conversation.
fn busy(id: &ConversationId) -> Refusal {
    let error = format!("a run is on in conversation `{id}`");
    Refusal::new(StatusCode::CONFLICT, error).hint("wait for its end, or stop it")
}

/// Parses the id of the requested conversation.
fn meant(asked: &Asked) -> Result<ConversationId, Refusal> {
    let name = asked.at.first().map(String::as_str).unwrap_or_default();
    name.parse::<ConversationId>().map_err(|error| Refusal::missing(error.to_string()))
}

/// Runs file operations on a blocking thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, Refusal> {
    let broken = |_| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "the store cannot be asked");
    Ok(tokio::task::spawn_blocking(work).await.map_err(broken)??)
}

async fn list(console: Console, _: Asked, _: Nothing) -> Result<Told<Vec<Conversation>>, Refusal> {
    let store = console.0.runs.store()?;
    let mut summaries = blocking(move || store.list()).await?;
    // The latest first, and of those of one second the later id.
    summaries.reverse();
    summaries.sort_by_key(|summary| std::cmp::Reverse(summary.last));
    let listed = summaries.into_iter().map(|summary| {
        let running = console.0.runs.live(&summary.id).is_some();
        Conversation::of(summary, running)
    });
    Ok(Told(listed.collect()))
}

async fn detail(console: Console, asked: Asked, _: Nothing) -> Result<Told<Detail>, Refusal> {
    let (id, store) = (meant(&asked)?, console.0.runs.store()?);
    // Before it is read: what is told of the run comes behind that.
    let live = console.0.runs.live(&id);
    let base = live.as_ref().and_then(|live| live.base());
    let (of, from) = (id.clone(), store.clone());
    let (head, steps, run) = blocking(move || {
        let (head, steps) = from.read(&of)?;
        let run = RunState::from_steps(&steps);
        Ok((head, steps, run))
    })
    .await?;
    if live.is_none() {
        console.look_for(&store, &id, &asked.caller()?, &steps, &run).await;
    }
    let questions = console.0.desk.waiting().into_iter();
    let ours = |question: &Question| question.conversation.as_deref() == Some(id.as_str());
    let messages = run.messages();
    let shown = base.map_or(messages.len(), |base| base.min(messages.len()));
    let began = run.parameters();
    let price = began.and_then(|began| console.scene().askable.price(&began.model));
    let over = run.outcome().filter(|_| live.is_none());
    Ok(Told(Detail {
        listed: Conversation::read(&head, &steps, &run, live.is_some()),
        agent: began.map(|began| began.agent.clone()),
        entries: entries(&messages[..shown]),
        questions: questions.filter(ours).collect(),
        report: over.map(|_| run.report(price).into()),
    }))
}

/// First message of a conversation, and its agent.
#[derive(Deserialize, JsonSchema)]
struct First {
    /// Name of an agent or a model.
    agent: String,
    text: String,
}

/// Next message of a conversation.
#[derive(Deserialize, JsonSchema)]
struct Next {
    /// Text; if absent, an interrupted or waiting run continues.
    #[serde(default)]
    text: Option<String>,
    /// Agent that answers; if absent, that of the last run.
    #[serde(default)]
    agent: Option<String>,
}

fn spoken(text: &str) -> Result<Vec<ChatMessage>, Refusal> {
    if text.trim().is_empty() {
        let refusal = Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "nothing is said");
        return Err(refusal.hint("write something as `text`"));
    }
    Ok(vec![ChatMessage::user(text)])
}

/// Runs work that must complete even if the client disconnects.
async fn surely<T: Send + 'static>(
    console: &Console,
    work: impl Future<Output = Result<T, Refusal>> + Send + 'static,
) -> Result<T, Refusal> {
    let broken = |_| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "the gateway is ending");
    console.0.runs.handle.spawn(work).await.map_err(broken)?
}

async fn begin(console: Console, asked: Asked, first: First) -> Result<Made<New>, Refusal> {
    let (input, store) = (spoken(&first.text)?, console.0.runs.store()?);
    let askable = Arc::clone(&console.scene().askable);
    let agent = agents::find(&askable, &first.agent, &asked.caller()?).await?;
    let place = console.0.runs.place()?;
    let there = console.clone();
    let id = surely(&console, async move {
        let about = title(&first.text);
        let (id, journal) = blocking(move || store.create(&about)).await?;
        let conversation = InHand::with_journal(&[], Box::new(journal));
        there.run(id.clone(), conversation, agent, input, place);
        Ok(id)
    })
    .await?;
    Ok(Made(New { id: id.to_string() }))
}

async fn say(console: Console, asked: Asked, next: Next) -> Result<Begun, Refusal> {
    let (id, store) = (meant(&asked)?, console.0.runs.store()?);
    let input = next.text.as_deref().map(spoken).transpose()?.unwrap_or_default();
    if console.0.runs.live(&id).is_some() {
        return Err(busy(&id));
    }
    let place = console.0.runs.place()?;
    let (there, caller) = (console.clone(), asked.caller()?);
    surely(&console, async move {
        let conversation = open(&store, &id).await?;
        if input.is_empty() {
            can_go_on(&conversation)?;
        }
        let askable = Arc::clone(&there.scene().askable);
        let agent = match &next.agent {
            Some(name) => agents::find(&askable, name, &caller).await?,
            None => before(&askable, &conversation.state(), &caller).await?,
        };
        there.run(id, conversation, agent, input, place);
        Ok(Begun)
    })
    .await
}

/// Opens a conversation to resume it. While it is open, nobody else can.
async fn open(store: &ConversationStore, id: &ConversationId) -> Result<InHand, Refusal> {
    let (store, id) = (store.clone(), id.clone());
    let opened = blocking(move || store.open(&id)).await?;
    Ok(InHand::with_journal(&opened.steps, Box::new(opened.journal)))
}

/// Fails if there is nothing to resume.
fn can_go_on(conversation: &InHand) -> Result<(), Refusal> {
    let refusal = |error: &str| Refusal::new(StatusCode::CONFLICT, error);
    let outcome = conversation.outcome();
    if outcome == Some(RunStatus::Waiting) && !conversation.open_questions().is_empty() {
        return Err(refusal("it waits for an answer").hint("answer its question, or say more"));
    }
    let said = conversation.messages().last().is_none_or(|last| {
        last.role == consort_models::MessageRole::Assistant && last.calls().next().is_none()
    });
    if outcome == Some(RunStatus::Completed) || said && !conversation.is_unfinished() {
        return Err(refusal("there is nothing to go on with").hint("say more"));
    }
    Ok(())
}

/// The agent of the last run; its model with all tools if it was not an agent of the config.
async fn before(
    askable: &Askable,
    run: &RunState,
    caller: &consort_core::Caller,
) -> Result<consort_agent::Agent, Refusal> {
    let Some(began) = run.parameters() else {
        let refusal = Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, "nobody answered before");
        return Err(refusal.hint("say who is to answer as `agent`"));
    };
    let found = agents::find(askable, &began.agent, caller).await;
    if found.is_ok() || began.agent != NAME {
        return found;
    }
    // At a terminal, a model with everything has no name of its own.
    match askable.with_everything(&began.model) {
        Some(agent) => Ok(agents::at_work(agent, caller)),
        None => agents::find(askable, &began.model, caller).await,
    }
}

async fn events(console: Console, asked: Asked, _: Nothing) -> Result<Events<told::Told>, Refusal> {
    let (id, store) = (meant(&asked)?, console.0.runs.store()?);
    if let Some(live) = console.0.runs.live(&id) {
        return Ok(Events::new(live.follow()));
    }
    exists(&store, &id).await?;
    Ok(Events::new(Emitting::new(|_| async { event(&told::Told::Idle {}) })))
}

async fn stop(console: Console, asked: Asked, _: Nothing) -> Result<Done, Refusal> {
    let (id, store) = (meant(&asked)?, console.0.runs.store()?);
    match console.0.runs.live(&id) {
        Some(live) => live.stop(),
        None => exists(&store, &id).await?,
    }
    Ok(Done::default())
}

/// Fails if the conversation does not exist.
async fn exists(store: &ConversationStore, id: &ConversationId) -> Result<(), Refusal> {
    let (store, id) = (store.clone(), id.clone());
    blocking(move || {
        let ids: BTreeSet<ConversationId> = store.ids()?.into_iter().collect();
        let unknown = || StoreError::Unknown { name: id.to_string(), nearest: Vec::new() };
        ids.contains(&id).then_some(()).ok_or_else(unknown)
    })
    .await
}

/// Extent of a copy.
#[derive(Deserialize, JsonSchema)]
struct Copied {
    /// Number of messages to copy; all if absent.
    #[serde(default)]
    at: Option<usize>,
}

async fn fork(console: Console, asked: Asked, copied: Copied) -> Result<Made<New>, Refusal> {
    let (id, store) = (meant(&asked)?, console.0.runs.store()?);
    let id = blocking(move || store.fork(&id, copied.at)).await?;
    Ok(Made(New { id: id.to_string() }))
}

async fn remove(console: Console, asked: Asked, _: Nothing) -> Result<Done, Refusal> {
    let (id, store) = (meant(&asked)?, console.0.runs.store()?);
    if console.0.runs.live(&id).is_some() {
        return Err(busy(&id));
    }
    let gone = id.clone();
    blocking(move || store.delete(&[gone])).await?;
    console.0.runs.forget(&id);
    Ok(Done::default())
}
