//! Export of traces and metrics to a collector: OTLP over HTTP in its JSON encoding, enabled by the environment
//! variables of OpenTelemetry.
//!
//! Export never blocks calls: a span that finds the queue full is dropped and counted, and an unreachable collector
//! costs a warning per minute.

mod encode;
mod post;
mod settings;
mod span;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

pub use settings::{ExportTarget, OtlpSettings, TraceSampler};
use span::FinishedSpan;
pub use span::{CallSpan, SpanAttribute, SpanDescription, SpanKind, SpanStart, SpanTracer};

use crate::metrics::{ExternalMetrics, GatewayMetrics};
use post::post;

/// Minimum interval between two warnings about failed exports.
const WARN: Duration = Duration::from_mins(1);

/// Delays before the retries of a transient failure.
const AGAIN: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];

/// Time limit for the last spans.
const LAST: Duration = Duration::from_secs(5);

/// Source of the values beside the counters when metrics are sent.
pub type ExtraSource = Box<dyn Fn() -> ExternalMetrics + Send>;

/// Sends spans and metrics to a collector, in a task of its own.
pub struct OtlpExporter {
    tracer: SpanTracer,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl fmt::Debug for OtlpExporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporter").field("tracer", &self.tracer).finish_non_exhaustive()
    }
}

impl OtlpExporter {
    /// Starts exporting. Metrics are sent if the settings have a target for them.
    pub fn start(settings: OtlpSettings, metrics: Arc<GatewayMetrics>, extra: ExtraSource) -> Self {
        let (sender, spans) = mpsc::channel(settings.queue);
        let (stop, stopping) = watch::channel(false);
        let tracer = match settings.traces {
            Some(_) => SpanTracer::new(settings.sampler, sender),
            None => SpanTracer::off(),
        };
        let tracing = tracer.clone();
        let work = ExportTask { settings, metrics, extra, tracer: tracing, stopping, told: None };
        Self { tracer, stop, task: tokio::spawn(work.run(spans)) }
    }

    /// Returns the tracer that begins spans.
    pub fn tracer(&self) -> &SpanTracer {
        &self.tracer
    }

    /// Sends the remaining spans, within a time limit, and ends.
    pub async fn drain(self) {
        self.stop.send_replace(true);
        let mut task = self.task;
        if tokio::time::timeout(LAST, &mut task).await.is_err() {
            task.abort();
        }
    }
}

/// The export task.
struct ExportTask {
    settings: OtlpSettings,
    metrics: Arc<GatewayMetrics>,
    extra: ExtraSource,
    tracer: SpanTracer,
    stopping: watch::Receiver<bool>,
    told: Option<Instant>,
}

impl ExportTask {
    async fn run(mut self, mut spans: mpsc::Receiver<FinishedSpan>) {
        let mut gathered = Vec::with_capacity(self.settings.batch);
        let mut send = tokio::time::interval(self.settings.delay);
        let mut measure = tokio::time::interval(self.settings.interval);
        send.set_missed_tick_behavior(MissedTickBehavior::Delay);
        measure.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick comes at once, when there is nothing to tell.
        measure.reset();
        let mut stopping = self.stopping.clone();
        loop {
            let room = self.settings.batch - gathered.len();
            tokio::select! {
                biased;
                // Whoever holds the other end is gone, or asks us to stop.
                () = stop_requested(&mut stopping) => break,
                _ = measure.tick() => self.send_metrics(&AGAIN).await,
                _ = send.tick() => self.send_spans(&mut gathered, &AGAIN).await,
                count = spans.recv_many(&mut gathered, room), if room > 0 => {
                    if count == room {
                        self.send_spans(&mut gathered, &AGAIN).await;
                        send.reset();
                    }
                }
            }
        }
        spans.close();
        loop {
            let room = self.settings.batch - gathered.len();
            let more = spans.recv_many(&mut gathered, room).await;
            if gathered.is_empty() {
                break;
            }
            if more == 0 || gathered.len() == self.settings.batch {
                self.send_spans(&mut gathered, &[]).await;
            }
        }
        self.send_metrics(&[]).await;
    }

    async fn send_spans(&mut self, spans: &mut Vec<FinishedSpan>, again: &[Duration]) {
        let Some(target) = self.settings.traces.clone().filter(|_| !spans.is_empty()) else {
            return;
        };
        let body = encode::traces(&self.settings.resource, spans);
        let lost = match self.send(&target, body, again).await {
            Some(rejected) => rejected,
            None => spans.len() as u64,
        };
        self.tracer.drop_spans(lost);
        spans.clear();
    }

    async fn send_metrics(&mut self, again: &[Duration]) {
        let Some(target) = self.settings.metrics.clone() else { return };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let mut extra = (self.extra)();
        extra.spans_dropped = Some(self.tracer.dropped());
        let families = self.metrics.families(&extra);
        let since = self.metrics.since();
        let body = encode::metrics(&self.settings.resource, &families, since, now);
        self.send(&target, body, again).await;
    }

    /// Sends a request. Returns `None` if it failed, else the number of rejected spans.
    async fn send(
        &mut self,
        target: &ExportTarget,
        body: Vec<u8>,
        again: &[Duration],
    ) -> Option<u64> {
        let mut waits = again.iter();
        let error = loop {
            match post(target, body.clone()).await {
                Ok(answer) => return Some(self.refused(&answer)),
                Err(error) => match waits.next() {
                    Some(wait) if error.is_passing() => tokio::select! {
                        () = tokio::time::sleep(*wait) => {}
                        () = stop_requested(&mut self.stopping) => waits = [].iter(),
                    },
                    _ => break error,
                },
            }
        };
        let mut message = error.to_string();
        if let Some(cause) = std::error::Error::source(&error) {
            message = format!("{message}: {cause}");
        }
        self.warn(&target.display_url(), &message);
        None
    }

    /// Returns the number of spans that the collector rejected in a successful response.
    fn refused(&mut self, answer: &[u8]) -> u64 {
        let answer: serde_json::Value = serde_json::from_slice(answer).unwrap_or_default();
        let partial = &answer["partialSuccess"];
        let count = &partial["rejectedSpans"];
        let count = count.as_u64().or_else(|| count.as_str()?.parse().ok()).unwrap_or(0);
        if count > 0 {
            let reason = partial["errorMessage"].as_str().unwrap_or("no reason given");
            self.warn("the collector", &format!("{count} spans were refused: {reason:?}"));
        }
        count
    }

    fn warn(&mut self, endpoint: &str, reason: &str) {
        if self.told.is_none_or(|told| told.elapsed() >= WARN) {
            self.told = Some(Instant::now());
            let dropped = self.tracer.dropped();
            tracing::warn!(endpoint, reason, dropped, "cannot export telemetry");
        }
    }
}

/// Waits until the exporter is asked to stop, or its handle is dropped.
async fn stop_requested(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stop| *stop).await;
}
