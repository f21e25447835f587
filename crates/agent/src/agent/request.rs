//! Model requests, reported to observers.

use std::sync::Arc;

use consort_core::{Emitter, Emitting};

use super::{Agent, End, Worker};
use crate::event::Event;
use crate::observe::{RequestObservation, RunObservation, RunStart};
use crate::step::Status;
use consort_models::{Ask, Delta, ProviderError, Reply, Said};

/// A model request in progress. Dropping it cancels it.
pub(super) struct ModelRequest {
    said: Emitting<Said>,
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
    pub(super) async fn request(&self, ask: Ask) -> Result<ModelRequest, String> {
        let observed = match &self.observation {
            Some(observation) => Some(observation.request().await?),
            None => None,
        };
        Ok(ModelRequest { said: self.agent.model.provider.ask(ask), observed })
    }

    /// Makes a model request, reports the answer as it arrives, and returns it.
    pub(super) async fn hear(
        &self,
        ask: Ask,
        emitter: &Emitter<Event>,
    ) -> Result<Result<Reply, ProviderError>, End> {
        let mut request = self.request(ask).await.map_err(|reason| (Status::Error, reason))?;
        loop {
            match request.next().await {
                Said::Delta(delta) => emitter.emit(Event::Delta { delta }).await,
                Said::Again { error, after } => {
                    let after = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
                    emitter.emit(Event::Again { error: error.to_string(), after }).await;
                }
                Said::End(end) => return Ok(end),
            }
        }
    }
}

impl ModelRequest {
    /// Returns the next item of the answer; the last is [`Said::End`].
    pub(super) async fn next(&mut self) -> Said {
        let Some(said) = self.said.next().await else {
            unreachable!("an end comes before nothing")
        };
        match &said {
            Said::Delta(Delta::Usage(usage)) => {
                if let Some(observed) = &mut self.observed {
                    observed.usage(*usage);
                }
            }
            Said::End(end) => {
                if let Some(observed) = self.observed.take() {
                    observed.end(end.as_ref());
                }
            }
            Said::Delta(_) | Said::Again { .. } => {}
        }
        said
    }
}
