//! Conversations that wait for a person, including those from before the start.

use std::collections::HashMap;
use std::sync::Arc;

use consort_agent::store::{ConversationId, ConversationState};
use consort_agent::{
    ConversationStep, ConversationStore, RunState, RunStatus, StepEvent, StoreError, UserQuestion,
};
use consort_core::{Caller, Json};
use serde_json::Value;

use super::{blocking, open, previous_agent};
use crate::route::AdminError;
use crate::state::AdminState;

impl AdminState {
    /// Adds the pending requests of stored conversations, unless they are in use.
    pub fn restore_conversations(&self) {
        let state = self.clone();
        self.0.runs.handle.spawn(async move {
            if let Err(refusal) = state.restore_pending().await {
                tracing::warn!(?refusal, "cannot read pending questions of conversations");
            }
        });
    }

    async fn restore_pending(&self) -> Result<(), AdminError> {
        let Ok(store) = self.0.runs.store() else { return Ok(()) };
        let most = self.active().limits.console.restored_conversations;
        let from = store.clone();
        let found = blocking(move || {
            let mut summaries = from.list()?;
            summaries.sort_by_key(|summary| std::cmp::Reverse(summary.last));
            let open = |state: &ConversationState| {
                matches!(
                    state,
                    ConversationState::Unfinished | ConversationState::Over(RunStatus::Waiting)
                )
            };
            let open = summaries.into_iter().filter(|summary| open(&summary.state));
            let read = |id: ConversationId| from.read(&id).ok().map(|(_, steps)| (id, steps));
            let read = open.take(most).filter_map(|summary| read(summary.id));
            Ok(read.collect::<Vec<_>>())
        })
        .await?;
        let caller = Caller::owner();
        for (id, steps) in found {
            self.add_pending_of(&store, &id, &caller, &steps, &RunState::from_steps(&steps)).await;
        }
        Ok(())
    }

    /// Adds the pending requests of a conversation, if it is not in use.
    pub(super) async fn add_pending_of(
        &self,
        store: &ConversationStore,
        id: &ConversationId,
        caller: &Caller,
        steps: &[ConversationStep],
        run: &RunState,
    ) {
        // Stopped, it does not wait for what it asked.
        let is_over = run.outcome().is_some_and(|status| status != RunStatus::Waiting);
        let mut waiting = if is_over { Vec::new() } else { run.open_questions() };
        if !waiting.is_empty() {
            let (store, id) = (store.clone(), id.clone());
            // The process that continues it holds its lock.
            let free = blocking(move || match store.open(&id) {
                Ok(_) => Ok(true),
                Err(StoreError::InUse { .. }) => Ok(false),
                Err(error) => Err(error),
            });
            if !free.await.unwrap_or(false) {
                waiting.clear();
            }
        }
        let mut tools: HashMap<&str, &str> = HashMap::new();
        for step in steps {
            if let StepEvent::CallSent { call, tool, .. } = &step.event {
                tools.insert(call, tool);
            }
        }
        let tool =
            |question: &UserQuestion| tools.get(&*question.call).map(|tool| (*tool).to_owned());
        let waiting = waiting.into_iter().map(|question| {
            let tool = tool(&question);
            (question, tool)
        });
        self.add_pending(id, caller, waiting.collect());
    }

    /// Stores an answer, and resumes the conversation once all are given.
    pub(super) async fn resume_with_answer(
        self,
        id: ConversationId,
        caller: Caller,
        question: String,
        answer: Json,
    ) {
        if let Err(refusal) = self.store_answer(&id, &caller, &question, &answer).await {
            tracing::warn!(%id, ?refusal, "an answer could not be delivered");
        }
    }

    async fn store_answer(
        &self,
        id: &ConversationId,
        caller: &Caller,
        question: &str,
        answer: &Json,
    ) -> Result<(), AdminError> {
        let store = self.0.runs.store()?;
        let answer: Value = answer.read().unwrap_or_default();
        // A dismissed request stays open, to be answered later.
        if answer["action"] != "cancel" {
            let place = self.0.runs.acquire();
            let conversation = open(&store, id).await?;
            let (kept, question) = (conversation.clone(), question.to_owned());
            let keeping = tokio::task::spawn_blocking(move || kept.answer(&question, answer));
            let refused = |error: String| AdminError::new(http::StatusCode::CONFLICT, error);
            keeping
                .await
                .map_err(|error| refused(error.to_string()))?
                .map_err(|error| refused(error.to_string()))?;
            if conversation.open_questions().is_empty() {
                let agents = Arc::clone(&self.active().agents);
                let agent = previous_agent(&agents, &conversation.state(), caller).await?;
                self.run(id.clone(), conversation, agent, Vec::new(), place?);
                return Ok(());
            }
        }
        let (from, of) = (store.clone(), id.clone());
        let steps = blocking(move || from.read(&of)).await?.1;
        self.add_pending_of(&store, id, caller, &steps, &RunState::from_steps(&steps)).await;
        Ok(())
    }
}
