//! Recording of agent runs: in the ledger, in metrics, in traces.

use std::sync::Arc;

use consort_agent::{
    RequestObservation, RunObservation, RunObserver, RunReport, RunStart, RunStatus,
};
use consort_audit::ledger::{ModelUsage, OutcomeClass, UsageCost};
use consort_audit::{CallSinks, ModelRequestRecord, RunRecord};
use consort_core::{BoxFuture, CallingAgent};
use consort_models::{ModelReply, ProviderError, ProviderErrorKind, TokenPrice, TokenUsage};
use parking_lot::Mutex;

/// Records the runs of agents.
#[derive(Debug)]
pub struct RunRecorder(pub CallSinks);

impl RunObserver for RunRecorder {
    fn begin(&self, run: &RunStart<'_>) -> Arc<dyn RunObservation> {
        let agent = CallingAgent { name: run.agent.to_owned(), model: run.model.id.clone() };
        let record = self.0.begin_run(run.caller, agent, run.parent);
        Arc::new(RecordedRun {
            price: run.model.facts.price,
            context: record.context().fields().collect(),
            record: Mutex::new(Some(record)),
        })
    }
}

/// A recorded run.
struct RecordedRun {
    price: Option<TokenPrice>,
    context: Vec<(&'static str, String)>,
    /// `None` once it has ended.
    record: Mutex<Option<RunRecord>>,
}

impl RunObservation for RecordedRun {
    fn request(&self) -> BoxFuture<'_, Result<Box<dyn RequestObservation>, String>> {
        let record = {
            let record = self.record.lock();
            record.as_ref().map(RunRecord::begin_request)
        };
        Box::pin(async move {
            let mut record = record.ok_or("the run is over")?;
            record.durable().await.map_err(|error| error.to_string())?;
            Ok(Box::new(RecordedRequest { record, price: self.price }) as _)
        })
    }

    fn context(&self) -> Vec<(&'static str, String)> {
        self.context.clone()
    }

    fn end(&self, report: &RunReport) {
        let record = self.record.lock().take();
        let Some(record) = record else { return };
        // A run that waits for a person or for its client's tools is no failure.
        let is_fine = matches!(report.status, RunStatus::Completed | RunStatus::Waiting);
        let kind = serde_json::to_value(report.status);
        let kind = kind.ok().and_then(|kind| kind.as_str().map(str::to_owned)).unwrap_or_default();
        let error = (!is_fine).then(|| (kind, report.reason.clone()));
        record.end(&usage(&report.usage, self.price.as_ref()), error);
    }
}

/// A recorded model request.
struct RecordedRequest {
    record: ModelRequestRecord,
    price: Option<TokenPrice>,
}

impl RequestObservation for RecordedRequest {
    fn usage(&mut self, used: TokenUsage) {
        self.record.set_usage(usage(&used, self.price.as_ref()));
    }

    fn end(mut self: Box<Self>, result: Result<&ModelReply, &ProviderError>) {
        match result {
            Ok(reply) => {
                self.record.set_usage(usage(&reply.usage, self.price.as_ref()));
                self.record.set_answer(&reply.model, &reply.id);
                self.record.end(OutcomeClass::Ok, None);
            }
            Err(error) => {
                let class = match error.kind {
                    ProviderErrorKind::Unreachable { .. } => OutcomeClass::NotSent,
                    _ => OutcomeClass::Error { code: error.status.map(i64::from) },
                };
                let kind = error.status.map_or_else(|| class.to_string(), |it| it.to_string());
                self.record.end(class, Some((kind, error.to_string())));
            }
        }
    }
}

fn usage(used: &TokenUsage, price: Option<&TokenPrice>) -> ModelUsage {
    ModelUsage {
        input: used.input,
        output: used.output,
        cached_read: used.cached_read,
        cached_write: used.cached_write,
        reasoning: used.reasoning,
        cost: price.map(|price| UsageCost::dollars(price.of(used))),
    }
}
