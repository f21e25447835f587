//! Current definitions of servers, and the servers that did not provide any.

use std::collections::{BTreeMap, BTreeSet};

use consort::config::{Config, System};
use consort::shaping::Shaping;
use consort_core::{Problem, ServerId, Toolbox};
use consort_hub::{Connect, Hub, State};
use consort_shape::pin::{LockedServer, PinLock, ServerLaunch};
use consort_shape::scan::{ToolShadow, find_shadows};

use crate::exit::Exit;
use crate::running::{self, Need, Running, tell};
use crate::trust::TrustedConfig;

/// Selection of servers to start.
pub(crate) enum Start<'a> {
    /// All configured servers.
    All,
    /// The named servers.
    Named(&'a BTreeSet<ServerId>),
    /// Those whose launch command was approved: a check must not start programs of a changed config.
    Agreed,
}

/// Result of a survey.
pub(crate) struct Survey {
    /// Current definitions of the servers.
    pub(crate) now: PinLock,
    /// Servers that could not be contacted, with the reason.
    pub(crate) down: BTreeMap<ServerId, String>,
    /// Servers that are disabled, or whose config is invalid.
    off: BTreeSet<ServerId>,
    /// Tools that refer to those of other servers.
    pub(crate) shadows: Vec<ToolShadow>,
}

impl Survey {
    /// Contacts the servers; `None` if interrupted.
    pub(crate) async fn make(
        mut config: TrustedConfig,
        agreed: &PinLock,
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
        running.end().await;
        reached.then_some(survey)
    }

    /// Takes the current definitions from a running hub. Nothing is started.
    pub(crate) fn of(hub: &Hub, config: &Config, agreed: &PinLock, start: &Start<'_>) -> Self {
        let (mut survey, launches) = Self::begin(config);
        survey.take(hub, launches, agreed, start);
        survey
    }

    /// Returns the state before contacting servers: the disabled ones, and the launch commands of the others.
    fn begin(config: &Config) -> (Self, BTreeMap<ServerId, ServerLaunch>) {
        let broken = config.errors.iter().filter_map(|error| error.server().cloned());
        let disabled = config.servers.iter().filter(|server| server.disabled);
        let off = broken.chain(disabled.map(|server| server.name.clone())).collect();
        let enabled = config.servers.iter().filter(|server| !server.disabled);
        let launches = enabled.map(|server| (server.name.clone(), consort::lock::launch(server)));
        let now = PinLock::default();
        (Self { now, down: BTreeMap::new(), off, shadows: Vec::new() }, launches.collect())
    }

    fn take(
        &mut self,
        hub: &Hub,
        launches: BTreeMap<ServerId, ServerLaunch>,
        agreed: &PinLock,
        start: &Start<'_>,
    ) {
        let catalog = hub.catalog(&running::caller());
        self.shadows = find_shadows(&catalog);
        let statuses = hub.statuses();
        for (server, launch) in launches {
            let status = statuses.iter().find(|status| status.server == server);
            if status.is_some_and(|status| status.state == State::Ready) {
                let locked = LockedServer::from_catalog(launch, &server, &catalog);
                self.now.servers.insert(server, locked);
                continue;
            }
            // That it is new, or starts otherwise, can be told without asking it.
            let known = agreed.servers.get(&server).map(|old| (old.launch == launch, &old.items));
            match known {
                Some((false, items)) if matches!(start, Start::Agreed) => {
                    let locked = LockedServer { launch, items: items.clone() };
                    self.now.servers.insert(server, locked);
                }
                None if matches!(start, Start::Agreed) => {
                    let locked = LockedServer { launch, items: BTreeMap::new() };
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

    /// The servers without current definitions.
    pub(crate) fn silent(&self) -> BTreeSet<ServerId> {
        self.down.keys().chain(&self.off).cloned().collect()
    }

    /// Returns the exit code: a server that could not be contacted is an error.
    pub(crate) fn exit(&self, exit: Exit) -> Exit {
        if self.down.is_empty() { exit } else { Exit::Unreachable }
    }
}

/// A hub for the servers' own definitions: without the transforms of the config, and without Consort's own tools.
fn running(config: &TrustedConfig) -> Running {
    let resolve = System::asking(running::ask);
    let (mut settings, servers) =
        running::settings_of(config, &resolve, &running::LastGood::default());
    let bad = servers.bad.into_iter().map(|bad| bad.problem);
    let problems: Vec<Problem> = bad.chain(config.problems.iter().cloned()).collect();
    problems.iter().for_each(tell);
    settings.local.clear();
    for server in &mut settings.servers {
        server.connect = Connect::Call;
    }
    Running::of(settings, Shaping::default(), problems)
}
