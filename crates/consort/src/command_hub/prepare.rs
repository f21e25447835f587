//! Preparation of a config: reading, checks, refusals, and conversion to settings.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use consort::servers::{
    LastGoodServers, RejectedServer, ResolvedServers, hub_settings, withheld_servers,
};
use consort::toolbox_layers::ToolboxLayers;
use consort::trust::TrustedConfig;
use consort_config::lock;
use consort_config::{
    self, Config, ConfigFiles, ConfigLocation, InputStore, SystemValues, UserFolders,
};
use consort_core::escape::escape_text;
use consort_core::{Problem, ServerId};
use consort_hub::HubSettings;
use consort_shape::pin::PinLock;

use super::{prompt_for_input, settings_without_config};
use crate::approvals;
use crate::cli::GlobalArguments;
use crate::client_configs;
use crate::exit::{CommandError, ExitStatus};
use crate::trust_prompt;

/// The text of a config, with the files that it includes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigSource(pub(crate) ConfigFiles);

impl ConfigSource {
    /// Reads a file, and the files that it includes.
    pub(crate) fn read(file: &Path) -> Result<Self, CommandError> {
        ConfigFiles::read(file).map(Self).map_err(|unusable| unusable_failure(&unusable))
    }

    /// Parses the config.
    pub(crate) fn parse(&self) -> Result<Config, CommandError> {
        self.0.parse().map_err(|unusable| unusable_failure(&unusable))
    }

    /// Returns the path of the config.
    pub(crate) fn file(&self) -> &Path {
        &self.0.file
    }
}

/// The config in force, for display only: nothing in it may be started or connected to.
pub(crate) fn read_untrusted(common: &GlobalArguments) -> Result<Option<Config>, CommandError> {
    find_source(common)?.map(|source| source.parse()).transpose()
}

/// The config in force, trusted by the user. Fails on errors in options for all servers. The person at a terminal may
/// be asked.
pub(crate) fn read_usable(common: &GlobalArguments) -> Result<Option<TrustedConfig>, CommandError> {
    let config = read_untrusted(common)?;
    if config.is_none() && !common.bundled {
        client_configs::note_importable();
    }
    config.iter().try_for_each(refuse_blocking)?;
    config.map(|config| trust_prompt::confirm(common, config)).transpose()
}

/// Fails on errors in options for all servers: nothing may be started without the intended policy.
pub(crate) fn refuse_blocking(config: &Config) -> Result<(), CommandError> {
    match combine_errors(config.errors.iter().filter(|error| error.is_blocking())) {
        Some(failure) => Err(failure),
        None => Ok(()),
    }
}

/// The text of the config in force, if there is one.
pub(crate) fn find_source(common: &GlobalArguments) -> Result<Option<ConfigSource>, CommandError> {
    if common.bundled {
        return Ok(None);
    }
    let variable = std::env::var_os(consort_config::CONFIG_VARIABLE).map(PathBuf::from);
    let lookup = consort_config::find_config(
        common.config.as_deref(),
        variable.as_deref(),
        &UserFolders::of_process(),
    )
    .map_err(|error| config_failure(&error))?;
    match lookup.found {
        ConfigLocation::Embedded => Ok(None),
        ConfigLocation::File(path) => ConfigSource::read(&path).map(Some),
    }
}

/// Reads and parses one file.
pub(crate) fn read_file(path: &Path) -> Result<Config, CommandError> {
    ConfigSource::read(path)?.parse()
}

fn unusable_failure(unusable: &consort_config::UnusableFile) -> CommandError {
    combine_errors(unusable.errors().iter())
        .unwrap_or_else(|| CommandError::usage(unusable.to_string()))
}

/// Combines several config errors to one failure.
fn combine_errors<'a>(
    mut errors: impl Iterator<Item = &'a consort_config::ConfigError>,
) -> Option<CommandError> {
    let mut failure = config_failure(errors.next()?);
    for error in errors {
        failure.message =
            format!("{}\n       {}", failure.message, escape_text(&error.to_string()));
    }
    Some(failure)
}

/// Converts a config error to a failure.
pub(crate) fn config_failure(error: &consort_config::ConfigError) -> CommandError {
    let failure = CommandError::usage(escape_text(&error.to_string()));
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Everything built from a config.
pub(crate) struct PreparedConfig {
    pub(crate) config: Option<Config>,
    pub(crate) settings: HubSettings,
    pub(crate) toolbox_layers: ToolboxLayers,
    /// The usable servers, and those with invalid settings.
    pub(crate) servers: ResolvedServers,
    /// Other errors and warnings.
    pub(crate) problems: Vec<Problem>,
}

impl PreparedConfig {
    /// All errors and warnings, with their effect on unusable servers.
    pub(crate) fn all_problems(&self) -> Vec<Problem> {
        let bad = self.servers.bad.iter().map(RejectedServer::to_problem);
        bad.chain(self.problems.iter().cloned()).collect()
    }
}

/// Prepares the config in force.
pub(crate) fn prepare(common: &GlobalArguments) -> Result<PreparedConfig, CommandError> {
    let resolve = SystemValues::asking(prompt_for_input).with_store(InputStore::of_user());
    prepare_source(common, find_source(common)?.as_ref(), &resolve)
}

/// Prepares a config from its text, or the defaults without one. The person at a terminal may be asked to trust it.
pub(crate) fn prepare_source(
    common: &GlobalArguments,
    source: Option<&ConfigSource>,
    resolve: &SystemValues,
) -> Result<PreparedConfig, CommandError> {
    match source {
        Some(source) => {
            let config = source.parse()?;
            refuse_blocking(&config)?;
            let config = trust_prompt::confirm(common, config)?;
            let lock = find_lock(common, &config)?;
            prepare_trusted(common, config, lock, resolve, &LastGoodServers::default())
        }
        None if common.locked || common.profile.is_some() => {
            let flag = if common.locked { "--locked" } else { "--profile" };
            Err(CommandError::usage(format!("{flag} requires a config, and none was found")))
        }
        None => {
            if !common.bundled {
                client_configs::note_importable();
            }
            let toolbox_layers = ToolboxLayers::default();
            let toolbox_layers =
                if common.read_only { toolbox_layers.read_only() } else { toolbox_layers };
            let mut settings = settings_without_config()?;
            if common.bundled {
                // A demo keeps nothing.
                (settings.store_folder, settings.logs) = (None, None);
            }
            let (servers, problems) = (ResolvedServers::default(), Vec::new());
            Ok(PreparedConfig { config: None, settings, toolbox_layers, servers, problems })
        }
    }
}

/// Prepares a parsed config with a lock, or with none. Servers with invalid settings keep their last good ones. An
/// untrusted config is refused without asking.
pub(crate) fn prepare_parsed(
    common: &GlobalArguments,
    config: Config,
    lock: Option<PinLock>,
    resolve: &SystemValues,
    last_good: &LastGoodServers,
) -> Result<PreparedConfig, CommandError> {
    refuse_blocking(&config)?;
    prepare_trusted(common, trust_prompt::verify(common, config)?, lock, resolve, last_good)
}

fn prepare_trusted(
    common: &GlobalArguments,
    mut config: TrustedConfig,
    lock: Option<PinLock>,
    resolve: &SystemValues,
    last_good: &LastGoodServers,
) -> Result<PreparedConfig, CommandError> {
    let (mut settings, servers) = hub_settings(&config, resolve, last_good);
    // What is made of tools, and what the lock says of a server, goes by what is in force of it.
    config.restore_servers(servers.last_good());
    let ShapedConfig { toolbox_layers, withheld, problems: odd } =
        build_layers(common, &config, lock)?;
    settings.servers.retain(|server| !withheld.contains(&server.id));
    let problems = config.problems.iter().cloned().chain(odd).collect();
    Ok(PreparedConfig {
        config: Some(config.into_inner()),
        settings,
        toolbox_layers,
        servers,
        problems,
    })
}

/// The part of a config that is built without resolving references and without starting anything.
pub(crate) struct ShapedConfig {
    pub(crate) toolbox_layers: ToolboxLayers,
    /// Servers that the lock keeps from starting.
    withheld: Vec<ServerId>,
    pub(crate) problems: Vec<Problem>,
}

/// Builds the layers of a config with a lock, or with none.
pub(crate) fn build_layers(
    common: &GlobalArguments,
    config: &Config,
    lock: Option<PinLock>,
) -> Result<ShapedConfig, CommandError> {
    let (mut withheld, mut problems) = (Vec::new(), Vec::new());
    if let Some(lock) = &lock {
        for (server, reason) in withheld_servers(config, lock) {
            let hint = format!("review and approve it with `consort lock --update {server}`");
            let is_disabled = config.servers.iter().any(|one| one.name == server && one.disabled);
            if common.locked && !is_disabled {
                let message = format!("`{server}` is not started: {reason}");
                return Err(CommandError {
                    exit: ExitStatus::Differs,
                    ..CommandError::usage(message).hint(hint)
                });
            }
            let problem = Problem::warning(format!("not started: {reason}")).of(&server);
            withheld.push(server);
            problems.push(problem.hint(hint));
        }
    }
    let mut toolbox_layers = ToolboxLayers::from_config(config)
        .with_lock(lock.map(Arc::new))
        .with_approvals(approvals::stored_approvals());
    if common.read_only {
        toolbox_layers = toolbox_layers.read_only();
    }
    if let Some(profile) = &common.profile {
        let known: Vec<String> = toolbox_layers.profiles().map(str::to_owned).collect();
        toolbox_layers = toolbox_layers.for_profile(profile).ok_or_else(|| {
            let failure =
                CommandError::usage(format!("unknown profile `{}`", escape_text(profile)));
            let near = consort_core::nearest(profile, known.iter().map(String::as_str));
            match near.first() {
                Some(near) => failure.hint(format!("did you mean `{near}`?")),
                None => failure.hint("profiles are defined under `[consort.profiles.NAME]`"),
            }
        })?;
    }
    problems.extend(toolbox_layers.problems());
    Ok(ShapedConfig { toolbox_layers, withheld, problems })
}

/// The lock beside a config, if there is one.
pub(crate) fn find_lock(
    common: &GlobalArguments,
    config: &Config,
) -> Result<Option<PinLock>, CommandError> {
    let path = lock::lock_path(&config.file);
    let found = lock::read_lock(&path, config.options.limits.settings().files.lock)?;
    if common.locked && found.is_none() {
        let message = format!("no lock at `{}`", path.display());
        return Err(CommandError::usage(message).hint("create one with `consort lock`"));
    }
    Ok(found)
}
