//! Model requests, reported to observers.

use std::sync::Arc;

use consort_core::{DrivenStream, StreamSender};

use super::{Agent, RunEnd, RunWorker};
use crate::conversation::LockedConversation;
use crate::event::RunEvent;
use crate::observer::{RequestObservation, RunObservation, RunStart};
use crate::run::RunState;
use crate::step::RunStatus;
use consort_models::{
    ChatMessage, MediaHandling, ModelReply, ModelRequest, ProviderError, ProviderEvent, ReplyDelta,
};

/// A model request in progress. Dropping it cancels it.
pub(super) struct PendingModelRequest {
    events: DrivenStream<ProviderEvent>,
    observation: Option<Box<dyn RequestObservation>>,
}

impl Agent {
    /// Begins the observation of a run, if it has an observer.
    pub(super) fn observe(&self, run: &str) -> Option<Arc<dyn RunObservation>> {
        let observer = self.settings.observer.as_ref()?;
        Some(observer.begin(&RunStart {
            run,
            agent: &self.settings.name,
            caller: &self.settings.caller,
            model: &self.model,
            parent: self.settings.parent.as_ref(),
        }))
    }
}

impl RunWorker {
    /// Builds the next model request.
    pub(super) async fn build_request(
        &mut self,
        conversation: &LockedConversation,
    ) -> std::io::Result<ModelRequest> {
        let tools = self.list_tools(conversation.read(RunState::has_full_texts));
        let cut = self.window.plan_cut(
            conversation,
            &self.agent.model.facts,
            &self.agent.settings,
            &tools,
        );
        if let Some(before) = cut {
            self.cut_messages(conversation, before).await?;
        }
        let settings = &self.agent.settings;
        let mut request = ModelRequest::new(&self.agent.model.name, Vec::new());
        if !settings.instructions.is_empty() {
            request.messages.push(ChatMessage::system(&settings.instructions).into());
        }
        request.messages.extend(conversation.read(RunState::shown_messages));
        request.tools = tools;
        request.max_tokens = self.agent.settings.max_tokens;
        request.temperature = self.agent.settings.temperature;
        request.reasoning = self.agent.settings.reasoning;
        request.images = if self.agent.model.facts.images {
            MediaHandling::Sent
        } else {
            MediaHandling::Described
        };
        Ok(request)
    }

    /// Begins a model request. The error is the reason why it must not be sent.
    pub(super) async fn request(
        &self,
        request: ModelRequest,
    ) -> Result<PendingModelRequest, String> {
        let observed = match &self.observation {
            Some(observation) => Some(observation.request().await?),
            None => None,
        };
        Ok(PendingModelRequest {
            events: self.agent.model.provider.request(request),
            observation: observed,
        })
    }

    /// Makes a model request, reports the answer as it arrives, and returns it.
    pub(super) async fn receive_reply(
        &self,
        request: ModelRequest,
        emitter: &StreamSender<RunEvent>,
    ) -> Result<Result<ModelReply, ProviderError>, RunEnd> {
        let mut request =
            self.request(request).await.map_err(|reason| (RunStatus::Error, reason))?;
        loop {
            match request.next().await {
                ProviderEvent::Delta(delta) => emitter.emit(RunEvent::Delta { delta }).await,
                ProviderEvent::Retry { error, after } => {
                    let after = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
                    emitter
                        .emit(RunEvent::Retrying { error: error.to_string(), wait_ms: after })
                        .await;
                }
                ProviderEvent::End(end) => return Ok(end),
            }
        }
    }
}

impl PendingModelRequest {
    /// Returns the next item of the answer; the last is [`ProviderEvent::End`].
    pub(super) async fn next(&mut self) -> ProviderEvent {
        let Some(event) = self.events.next().await else {
            unreachable!("an end comes before nothing")
        };
        match &event {
            ProviderEvent::Delta(ReplyDelta::Usage(usage)) => {
                if let Some(observed) = &mut self.observation {
                    observed.usage(*usage);
                }
            }
            ProviderEvent::End(end) => {
                if let Some(observed) = self.observation.take() {
                    observed.end(end.as_ref());
                }
            }
            ProviderEvent::Delta(_) | ProviderEvent::Retry { .. } => {}
        }
        event
    }
}
