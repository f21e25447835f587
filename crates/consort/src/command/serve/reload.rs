//! The config as it changes: a new one is taken over while we serve, a broken one is not.

use std::convert::Infallible;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use consort::config::{Folders, Found, System, find};
use consort::lock;
use consort_agent::sub::Roster;
use consort_gateway::{Gateway, Records};
use consort_hub::Hub;
use consort_shape::Approved;
use tokio::signal::unix::{SignalKind, signal};

use super::offered::{Offered, Parts};
use super::openai::OpenAi;
use super::settings::access;
use super::token::MissingToken;
use crate::cli::{Common, Serve};
use crate::console::{Console, Scene};
use crate::running::{self, ConfigSource, Prepared, tell};

/// How often the config and its lock are looked at.
const OFTEN: Duration = Duration::from_millis(500);

/// How long calls to servers that are gone may take to end.
const DRAIN: Duration = Duration::from_secs(30);

/// What follows the config.
pub(super) struct Following<'a> {
    pub(super) common: &'a Common,
    pub(super) serve: &'a Serve,
    pub(super) hub: &'a Hub,
    pub(super) gateway: &'a Gateway,
    pub(super) records: &'a Records,
    /// What people agreed to holds on, whatever the config becomes.
    pub(super) approvals: Arc<Approved>,
    pub(super) openai: &'a OpenAi,
    pub(super) console: Option<&'a Console>,
    pub(super) roster: &'a Arc<Roster>,
}

impl Following<'_> {
    /// Follows the config file and the lock beside it, and takes them over again whenever they change or
    /// we get SIGHUP.
    pub(super) async fn follow(&self, file: Option<Followed>) -> Infallible {
        let Ok(mut hangup) = signal(SignalKind::hangup()) else { std::future::pending().await };
        let mut followed = file;
        loop {
            let asked = tokio::select! {
                _ = hangup.recv() => true,
                () = tokio::time::sleep(OFTEN) => false,
            };
            match &mut followed {
                Some(Followed { config, lock, seen }) => {
                    let now = (mark(config), mark(lock));
                    if asked || now != *seen {
                        *seen = now;
                        self.take_over(config);
                    }
                }
                // Nothing is configured yet. A lost terminal is no reason to end.
                None => {
                    if let Some(found) = appeared() {
                        let found = followed.insert(Followed::new(found));
                        self.take_over(&found.config);
                    }
                }
            }
        }
    }

    /// Takes a config over as a whole, or not at all.
    fn take_over(&self, file: &Path) {
        let resolve = System::asking(running::ask);
        let prepared = ConfigSource::read(file)
            .and_then(|source| running::prepare_source(self.common, Some(&source), &resolve));
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(failure) => return refuse(&failure.message),
        };
        let Prepared { config, settings, shaping, problems } = prepared;
        let options = config.as_ref().map(|config| config.options.clone()).unwrap_or_default();
        let shaping = shaping.approved(Arc::clone(&self.approvals));
        let broken =
            problems.iter().find(|problem| problem.severity == consort_core::Severity::Error);
        if let Some(problem) = broken {
            return refuse(&problem.to_string());
        }
        let parts = Parts {
            hub: self.hub,
            records: self.records,
            options: &options,
            file: Some(file.to_owned()),
            only: self.common.profile.as_deref(),
            roster: self.roster,
            desk: self.console.map(Console::desk),
        };
        let offered = match parts.offered(shaping) {
            Ok(offered) => offered,
            Err(failure) => return refuse(&failure.message),
        };
        let access = match access(self.serve, &options, MissingToken::Create) {
            Ok((access, _)) => access,
            Err(failure) => return refuse(&failure.message),
        };
        let Offered { toolboxes, askable, tools, shaping, problems: left_out, agents } = offered;
        problems.iter().chain(&left_out).for_each(tell);
        let problems = problems.into_iter().chain(left_out).collect();
        self.hub.reload(settings.servers, settings.reserved, DRAIN);
        self.roster.set(agents);
        self.openai.set(Arc::clone(&askable));
        self.gateway.set(toolboxes);
        self.gateway.set_access(&access);
        // Last: whoever waits there for a config waits for all of this.
        if let Some(console) = self.console {
            console.set(Scene { config, shaping, tools, askable, problems });
        }
        tracing::info!(file = %file.display(), "the config is in force as it is now");
    }
}

/// A config file and the lock beside it, as they were when they were read.
pub(super) struct Followed {
    config: PathBuf,
    lock: PathBuf,
    seen: (Option<Mark>, Option<Mark>),
}

impl Followed {
    pub(super) fn new(config: PathBuf) -> Self {
        let lock = lock::path(&config);
        let seen = (mark(&config), mark(&lock));
        Self { config, lock, seen }
    }
}

/// A config where there was none.
fn appeared() -> Option<PathBuf> {
    match find(None, None, &Folders::of_process()).ok()?.found {
        Found::File(file) => Some(file),
        Found::Embedded => None,
    }
}

/// What tells one version of a file from another.
type Mark = (SystemTime, u64);

fn mark(file: &Path) -> Option<Mark> {
    let about = fs::metadata(file).ok()?;
    Some((about.modified().ok()?, about.len()))
}

fn refuse(reason: &str) {
    tracing::error!(reason, "the config stays as it was");
}
