//! The config in force, its source files, and their current contents.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use consort::servers::{LastGoodServers, RejectedServer, UsableServers};
use consort::toolbox_layers::ToolboxLayers;
use consort_admin::{NotInForce, RejectedChange, ReloadTrigger, RestartKey, UnusableServer};
use consort_config::changes;
use consort_config::lock;
use consort_config::{
    Config, ConfigFiles, ConfigLocation, ConsortOptions, LimitsConfig, STDIN, UserFolders,
    find_config,
};
use consort_core::{Problem, Severity};
use consort_hub::ServerSettings;
use consort_identity::OwnerAccess;
use consort_shape::pin::PinLock;

use super::identity;
use super::watch::FileWatch;
use crate::command_hub::{ConfigSource, PreparedConfig};
use crate::exit::CommandError;

/// The config in force and its source files.
pub(super) struct ReloadState {
    pub(super) source: Option<ConfigSource>,
    /// The config file, if there is one or one has appeared.
    pub(super) file: Option<PathBuf>,
    pub(super) options: ConsortOptions,
    /// The limits that the gateway was started with.
    started: LimitsConfig,
    /// The keys of listeners and users that it was started with.
    started_keys: FixedKeys,
    pub(super) servers: Vec<ServerSettings>,
    pub(super) lock: Option<PinLock>,
    /// Errors in the config.
    pub(super) broken: BTreeSet<String>,
    pub(super) config: FileWatch,
    lock_file: FileWatch,
    pub(super) secrets: FileWatch,
    pub(super) rejected: RejectedChanges,
    /// The servers in use, kept as a fallback in case their settings become invalid.
    pub(super) usable: UsableServers,
    /// The servers with invalid settings.
    pub(super) bad: Vec<RejectedServer>,
    /// The secret files that only servers use.
    pub(super) server_files: BTreeSet<PathBuf>,
    /// The included files that are empty.
    pub(super) empty_fragments: Vec<PathBuf>,
}

/// The files of tokens, secrets and instructions.
#[derive(Default)]
pub(super) struct SecretFiles {
    /// Those that servers refer to.
    pub(super) servers: BTreeSet<PathBuf>,
    /// Those of tokens, models and agents.
    pub(super) others: BTreeSet<PathBuf>,
}

impl SecretFiles {
    /// Collects the given files of servers and tokens, and those of models' keys and of agents' instructions.
    pub(super) fn new(
        servers: BTreeSet<PathBuf>,
        tokens: impl IntoIterator<Item = PathBuf>,
        config: Option<&Path>,
        toolbox_layers: &ToolboxLayers,
        options: &ConsortOptions,
    ) -> Self {
        let mut others: BTreeSet<PathBuf> = tokens.into_iter().collect();
        others
            .extend(toolbox_layers.models().into_iter().flat_map(|models| models.files().clone()));
        let folder = config.and_then(Path::parent).unwrap_or(Path::new(""));
        let instructed = options.agents.values().filter_map(|it| it.instructions_file.as_ref());
        others.extend(instructed.map(|file| folder.join(file)));
        Self { servers, others }
    }

    /// The files that only servers use.
    pub(super) fn of_servers_alone(&self) -> BTreeSet<PathBuf> {
        self.servers.difference(&self.others).cloned().collect()
    }

    pub(super) fn all(&self) -> BTreeSet<PathBuf> {
        self.servers.union(&self.others).cloned().collect()
    }
}

/// Rejected changes, at most one of each kind.
#[derive(Clone, Default)]
pub(super) struct RejectedChanges {
    pub(super) config: Option<RejectedChange>,
    pub(super) lock: Option<RejectedChange>,
    pub(super) secrets: Option<RejectedChange>,
}

impl RejectedChanges {
    pub(super) fn all(&self) -> impl Iterator<Item = &RejectedChange> {
        self.config.iter().chain(&self.lock).chain(&self.secrets)
    }
}

/// The kinds of files that changed.
pub(super) struct SettledFiles {
    pub(super) config: bool,
    pub(super) lock: bool,
    pub(super) secrets: bool,
}

impl ReloadState {
    /// The state at the start.
    pub(super) fn new(
        source: Option<ConfigSource>,
        prepared: &PreparedConfig,
        secrets: &SecretFiles,
    ) -> Self {
        let file = source.as_ref().map(|source| source.file().to_owned());
        let options = prepared.config.as_ref().map(|config| config.options.clone());
        let lock = prepared.toolbox_layers.lock().map(|lock| PinLock::clone(lock));
        let (mut config, lock_file) = watches(file.as_deref());
        if let Some(source) = source.as_ref().filter(|source| is_reread(source.file())) {
            config.include(&source.0.includes);
        }
        let options = options.unwrap_or_default();
        Self {
            source,
            file,
            started: options.limits.clone(),
            started_keys: fixed_keys(&options),
            options,
            servers: prepared.settings.servers.clone(),
            lock,
            broken: broken(&prepared.problems),
            config,
            lock_file,
            secrets: FileWatch::known(secrets.all()),
            rejected: RejectedChanges::default(),
            usable: prepared.servers.usable.clone(),
            bad: prepared.servers.bad.clone(),
            server_files: secrets.of_servers_alone(),
            empty_fragments: prepared
                .config
                .as_ref()
                .map(|config| config.empty_fragments.clone())
                .unwrap_or_default(),
        }
    }

    /// Returns the keys of these options that take effect after a restart.
    pub(super) fn needs_restart(&self, options: &ConsortOptions) -> Vec<RestartKey> {
        let limits = options.limits.pending(&self.started).map(Into::into);
        let fixed = fixed_keys(options).into_iter().zip(&self.started_keys);
        let changed = fixed.filter(|((_, value), (_, in_force))| value != in_force);
        let changed = changed.map(|((key, value), (_, in_force))| RestartKey {
            key: key.to_owned(),
            value,
            in_force: in_force.clone(),
        });
        limits.chain(changed).collect()
    }

    /// Returns written changes that are not in force.
    pub(super) fn not_in_force(&self) -> NotInForce {
        NotInForce {
            rejected: self.rejected.all().cloned().collect(),
            unusable: unusable(&self.bad),
            needs_restart: self.needs_restart(&self.options),
        }
    }

    /// Lists the changes of another config and another lock, a line each.
    pub(super) fn differences(
        &self,
        source: &ConfigSource,
        servers: &[ServerSettings],
        options: &ConsortOptions,
        lock: Option<&PinLock>,
    ) -> Vec<String> {
        let before = self.source.as_ref().map(|source| source.0.fragments.as_slice());
        let mut changes =
            changes::fragment_changes(before.unwrap_or_default(), &source.0.fragments);
        changes.extend(changes::server_changes(&self.servers, servers));
        changes.extend(changes::option_changes(&self.options, options));
        changes.extend(changes::lock_changes(self.lock.as_ref(), lock));
        changes
    }

    /// The first file of a token, of a model's key or of instructions that is empty or missing.
    pub(super) fn lost_secret(&self) -> Option<&Path> {
        self.secrets.lost().find(|file| !self.server_files.contains(*file))
    }

    /// Returns the fallback for servers with invalid settings.
    pub(super) fn last_good(&self, trigger: ReloadTrigger) -> LastGoodServers {
        let mut last_good =
            LastGoodServers { servers: self.usable.clone(), ..LastGoodServers::default() };
        if trigger != ReloadTrigger::Accept {
            let lost = self.secrets.lost().filter(|file| self.server_files.contains(*file));
            last_good.lost_files = lost.map(Path::to_owned).collect();
        }
        last_good
    }

    /// Checks every file for changes, or treats each as changed if a reload was requested.
    pub(super) fn look(&mut self, asked: bool) -> SettledFiles {
        if self.file.is_none() {
            self.file = find_new_config();
            (self.config, self.lock_file) = watches(self.file.as_deref());
        }
        if asked {
            self.config.mark();
            self.lock_file.mark();
            self.secrets.settle();
            return SettledFiles { config: true, lock: true, secrets: true };
        }
        let (config, lock) = (self.config.look(), self.lock_file.look());
        SettledFiles { config, lock, secrets: self.secrets.look() }
    }

    /// The config as currently written, or the one in force if that must not be applied.
    pub(super) fn read_config(&mut self, trigger: ReloadTrigger) -> Option<ConfigSource> {
        let file = self.file.clone().filter(|file| is_reread(file));
        let Some(file) = file else { return self.source.clone() };
        let mut read = ConfigSource::read(&file);
        // What is missing is looked for too: with it the config can be read.
        let includes = match &read {
            Ok(source) => Some(source.0.includes.clone()),
            Err(_) => Config::text(&file).ok().map(|text| ConfigFiles::includes_of(&file, &text)),
        };
        let others = includes.is_some_and(|includes| self.config.include(&includes));
        if trigger == ReloadTrigger::Change && (others || !self.config.is_still()) {
            self.config.forget();
            return self.source.clone();
        }
        if others {
            // A requested reload takes the files in their present version.
            self.config.mark();
            read = ConfigSource::read(&file);
        }
        match read.and_then(|source| Ok((source.parse()?, source))) {
            Ok((config, source)) => {
                let reason = self
                    .suspicion(&config, trigger)
                    .filter(|_| Some(&source) != self.source.as_ref());
                let rejected = |reason| RejectedChange::new("config", reason, true);
                self.rejected.config = reason.map(rejected);
                if self.rejected.config.is_some() { self.source.clone() } else { Some(source) }
            }
            Err(failure) => {
                self.rejected.config = Some(RejectedChange::new("config", failure.message, false));
                self.source.clone()
            }
        }
    }

    fn suspicion(&self, config: &Config, trigger: ReloadTrigger) -> Option<String> {
        if self.source.is_none() || trigger == ReloadTrigger::Accept {
            return None;
        }
        let was_empty = |file: &PathBuf| self.empty_fragments.contains(file);
        let held = self.source.iter().flat_map(|source| &source.0.fragments);
        let mut held = held.map(|fragment| &fragment.file).filter(|file| !was_empty(file));
        if let Some(file) = held.find(|file| config.empty_fragments.contains(file)) {
            return Some(format!("the included file `{}` is empty", file.display()));
        }
        // The console shows that a removed server is the last one.
        changes::suspicious_change(&self.options, config, trigger == ReloadTrigger::Console)
    }

    /// The current lock, or the one in force if it is missing or cannot be read.
    pub(super) fn read_lock(&mut self, trigger: ReloadTrigger) -> Option<PinLock> {
        let file = self.file.as_deref()?;
        let path = lock::lock_path(file);
        let (reason, acceptable) =
            match lock::read_lock(&path, self.options.limits.settings().files.lock) {
                Ok(None) if self.lock.is_some() && trigger != ReloadTrigger::Accept => {
                    let reason = "was removed: the last one stays in effect";
                    (format!("the lock `{}` {reason}", path.display()), true)
                }
                Ok(lock) => {
                    self.rejected.lock = None;
                    return lock;
                }
                Err(error) => (
                    format!(
                        "{}: the last valid one stays in effect",
                        CommandError::from(error).message
                    ),
                    false,
                ),
            };
        self.rejected.lock = Some(RejectedChange::new("lock", reason, acceptable));
        self.lock.clone()
    }
}

/// Keys that a gateway reads at its start, with their values.
type FixedKeys = [(&'static str, String); 5];

fn fixed_keys(options: &ConsortOptions) -> FixedKeys {
    let text = |value: Option<&String>| value.map_or("none", String::as_str).to_owned();
    let present = |is_there: bool| if is_there { "present" } else { "none" }.to_owned();
    let owner_access = match identity::owner_access(options) {
        OwnerAccess::Any => "any",
        OwnerAccess::OwnerListener => "owner_listen",
    };
    [
        ("public_url", text(options.public_url.as_ref())),
        ("owner_listen", text(options.owner_listen.as_ref())),
        ("owner_access", owner_access.to_owned()),
        ("tls", present(options.tls.is_some())),
        ("authorization", present(options.has_authorization_server())),
    ]
}

pub(super) fn lost(file: &Path) -> String {
    format!("`{}` is missing or empty: its last contents stay in effect", file.display())
}

fn watches(file: Option<&Path>) -> (FileWatch, FileWatch) {
    let followed = file.filter(|file| is_reread(file)).map(Path::to_owned);
    (FileWatch::new(followed), FileWatch::new(file.map(lock::lock_path)))
}

/// Returns true for a config that is read again after a change. A pipe is read once.
fn is_reread(file: &Path) -> bool {
    let device = file.starts_with("/dev") || file.starts_with("/proc");
    // What is gone for a moment comes back.
    !device
        && file != Path::new(STDIN)
        && std::fs::metadata(file).map_or(true, |about| about.is_file())
}

/// Keys of the errors among the problems, to recognize the same ones later.
pub(super) fn broken(problems: &[Problem]) -> BTreeSet<String> {
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error);
    errors.map(key).collect()
}

pub(super) fn key(problem: &Problem) -> String {
    problem.server.as_ref().map_or_else(|| problem.message.clone(), ToString::to_string)
}

/// Returns a config file that has appeared since a start without one.
fn find_new_config() -> Option<PathBuf> {
    match find_config(None, None, &UserFolders::of_process()).ok()?.found {
        ConfigLocation::File(file) => Some(file),
        ConfigLocation::Embedded => None,
    }
}

/// Returns a report for each server that cannot be used.
pub(super) fn unusable(bad: &[RejectedServer]) -> Vec<UnusableServer> {
    UnusableServer::all(bad.iter().map(|bad| (&bad.problem, bad.is_kept)))
}
