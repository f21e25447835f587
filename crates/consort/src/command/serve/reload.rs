//! The config as it changes: a new one is taken over while we serve, a broken one is not.

use std::convert::Infallible;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use consort_gateway::{Gateway, Records};
use consort_hub::Hub;
use tokio::signal::unix::{SignalKind, signal};

use super::settings::toolboxes;
use crate::cli::Common;
use crate::running::{self, Prepared, tell};

/// How often the file is looked at.
const OFTEN: Duration = Duration::from_millis(500);

/// How long calls to servers that are gone may take to end.
const DRAIN: Duration = Duration::from_secs(30);

/// Follows the config file, and takes it over again whenever it changes or we get SIGHUP.
pub(super) async fn follow(
    common: &Common,
    file: Option<&Path>,
    hub: &Hub,
    gateway: &Gateway,
    records: &Records,
) -> Infallible {
    let Ok(mut hangup) = signal(SignalKind::hangup()) else { std::future::pending().await };
    let Some(file) = file else {
        // Nothing is configured: nothing changes, and a lost terminal is no reason to end.
        loop {
            hangup.recv().await;
        }
    };
    let mut seen = mark(file);
    loop {
        let asked = tokio::select! {
            _ = hangup.recv() => true,
            () = tokio::time::sleep(OFTEN) => false,
        };
        let now = mark(file);
        if asked || now != seen {
            seen = now;
            take_over(common, file, hub, gateway, records);
        }
    }
}

/// What tells one version of a file from another.
fn mark(file: &Path) -> Option<(SystemTime, u64)> {
    let about = fs::metadata(file).ok()?;
    Some((about.modified().ok()?, about.len()))
}

/// Takes a config over as a whole, or not at all.
fn take_over(common: &Common, file: &Path, hub: &Hub, gateway: &Gateway, records: &Records) {
    let config = match running::read_file(file) {
        Ok(config) => config,
        Err(failure) => return refuse(&failure.message),
    };
    let options = config.options.clone();
    let prepared = match running::prepare_of(common, config) {
        Ok(prepared) => prepared,
        Err(failure) => return refuse(&failure.message),
    };
    let Prepared { settings, shaping, problems, .. } = prepared;
    let broken = problems.iter().find(|problem| problem.severity == consort_core::Severity::Error);
    if let Some(problem) = broken {
        return refuse(&problem.to_string());
    }
    let toolboxes = match toolboxes(hub, records, &shaping, &options) {
        Ok(toolboxes) => toolboxes,
        Err(failure) => return refuse(&failure.message),
    };
    problems.iter().for_each(tell);
    hub.reload(settings.servers, DRAIN);
    gateway.set(toolboxes);
    tracing::info!(file = %file.display(), "the config is in force as it is now");
}

fn refuse(reason: &str) {
    tracing::error!(reason, "the config stays as it was");
}
