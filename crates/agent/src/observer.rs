//! Observation of runs and of the model requests in them: by a ledger, by metrics, by traces.

use std::sync::Arc;

use consort_core::{BoxFuture, Caller, Object};

use crate::step::RunReport;
use consort_models::{Model, ModelReply, ProviderError, TokenUsage};

/// An observer of runs.
pub trait RunObserver: Send + Sync {
    /// Begins the observation of a run.
    fn begin(&self, run: &RunStart<'_>) -> Arc<dyn RunObservation>;
}

/// The facts of a run that are known when it begins.
#[derive(Clone, Copy, Debug)]
pub struct RunStart<'a> {
    /// The run's id.
    pub run: &'a str,
    /// The agent's name.
    pub agent: &'a str,
    /// The caller on whose account it runs.
    pub caller: &'a Caller,
    /// The model.
    pub model: &'a Model,
    /// The `_meta` of the request that the run answers, with its trace context.
    pub parent: Option<&'a Object>,
}

/// A run that is observed.
pub trait RunObservation: Send + Sync {
    /// Begins the observation of a model request. The request is sent only once this is done, and not at all
    /// if it fails: the error is the reason.
    fn request(&self) -> BoxFuture<'_, Result<Box<dyn RequestObservation>, String>>;

    /// Returns the trace context that calls of tools carry, as members of `_meta`.
    fn context(&self) -> Vec<(&'static str, String)>;

    /// Ends the observation.
    fn end(&self, report: &RunReport);
}

/// A model request that is observed. Dropped without an end, it was cancelled.
pub trait RequestObservation: Send {
    /// Takes the tokens that were used so far.
    fn usage(&mut self, usage: TokenUsage);

    /// Ends the observation.
    fn end(self: Box<Self>, result: Result<&ModelReply, &ProviderError>);
}
