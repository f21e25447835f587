//! Current definitions of servers, to compare with the lock.

use std::collections::{BTreeMap, BTreeSet};

use consort_core::{Catalog, ServerId};
use consort_hub::{ManagedState, ManagedStatus};
use consort_shape::pin::{LockedServer, PinLock, ServerLaunch};
use consort_shape::scan::{ToolShadow, find_shadows};

use super::server_launch;
use crate::config::Config;

/// Selection of servers to start.
#[derive(Debug)]
pub enum SurveyScope<'a> {
    /// All configured servers.
    All,
    /// The named servers.
    Named(&'a BTreeSet<ServerId>),
    /// Those whose launch command was approved: a check must not start programs of a changed config.
    Agreed,
}

/// Result of a survey.
#[derive(Debug)]
pub struct DefinitionSurvey {
    /// Current definitions of the servers.
    pub now: PinLock,
    /// Servers that could not be contacted, with the reason.
    pub down: BTreeMap<ServerId, String>,
    /// Servers that are disabled, or whose config is invalid.
    off: BTreeSet<ServerId>,
    /// Tools that refer to those of other servers.
    pub shadows: Vec<ToolShadow>,
}

/// The servers of a config to survey: the launch commands and URLs of the enabled ones, and the others.
#[derive(Debug)]
pub struct SurveyPlan {
    /// Launch commands and URLs of the enabled servers.
    pub launches: BTreeMap<ServerId, ServerLaunch>,
    off: BTreeSet<ServerId>,
}

impl SurveyPlan {
    /// Plans a survey of the servers of a config.
    pub fn new(config: &Config) -> Self {
        let broken = config.errors.iter().filter_map(|error| error.server().cloned());
        let disabled = config.servers.iter().filter(|server| server.disabled);
        let off = broken.chain(disabled.map(|server| server.name.clone())).collect();
        let enabled = config.servers.iter().filter(|server| !server.disabled);
        let launches = enabled.map(|server| (server.name.clone(), server_launch(server))).collect();
        Self { launches, off }
    }

    /// Takes the current definitions from the catalog and the statuses of a hub.
    pub fn survey(
        self,
        catalog: &Catalog,
        statuses: &[ManagedStatus],
        agreed: &PinLock,
        scope: &SurveyScope<'_>,
    ) -> DefinitionSurvey {
        let (now, shadows) = (PinLock::default(), find_shadows(catalog));
        let mut survey = DefinitionSurvey { now, down: BTreeMap::new(), off: self.off, shadows };
        survey.take(self.launches, catalog, statuses, (agreed, scope));
        survey
    }
}

impl DefinitionSurvey {
    fn take(
        &mut self,
        launches: BTreeMap<ServerId, ServerLaunch>,
        catalog: &Catalog,
        statuses: &[ManagedStatus],
        (agreed, scope): (&PinLock, &SurveyScope<'_>),
    ) {
        for (server, launch) in launches {
            let status = statuses.iter().find(|status| status.server == server);
            if status.is_some_and(|status| status.state == ManagedState::Ready) {
                let locked = LockedServer::from_catalog(launch, &server, catalog);
                self.now.servers.insert(server, locked);
                continue;
            }
            // A new server or a changed command is known without connecting.
            let known = agreed.servers.get(&server).map(|old| (old.launch == launch, &old.items));
            match known {
                Some((false, items)) if matches!(scope, SurveyScope::Agreed) => {
                    let locked = LockedServer { launch, items: items.clone() };
                    self.now.servers.insert(server, locked);
                }
                None if matches!(scope, SurveyScope::Agreed) => {
                    let locked = LockedServer { launch, items: BTreeMap::new() };
                    self.now.servers.insert(server, locked);
                }
                _ if matches!(scope, SurveyScope::Named(named) if !named.contains(&server)) => {
                    self.off.insert(server);
                }
                _ => {
                    let why = status.and_then(ManagedStatus::reason_for_operator);
                    let why = why.unwrap_or_else(|| "not connected".to_owned());
                    self.down.insert(server, why);
                }
            }
        }
    }

    /// The servers without current definitions.
    pub fn silent(&self) -> BTreeSet<ServerId> {
        self.down.keys().chain(&self.off).cloned().collect()
    }
}
