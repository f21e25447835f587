//! Preparation of a config: reading, checks, refusals, and conversion to settings.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use consort::config::{self, Config, ConfigFiles, Folders, Found, System};
use consort::lock;
use consort::shaping::Shaping;
use consort_core::{Problem, ServerId};
use consort_hub::{Settings, builtin};
use consort_shape::pin::PinLock;

use super::servers::{BadServer, LastGood, ResolvedServers};
use super::{ask, embedded, kept_folder};
use crate::approvals;
use crate::cli::Common;
use crate::exit::{Exit, Failure};
use crate::output::escaped;
use crate::trust::{self, TrustedConfig};

/// The text of a config, with the files that it includes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigSource(pub(crate) ConfigFiles);

impl ConfigSource {
    /// Reads a file, and the files that it includes.
    pub(crate) fn read(file: &Path) -> Result<Self, Failure> {
        ConfigFiles::read(file).map(Self).map_err(|unusable| all_wrong(&unusable))
    }

    /// Parses the config.
    pub(crate) fn parse(&self) -> Result<Config, Failure> {
        self.0.parse().map_err(|unusable| all_wrong(&unusable))
    }

    /// Returns the path of the config.
    pub(crate) fn file(&self) -> &Path {
        &self.0.file
    }
}

/// The config in force, for display only: nothing in it may be started or connected to.
pub(crate) fn read_untrusted(common: &Common) -> Result<Option<Config>, Failure> {
    source(common)?.map(|source| source.parse()).transpose()
}

/// The config in force, trusted by the user. Fails on errors in options for all servers. The person at a terminal may
/// be asked.
pub(crate) fn read_usable(common: &Common) -> Result<Option<TrustedConfig>, Failure> {
    let config = read_untrusted(common)?;
    config.iter().try_for_each(refuse_blocking)?;
    config.map(|config| trust::confirm(common, config)).transpose()
}

/// Fails on errors in options for all servers: nothing may be started without the intended policy.
pub(crate) fn refuse_blocking(config: &Config) -> Result<(), Failure> {
    match several(config.errors.iter().filter(|error| error.is_blocking())) {
        Some(failure) => Err(failure),
        None => Ok(()),
    }
}

/// The text of the config in force, if there is one.
pub(crate) fn source(common: &Common) -> Result<Option<ConfigSource>, Failure> {
    if common.bundled {
        return Ok(None);
    }
    let variable = std::env::var_os(config::VARIABLE).map(PathBuf::from);
    let lookup =
        config::find(common.config.as_deref(), variable.as_deref(), &Folders::of_process())
            .map_err(|error| wrong(&error))?;
    match lookup.found {
        Found::Embedded => Ok(None),
        Found::File(path) => ConfigSource::read(&path).map(Some),
    }
}

/// Reads and parses one file.
pub(crate) fn read_file(path: &Path) -> Result<Config, Failure> {
    ConfigSource::read(path)?.parse()
}

fn all_wrong(unusable: &config::UnusableFile) -> Failure {
    several(unusable.errors().iter()).unwrap_or_else(|| Failure::usage(unusable.to_string()))
}

/// Combines several config errors to one failure.
fn several<'a>(mut errors: impl Iterator<Item = &'a config::ConfigError>) -> Option<Failure> {
    let mut failure = wrong(errors.next()?);
    for error in errors {
        failure.message = format!("{}\n       {}", failure.message, escaped(&error.to_string()));
    }
    Some(failure)
}

/// Converts a config error to a failure.
pub(crate) fn wrong(error: &config::ConfigError) -> Failure {
    let failure = Failure::usage(escaped(&error.to_string()));
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Everything built from a config.
pub(crate) struct Prepared {
    pub(crate) config: Option<Config>,
    pub(crate) settings: Settings,
    pub(crate) shaping: Shaping,
    /// The usable servers, and those with invalid settings.
    pub(crate) servers: ResolvedServers,
    /// Other errors and warnings.
    pub(crate) problems: Vec<Problem>,
}

impl Prepared {
    /// All errors and warnings, with their effect on unusable servers.
    pub(crate) fn all_problems(&self) -> Vec<Problem> {
        let bad = self.servers.bad.iter().map(BadServer::to_problem);
        bad.chain(self.problems.iter().cloned()).collect()
    }
}

/// Prepares the config in force.
pub(crate) fn prepare(common: &Common) -> Result<Prepared, Failure> {
    let resolve = System::asking(ask);
    prepare_source(common, source(common)?.as_ref(), &resolve)
}

/// Prepares a config from its text, or the defaults without one. The person at a terminal may be asked to trust it.
pub(crate) fn prepare_source(
    common: &Common,
    source: Option<&ConfigSource>,
    resolve: &System,
) -> Result<Prepared, Failure> {
    match source {
        Some(source) => {
            let config = source.parse()?;
            refuse_blocking(&config)?;
            let config = trust::confirm(common, config)?;
            let lock = locked(common, &config)?;
            prepare_trusted(common, config, lock, resolve, &LastGood::default())
        }
        None if common.locked || common.profile.is_some() => {
            let flag = if common.locked { "--locked" } else { "--profile" };
            Err(Failure::usage(format!("{flag} needs a config, and there is none")))
        }
        None => {
            let shaping = Shaping::default();
            let shaping = if common.read_only { shaping.read_only() } else { shaping };
            let mut settings = embedded()?;
            if common.bundled {
                // A demo keeps nothing.
                settings.kept = None;
            }
            let (servers, problems) = (ResolvedServers::default(), Vec::new());
            Ok(Prepared { config: None, settings, shaping, servers, problems })
        }
    }
}

/// Prepares a parsed config with a lock, or with none. Servers with invalid settings keep their last good ones. An
/// untrusted config is refused without asking.
pub(crate) fn prepare_of(
    common: &Common,
    config: Config,
    lock: Option<PinLock>,
    resolve: &System,
    last_good: &LastGood,
) -> Result<Prepared, Failure> {
    refuse_blocking(&config)?;
    prepare_trusted(common, trust::verify(common, config)?, lock, resolve, last_good)
}

fn prepare_trusted(
    common: &Common,
    mut config: TrustedConfig,
    lock: Option<PinLock>,
    resolve: &System,
    last_good: &LastGood,
) -> Result<Prepared, Failure> {
    let (mut settings, servers) = settings_of(&config, resolve, last_good);
    // What is made of tools, and what the lock says of a server, goes by what is in force of it.
    config.restore_servers(servers.kept());
    let ShapedConfig { shaping, withheld, problems: odd } = shape(common, &config, lock)?;
    settings.servers.retain(|server| !withheld.contains(&server.id));
    let problems = config.problems.iter().cloned().chain(odd).collect();
    Ok(Prepared { config: Some(config.into_inner()), settings, shaping, servers, problems })
}

/// The part of a config that is built without resolving references and without starting anything.
pub(crate) struct ShapedConfig {
    pub(crate) shaping: Shaping,
    /// Servers that the lock keeps from starting.
    withheld: Vec<ServerId>,
    pub(crate) problems: Vec<Problem>,
}

/// Builds the layers of a config with a lock, or with none.
pub(crate) fn shape(
    common: &Common,
    config: &Config,
    lock: Option<PinLock>,
) -> Result<ShapedConfig, Failure> {
    let (mut withheld, mut problems) = (Vec::new(), Vec::new());
    if let Some(lock) = &lock {
        for server in &config.servers {
            let Some(reason) = lock.withheld_server(&server.name, &lock::launch(server)) else {
                continue;
            };
            let hint = format!("agree with `consort lock --update {}`", server.name);
            if common.locked && !server.disabled {
                let message = format!("`{}` is not started: {reason}", server.name);
                return Err(Failure { exit: Exit::Differs, ..Failure::usage(message).hint(hint) });
            }
            let problem = Problem::warning(format!("not started: {reason}")).of(&server.name);
            withheld.push(server.name.clone());
            problems.push(problem.hint(hint));
        }
    }
    let mut shaping = Shaping::of(config).locked(lock.map(Arc::new)).approved(approvals::kept());
    if common.read_only {
        shaping = shaping.read_only();
    }
    if let Some(profile) = &common.profile {
        let known: Vec<String> = shaping.profiles().map(str::to_owned).collect();
        shaping = shaping.narrowed(profile).ok_or_else(|| {
            let failure = Failure::usage(format!("unknown profile `{}`", escaped(profile)));
            let near = consort_core::nearest(profile, known.iter().map(String::as_str));
            match near.first() {
                Some(near) => failure.hint(format!("did you mean `{near}`?")),
                None => failure.hint("profiles are described under `[consort.profiles.NAME]`"),
            }
        })?;
    }
    problems.extend(shaping.problems());
    Ok(ShapedConfig { shaping, withheld, problems })
}

/// The lock beside a config, if there is one.
pub(crate) fn locked(common: &Common, config: &Config) -> Result<Option<PinLock>, Failure> {
    let path = lock::path(&config.file);
    let found = lock::read(&path, config.options.limits.settings().files.lock)?;
    if common.locked && found.is_none() {
        let message = format!("there is no lock `{}`", path.display());
        return Err(Failure::usage(message).hint("write one with `consort lock`"));
    }
    Ok(found)
}

/// Builds settings from a config, with its servers resolved.
pub(crate) fn settings_of(
    config: &TrustedConfig,
    resolve: &System,
    last_good: &LastGood,
) -> (Settings, ResolvedServers) {
    let limits = config.options.limits.settings();
    let mut settings = Settings {
        kept: kept_folder(),
        schemas: limits.schemas,
        keeper: limits.keeper,
        lists: limits.lists,
        stream_ping: limits.stream_ping,
        resumes: limits.resumes,
        ..Settings::default()
    };
    if config.options.builtin.unwrap_or(true) {
        settings.local.insert(ServerId::derive("builtin"), builtin());
    }
    // Also those that cannot be used or are withheld: nobody else answers to their names.
    let unusable = config.errors.iter().filter_map(config::ConfigError::server);
    let named = config.servers.iter().map(|server| &server.name).chain(unusable);
    settings.reserved = named.cloned().collect();
    let servers = ResolvedServers::new(config, resolve, last_good);
    settings.servers = servers.settings();
    (settings, servers)
}
