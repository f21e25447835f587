//! Where calls are recorded: counters, ledger, traces.

use std::sync::Arc;

use consort_gateway::feed::{Feed, RING};
use consort_gateway::ledger::{Ledger, LedgerSettings, Search, search};
use consort_gateway::metrics::{Extra, Metrics};
use consort_gateway::otlp::{Exporter, OtlpSettings};
use consort_gateway::{Records, States};
use tokio::task::JoinHandle;

use crate::cli::Serve;
use crate::command::ledger::ledger_path;
use crate::exit::Failure;
use crate::output::note;

/// What records calls while we serve.
pub(super) struct Recording {
    pub(super) records: Records,
    /// Reads the last calls of earlier times.
    seeding: Option<JoinHandle<()>>,
    exporter: Option<Exporter>,
}

impl Recording {
    pub(super) fn start(serve: &Serve, states: &States) -> Result<Self, Failure> {
        let metrics = Arc::<Metrics>::default();
        let file = serve.ledger.clone().or_else(ledger_path).filter(|_| !serve.no_ledger);
        let ledger = match file {
            Some(file) => {
                Some(Ledger::open(&file, LedgerSettings::default()).map_err(|error| {
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
                states: states(),
                ledger: ledger.as_ref().map(Ledger::stats),
                spans_dropped: None,
            };
            Exporter::start(settings, Arc::clone(&metrics), Box::new(extra))
        });
        let mut records = Records { metrics, ledger, ..Records::default() };
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
