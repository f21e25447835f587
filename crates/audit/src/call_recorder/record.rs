//! The record of a call in progress.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use consort_core::{
    CallError, CallEvent, CallObserver, Caller, PrimitiveKind, RefusedTarget, RejectReason,
    SendObserver, ServerId, Toolbox,
};

use crate::ledger::{CallIntent, LedgerEntry, OutcomeClass};
use crate::lines::LogLimits;
use crate::live_calls::RunningCall;
use crate::metrics::{GatewayMetrics, GaugeGuard};
use crate::otlp::{CallSpan, SpanAttribute};

/// Returns the reason why a caller does not see the item it names, and the item's server. It is not sent to the caller.
pub(super) fn withheld(
    toolbox: &dyn Toolbox,
    caller: &Caller,
    method: &str,
    target: &RefusedTarget,
) -> Option<(ServerId, RejectReason)> {
    let kinds: &[PrimitiveKind] = match method {
        "tools/call" => &[PrimitiveKind::Tools],
        "prompts/get" => &[PrimitiveKind::Prompts],
        "resources/read" => &[PrimitiveKind::Resources, PrimitiveKind::Templates],
        _ => &[],
    };
    kinds.iter().find_map(|kind| toolbox.withheld(caller, *kind, target))
}

/// The record of a call in progress. Dropped without an end, the call was cancelled.
pub(super) struct CallRecord {
    /// The toolbox that is called.
    pub(super) toolbox: Arc<dyn Toolbox>,
    pub(super) metrics: Arc<GatewayMetrics>,
    pub(super) lines: Arc<LogLimits>,
    pub(super) is_over: bool,
    /// The caller, if the intent has another.
    pub(super) made_by: Option<Caller>,
    /// The id of the first request that was sent to the server.
    pub(super) request_id: Arc<OnceLock<u64>>,
    pub(super) intent: Arc<CallIntent>,
    pub(super) entry: Option<LedgerEntry>,
    pub(super) span: Option<CallSpan>,
    pub(super) running: Option<RunningCall>,
    pub(super) begun: Instant,
    pub(super) _held: GaugeGuard,
}

impl CallObserver for CallRecord {
    fn event(&mut self, event: &mut CallEvent) {
        let CallEvent::End(end) = event else {
            if let Some(running) = &self.running {
                running.note(event);
            }
            return;
        };
        let bytes = end.as_ref().map_or(0, |outcome| outcome.object().as_bytes().len());
        let class = match &*end {
            Err(CallError::Unknown { .. }) => self.unknown(),
            end => OutcomeClass::of(end),
        };
        self.note(class, bytes, end.as_ref().err());
    }
}

impl CallRecord {
    /// Returns the class of a call whose tool is unknown to its caller: the reason is for the operator alone.
    fn unknown(&self) -> OutcomeClass {
        let intent = &self.intent;
        let target = RefusedTarget { server: intent.server.clone(), name: intent.name.clone() };
        let caller = self.made_by.as_ref().unwrap_or(&intent.caller);
        let withheld = withheld(&*self.toolbox, caller, &intent.method, &target);
        let reason = withheld.map_or(RejectReason::UnknownName, |(_, reason)| reason);
        OutcomeClass::Rejected { reason: Some(reason) }
    }

    /// Returns the observer of its sending, which also records the request id if the call is traced.
    pub(super) fn postmark(&self) -> Option<Arc<dyn SendObserver>> {
        let inner = self.running.as_ref().map(|running| running.call().postmark());
        if self.span.is_none() {
            return inner;
        }
        Some(Arc::new(NumberedPostmark { inner, id: Arc::clone(&self.request_id) }))
    }

    pub(super) fn note(&mut self, class: OutcomeClass, bytes: usize, error: Option<&CallError>) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        let took = self.begun.elapsed();
        self.log(class, bytes, took, error);
        let CallIntent { server, method, name, .. } = &*self.intent;
        self.metrics.call(server.as_ref(), class, took);
        if let Some(server) = server.as_ref().filter(|_| method == "tools/call") {
            self.metrics.tool_call(server, name, class);
        }
        if let Some(running) = self.running.take() {
            running.end(class, took, bytes as u64);
        }
        if let Some(entry) = self.entry.take() {
            entry.end_after(took, class, bytes as u64);
        }
        if let Some(mut span) = self.span.take() {
            if let Some(id) = self.request_id.get() {
                span.set("jsonrpc.request.id", SpanAttribute::Text(id.to_string()));
            }
            span.end(class);
        }
    }

    /// Writes a log line: always for a call that failed or was refused, within the rate limit.
    fn log(&self, class: OutcomeClass, bytes: usize, took: Duration, error: Option<&CallError>) {
        let fine = matches!(class, OutcomeClass::Ok | OutcomeClass::Cancelled { .. });
        if fine && !tracing::enabled!(tracing::Level::DEBUG) {
            return;
        }
        let intent = &self.intent;
        // A URI may say more than a name.
        let tool = if intent.method == "resources/read" { "" } else { &intent.name };
        let (caller, method) = (intent.caller.name(), &*intent.method);
        let server = intent.server.as_ref().map(ServerId::as_str);
        let agent = intent.agent.as_ref().map(|agent| &*agent.name);
        let trace = intent.trace.map(|trace| trace.to_string());
        let outcome = class.as_str();
        #[expect(clippy::cast_precision_loss, reason = "nobody waits for 2^52 microseconds")]
        let duration_ms = took.as_micros() as f64 / 1000.0;
        if fine || !self.lines.calls.admits() {
            tracing::debug!(
                caller,
                tool,
                server,
                method,
                outcome,
                bytes,
                duration_ms,
                "call ended"
            );
            return;
        }
        let reason = reason(class, error);
        if let OutcomeClass::Rejected { .. } = class {
            tracing::info!(
                caller,
                tool,
                server,
                method,
                agent,
                outcome,
                reason,
                trace,
                duration_ms,
                "call refused"
            );
        } else {
            tracing::warn!(
                caller,
                tool,
                server,
                method,
                agent,
                outcome,
                reason,
                trace,
                duration_ms,
                "call failed"
            );
        }
    }
}

/// Returns the reason why a call failed, for the operator. It omits messages of the server, which may hold arguments.
fn reason(class: OutcomeClass, error: Option<&CallError>) -> String {
    match (class, error) {
        (OutcomeClass::Rejected { reason }, _) => {
            reason.map_or("unknown", RejectReason::as_str).to_owned()
        }
        (OutcomeClass::ToolError, _) => "the tool reported an error".to_owned(),
        (_, Some(CallError::Execution { code, .. })) => format!("the server returned error {code}"),
        (_, Some(error)) => {
            let mut text = error.to_string();
            let mut cause = std::error::Error::source(error);
            while let Some(error) = cause {
                text = format!("{text}: {error}");
                cause = error.source();
            }
            text
        }
        (class, None) => class.as_str().to_owned(),
    }
}

/// An observer of sending that records the id of the request.
#[derive(Debug)]
struct NumberedPostmark {
    inner: Option<Arc<dyn SendObserver>>,
    id: Arc<OnceLock<u64>>,
}

impl SendObserver for NumberedPostmark {
    fn sent(&self) {
        if let Some(inner) = &self.inner {
            inner.sent();
        }
    }

    fn numbered(&self, id: u64) {
        let _ = self.id.set(id);
    }
}

impl Drop for CallRecord {
    fn drop(&mut self) {
        // Nobody waits for it any more.
        self.note(OutcomeClass::Cancelled { sent: None }, 0, None);
    }
}
