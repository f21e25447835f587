//! What is in force, the files it came from, and what they hold now.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use consort::config::{Config, Folders, Found, Options, STDIN, find};
use consort::lock;
use consort_core::{Problem, Severity};
use consort_hub::ServerSettings;
use consort_shape::pin::Lock;

use super::changes;
use super::watch::FileWatch;
use crate::exit::Failure;
use crate::reloading::{KeptOut, ReloadTrigger};
use crate::running::{ConfigSource, Prepared};

/// What is in force, and the files it came from.
pub(super) struct InForce {
    pub(super) source: Option<ConfigSource>,
    /// The config, where there is one or one has appeared.
    pub(super) file: Option<PathBuf>,
    pub(super) options: Options,
    pub(super) servers: Vec<ServerSettings>,
    pub(super) lock: Option<Lock>,
    /// What does not work in it.
    pub(super) broken: BTreeSet<String>,
    pub(super) config: FileWatch,
    lock_file: FileWatch,
    pub(super) secrets: FileWatch,
    pub(super) kept_out: KeptOutChanges,
}

/// The changes that are kept out, one of each kind at most.
#[derive(Clone, Default)]
pub(super) struct KeptOutChanges {
    pub(super) config: Option<KeptOut>,
    pub(super) lock: Option<KeptOut>,
    pub(super) secrets: Option<KeptOut>,
}

impl KeptOutChanges {
    pub(super) fn all(&self) -> impl Iterator<Item = &KeptOut> {
        self.config.iter().chain(&self.lock).chain(&self.secrets)
    }
}

/// The kinds of files that changed.
pub(super) struct SettledFiles {
    pub(super) config: bool,
    pub(super) lock: bool,
    pub(super) secrets: bool,
}

impl InForce {
    /// What is in force at the start.
    pub(super) fn new(
        source: Option<ConfigSource>,
        prepared: &Prepared,
        secrets: impl IntoIterator<Item = PathBuf>,
    ) -> Self {
        let file = source.as_ref().map(|source| source.file.clone());
        let options = prepared.config.as_ref().map(|config| config.options.clone());
        let lock = prepared.shaping.lock().map(|lock| Lock::clone(lock));
        let (config, lock_file) = watches(file.as_deref());
        Self {
            source,
            file,
            options: options.unwrap_or_default(),
            servers: prepared.settings.servers.clone(),
            lock,
            broken: broken(&prepared.problems),
            config,
            lock_file,
            secrets: FileWatch::known(secrets),
            kept_out: KeptOutChanges::default(),
        }
    }

    /// Looks at every file, or takes each as changed if somebody asked.
    pub(super) fn look(&mut self, asked: bool) -> SettledFiles {
        if self.file.is_none() {
            self.file = appeared();
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

    /// The config as it is written now, or the one in force where that must not count.
    pub(super) fn read_config(&mut self, trigger: ReloadTrigger) -> Option<ConfigSource> {
        let file = self.file.clone().filter(|file| is_reread(file));
        let Some(file) = file else { return self.source.clone() };
        let read = ConfigSource::read(&file);
        if trigger == ReloadTrigger::Change && !self.config.is_still() {
            self.config.forget();
            return self.source.clone();
        }
        match read.and_then(|source| Ok((source.parse()?, source))) {
            Ok((config, source)) => {
                let reason = self
                    .suspicion(&config, trigger)
                    .filter(|_| Some(&source) != self.source.as_ref());
                let kept_out = |reason| KeptOut::new("config", reason, true);
                self.kept_out.config = reason.map(kept_out);
                if self.kept_out.config.is_some() { self.source.clone() } else { Some(source) }
            }
            Err(failure) => {
                self.kept_out.config = Some(KeptOut::new("config", failure.message, false));
                self.source.clone()
            }
        }
    }

    fn suspicion(&self, config: &Config, trigger: ReloadTrigger) -> Option<String> {
        if self.source.is_none() || trigger == ReloadTrigger::Accept {
            return None;
        }
        // Whoever takes the last server out at the console sees that it is the last one.
        changes::suspicious(&self.options, config, trigger == ReloadTrigger::Console)
    }

    /// The lock as it is now, or the one in force where it is gone or cannot be read.
    pub(super) fn read_lock(&mut self, trigger: ReloadTrigger) -> Option<Lock> {
        let file = self.file.as_deref()?;
        let path = lock::path(file);
        let (reason, acceptable) = match lock::read(&path) {
            Ok(None) if self.lock.is_some() && trigger != ReloadTrigger::Accept => {
                let reason = "is gone: the last one stays in force";
                (format!("the lock `{}` {reason}", path.display()), true)
            }
            Ok(lock) => {
                self.kept_out.lock = None;
                return lock;
            }
            Err(error) => {
                (format!("{}: the last one stays in force", Failure::from(error).message), false)
            }
        };
        self.kept_out.lock = Some(KeptOut::new("lock", reason, acceptable));
        self.lock.clone()
    }
}

pub(super) fn lost(file: &Path) -> String {
    format!("`{}` is missing or empty: what it held stays in force", file.display())
}

fn watches(file: Option<&Path>) -> (FileWatch, FileWatch) {
    let followed = file.filter(|file| is_reread(file)).map(Path::to_owned);
    (FileWatch::new(followed), FileWatch::new(file.map(lock::path)))
}

/// Returns true for a config that is read again when it changes. A pipe is read once.
fn is_reread(file: &Path) -> bool {
    let device = file.starts_with("/dev") || file.starts_with("/proc");
    // What is gone for a moment comes back.
    !device
        && file != Path::new(STDIN)
        && std::fs::metadata(file).map_or(true, |about| about.is_file())
}

/// What does not work, so that the same is known again.
pub(super) fn broken(problems: &[Problem]) -> BTreeSet<String> {
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error);
    errors.map(key).collect()
}

pub(super) fn key(problem: &Problem) -> String {
    problem.server.as_ref().map_or_else(|| problem.message.clone(), ToString::to_string)
}

/// A config where there was none.
fn appeared() -> Option<PathBuf> {
    match find(None, None, &Folders::of_process()).ok()?.found {
        Found::File(file) => Some(file),
        Found::Embedded => None,
    }
}
