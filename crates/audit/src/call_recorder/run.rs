//! Recording of agent runs and their model requests: metrics, traces and the ledger.

use std::sync::Arc;
use std::time::Instant;

use consort_core::{Caller, CallingAgent, Object};

use super::CallSinks;
use crate::ledger::{
    CallIntent, LedgerEntry, LedgerUnavailable, ModelUsage, OutcomeClass, ValueDigest,
};
use crate::metrics::provider_and_name;
use crate::otlp::{CallSpan, SpanAttribute, SpanKind, SpanStart};
use consort_protocol::trace::{self, TraceContext};

/// The endpoint that model requests are recorded with: no client makes them.
const ENDPOINT: &str = "agents";

/// The record of a run in progress: a span that contains its model requests and calls.
#[derive(Debug)]
pub struct RunRecord {
    records: CallSinks,
    caller: Caller,
    agent: Arc<CallingAgent>,
    context: TraceContext,
    span: CallSpan,
}

impl CallSinks {
    /// Begins the record of a run. It continues the trace in the `_meta` of the request that it answers.
    pub fn begin_run(
        &self,
        caller: &Caller,
        agent: CallingAgent,
        parent: Option<&Object>,
    ) -> RunRecord {
        let parent = parent.and_then(trace::of_meta);
        let span = self.tracer.start(parent.as_ref(), || SpanStart {
            side: SpanKind::Internal,
            name: format!("invoke_agent {}", agent.name),
            attributes: attributes("invoke_agent", &agent),
        });
        let caller = self.on_behalf_of.as_ref().unwrap_or(caller);
        let (caller, agent, context) = (caller.clone(), Arc::new(agent), span.context().clone());
        RunRecord { records: self.clone(), caller, agent, context, span }
    }
}

/// Returns the OpenTelemetry attributes of a model request that are known before it is made.
fn attributes(operation: &str, agent: &CallingAgent) -> Vec<(&'static str, SpanAttribute)> {
    let (provider, model) = provider_and_name(&agent.model);
    let texts = [
        ("gen_ai.operation.name", operation),
        ("gen_ai.provider.name", provider),
        ("gen_ai.request.model", model),
        ("gen_ai.agent.name", &agent.name),
    ];
    texts.map(|(key, text)| (key, SpanAttribute::Text(text.to_owned()))).into()
}

impl RunRecord {
    /// Returns the trace context that the run's calls carry.
    pub fn context(&self) -> &TraceContext {
        &self.context
    }

    /// Begins the record of a model request. It may be sent once [`ModelRequestRecord::durable`] succeeds.
    pub fn begin_request(&self) -> ModelRequestRecord {
        let (_, model) = provider_and_name(&self.agent.model);
        let span = self.records.tracer.start(Some(&self.context), || SpanStart {
            side: SpanKind::Client,
            name: format!("{} {model}", CallIntent::CHAT),
            attributes: attributes(CallIntent::CHAT, &self.agent),
        });
        let entry = self.records.ledger.as_ref().map(|ledger| {
            ledger.begin(CallIntent {
                caller: self.caller.clone(),
                endpoint: ENDPOINT.into(),
                server: None,
                method: CallIntent::CHAT.into(),
                name: self.agent.model.clone(),
                arguments: ValueDigest::of(&[]),
                trace: Some(self.context.trace),
                agent: Some(Arc::clone(&self.agent)),
            })
        });
        ModelRequestRecord {
            records: self.records.clone(),
            model: self.agent.model.clone(),
            usage: ModelUsage::default(),
            entry,
            span: Some(span),
            begun: Instant::now(),
        }
    }

    /// Ends the run, with an error type of low cardinality if it failed.
    pub fn end(self, usage: &ModelUsage, error: Option<(String, String)>) {
        let mut span = self.span;
        set_usage(&mut span, usage);
        span.end_with(error);
    }
}

/// The record of a model request in progress. Dropped without an end, it was cancelled.
#[derive(Debug)]
pub struct ModelRequestRecord {
    records: CallSinks,
    model: String,
    usage: ModelUsage,
    entry: Option<LedgerEntry>,
    span: Option<CallSpan>,
    begun: Instant,
}

impl ModelRequestRecord {
    /// Waits until the request may be sent: immediately, or in a strict ledger once its intent is on disk. If that
    /// fails, the request must not be sent.
    pub async fn durable(&mut self) -> Result<(), LedgerUnavailable> {
        match &mut self.entry {
            Some(entry) => entry.durable().await,
            None => Ok(()),
        }
    }

    /// Sets the tokens used so far.
    pub fn set_usage(&mut self, usage: ModelUsage) {
        self.usage = usage;
    }

    /// Sets the model and the id of the response, as the provider reports them.
    pub fn set_answer(&mut self, model: &str, id: &str) {
        let Some(span) = &mut self.span else { return };
        for (key, text) in [("gen_ai.response.model", model), ("gen_ai.response.id", id)] {
            if !text.is_empty() {
                span.set(key, SpanAttribute::Text(text.to_owned()));
            }
        }
    }

    /// Ends it, with an error type of low cardinality if it failed.
    pub fn end(mut self, class: OutcomeClass, error: Option<(String, String)>) {
        self.note(class, error);
    }

    fn note(&mut self, class: OutcomeClass, error: Option<(String, String)>) {
        let Some(mut span) = self.span.take() else { return };
        let took = self.begun.elapsed();
        self.records.metrics.model_request(&self.model, class, took, &self.usage);
        if let Some(entry) = self.entry.take() {
            entry.end_model_request(took, class, self.usage);
        }
        set_usage(&mut span, &self.usage);
        span.end_with(error);
    }
}

impl Drop for ModelRequestRecord {
    fn drop(&mut self) {
        let class = OutcomeClass::Cancelled { sent: None };
        self.note(class, Some((class.as_str().to_owned(), "cancelled".to_owned())));
    }
}

fn set_usage(span: &mut CallSpan, usage: &ModelUsage) {
    if *usage == ModelUsage::default() {
        return;
    }
    for (key, tokens) in [
        ("gen_ai.usage.input_tokens", usage.input),
        ("gen_ai.usage.output_tokens", usage.output),
        ("gen_ai.usage.cache_read.input_tokens", usage.cached_read),
        ("gen_ai.usage.cache_creation.input_tokens", usage.cached_write),
    ] {
        let tokens = i64::try_from(tokens).unwrap_or(i64::MAX);
        span.set(key, SpanAttribute::Number(tokens));
    }
}
