//! What servers say now, and of which nothing is known.

use std::collections::{BTreeMap, BTreeSet};

use consort::config::{Config, System};
use consort::shaping::Shaping;
use consort_core::{ServerId, Toolbox};
use consort_hub::{Connect, Hub, State};
use consort_shape::pin::{Launch, Lock, Locked};
use consort_shape::scan::{Shadow, shadowing};

use crate::exit::Exit;
use crate::running::{self, Need, Running, tell};
use crate::trust::TrustedConfig;

/// Which servers are started to be asked.
pub(crate) enum Start<'a> {
    /// All that are configured.
    All,
    /// These.
    Named(&'a BTreeSet<ServerId>),
    /// Those that start as was agreed: whoever changed the config must not get something started by
    /// a check.
    Agreed,
}

/// What was found out.
pub(crate) struct Survey {
    /// What the servers say now.
    pub(crate) now: Lock,
    /// Those that could not be asked, and why.
    pub(crate) down: BTreeMap<ServerId, String>,
    /// Those that are switched off, or whose config cannot be read.
    off: BTreeSet<ServerId>,
    /// Servers that speak of each other.
    pub(crate) shadows: Vec<Shadow>,
}

impl Survey {
    /// Asks the servers; `None` if interrupted.
    pub(crate) async fn make(
        mut config: TrustedConfig,
        agreed: &Lock,
        start: &Start<'_>,
    ) -> Option<Self> {
        let (mut survey, launches) = Self::begin(&config);
        config.retain_servers(|server| !server.disabled);
        config.retain_servers(|server| match start {
            Start::All => true,
            Start::Named(named) => named.contains(&server.name),
            Start::Agreed => {
                agreed.withheld_server(&server.name, &launches[&server.name]).is_none()
            }
        });
        let running = running(&config);
        let reached = tokio::select! {
            () = running.reach(None, Need::Fresh) => true,
            _ = tokio::signal::ctrl_c() => false,
        };
        survey.take(&running.hub, launches, agreed, start);
        running.hub.drain().await;
        reached.then_some(survey)
    }

    /// What the servers of a hub that runs say now. Nothing is started.
    pub(crate) fn of(hub: &Hub, config: &Config, agreed: &Lock, start: &Start<'_>) -> Self {
        let (mut survey, launches) = Self::begin(config);
        survey.take(hub, launches, agreed, start);
        survey
    }

    /// What is known before anybody is asked: who is off, and how the others start.
    fn begin(config: &Config) -> (Self, BTreeMap<ServerId, Launch>) {
        let broken = config.errors.iter().filter_map(|error| error.server().cloned());
        let disabled = config.servers.iter().filter(|server| server.disabled);
        let off = broken.chain(disabled.map(|server| server.name.clone())).collect();
        let enabled = config.servers.iter().filter(|server| !server.disabled);
        let launches = enabled.map(|server| (server.name.clone(), consort::lock::launch(server)));
        let now = Lock::default();
        (Self { now, down: BTreeMap::new(), off, shadows: Vec::new() }, launches.collect())
    }

    fn take(
        &mut self,
        hub: &Hub,
        launches: BTreeMap<ServerId, Launch>,
        agreed: &Lock,
        start: &Start<'_>,
    ) {
        let catalog = hub.catalog(&running::caller());
        self.shadows = shadowing(&catalog);
        let statuses = hub.statuses();
        for (server, launch) in launches {
            let status = statuses.iter().find(|status| status.server == server);
            if status.is_some_and(|status| status.state == State::Ready) {
                let locked = Locked::of_catalog(launch, &server, &catalog);
                self.now.servers.insert(server, locked);
                continue;
            }
            // That it is new, or starts otherwise, can be told without asking it.
            let known = agreed.servers.get(&server).map(|old| (old.launch == launch, &old.items));
            match known {
                Some((false, items)) if matches!(start, Start::Agreed) => {
                    let locked = Locked { launch, items: items.clone() };
                    self.now.servers.insert(server, locked);
                }
                None if matches!(start, Start::Agreed) => {
                    let locked = Locked { launch, items: BTreeMap::new() };
                    self.now.servers.insert(server, locked);
                }
                _ if matches!(start, Start::Named(named) if !named.contains(&server)) => {
                    self.off.insert(server);
                }
                _ => {
                    let why = status.and_then(consort_hub::Status::reason_for_operator);
                    let why = why.unwrap_or_else(|| "it could not be asked".to_owned());
                    self.down.insert(server, why);
                }
            }
        }
    }

    /// The servers of which nothing is known now.
    pub(crate) fn silent(&self) -> BTreeSet<ServerId> {
        self.down.keys().chain(&self.off).cloned().collect()
    }

    /// How to end: a server that could not be asked is not forgotten.
    pub(crate) fn exit(&self, exit: Exit) -> Exit {
        if self.down.is_empty() { exit } else { Exit::Unreachable }
    }
}

/// A hub for what servers say themselves: without what the config makes of it, and without our own
/// tools.
fn running(config: &TrustedConfig) -> Running {
    let resolve = System::asking(running::ask);
    let (mut settings, problems) = running::settings_of(config, &resolve);
    problems.iter().for_each(tell);
    settings.local.clear();
    for server in &mut settings.servers {
        server.connect = Connect::Call;
    }
    Running::of(settings, Shaping::default(), problems)
}
