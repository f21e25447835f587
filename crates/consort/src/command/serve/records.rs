//! Recording of calls: counters, ledger, traces.

use std::path::Path;
use std::sync::Arc;

use consort_audit::ledger::{Ledger, LedgerSearch, search};
use consort_audit::live_calls::CallFeed;
use consort_audit::metrics::{ExternalMetrics, GatewayMetrics};
use consort_audit::otlp::{OtlpExporter, OtlpSettings};
use consort_audit::{CallSinks, ServerStatuses};
use consort_config::ConsortOptions;
use consort_hub::Hub;
use tokio::task::JoinHandle;

use super::states;
use crate::cli::ServeArguments;
use crate::exit::CommandError;
use crate::log::{self, ServerOutput};
use crate::output::note;
use crate::recording::{ledger_path, ledger_settings};

/// Recorders of calls while the gateway serves.
pub(super) struct ServeRecords {
    pub(super) records: CallSinks,
    /// Task that loads the last recorded calls.
    seeding: Option<JoinHandle<()>>,
    exporter: Option<OtlpExporter>,
}

impl ServeRecords {
    pub(super) fn start(
        serve: &ServeArguments,
        options: &ConsortOptions,
        config: Option<&Path>,
        states: &ServerStatuses,
        hub: &Hub,
    ) -> Result<Self, CommandError> {
        let metrics = Arc::<GatewayMetrics>::default();
        let file = serve.ledger.clone().or_else(ledger_path).filter(|_| !serve.no_ledger);
        let ledger = match file {
            Some(file) => {
                let settings = ledger_settings(options, config);
                Some(Ledger::open(&file, settings).map_err(|error| {
                    CommandError::from(error)
                        .hint("use another file with --ledger FILE, or --no-ledger")
                })?)
            }
            None => None,
        };
        let (settings, warnings) = OtlpSettings::read(|name| std::env::var(name).ok());
        for warning in warnings {
            note(format!("warning: {warning}"));
        }
        let exporter = settings.map(|settings| {
            let (states, ledger) = (Arc::clone(states), ledger.clone());
            let extra = move || ExternalMetrics {
                servers: states(),
                ledger: ledger.as_ref().map(Ledger::stats),
                spans_dropped: None,
            };
            OtlpExporter::start(settings, Arc::clone(&metrics), Box::new(extra))
        });
        let servers = states::lookup(hub);
        let mut records = CallSinks { metrics, ledger, servers, ..CallSinks::default() };
        configure(&records, serve, options);
        if let Some(exporter) = &exporter {
            records.tracer = exporter.tracer().clone();
        }
        let seeding = (!serve.no_console && !serve.stdio).then(|| {
            records.feed = CallFeed::limited(options.limits.settings().feed);
            load_last_calls(&records)
        });
        Ok(Self { records, seeding: seeding.flatten(), exporter })
    }

    /// Writes and sends pending records.
    pub(super) async fn end(self) {
        if let Some(exporter) = self.exporter {
            exporter.drain().await;
        }
        if let Some(seeding) = self.seeding {
            let _ = seeding.await;
        }
        if let Some(ledger) = self.records.ledger {
            ledger.close();
        }
    }
}

/// Applies the config of metrics and the log.
pub(super) fn configure(records: &CallSinks, serve: &ServeArguments, options: &ConsortOptions) {
    let all = options.limits.settings();
    let limits = all.records;
    records.metrics.limit(all.metrics);
    let by_tool = options.serve.metrics_by_tool == Some(true);
    records.metrics.count_tools(if by_tool { limits.metric_tools } else { 0 });
    records.lines.set(limits.log_lines);
    records.lines.set_refused_name(limits.refused_name_chars);
    // The command line has the last word.
    if serve.log_server_output.is_none() {
        match options.serve.log_server_output.as_deref() {
            Some("live") => log::show_server_output(ServerOutput::Live),
            Some("end") => log::show_server_output(ServerOutput::End),
            _ => {}
        }
    }
}

/// Loads the last calls of the ledger into the feed, in the background.
fn load_last_calls(records: &CallSinks) -> Option<JoinHandle<()>> {
    let (feed, ledger) = (records.feed.clone(), records.ledger.clone()?);
    Some(tokio::task::spawn_blocking(move || {
        let calls = feed.capacity();
        let wanted = LedgerSearch { most: calls, look: calls, ..LedgerSearch::default() };
        match search(ledger.path(), &wanted) {
            Ok(found) => feed.seed(found.calls.into_iter().rev().collect()),
            Err(error) => tracing::debug!(%error, "cannot read recent calls from the ledger"),
        }
    }))
}
