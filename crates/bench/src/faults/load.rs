//! The steady load of healthy calls beside the faults, which must not be affected.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;

use super::client::Ask;
use super::record::Record;
use super::stage::{Stage, next};
use super::trial::answer;

/// The pause between two calls of one caller.
const PAUSE: Duration = Duration::from_millis(25);

/// Calls of healthy servers, one after the other by each caller, until they are stopped.
#[derive(Debug)]
pub(super) struct Load {
    stop: Arc<AtomicBool>,
    callers: Vec<tokio::task::JoinHandle<Vec<Record>>>,
}

impl Load {
    pub(super) fn start(stage: &Arc<Stage>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let callers = (0..stage.principals.len()).map(|n| {
            let (stage, stop) = (Arc::clone(stage), Arc::clone(&stop));
            let server = if n % 4 < 2 { "b" } else { "hb" };
            tokio::spawn(async move {
                let mut records = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let nonce = format!("healthy-{}", next());
                    let arguments = json!({ "nonce": nonce, "steps": [answer(&nonce)] });
                    let (tool, arguments) = (format!("{server}__write"), arguments.to_string());
                    let ask = Ask { tool, nonce, arguments };
                    records.push(stage.principals[n].call(&ask).await);
                    tokio::time::sleep(PAUSE).await;
                }
                records
            })
        });
        Self { callers: callers.collect(), stop }
    }

    /// Stops it and returns the record of each call.
    pub(super) async fn stop(self) -> Vec<Record> {
        self.stop.store(true, Ordering::Relaxed);
        let mut records = Vec::new();
        for caller in self.callers {
            // Whoever panics has a fault of its own, which is told on the standard error.
            records.extend(caller.await.unwrap_or_default());
        }
        records
    }
}

/// Returns the maximum duration of the fastest `share` of the calls.
pub(super) fn share(records: &[Record], share: f64) -> Duration {
    let mut times: Vec<Duration> = records.iter().map(|record| record.took).collect();
    times.sort_unstable();
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a count of calls"
    )]
    let at = (times.len() as f64 * share) as usize;
    times.get(at.min(times.len().saturating_sub(1))).copied().unwrap_or_default()
}
