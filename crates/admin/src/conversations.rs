//! Conversations with agents: started, followed, stopped and resumed from anywhere.
//!
//! They share the store of `consort chat`. A run continues on its own; following it has no effect on it.

mod driver;
mod report;
mod waiting;

use std::collections::BTreeSet;
use std::sync::Arc;

use consort_agent::store::ConversationId;
use consort_agent::transcript::{UNNAMED_AGENT, conversation_title};
use consort_agent::{Conversation as InHand, ConversationStore, RunState, RunStatus, StoreError};
use consort_core::DrivenStream;
use consort_models::ChatMessage;
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agents;
use crate::pending_requests::PendingRequest;
use crate::route::{
    AcceptedResponse, AdminError, ApiRoute, CreatedResponse, EmptyResponse, EventStream,
    JsonResponse, NoInput, RequestContext, delete, encode_event, get, post,
};
use crate::runs::{self, message_rows};
use crate::served_agents::ServedAgents;
use crate::state::AdminState;
use report::{ConversationDetail, ConversationRow};

pub(crate) fn routes() -> Vec<ApiRoute> {
    vec![
        get("/api/conversations", "Lists conversations, newest first.", list),
        get("/api/conversations/{id}", "Returns one conversation with its messages.", detail),
        post("/api/conversations", "Starts a conversation with an agent.", begin),
        post(
            "/api/conversations/{id}",
            "Sends a message; without text, resumes an interrupted run.",
            continue_conversation,
        ),
        get(
            "/api/conversations/{id}/events",
            "Streams the events of the run in progress from its start.",
            events,
        ),
        post("/api/conversations/{id}/stop", "Stops the run in progress.", stop),
        post(
            "/api/conversations/{id}/fork",
            "Copies a conversation, or only its first messages.",
            fork,
        ),
        delete("/api/conversations/{id}", "Deletes a conversation.", remove),
    ]
}

/// A created object.
#[derive(Serialize, JsonSchema)]
struct CreatedConversation {
    id: String,
}

impl From<StoreError> for AdminError {
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
                refusal.hint("another process uses it; wait until it ends, or continue in a copy")
            }
            _ => error.hint().into_iter().fold(refusal, Self::hint),
        }
    }
}

/// The refusal while a run is in progress in the conversation.
fn busy(id: &ConversationId) -> AdminError {
    let error = format!("a run is in progress in conversation `{id}`");
    AdminError::new(StatusCode::CONFLICT, error).hint("wait until it ends, or stop it")
}

/// Parses the id of the requested conversation.
fn conversation_id(context: &RequestContext) -> Result<ConversationId, AdminError> {
    let name = context.at.first().map(String::as_str).unwrap_or_default();
    name.parse::<ConversationId>().map_err(|error| AdminError::not_found(error.to_string()))
}

/// Runs file operations on a blocking thread.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, AdminError> {
    let broken = |_| {
        AdminError::new(StatusCode::INTERNAL_SERVER_ERROR, "the conversation store is unavailable")
    };
    Ok(tokio::task::spawn_blocking(work).await.map_err(broken)??)
}

async fn list(
    state: AdminState,
    _: RequestContext,
    _: NoInput,
) -> Result<JsonResponse<Vec<ConversationRow>>, AdminError> {
    let store = state.0.runs.store()?;
    let mut summaries = blocking(move || store.list()).await?;
    // The latest first, and of those of one second the later id.
    summaries.reverse();
    summaries.sort_by_key(|summary| std::cmp::Reverse(summary.last));
    let listed = summaries.into_iter().map(|summary| {
        let running = state.0.runs.live(&summary.id).is_some();
        ConversationRow::of(summary, running)
    });
    Ok(JsonResponse(listed.collect()))
}

async fn detail(
    state: AdminState,
    context: RequestContext,
    _: NoInput,
) -> Result<JsonResponse<ConversationDetail>, AdminError> {
    let (id, store) = (conversation_id(&context)?, state.0.runs.store()?);
    // Taken before the read, so that events of the run follow what was read.
    let live = state.0.runs.live(&id);
    let base = live.as_ref().and_then(|live| live.base());
    let input = live.as_ref().and_then(|live| live.unstored_input());
    let (of, from) = (id.clone(), store.clone());
    let (head, steps, run) = blocking(move || {
        let (head, steps) = from.read(&of)?;
        let run = RunState::from_steps(&steps);
        Ok((head, steps, run))
    })
    .await?;
    if live.is_none() {
        state.add_pending_of(&store, &id, &context.caller()?, &steps, &run).await;
    }
    let pending = state.0.pending.entries(&context.caller()?).into_iter();
    let ours = |question: &PendingRequest| question.conversation.as_deref() == Some(id.as_str());
    let messages = run.messages();
    let (shown, input) = match input {
        Some((before, input)) => (before, input),
        None => (base.unwrap_or(messages.len()), Vec::new()),
    };
    let shown = [&messages[..shown.min(messages.len())], &input].concat();
    let began = run.parameters();
    let price = began.and_then(|began| state.active().agents.price(&began.model));
    let over = run.outcome().filter(|_| live.is_none());
    Ok(JsonResponse(ConversationDetail {
        summary: ConversationRow::read(&head, &steps, &run, live.is_some()),
        agent: began.map(|began| began.agent.clone()),
        entries: message_rows(&shown),
        pending: pending.filter(ours).collect(),
        report: over.map(|_| run.report(price).into()),
    }))
}

/// First message of a conversation, and its agent.
#[derive(Deserialize, JsonSchema)]
struct FirstMessage {
    /// Name of an agent or a model.
    agent: String,
    text: String,
}

/// Next message of a conversation.
#[derive(Deserialize, JsonSchema)]
struct NextMessage {
    /// Text; if absent, an interrupted or waiting run continues.
    #[serde(default)]
    text: Option<String>,
    /// Agent that answers; if absent, that of the last run.
    #[serde(default)]
    agent: Option<String>,
}

fn user_message(text: &str) -> Result<Vec<ChatMessage>, AdminError> {
    if text.trim().is_empty() {
        let refusal = AdminError::new(StatusCode::UNPROCESSABLE_ENTITY, "empty message");
        return Err(refusal.hint("set `text`"));
    }
    Ok(vec![ChatMessage::user(text)])
}

/// Runs work that must complete even if the client disconnects.
async fn run_detached<T: Send + 'static>(
    state: &AdminState,
    work: impl Future<Output = Result<T, AdminError>> + Send + 'static,
) -> Result<T, AdminError> {
    let broken =
        |_| AdminError::new(StatusCode::SERVICE_UNAVAILABLE, "the gateway is shutting down");
    state.0.runs.handle.spawn(work).await.map_err(broken)?
}

async fn begin(
    state: AdminState,
    context: RequestContext,
    first: FirstMessage,
) -> Result<CreatedResponse<CreatedConversation>, AdminError> {
    let (input, store) = (user_message(&first.text)?, state.0.runs.store()?);
    let agents = Arc::clone(&state.active().agents);
    let agent = agents::find_agent(&agents, &first.agent, &context.caller()?).await?;
    let place = state.0.runs.acquire()?;
    let there = state.clone();
    let id = run_detached(&state, async move {
        let about = conversation_title(&first.text);
        let (id, journal) = blocking(move || store.create(&about)).await?;
        let conversation = InHand::with_journal(&[], Box::new(journal));
        there.run(id.clone(), conversation, agent, input, place);
        Ok(id)
    })
    .await?;
    Ok(CreatedResponse(CreatedConversation { id: id.to_string() }))
}

async fn continue_conversation(
    state: AdminState,
    context: RequestContext,
    next: NextMessage,
) -> Result<AcceptedResponse, AdminError> {
    let (id, store) = (conversation_id(&context)?, state.0.runs.store()?);
    let input = next.text.as_deref().map(user_message).transpose()?.unwrap_or_default();
    if state.0.runs.live(&id).is_some() {
        return Err(busy(&id));
    }
    let place = state.0.runs.acquire()?;
    let (there, caller) = (state.clone(), context.caller()?);
    run_detached(&state, async move {
        let conversation = open(&store, &id).await?;
        if input.is_empty() {
            can_go_on(&conversation)?;
        }
        let agents = Arc::clone(&there.active().agents);
        let agent = match &next.agent {
            Some(name) => agents::find_agent(&agents, name, &caller).await?,
            None => previous_agent(&agents, &conversation.state(), &caller).await?,
        };
        there.run(id, conversation, agent, input, place);
        Ok(AcceptedResponse)
    })
    .await
}

/// Opens a conversation to resume it. While it is open, nobody else can.
async fn open(store: &ConversationStore, id: &ConversationId) -> Result<InHand, AdminError> {
    let (store, id) = (store.clone(), id.clone());
    let opened = blocking(move || store.open(&id)).await?;
    Ok(InHand::with_journal(&opened.steps, Box::new(opened.journal)))
}

/// Fails if there is nothing to resume.
fn can_go_on(conversation: &InHand) -> Result<(), AdminError> {
    let refusal = |error: &str| AdminError::new(StatusCode::CONFLICT, error);
    let outcome = conversation.outcome();
    if outcome == Some(RunStatus::Waiting) && !conversation.open_questions().is_empty() {
        return Err(
            refusal("it is waiting for an answer").hint("answer its request, or send a message")
        );
    }
    let said = conversation.messages().last().is_none_or(|last| {
        last.role == consort_models::MessageRole::Assistant && last.calls().next().is_none()
    });
    if outcome == Some(RunStatus::Completed) || said && !conversation.is_unfinished() {
        return Err(refusal("nothing to resume").hint("send a message"));
    }
    Ok(())
}

/// The agent of the last run; its model with all tools if it was not an agent of the config.
async fn previous_agent(
    agents: &ServedAgents,
    run: &RunState,
    caller: &consort_core::Caller,
) -> Result<consort_agent::Agent, AdminError> {
    let Some(began) = run.parameters() else {
        let refusal = AdminError::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "no agent has answered in this \
            conversation",
        );
        return Err(refusal.hint("set `agent` to the name of an agent or a model"));
    };
    let found = agents::find_agent(agents, &began.agent, caller).await;
    if found.is_ok() || began.agent != UNNAMED_AGENT {
        return found;
    }
    // At a terminal, a model with everything has no name of its own.
    match agents.agent_of_model(&began.model) {
        Some(agent) => Ok(agents::prepare_agent(agent, caller)),
        None => agents::find_agent(agents, &began.model, caller).await,
    }
}

async fn events(
    state: AdminState,
    context: RequestContext,
    _: NoInput,
) -> Result<EventStream<runs::RunStreamEvent>, AdminError> {
    let (id, store) = (conversation_id(&context)?, state.0.runs.store()?);
    if let Some(live) = state.0.runs.live(&id) {
        return Ok(EventStream::new(live.follow()));
    }
    exists(&store, &id).await?;
    Ok(EventStream::new(DrivenStream::new(|_| async {
        encode_event(&runs::RunStreamEvent::Idle {})
    })))
}

async fn stop(
    state: AdminState,
    context: RequestContext,
    _: NoInput,
) -> Result<EmptyResponse, AdminError> {
    let (id, store) = (conversation_id(&context)?, state.0.runs.store()?);
    match state.0.runs.live(&id) {
        Some(live) => live.stop(),
        None => exists(&store, &id).await?,
    }
    Ok(EmptyResponse::default())
}

/// Fails if the conversation does not exist.
async fn exists(store: &ConversationStore, id: &ConversationId) -> Result<(), AdminError> {
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
struct ForkRequest {
    /// Number of messages to copy; all if absent.
    #[serde(default)]
    at: Option<usize>,
}

async fn fork(
    state: AdminState,
    context: RequestContext,
    copied: ForkRequest,
) -> Result<CreatedResponse<CreatedConversation>, AdminError> {
    let (id, store) = (conversation_id(&context)?, state.0.runs.store()?);
    let id = blocking(move || store.fork(&id, copied.at)).await?;
    Ok(CreatedResponse(CreatedConversation { id: id.to_string() }))
}

async fn remove(
    state: AdminState,
    context: RequestContext,
    _: NoInput,
) -> Result<EmptyResponse, AdminError> {
    let (id, store) = (conversation_id(&context)?, state.0.runs.store()?);
    if state.0.runs.live(&id).is_some() {
        return Err(busy(&id));
    }
    let gone = id.clone();
    blocking(move || store.delete(&[gone])).await?;
    state.0.runs.withdraw_pending(&id);
    Ok(EmptyResponse::default())
}
