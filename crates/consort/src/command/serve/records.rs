//! Where calls are recorded: counters, ledger, traces.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use consort::config::{Options, ServeConfig};
use consort_gateway::feed::{Feed, RING};
use consort_gateway::ledger::{Ledger, LedgerSettings, Mode, Search, search};
use consort_gateway::metrics::{Extra, MOST_TOOLS, Metrics};
use consort_gateway::otlp::{Exporter, OtlpSettings};
use consort_gateway::{LINES_PER_SECOND, REFUSED_NAME_CHARS, Records, States};
use consort_hub::Hub;
use tokio::task::JoinHandle;

use super::states;
use crate::cli::Serve;
use crate::command::ledger::ledger_path;
use crate::exit::Failure;
use crate::log::{self, ServerOutput};
use crate::output::note;

const DAY: Duration = Duration::from_hours(24);

/// What records calls while we serve.
pub(super) struct Recording {
    pub(super) records: Records,
    /// Reads the last calls of earlier times.
    seeding: Option<JoinHandle<()>>,
    exporter: Option<Exporter>,
}

impl Recording {
    pub(super) fn start(
        serve: &Serve,
        options: &Options,
        config: Option<&Path>,
        states: &States,
        hub: &Hub,
    ) -> Result<Self, Failure> {
        let metrics = Arc::<Metrics>::default();
        let file = serve.ledger.clone().or_else(ledger_path).filter(|_| !serve.no_ledger);
        let ledger = match file {
            Some(file) => {
                let settings = ledger_settings(&options.serve, config);
                Some(Ledger::open(&file, settings).map_err(|error| {
                    Failure::from(error)
                        .hint("name another file with --ledger, or serve with --no-ledger")
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
            let extra = move || Extra {
                servers: states(),
                ledger: ledger.as_ref().map(Ledger::stats),
                spans_dropped: None,
            };
            Exporter::start(settings, Arc::clone(&metrics), Box::new(extra))
        });
        let servers = states::lookup(hub);
        let mut records = Records { metrics, ledger, servers, ..Records::default() };
        configure(&records, serve, options);
        if let Some(exporter) = &exporter {
            records.tracer = exporter.tracer().clone();
        }
        let seeding = (!serve.no_console && !serve.stdio).then(|| {
            records.feed = Feed::new();
            seed(&records)
        });
        Ok(Self { records, seeding: seeding.flatten(), exporter })
    }

    /// Writes and sends what is left.
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

/// Applies what a config says of metrics and the log.
pub(super) fn configure(records: &Records, serve: &Serve, options: &Options) {
    let limit = |count: Option<u64>, usual: usize| {
        count.map_or(usual, |count| usize::try_from(count).unwrap_or(usize::MAX))
    };
    let by_tool = options.serve.metrics_by_tool == Some(true);
    let tools = limit(options.limits.metric_tools, MOST_TOOLS);
    records.metrics.tell_tools(if by_tool { tools } else { 0 });
    let lines = options
        .limits
        .log_lines
        .map_or(LINES_PER_SECOND, |lines| u32::try_from(lines).unwrap_or(u32::MAX));
    records.lines.set(lines);
    let chars = limit(options.limits.refused_name_chars, REFUSED_NAME_CHARS);
    records.lines.set_refused_name(chars);
    // The command line has the last word.
    if serve.log_server_output.is_none() {
        match options.serve.log_server_output.as_deref() {
            Some("live") => log::show_server_output(ServerOutput::Live),
            Some("end") => log::show_server_output(ServerOutput::End),
            _ => {}
        }
    }
}

/// Returns how a config wants the ledger kept.
fn ledger_settings(serve: &ServeConfig, config: Option<&Path>) -> LedgerSettings {
    let usual = LedgerSettings::default();
    let folder = config.and_then(Path::parent).unwrap_or(Path::new(""));
    LedgerSettings {
        mode: if serve.ledger_strict == Some(true) { Mode::Strict } else { usual.mode },
        size: serve.ledger_bytes.unwrap_or(usual.size),
        age: serve
            .ledger_days
            .map(|days| DAY.saturating_mul(u32::try_from(days).unwrap_or(u32::MAX))),
        archive: serve.ledger_archive.as_ref().map(|archive| folder.join(archive)),
        ..usual
    }
}

/// Has the feed know the last calls of the ledger. Nobody waits for it.
fn seed(records: &Records) -> Option<JoinHandle<()>> {
    let (feed, ledger) = (records.feed.clone(), records.ledger.clone()?);
    Some(tokio::task::spawn_blocking(move || {
        let wanted = Search { most: RING, look: RING, ..Search::default() };
        match search(ledger.path(), &wanted) {
            Ok(found) => feed.seed(found.calls.into_iter().rev().collect()),
            Err(error) => tracing::debug!(%error, "the last calls are not known"),
        }
    }))
}
