//! Model requests, reported to observers.

use std::sync::Arc;

use consort_core::{Emitter, Emitting};

use super::{Agent, End, Worker};
use crate::event::Event;
use crate::observe::{RequestObservation, RunObservation, RunStart};
use crate::step::Status;
use consort_models::{ModelReply, ModelRequest, ProviderError, ProviderEvent, ReplyDelta};

/// A model request in progress. Dropping it cancels it.
pub(super) struct PendingModelRequest {
    said: Emitting<ProviderEvent>,
    observed: Option<Box<dyn RequestObservation>>,
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

impl Worker {
    /// Begins a model request. The error is the reason why it must not be sent.
    pub(super) async fn request(&self, ask: ModelRequest) -> Result<PendingModelRequest, String> {
        let observed = match &self.observation {
            Some(observation) => Some(observation.request().await?),
            None => None,
        };
        Ok(PendingModelRequest { said: self.agent.model.provider.request(ask), observed })
    }

    /// Makes a model request, reports the answer as it arrives, and returns it.
    pub(super) async fn hear(
        &self,
        ask: ModelRequest,
        emitter: &Emitter<Event>,
    ) -> Result<Result<ModelReply, ProviderError>, End> {
        let mut request = self.request(ask).await.map_err(|reason| (Status::Error, reason))?;
        loop {
            match request.next().await {
                ProviderEvent::Delta(delta) => emitter.emit(Event::Delta { delta }).await,
                ProviderEvent::Retry { error, after } => {
                    let after = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
                    emitter.emit(Event::Again { error: error.to_string(), after }).await;
                }
                ProviderEvent::End(end) => return Ok(end),
            }
        }
    }
}

impl PendingModelRequest {
    /// Returns the next item of the answer; the last is [`ProviderEvent::End`].
    pub(super) async fn next(&mut self) -> ProviderEvent {
        let Some(said) = self.said.next().await else {
            unreachable!("an end comes before nothing")
        };
        match &said {
            ProviderEvent::Delta(ReplyDelta::Usage(usage)) => {
                if let Some(observed) = &mut self.observed {
                    observed.usage(*usage);
                }
            }
            ProviderEvent::End(end) => {
                if let Some(observed) = self.observed.take() {
                    observed.end(end.as_ref());
                }
            }
            ProviderEvent::Delta(_) | ProviderEvent::Retry { .. } => {}
        }
        said
    }
}
