//! Settings of a hub from a config: its servers resolved, usable ones and rejected ones.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use consort_client::HelperLimits;
use consort_config::lock::server_launch;
use consort_config::{Config, ConfigError, ServerConfig, SystemValues, catalog_folder, log_folder};
use consort_core::{Problem, ServerId};
use consort_hub::{HubSettings, ServerLogSettings, ServerSettings, builtin};
use consort_shape::pin::{PinLock, WithholdReason};

use crate::logins;
use crate::trust::TrustedConfig;

/// Builds settings from a config, with its servers resolved.
pub fn hub_settings(
    config: &TrustedConfig,
    resolve: &SystemValues,
    last_good: &LastGoodServers,
) -> (HubSettings, ResolvedServers) {
    let limits = config.options.limits.settings();
    let mut settings = HubSettings {
        store_folder: catalog_folder(),
        logs: log_folder(Some(&config.file))
            .and_then(|folder| ServerLogSettings::new(folder, limits.server_logs)),
        schemas: limits.schemas,
        keeper: limits.keeper,
        lists: limits.lists,
        stream_ping: limits.stream_ping,
        resumes: limits.resumes,
        ..HubSettings::default()
    };
    if config.options.builtin.unwrap_or(true) {
        settings.local.insert(ServerId::derive("builtin"), builtin());
    }
    // Also unusable and withheld servers: their names stay reserved.
    let unusable = config.errors.iter().filter_map(ConfigError::server);
    let named = config.servers.iter().map(|server| &server.name).chain(unusable);
    settings.reserved = named.cloned().collect();
    let servers = ResolvedServers::new(config, resolve, last_good);
    settings.servers = servers.settings();
    (settings, servers)
}

/// Returns the servers that a lock keeps from starting, each with the reason.
pub fn withheld_servers(config: &Config, lock: &PinLock) -> Vec<(ServerId, WithholdReason)> {
    let withheld = |server: &ServerConfig| {
        let reason = lock.withheld_server(&server.name, &server_launch(server))?;
        Some((server.name.clone(), reason))
    };
    config.servers.iter().filter_map(withheld).collect()
}

/// A usable server.
#[derive(Clone, Debug)]
pub struct UsableServer {
    /// The server as written.
    config: ServerConfig,
    /// The server with its references resolved.
    settings: ServerSettings,
    /// The files that its references led to.
    files: BTreeSet<PathBuf>,
}

/// Usable servers, by name.
pub type UsableServers = BTreeMap<ServerId, UsableServer>;

/// A server with invalid settings, or an entry without a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedServer {
    /// The error, with its place.
    pub problem: Problem,
    /// True if its last good settings stay in force; else it is left out.
    pub is_kept: bool,
}

impl RejectedServer {
    /// Returns the error and its effect.
    pub fn to_problem(&self) -> Problem {
        let effect =
            if self.is_kept { "its last valid settings stay in effect" } else { "it is omitted" };
        let message = format!("{}; {effect}", self.problem.message);
        Problem { message, ..self.problem.clone() }
    }
}

/// Fallback for servers with invalid settings. It is empty at the start.
#[derive(Debug, Default)]
pub struct LastGoodServers {
    /// The servers in force.
    pub servers: UsableServers,
    /// Secret files that had contents and are now empty or missing: servers that refer to them cannot be used.
    pub lost_files: Vec<PathBuf>,
}

/// The servers of a config, resolved.
#[derive(Debug, Default)]
pub struct ResolvedServers {
    /// The servers to use: the usable ones, and the last good ones.
    pub usable: UsableServers,
    /// The servers with invalid settings, with one entry for each error.
    pub bad: Vec<RejectedServer>,
    /// The files that references led to, also those of unusable servers.
    pub files: BTreeSet<PathBuf>,
}

impl ResolvedServers {
    /// Resolves the references of every server. One with invalid settings keeps its last good ones.
    pub fn new(config: &Config, resolve: &SystemValues, last_good: &LastGoodServers) -> Self {
        let mut resolved = Self::default();
        let limits = config.options.limits.settings();
        resolve.set_limits(HelperLimits::new(&limits.client, &limits.times));
        let mut mistakes: Vec<Problem> = config.errors.iter().map(Problem::from).collect();
        // Whatever was asked for before is of no server.
        resolve.take_files();
        for server in &config.servers {
            let made = logins::server_settings(server, resolve, &limits);
            let files = resolve.take_files();
            resolved.files.extend(files.iter().cloned());
            match made.map_err(|error: ConfigError| Problem::from(&error)) {
                Ok(mut settings) => match last_good.lost_file(&files) {
                    None => {
                        server.limits.apply(&mut settings);
                        let validate = server.options.validate.or(config.options.validate);
                        settings.validate = validate.map(Into::into).unwrap_or_default();
                        let usable = UsableServer { config: server.clone(), settings, files };
                        resolved.usable.insert(server.name.clone(), usable);
                    }
                    Some(problem) => mistakes.push(problem.of(&server.name)),
                },
                Err(problem) => mistakes.push(problem),
            }
        }
        for problem in mistakes {
            let last =
                problem.server.as_ref().and_then(|name| last_good.servers.get_key_value(name));
            let is_kept = last.is_some();
            if let Some((name, server)) = last {
                resolved.files.extend(server.files.iter().cloned());
                resolved.usable.insert(name.clone(), server.clone());
            }
            resolved.bad.push(RejectedServer { problem, is_kept });
        }
        resolved
    }

    /// The settings of the servers to use.
    pub fn settings(&self) -> Vec<ServerSettings> {
        self.usable.values().map(|server| server.settings.clone()).collect()
    }

    /// The last good servers among them, as written.
    pub fn last_good(&self) -> Vec<ServerConfig> {
        let kept = self.bad.iter().filter(|bad| bad.is_kept);
        let names: BTreeSet<&ServerId> =
            kept.filter_map(|bad| bad.problem.server.as_ref()).collect();
        let servers = names.into_iter().filter_map(|name| self.usable.get(name));
        servers.map(|server| server.config.clone()).collect()
    }
}

impl LastGoodServers {
    fn lost_file(&self, files: &BTreeSet<PathBuf>) -> Option<Problem> {
        let lost = self.lost_files.iter().find(|file| files.contains(*file))?;
        let message = format!("the referenced file `{}` is empty", lost.display());
        Some(Problem::error(message).hint(
            "fill the file, or accept the change with `consort reload \
            --accept`",
        ))
    }
}
