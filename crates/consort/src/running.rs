//! From config to a running hub, as commands need it.

mod prepare;

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use consort::config::{Config, Input, InputKind};
use consort::shaping::{self, Layers, Shaping};
use consort_core::{CallError, Caller, Catalog, Entry, Problem, ServerId, ShelfKind, Toolbox};
use consort_hub::{Connect, Hub, Settings, State, Status, builtin};
use consort_shape::Exposure;
use consort_wire::Host;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::task::JoinSet;

use crate::cli::Common;
use crate::exit::Failure;
use crate::output::{aside, escaped, escaped_line, note};
pub(crate) use prepare::{
    ConfigSource, Prepared, ShapedConfig, locked, prepare, prepare_of, prepare_source, read_file,
    read_untrusted, read_usable, refuse_blocking, settings_of, shape, source, wrong,
};

/// A hub that commands use.
pub(crate) struct Running {
    pub(crate) hub: Hub,
    /// What is on offer, as the config has it.
    pub(crate) toolbox: Arc<dyn Toolbox>,
    /// What it goes through.
    pub(crate) shaping: Shaping,
    /// What is wrong with the config, told already.
    pub(crate) problems: Vec<Problem>,
    /// The config, if there is one.
    pub(crate) config: Option<Config>,
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
        let Prepared { config, mut settings, shaping, problems } = prepare(common)?;
        for problem in &problems {
            tell(problem);
        }
        for server in &mut settings.servers {
            server.connect = Connect::Call;
        }
        settings.host = host;
        Ok(Self { config, ..Self::of(settings, shaping, problems) })
    }

    /// Starts a hub as it is described.
    pub(crate) fn of(settings: Settings, shaping: Shaping, problems: Vec<Problem>) -> Self {
        let hub = Hub::start(settings);
        let layers = shaping.over(Arc::new(hub.clone()), &shaping::unwrapped);
        let toolbox = layers.tools(None).unwrap_or_else(|| layers.servers());
        Self { hub, toolbox, shaping, problems, config: None }
    }

    /// The layers over the hub.
    pub(crate) fn layers(&self) -> Layers<'_> {
        self.shaping.over(Arc::new(self.hub.clone()), &shaping::unwrapped)
    }

    /// What a model sees of what is on offer, by the exposure of the config or by another one.
    pub(crate) fn view(&self, exposure: Option<Exposure>) -> Arc<dyn Toolbox> {
        self.layers().view(None, exposure).unwrap_or_else(|| Arc::clone(&self.toolbox))
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

    /// Reaches every server, asks each for a sign of life, and returns how they are doing. One that did not answer is
    /// not ready, whatever it became since. Servers that the config or the lock keeps from starting are listed too.
    pub(crate) async fn diagnose(&self) -> Vec<Status> {
        let mut probing = JoinSet::new();
        for Status { server, state, .. } in self.hub.statuses() {
            if state != State::Disabled {
                let hub = self.hub.clone();
                probing.spawn(async move {
                    let failure = hub.probe(&server).await.err();
                    (server, failure)
                });
            }
        }
        let waiting = waiting(probing.len());
        let mut silent = BTreeMap::new();
        let mut slow = SlowStarts::new(&self.hub);
        while let Some(probed) = slow.beside(probing.join_next(), &waiting).await {
            waiting.inc(1);
            if let Ok((server, Some(error))) = probed {
                silent.insert(server, error);
            }
        }
        waiting.finish_and_clear();
        let mut statuses = self.hub.statuses();
        for status in &mut statuses {
            if let Some(error) = silent.get(&status.server) {
                blame(status, error);
            }
        }
        statuses.extend(self.unusable());
        statuses
    }

    /// Returns whether a problem is about a server that can be started.
    pub(crate) fn starts(&self, problem: &Problem) -> bool {
        let statuses = self.hub.statuses();
        statuses.iter().any(|status| problem.server.as_ref() == Some(&status.server))
    }

    /// Servers that are configured and cannot be used, with the first problem of each.
    fn unusable(&self) -> Vec<Status> {
        let statuses = self.hub.statuses();
        let mut unusable: Vec<Status> = Vec::new();
        for problem in &self.problems {
            let Some(server) = &problem.server else { continue };
            let is_listed = |status: &Status| status.server == *server;
            if !statuses.iter().any(is_listed) && !unusable.iter().any(is_listed) {
                unusable.push(Status {
                    error: Some(problem.message.clone()),
                    hint: problem.hint.clone(),
                    ..Status::new(server.clone(), State::Failed)
                });
            }
        }
        unusable
    }

    /// The tool, prompt or resource that a text means. If what is kept does not tell, the servers that may have it
    /// are asked: the one that the text names, else all.
    pub(crate) async fn resolve(&self, kind: ShelfKind, text: &str) -> Result<Entry, CallError> {
        let catalog = self.catalog();
        if catalog.resolve_on(kind, text).is_err() && catalog.named_server(text).is_none() {
            self.reach(None, Need::Fresh).await;
        }
        let waiting = waiting(catalog.named_server(text).iter().len());
        let found = consort_core::resolve(&*self.toolbox, &caller(), kind, text).await;
        waiting.finish_and_clear();
        found
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
        let mut slow = SlowStarts::new(&self.hub);
        while let Some(reached) = slow.beside(reaching.join_next(), &waiting).await {
            waiting.inc(1);
            if let Ok(Some(error)) = reached {
                let failure = Failure::from(error);
                waiting.suspend(|| note(format!("warning: {}", failure.message)));
            }
        }
        waiting.finish_and_clear();
    }
}

/// Servers whose start takes long, each told of once.
struct SlowStarts<'a> {
    hub: &'a Hub,
    changes: tokio::sync::watch::Receiver<u64>,
    told: BTreeSet<ServerId>,
}

impl<'a> SlowStarts<'a> {
    fn new(hub: &'a Hub) -> Self {
        Self { hub, changes: hub.stirred(), told: BTreeSet::new() }
    }

    /// Waits for something, and tells of slow starts meanwhile.
    async fn beside<T>(&mut self, awaited: impl Future<Output = T>, bar: &ProgressBar) -> T {
        let mut awaited = std::pin::pin!(awaited);
        loop {
            tokio::select! {
                biased;
                awaited = &mut awaited => return awaited,
                Ok(()) = self.changes.changed() => self.tell(bar),
            }
        }
    }

    fn tell(&mut self, bar: &ProgressBar) {
        for status in self.hub.statuses() {
            if let (State::Connecting, Some(hint)) = (status.state, &status.hint)
                && self.told.insert(status.server.clone())
            {
                bar.suspend(|| note(format!("{}: {}", status.server, escaped(hint))));
            }
        }
    }
}

/// Notes why a server did not answer, unless its status says so itself.
fn blame(status: &mut Status, error: &CallError) {
    if matches!(status.state, State::NeedsAuth | State::Failed | State::Degraded) {
        return;
    }
    status.state = State::Failed;
    if status.error.is_none() {
        status.error = Some(match error {
            CallError::Connection { source, .. } => source.to_string(),
            CallError::OutcomeUnknown { reason, .. } => reason.clone(),
            error => error.to_string(),
        });
        status.detail = error.detail().cloned().unwrap_or_default();
    }
}

/// Returns what is wrong with a server, unless it is ready or switched off.
pub(crate) fn not_ready(status: &Status) -> Option<Problem> {
    let reason = status.reason_for_operator().unwrap_or_else(|| "no reason given".to_owned());
    let problem = match status.state {
        State::Ready | State::Disabled => return None,
        State::Degraded => Problem::warning(format!("degraded: {reason}")),
        State::NeedsAuth | State::Failed => Problem::error(format!("{}: {reason}", status.state)),
        State::Configured | State::Known | State::Connecting => {
            Problem::error(format!("not ready ({}): {reason}", status.state))
        }
    };
    let problem = problem.of(&status.server);
    Some(status.hint.iter().fold(problem, |problem, hint| problem.hint(hint.clone())))
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
    aside(&format!("{about}{choices}: ").into());
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
pub(crate) fn kept_folder() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.filter(|path| path.is_absolute());
    let cache = cache.or_else(|| Some(std::env::home_dir()?.join(".cache")))?;
    Some(cache.join("consort").join("catalog"))
}
