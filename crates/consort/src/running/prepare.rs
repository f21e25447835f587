//! From a config as it is written to settings: read, checked, and refused where it must be.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use consort::config::{self, Config, Folders, Found, System};
use consort::lock;
use consort::shaping::Shaping;
use consort_core::{Problem, ServerId};
use consort_hub::{Settings, builtin};
use consort_shape::pin::Lock;

use super::{ask, embedded, kept_folder};
use crate::approvals;
use crate::cli::Common;
use crate::exit::{Exit, Failure};
use crate::logins;
use crate::output::escaped;
use crate::trust::{self, TrustedConfig};

/// A config as it is written, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigSource {
    pub(crate) file: PathBuf,
    pub(crate) text: String,
}

impl ConfigSource {
    /// Reads a file.
    pub(crate) fn read(file: &Path) -> Result<Self, Failure> {
        let text = Config::text(file).map_err(|unusable| all_wrong(&unusable))?;
        Ok(Self { file: file.to_owned(), text })
    }

    /// Returns the config that it describes.
    pub(crate) fn parse(&self) -> Result<Config, Failure> {
        Config::parse(&self.file, &self.text).map_err(|unusable| all_wrong(&unusable))
    }
}

/// The config in force, to be looked at: nothing of it may be started or reached.
pub(crate) fn read_untrusted(common: &Common) -> Result<Option<Config>, Failure> {
    source(common)?.map(|source| source.parse()).transpose()
}

/// The config in force, trusted by the user, unless something is wrong in what concerns all servers. Somebody at
/// a terminal may be asked.
pub(crate) fn read_usable(common: &Common) -> Result<Option<TrustedConfig>, Failure> {
    let config = read_untrusted(common)?;
    config.iter().try_for_each(refuse_blocking)?;
    config.map(|config| trust::confirm(common, config)).transpose()
}

/// Fails if something is wrong in what concerns all servers: nothing may be started without a policy
/// that somebody wrote.
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

/// Reads one file.
pub(crate) fn read_file(path: &Path) -> Result<Config, Failure> {
    ConfigSource::read(path)?.parse()
}

fn all_wrong(unusable: &config::UnusableFile) -> Failure {
    several(unusable.errors().iter()).unwrap_or_else(|| Failure::usage(unusable.to_string()))
}

/// Several mistakes in a config, as one failure.
fn several<'a>(mut errors: impl Iterator<Item = &'a config::ConfigError>) -> Option<Failure> {
    let mut failure = wrong(errors.next()?);
    for error in errors {
        failure.message = format!("{}\n       {}", failure.message, escaped(&error.to_string()));
    }
    Some(failure)
}

/// A mistake in a config, as a failure.
pub(crate) fn wrong(error: &config::ConfigError) -> Failure {
    let failure = Failure::usage(escaped(&error.to_string()));
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// What a config comes to.
pub(crate) struct Prepared {
    pub(crate) config: Option<Config>,
    pub(crate) settings: Settings,
    pub(crate) shaping: Shaping,
    /// What is wrong with it. A server that cannot be used is a problem; the others are used.
    pub(crate) problems: Vec<Problem>,
}

/// What the config in force comes to.
pub(crate) fn prepare(common: &Common) -> Result<Prepared, Failure> {
    let resolve = System::asking(ask);
    prepare_source(common, source(common)?.as_ref(), &resolve)
}

/// What a config comes to as it is written, or what comes of none. Somebody at a terminal may be asked to trust it.
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
            prepare_trusted(common, config, lock, resolve)
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
            Ok(Prepared { config: None, settings, shaping, problems: Vec::new() })
        }
    }
}

/// What a config that was read comes to under a lock, or under none. One that is not trusted is refused, and
/// nobody is asked.
pub(crate) fn prepare_of(
    common: &Common,
    config: Config,
    lock: Option<Lock>,
    resolve: &System,
) -> Result<Prepared, Failure> {
    refuse_blocking(&config)?;
    prepare_trusted(common, trust::verify(common, config)?, lock, resolve)
}

fn prepare_trusted(
    common: &Common,
    config: TrustedConfig,
    lock: Option<Lock>,
    resolve: &System,
) -> Result<Prepared, Failure> {
    let (mut settings, mut problems) = settings_of(&config, resolve);
    let ShapedConfig { shaping, withheld, problems: odd } = shape(common, &config, lock)?;
    settings.servers.retain(|server| !withheld.contains(&server.id));
    problems.extend(odd);
    Ok(Prepared { config: Some(config.into_inner()), settings, shaping, problems })
}

/// The part of a config that is made without following references and without starting anything.
pub(crate) struct ShapedConfig {
    pub(crate) shaping: Shaping,
    /// Servers that the lock does not let start.
    withheld: Vec<ServerId>,
    pub(crate) problems: Vec<Problem>,
}

/// Shapes what a config offers under a lock, or under none.
pub(crate) fn shape(
    common: &Common,
    config: &Config,
    lock: Option<Lock>,
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
pub(crate) fn locked(common: &Common, config: &Config) -> Result<Option<Lock>, Failure> {
    let path = lock::path(&config.file);
    let found = lock::read(&path)?;
    if common.locked && found.is_none() {
        let message = format!("there is no lock `{}`", path.display());
        return Err(Failure::usage(message).hint("write one with `consort lock`"));
    }
    Ok(found)
}

/// Settings from a config, and what is wrong with it.
pub(crate) fn settings_of(config: &TrustedConfig, resolve: &System) -> (Settings, Vec<Problem>) {
    let mut settings = Settings {
        kept: kept_folder(),
        schemas: config.options.limits.schemas(),
        keeper: config.options.limits.keeper(),
        lists: config.options.limits.lists(),
        stream_ping: config.options.limits.stream_ping(),
        ..Settings::default()
    };
    if config.options.builtin.unwrap_or(true) {
        settings.local.insert(ServerId::derive("builtin"), builtin());
    }
    // Also those that cannot be used or are withheld: nobody else answers to their names.
    let unusable = config.errors.iter().filter_map(config::ConfigError::server);
    let named = config.servers.iter().map(|server| &server.name).chain(unusable);
    settings.reserved = named.cloned().collect();
    let mut problems: Vec<Problem> = config.errors.iter().map(Problem::from).collect();
    problems.extend(config.problems.iter().cloned());
    let limits = &config.options.limits;
    for server in &config.servers {
        match logins::settings(server, resolve) {
            Ok(mut made) => {
                limits.apply(&mut made.times);
                settings.servers.push(made);
            }
            Err(error) => problems.push(Problem::from(&error)),
        }
    }
    (settings, problems)
}
