//! The config, its lock and its secrets as they change: a sound change is taken over while we serve, and
//! until then the last one stays in force.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use consort::config::{Options, System};
use consort_agent::sub::Roster;
use consort_core::{Problem, Severity};
use consort_gateway::{Access, Gateway, Records};
use consort_hub::Hub;
use consort_shape::Approved;
use consort_shape::pin::Lock;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::changes;
use super::in_force::{InForce, broken, key, lost};
use super::offered::{Offered, Parts};
use super::openai::OpenAi;
use super::records::configure;
use super::settings::{access, permissions};
use super::token::MissingToken;
use super::watch::FileWatch;
use crate::cli::{Common, Serve};
use crate::console::{Console, Scene};
use crate::exit::Failure;
use crate::reloading::{KeptOut, ReloadHandle, ReloadReport, ReloadRequest, ReloadTrigger};
use crate::running::{self, ConfigSource, Prepared, tell};

/// How long calls to servers that are gone may take to end.
const DRAIN: Duration = Duration::from_secs(30);

/// What follows the config.
pub(super) struct Following<'a> {
    pub(super) common: &'a Common,
    pub(super) serve: &'a Serve,
    pub(super) hub: &'a Hub,
    pub(super) gateway: &'a Gateway,
    pub(super) records: &'a Records,
    /// What people agreed to holds on, whatever the config becomes.
    pub(super) approvals: Arc<Approved>,
    pub(super) openai: &'a OpenAi,
    pub(super) console: Option<&'a Console>,
    pub(super) roster: &'a Arc<Roster>,
    /// Answers that somebody gave once are not asked for again.
    pub(super) resolve: &'a System,
    pub(super) handle: &'a ReloadHandle,
}

/// A config that cannot be taken over.
struct Refused {
    reason: String,
    /// Whether it can be once somebody accepts it.
    acceptable: bool,
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self { reason: failure.message, acceptable: false }
    }
}

impl Following<'_> {
    /// Follows the files, and takes them over whenever a change has settled, somebody asks for it or we
    /// get SIGHUP.
    pub(super) async fn follow(
        &self,
        mut state: InForce,
        mut requests: mpsc::Receiver<ReloadRequest>,
    ) -> Infallible {
        let Ok(mut hangup) = signal(SignalKind::hangup()) else { std::future::pending().await };
        loop {
            let (trigger, reply) = tokio::select! {
                _ = hangup.recv() => (ReloadTrigger::Demand, None),
                Some(request) = requests.recv() => (request.trigger, Some(request.reply)),
                () = tokio::time::sleep(state.options.limits.reload().poll) => (ReloadTrigger::Change, None),
            };
            let report = self.turn(&mut state, trigger);
            if let Some(reply) = reply {
                // Whoever asked may have left.
                let _ = reply.send(report);
            }
        }
    }

    /// Looks at the files once, and takes over what counts.
    fn turn(&self, state: &mut InForce, trigger: ReloadTrigger) -> ReloadReport {
        if trigger == ReloadTrigger::DryRun {
            return self.rehearse(state);
        }
        let asked = trigger != ReloadTrigger::Change;
        let look = state.look(asked);
        if !(look.config || look.lock || look.secrets) {
            return ReloadReport::default();
        }
        let before = state.kept_out.clone();
        let source = if look.config { state.read_config(trigger) } else { state.source.clone() };
        let lock = if look.lock { state.read_lock(trigger) } else { state.lock.clone() };
        if look.secrets {
            let gone = state.secrets.lost().next().map(lost);
            state.kept_out.secrets = gone.map(|reason| KeptOut::new("secrets", reason, false));
        }
        let changed = source != state.source || lock != state.lock;
        let renewed = look.secrets && state.kept_out.secrets.is_none();
        let mut changes = Vec::new();
        if asked || changed || renewed {
            changes = self.take_over(state, source, lock, trigger);
        }
        let refused = state.kept_out.all().any(|it| !before.all().any(|known| known == it));
        if asked || changed || renewed || refused {
            self.records.metrics.reloads.count(state.kept_out.all().next().is_none());
        }
        for kept_out in state.kept_out.all() {
            if asked || !before.all().any(|known| known == kept_out) {
                kept_out.log();
            }
        }
        if self.handle.publish(state.kept_out.all().cloned().collect())
            && let Some(console) = self.console
        {
            console.told();
        }
        let config = state.file.as_ref().map(|file| file.display().to_string());
        ReloadReport { config, changes, kept_out: state.kept_out.all().cloned().collect() }
    }

    /// Returns what a reload would do, and does nothing of it.
    fn rehearse(&self, state: &mut InForce) -> ReloadReport {
        let before = state.kept_out.clone();
        let source = state.read_config(ReloadTrigger::DryRun);
        let lock = state.read_lock(ReloadTrigger::DryRun);
        let changes = match self.apply(state, source, lock, ReloadTrigger::DryRun) {
            Ok(changes) => changes,
            Err(refused) => {
                let kept_out = KeptOut::new("config", refused.reason, refused.acceptable);
                state.kept_out.config = Some(kept_out);
                Vec::new()
            }
        };
        let config = state.file.as_ref().map(|file| file.display().to_string());
        let kept_out = state.kept_out.all().cloned().collect();
        state.kept_out = before;
        ReloadReport { config, changes, kept_out }
    }

    /// Takes over a config and a lock as a whole or not at all, and returns what is different. A config
    /// that cannot be used does not keep a lock from counting.
    fn take_over(
        &self,
        state: &mut InForce,
        source: Option<ConfigSource>,
        lock: Option<Lock>,
        trigger: ReloadTrigger,
    ) -> Vec<String> {
        let is_new = source != state.source;
        match self.apply(state, source, lock.clone(), trigger) {
            Ok(changes) => {
                state.kept_out.secrets = None;
                for change in &changes {
                    tracing::info!(change, "the config changed");
                }
                let file = state.file.as_deref().unwrap_or(Path::new("")).display();
                tracing::info!(%file, "the config is in force as it is now");
                changes
            }
            Err(refused) if is_new => {
                let kept_out = KeptOut::new("config", refused.reason, refused.acceptable);
                state.kept_out.config = Some(kept_out);
                if lock == state.lock {
                    return Vec::new();
                }
                self.take_over(state, state.source.clone(), lock, trigger)
            }
            Err(refused) => {
                let kept_out = KeptOut::new("secrets", refused.reason, refused.acceptable);
                state.kept_out.secrets = Some(kept_out);
                Vec::new()
            }
        }
    }

    fn apply(
        &self,
        state: &mut InForce,
        source: Option<ConfigSource>,
        lock: Option<Lock>,
        trigger: ReloadTrigger,
    ) -> Result<Vec<String>, Refused> {
        let Some(source) = source else {
            if trigger == ReloadTrigger::DryRun {
                return Ok(Vec::new());
            }
            self.gateway.set_access(&self.access(&Options::default())?.0);
            state.secrets.mark();
            return Ok(Vec::new());
        };
        let config = source.parse()?;
        let options = config.options.clone();
        let dangling = config.dangling_names();
        let prepared = running::prepare_of(self.common, config, lock.clone(), self.resolve)?;
        let Prepared { config, settings, shaping, problems } = prepared;
        let shaping = shaping.approved(Arc::clone(&self.approvals));
        let broken = broken(&problems);
        // What did not work before is no reason to refuse the rest.
        let worse = problems.iter().find(|problem| {
            problem.severity == Severity::Error && !state.broken.contains(&key(problem))
        });
        if let Some(problem) = worse.filter(|_| trigger != ReloadTrigger::Accept) {
            return Err(Refused { reason: problem.to_string(), acceptable: true });
        }
        let parts = Parts {
            hub: self.hub,
            records: self.records,
            options: &options,
            file: Some(source.file.clone()),
            only: self.common.profile.as_deref(),
            roster: self.roster,
            desk: self.console.map(Console::desk),
        };
        let Offered { toolboxes, askable, tools, views, shaping, problems: left_out, agents } =
            parts.offered(shaping)?;
        let (access, mut files) = self.access(&options)?;
        files.extend(self.resolve.take_files());
        files.extend(shaping.models().iter().flat_map(|models| models.files().clone()));
        files.extend(instructions(&source.file, &options));
        let gone = state.secrets.lost().find(|file| files.iter().any(|used| used == file));
        if let Some(file) = gone.filter(|_| trigger != ReloadTrigger::Accept) {
            return Err(Refused { reason: lost(file), acceptable: true });
        }
        let mut changes = changes::of_servers(&state.servers, &settings.servers);
        changes.extend(changes::of_options(&state.options, &options));
        changes.extend(changes::of_locks(state.lock.as_ref(), lock.as_ref()));
        if trigger == ReloadTrigger::DryRun {
            return Ok(changes);
        }
        let problems: Vec<Problem> = problems.into_iter().chain(left_out).chain(dangling).collect();
        problems.iter().for_each(tell);
        state.servers.clone_from(&settings.servers);
        self.hub.reload(settings.servers, settings.reserved, DRAIN);
        self.roster.set(agents);
        self.openai.set(Arc::clone(&askable));
        self.gateway.set(toolboxes);
        self.gateway.set_access(&access);
        self.gateway.set_permissions(permissions(self.serve, &options));
        configure(self.records, self.serve, &options);
        // Last: whoever waits there for a config waits for all of this.
        if let Some(console) = self.console {
            console.set(Scene { config, shaping, tools, views, askable, problems });
        }
        state.secrets = FileWatch::known(files);
        (state.options, state.lock, state.broken) = (options, lock, broken);
        state.source = Some(source);
        Ok(changes)
    }

    /// Who may use the gateway, and the files that say so.
    fn access(&self, options: &Options) -> Result<(Access, Vec<PathBuf>), Refused> {
        let (access, kept) = access(self.serve, options, MissingToken::Leave)?;
        if matches!(access, Access::Tokens(_)) && kept.is_none() {
            let reason = "the owner's token is missing: the last one stays in force".to_owned();
            return Err(Refused { reason, acceptable: false });
        }
        let owner = kept.map(|kept| kept.file);
        Ok((access, token_files(options, owner.as_deref())))
    }
}

/// The files that tokens are in.
pub(super) fn token_files(options: &Options, owner: Option<&Path>) -> Vec<PathBuf> {
    // Without a token of the owner none is asked for.
    let Some(owner) = owner else { return Vec::new() };
    let others = options.tokens.values().filter_map(|place| place.strip_prefix("file:"));
    let others = others.filter_map(|file| {
        consort::config::expand_variables(file, |name| std::env::var(name).ok()).ok()
    });
    others.map(PathBuf::from).chain([owner.to_owned()]).collect()
}

/// The files that agents are instructed by.
pub(super) fn instructions(config: &Path, options: &Options) -> Vec<PathBuf> {
    let folder = config.parent().unwrap_or(Path::new(""));
    let files = options.agents.values().filter_map(|agent| agent.instructions_file.as_ref());
    files.map(|file| folder.join(file)).collect()
}
