//! From config to a running hub, as commands need it.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use consort::config::{self, Config, Folders, Found, Input, InputKind, System};
use consort::lock;
use consort::shaping::{self, Layers, Shaping};
use consort_core::{Caller, Catalog, Problem, ServerId, Toolbox};
use consort_hub::{Connect, Hub, Settings, State, builtin};
use consort_shape::pin::Lock;
use consort_wire::Host;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::task::JoinSet;

use crate::approvals;
use crate::cli::Common;
use crate::exit::{Exit, Failure};
use crate::logins;
use crate::output::{escaped, escaped_line, note};
use crate::trust::{self, TrustedConfig};

/// A hub that commands use.
pub(crate) struct Running {
    pub(crate) hub: Hub,
    /// What is on offer, as the config has it.
    pub(crate) toolbox: Arc<dyn Toolbox>,
    /// What it goes through.
    pub(crate) shaping: Shaping,
    /// What is wrong with the config, told already.
    pub(crate) problems: Vec<Problem>,
}

/// Which servers a command needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// What they offered the last time will do.
    Kept,
    /// They must be asked.
    Fresh,
}

impl Running {
    /// Starts a hub that connects only to what is asked of it.
    pub(crate) fn start(common: &Common, host: Arc<dyn Host>) -> Result<Self, Failure> {
        let Prepared { mut settings, shaping, problems, .. } = prepare(common)?;
        for problem in &problems {
            tell(problem);
        }
        for server in &mut settings.servers {
            server.connect = Connect::Call;
        }
        settings.host = host;
        Ok(Self::of(settings, shaping, problems))
    }

    /// Starts a hub as it is described.
    pub(crate) fn of(settings: Settings, shaping: Shaping, problems: Vec<Problem>) -> Self {
        let hub = Hub::start(settings);
        let layers = shaping.over(Arc::new(hub.clone()), &shaping::unwrapped);
        let toolbox = layers.tools(None).unwrap_or_else(|| layers.servers());
        Self { hub, toolbox, shaping, problems }
    }

    /// The layers over the hub.
    pub(crate) fn layers(&self) -> Layers<'_> {
        self.shaping.over(Arc::new(self.hub.clone()), &shaping::unwrapped)
    }

    /// What is on offer.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.toolbox.catalog(&caller())
    }

    /// The server of this name.
    pub(crate) fn server(&self, name: &str) -> Result<ServerId, Failure> {
        let catalog = self.catalog();
        let statuses = self.hub.statuses();
        let mut known: Vec<ServerId> = statuses.into_iter().map(|status| status.server).collect();
        known.extend(catalog.tools.entries().iter().map(|entry| entry.route.server.clone()));
        if let Some(server) = known.iter().find(|server| server.as_str() == name) {
            return Ok(server.clone());
        }
        Err(unknown_server(name, known.iter().map(ServerId::as_str)))
    }

    /// Reaches the servers that are needed, side by side, and waits for each at most its own time.
    /// Those that fail are told of; the others are not held up. Under a lock all are asked: what counts
    /// is what they say now.
    pub(crate) async fn reach(&self, only: Option<&ServerId>, need: Need) {
        let need = if self.shaping.is_locked() { Need::Fresh } else { need };
        let mut reaching = JoinSet::new();
        for status in self.hub.statuses() {
            let wanted = only.is_none_or(|only| *only == status.server);
            let known = need == Need::Kept && status.state != State::Configured;
            if wanted && !known && status.state != State::Disabled {
                let hub = self.hub.clone();
                reaching.spawn(async move { hub.client(&status.server).await.err() });
            }
        }
        let waiting = waiting(reaching.len());
        while let Some(reached) = reaching.join_next().await {
            waiting.inc(1);
            if let Ok(Some(error)) = reached {
                let failure = Failure::from(error);
                waiting.suspend(|| note(format!("warning: {}", failure.message)));
            }
        }
        waiting.finish_and_clear();
    }
}

/// No server has this name; perhaps one of these was meant.
pub(crate) fn unknown_server<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Failure {
    let failure = Failure::usage(format!("unknown server `{}`", escaped(name)));
    match consort_core::nearest(name, known).first() {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None => failure,
    }
}

/// A sign that something happens, on a terminal.
fn waiting(servers: usize) -> ProgressBar {
    if servers == 0 {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(servers as u64);
    let style = ProgressStyle::with_template("{spinner} reaching servers {pos}/{len} {elapsed}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

/// Who is at the terminal.
pub(crate) fn caller() -> Caller {
    let name = std::env::var("USER").or_else(|_| std::env::var("LOGNAME"));
    Caller::person(name.unwrap_or_else(|_| "somebody".to_owned()))
}

/// The config in force, trusted by the user: a file, or none. Somebody at a terminal may be asked.
pub(crate) fn read(common: &Common) -> Result<Option<TrustedConfig>, Failure> {
    read_untrusted(common)?.map(|config| trust::confirm(common, config)).transpose()
}

/// The config in force, to be looked at: nothing of it may be started or reached.
pub(crate) fn read_untrusted(common: &Common) -> Result<Option<Config>, Failure> {
    let variable = std::env::var_os(config::VARIABLE).map(PathBuf::from);
    let lookup =
        config::find(common.config.as_deref(), variable.as_deref(), &Folders::of_process())
            .map_err(|error| wrong(&error))?;
    match lookup.found {
        Found::Embedded => Ok(None),
        Found::File(path) => read_file(&path).map(Some),
    }
}

/// Reads one file.
pub(crate) fn read_file(path: &Path) -> Result<Config, Failure> {
    Config::read(path).map_err(|unusable| {
        let mut errors = unusable.errors().iter();
        let mut failure = errors.next().map_or_else(|| Failure::usage(unusable.to_string()), wrong);
        for error in errors {
            failure.message =
                format!("{}\n       {}", failure.message, escaped(&error.to_string()));
        }
        failure
    })
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
    match read(common)? {
        Some(config) => prepare_trusted(common, config),
        None if common.locked || common.profile.is_some() => {
            let flag = if common.locked { "--locked" } else { "--profile" };
            Err(Failure::usage(format!("{flag} needs a config, and there is none")))
        }
        None => {
            let shaping = Shaping::default();
            let shaping = if common.read_only { shaping.read_only() } else { shaping };
            Ok(Prepared { config: None, settings: embedded()?, shaping, problems: Vec::new() })
        }
    }
}

/// What a config that was read comes to. One that is not trusted is refused, and nobody is asked.
pub(crate) fn prepare_of(common: &Common, config: Config) -> Result<Prepared, Failure> {
    prepare_trusted(common, trust::verify(common, config)?)
}

fn prepare_trusted(common: &Common, config: TrustedConfig) -> Result<Prepared, Failure> {
    let (mut settings, mut problems) = settings_of(&config);
    let lock = locked(common, &config)?;
    if let Some(lock) = &lock {
        for server in &config.servers {
            let Some(reason) = lock.withheld_server(&server.name, &lock::launch(server)) else {
                continue;
            };
            if common.locked && !server.disabled {
                let message = format!("`{}` is not started: {reason}", server.name);
                let hint = format!("agree with `consort lock --update {}`", server.name);
                return Err(Failure { exit: Exit::Differs, ..Failure::usage(message).hint(hint) });
            }
            settings.servers.retain(|known| known.id != server.name);
            let problem = Problem::warning(format!("not started: {reason}")).of(&server.name);
            let hint = format!("agree with `consort lock --update {}`", server.name);
            problems.push(problem.hint(hint));
        }
    }
    let mut shaping = Shaping::of(&config).locked(lock.map(Arc::new)).approved(approvals::kept());
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
    Ok(Prepared { config: Some(config.into_inner()), settings, shaping, problems })
}

/// The lock beside a config, if there is one.
fn locked(common: &Common, config: &Config) -> Result<Option<Lock>, Failure> {
    let path = lock::path(&config.file);
    let found = lock::read(&path).map_err(|error| {
        let failure = Failure::usage(escaped(&error.to_string()));
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })?;
    if common.locked && found.is_none() {
        let message = format!("there is no lock `{}`", path.display());
        return Err(Failure::usage(message).hint("write one with `consort lock`"));
    }
    Ok(found)
}

/// Settings from a config, and what is wrong with it.
pub(crate) fn settings_of(config: &TrustedConfig) -> (Settings, Vec<Problem>) {
    let mut settings = Settings {
        kept: kept_folder(),
        schemas: config.options.limits.schemas(),
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
    let resolve = System::asking(ask);
    for server in &config.servers {
        match logins::settings(server, &resolve) {
            Ok(made) => settings.servers.push(made),
            Err(error) => problems.push(Problem::from(&error)),
        }
    }
    (settings, problems)
}

/// Asks the person at the terminal for an input the config wants; nothing without a terminal.
pub(crate) fn ask(input: &Input) -> Option<String> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return None;
    }
    let about = escaped_line(input.description.as_deref().unwrap_or(&input.id));
    let choices = match &input.kind {
        InputKind::PickString { options } => format!(" [{}]", escaped_line(&options.join(", "))),
        InputKind::PromptString { .. } => String::new(),
    };
    let secret = matches!(input.kind, InputKind::PromptString { password: true });
    let mut err = std::io::stderr();
    let _ = write!(err, "{about}{choices}: ");
    let _ = err.flush();
    let answer = if secret { crate::person::read_secret() } else { crate::person::read_line() };
    answer.filter(|answer| !answer.is_empty())
}

/// Shows a problem.
pub(crate) fn tell(problem: &Problem) {
    note(format!("{}: {}", problem.severity, escaped(&problem.to_string())));
    if let Some(hint) = &problem.hint {
        note(format!("   hint: {}", escaped(hint)));
    }
}

/// What there is with nothing configured: the local tools and the demo server.
pub(crate) fn embedded() -> Result<Settings, Failure> {
    let demo = consort::demo::server()
        .map_err(|error| Failure::usage(format!("cannot find this program: {error}")))?;
    let mut settings = Settings { servers: vec![demo], kept: kept_folder(), ..Settings::default() };
    settings.local.insert(ServerId::derive("builtin"), builtin());
    Ok(settings)
}

/// Takes the permissions of group and others away from what earlier versions kept, under whatever umask.
pub(crate) fn restrict_folders() {
    let cache = kept_folder().and_then(|folder| Some(folder.parent()?.to_owned()));
    for folder in [state_folder(), data_folder(), cache].into_iter().flatten() {
        if let Err(error) = consort_files::restrict_folder(&folder) {
            let folder = escaped_line(&folder.display().to_string());
            note(format!("warning: others may read `{folder}`: {error}"));
        }
    }
}

/// Where what we write between runs is kept.
pub(crate) fn state_folder() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let state = state.filter(|folder| folder.is_absolute());
    let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
    Some(state.or_else(|| Some(home?.join(".local/state")))?.join("consort"))
}

/// Where what people want to keep is kept.
pub(crate) fn data_folder() -> Option<PathBuf> {
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let data = data.filter(|folder| folder.is_absolute());
    let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
    Some(data.or_else(|| Some(home?.join(".local/share")))?.join("consort"))
}

/// Where what servers offer is kept.
fn kept_folder() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.filter(|path| path.is_absolute());
    let cache = cache.or_else(|| Some(std::env::home_dir()?.join(".cache")))?;
    Some(cache.join("consort").join("catalog"))
}
