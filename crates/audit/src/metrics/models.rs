//! Counters and histograms of model requests.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::MetricLimits;
use super::expose::{MetricFamily, MetricSeries, MetricType, MetricValue};
use crate::ledger::{CallIntent, ModelUsage, OutcomeClass, UsageCost};

/// The label of models without series of their own.
const OTHER: &str = "other";

/// The upper bounds of the buckets of tokens, as OpenTelemetry specifies them.
const TOKEN_BOUNDS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

/// The upper bounds of the buckets of durations in seconds, as OpenTelemetry specifies them.
const DURATION_BOUNDS: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

/// Counters of model requests, by model.
#[derive(Debug)]
pub(super) struct ModelMetrics {
    counts: Mutex<BTreeMap<String, ModelCounts>>,
    /// Maximum number of models with series of their own.
    most: AtomicUsize,
}

impl Default for ModelMetrics {
    fn default() -> Self {
        let most = AtomicUsize::new(MetricLimits::default().models);
        Self { counts: Mutex::default(), most }
    }
}

#[derive(Debug, Default)]
struct ModelCounts {
    ended: [u64; OutcomeClass::WORDS.len()],
    input: TokenHistogram,
    output: TokenHistogram,
    cached_read: u64,
    reasoning: u64,
    cost: UsageCost,
    durations: DurationHistogram,
}

#[derive(Debug, Default)]
struct TokenHistogram {
    counts: [u64; TOKEN_BOUNDS.len() + 1],
    sum: u64,
}

#[derive(Debug, Default)]
struct DurationHistogram {
    counts: [u64; DURATION_BOUNDS.len() + 1],
    sum: Duration,
}

impl ModelMetrics {
    /// Sets the maximum number of models with series of their own.
    pub(super) fn limit(&self, models: usize) {
        self.most.store(models, Ordering::Relaxed);
    }

    /// Registers models, so that their series start at 0.
    pub(super) fn know(&self, models: impl IntoIterator<Item = String>) {
        let mut known = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        for model in models {
            if known.len() < self.most.load(Ordering::Relaxed) {
                known.entry(model).or_default();
            }
        }
    }

    /// Counts a finished model request. A model is registered once it has answered: before that, its name is arbitrary
    /// text of a client.
    pub(super) fn count(
        &self,
        model: &str,
        class: OutcomeClass,
        took: Duration,
        usage: &ModelUsage,
    ) {
        let mut known = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = class == OutcomeClass::Ok && known.len() < self.most.load(Ordering::Relaxed);
        let name = if known.contains_key(model) || is_new { model } else { OTHER };
        let counts = known.entry(name.to_owned()).or_default();
        counts.ended[class.index()] += 1;
        counts.durations.observe(took);
        if *usage != ModelUsage::default() {
            counts.input.observe(usage.input);
            counts.output.observe(usage.output);
            counts.cached_read += usage.cached_read;
            counts.reasoning += usage.reasoning;
            counts.cost += usage.cost.unwrap_or_default();
        }
    }

    pub(super) fn families(&self) -> Vec<MetricFamily> {
        let known = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut requests = Vec::new();
        let (mut tokens, mut costs) = (Vec::new(), Vec::new());
        let (mut usages, mut durations) = (Vec::new(), Vec::new());
        for (model, counts) in &*known {
            for (outcome, count) in OutcomeClass::WORDS.into_iter().zip(counts.ended) {
                let labels = [("model", model.as_str()), ("outcome", outcome)];
                requests.push(MetricSeries::new(labels, MetricValue::Count(count)));
            }
            for (kind, count) in [
                ("input", counts.input.sum),
                ("output", counts.output.sum),
                ("cached_read", counts.cached_read),
                ("reasoning", counts.reasoning),
            ] {
                let labels = [("model", model.as_str()), ("type", kind)];
                tokens.push(MetricSeries::new(labels, MetricValue::Count(count)));
            }
            let cost = MetricValue::Amount(counts.cost.as_dollars());
            costs.push(MetricSeries::new([("model", model.as_str())], cost));
            for (kind, histogram) in [("input", &counts.input), ("output", &counts.output)] {
                let mut series = MetricSeries::new([], histogram.value());
                series.labels = gen_ai(model);
                series.labels.push(("gen_ai.token.type", kind.to_owned()));
                usages.push(series);
            }
            let mut series = MetricSeries::new([], counts.durations.value());
            series.labels = gen_ai(model);
            durations.push(series);
        }
        vec![
            MetricFamily::counters(
                "consort_model_requests",
                "Model requests by model and outcome",
                requests,
            ),
            MetricFamily::counters(
                "consort_model_tokens",
                "Tokens of model requests by model and type",
                tokens,
            ),
            MetricFamily::counters(
                "consort_model_cost_dollars",
                "Cost of model requests in US dollars, for models with a known price",
                costs,
            ),
            MetricFamily {
                name: "gen_ai_client_token_usage",
                otlp_name: Some("gen_ai.client.token.usage"),
                help: "Number of input and output tokens used",
                unit: "{token}",
                measure: MetricType::Histogram,
                series: usages,
            },
            MetricFamily {
                name: "gen_ai_client_operation_duration_seconds",
                otlp_name: Some("gen_ai.client.operation.duration"),
                help: "GenAI operation duration",
                unit: "s",
                measure: MetricType::Histogram,
                series: durations,
            },
        ]
    }
}

/// Returns the attributes of a model request, as OpenTelemetry names them.
fn gen_ai(model: &str) -> Vec<(&'static str, String)> {
    let (provider, name) = provider_and_name(model);
    vec![
        ("gen_ai.operation.name", CallIntent::CHAT.to_owned()),
        ("gen_ai.provider.name", provider.to_owned()),
        ("gen_ai.request.model", name.to_owned()),
    ]
}

/// Returns the provider of a model, by its OpenTelemetry name if it has one, and the model's name there.
pub(crate) fn provider_and_name(model: &str) -> (&str, &str) {
    let (provider, name) = model.split_once(':').unwrap_or((model, model));
    let provider = match provider {
        "gemini" | "google" => "gcp.gemini",
        "mistral" => "mistral_ai",
        "xai" => "x_ai",
        other => other,
    };
    (provider, name)
}

impl TokenHistogram {
    fn observe(&mut self, tokens: u64) {
        #[expect(clippy::cast_precision_loss, reason = "nobody uses 2^52 tokens")]
        let bucket = TOKEN_BOUNDS.partition_point(|bound| *bound < tokens as f64);
        self.counts[bucket] += 1;
        self.sum += tokens;
    }

    fn value(&self) -> MetricValue {
        #[expect(clippy::cast_precision_loss, reason = "nobody uses 2^52 tokens")]
        let sum = self.sum as f64;
        MetricValue::Histogram { bounds: &TOKEN_BOUNDS, counts: self.counts.to_vec(), sum }
    }
}

impl DurationHistogram {
    fn observe(&mut self, took: Duration) {
        let bucket = DURATION_BOUNDS.partition_point(|bound| *bound < took.as_secs_f64());
        self.counts[bucket] += 1;
        self.sum += took;
    }

    fn value(&self) -> MetricValue {
        let (counts, sum) = (self.counts.to_vec(), self.sum.as_secs_f64());
        MetricValue::Histogram { bounds: &DURATION_BOUNDS, counts, sum }
    }
}
